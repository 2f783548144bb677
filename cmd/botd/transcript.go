package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// printTranscript writes a session as people read it.
func printTranscript(w io.Writer, s shown) error {
	fmt.Fprintf(w, "%s: %s, reset %s, last written %s\n", printable(string(s.Session.ID)),
		count(s.Session.Items, "item", "items"), count(int(s.Session.Generation), "time", "times"), when(s.Session.Updated))
	for _, a := range s.Session.Archives {
		fmt.Fprintf(w, "can be restored until %s: generation %d, %s, reset at %s\n",
			when(a.Until), a.Generation, count(a.Items, "item", "items"), when(a.At))
	}
	if hidden := s.Session.Items - len(s.Items); hidden > 0 {
		fmt.Fprintf(w, "(%s before these)\n", count(hidden, "item", "items"))
	}
	for _, it := range s.Items {
		speaker, text := reading(it.Raw)
		fmt.Fprintf(w, "\n%s  %s\n", when(it.At), printable(speaker))
		for line := range strings.SplitSeq(text, "\n") {
			if _, err := fmt.Fprintf(w, "  %s\n", neutral(line, "\t")); err != nil {
				return err
			}
		}
	}
	return nil
}

// reading tells who an item is of and what it says; what is no message is shown as it is stored.
func reading(raw json.RawMessage) (speaker, text string) {
	var it struct {
		Type    string          `json:"type"`
		Role    string          `json:"role"`
		Name    string          `json:"name"`
		Content json.RawMessage `json:"content"`
		Call    string          `json:"arguments"`
		Output  json.RawMessage `json:"output"`
	}
	if json.Unmarshal(raw, &it) != nil {
		return "item", string(raw)
	}
	switch {
	case it.Role != "" && len(it.Content) > 0:
		if text, ok := contentText(it.Content); ok {
			return it.Role, text
		}
	case it.Type == "function_call":
		return "tool call", it.Name + " " + it.Call
	case it.Type == "function_call_output":
		if text, ok := contentText(it.Output); ok {
			return "tool output", text
		}
	}
	if it.Type == "" {
		it.Type = "item"
	}
	return it.Type, string(raw)
}

// contentText is the text of a content, a string or parts; parts without text are named by their type.
func contentText(raw json.RawMessage) (string, bool) {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text, true
	}
	var parts []struct {
		Type    string `json:"type"`
		Text    string `json:"text"`
		Refusal string `json:"refusal"`
	}
	if json.Unmarshal(raw, &parts) != nil {
		return "", false
	}
	lines := make([]string, len(parts))
	for i, p := range parts {
		switch {
		case p.Text != "":
			lines[i] = p.Text
		case p.Refusal != "":
			lines[i] = p.Refusal
		default:
			lines[i] = "[" + p.Type + "]"
		}
	}
	return strings.Join(lines, "\n"), true
}
