package agent

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/tidwall/gjson"

	"botd/sessionstore"
)

// head is what the engine looks at in an item; all else passes through unread.
type head struct {
	typ, role, id, callID, name string
	// envelope marks an item that the Agents SDK encrypted, private one with fields that are nobody's
	// business.
	envelope, private bool
}

// Types of items that the engine treats by name.
const (
	typeMessage   = "message"
	typeCall      = "function_call"
	typeOutput    = "function_call_output"
	typeReasoning = "reasoning"
	typeReference = "item_reference"
	typeCompact   = "compaction"
)

func peek(raw json.RawMessage) head {
	var h head
	gjson.ParseBytes(raw).ForEach(func(k, v gjson.Result) bool {
		switch {
		case k.Str == "__enc__":
			h.envelope = true
		case isPrivate(k.Str, v):
			h.private = true
		}
		if v.Type != gjson.String {
			return true
		}
		switch k.Str {
		case "type":
			h.typ = v.Str
		case "role":
			h.role = v.Str
		case "id":
			h.id = v.Str
		case "call_id":
			h.callID = v.Str
		case "name":
			h.name = v.Str
		}
		return true
	})
	// A message may come without a type, as the Agents SDK stores what people say.
	if h.typ == "" && h.role != "" {
		h.typ = typeMessage
	}
	return h
}

// isPrivate reports a field that the Agents SDK adds to items for itself, or leaves empty.
func isPrivate(key string, v gjson.Result) bool {
	return key == "provider_data" || strings.HasPrefix(key, "_agents_") || key == "status" && v.Type == gjson.Null
}

func (h head) isUser() bool      { return h.typ == typeMessage && h.role == "user" }
func (h head) isAssistant() bool { return h.typ == typeMessage && h.role == "assistant" }

// encode is json.Marshal without the escaping of <, > and &, which would grow what is stored.
func encode(v any) json.RawMessage {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic("encode item: " + err.Error()) // only strings and structs of strings come here
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}

// UserMessage is what a person said, as the Agents SDK stores it.
func UserMessage(text string) json.RawMessage {
	return encode(struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}{"user", text})
}

// AssistantMessage is a message of the assistant without an identifier, for models whose API gives none.
func AssistantMessage(text string) json.RawMessage {
	type part struct {
		Type        string   `json:"type"`
		Text        string   `json:"text"`
		Annotations []string `json:"annotations"`
	}
	return encode(struct {
		Type    string `json:"type"`
		Role    string `json:"role"`
		Status  string `json:"status"`
		Content []part `json:"content"`
	}{typeMessage, "assistant", "completed", []part{{"output_text", text, []string{}}}})
}

// FunctionCall is the call of a tool, without an identifier of its own.
func FunctionCall(callID, name, arguments string) json.RawMessage {
	return encode(struct {
		Type      string `json:"type"`
		CallID    string `json:"call_id"`
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	}{typeCall, callID, name, arguments})
}

// FunctionCallOutput is what a call gave, as the model reads it.
func FunctionCallOutput(callID, output string) json.RawMessage {
	return encode(struct {
		Type   string `json:"type"`
		CallID string `json:"call_id"`
		Output string `json:"output"`
	}{typeOutput, callID, output})
}

// answerText is the text of the messages in an answer. Where the model marks a message as its final
// answer, others (its commentary) are left out.
func answerText(items []json.RawMessage) string {
	var all, final []string
	for _, raw := range items {
		if !peek(raw).isAssistant() {
			continue
		}
		text := messageText(raw)
		if text == "" {
			continue
		}
		all = append(all, text)
		if gjson.GetBytes(raw, "phase").Str == "final_answer" {
			final = append(final, text)
		}
	}
	if len(final) > 0 {
		all = final
	}
	return strings.Join(all, "\n\n")
}

// messageText is the text of a message, or of its refusal.
func messageText(raw json.RawMessage) string { return messageTextOf(gjson.GetBytes(raw, "content")) }

// messageTextOf is the text of content, be it a string or a list of parts.
func messageTextOf(content gjson.Result) string {
	if content.Type == gjson.String {
		return content.Str
	}
	var b strings.Builder
	content.ForEach(func(_, part gjson.Result) bool {
		b.WriteString(part.Get("text").Str)
		b.WriteString(part.Get("refusal").Str)
		return true
	})
	return b.String()
}

func raws(items []sessionstore.Item) []json.RawMessage {
	out := make([]json.RawMessage, len(items))
	for i, it := range items {
		out[i] = it.Raw
	}
	return out
}

// origin is the value of sessionstore.Item.Origin for what m made for an agent.
func origin(agent string, m ModelRef) string { return agent + "@" + m.String() }

// originProvider returns the provider in an origin, "" when it names none.
func originProvider(origin string) string {
	_, model, ok := strings.Cut(origin, "@")
	if !ok {
		return ""
	}
	provider, _, _ := strings.Cut(model, "/")
	return provider
}
