package offline

import (
	"encoding/json"
	"regexp"
	"strings"
)

// said is one message of a person.
type said struct {
	speaker string // the opaque tag of the person in a group, empty in a direct chat
	text    string
}

// conversation is what the model makes of the items.
type conversation struct {
	// said holds all that people said, oldest first.
	said []said
	// toolOutput is the last output of a tool since the last message of a person.
	toolOutput string
}

// headerRE matches the header by which the engine names a speaker in a group.
var headerRE = regexp.MustCompile(`^\[from (?:"[^"]*"|someone)(?: id=([a-z0-9]+))?[^\]]*\]$`)

func readConversation(items []json.RawMessage) conversation {
	var c conversation
	for _, raw := range items {
		var it struct {
			Type    string          `json:"type"`
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
			Output  json.RawMessage `json:"output"`
		}
		if json.Unmarshal(raw, &it) != nil {
			continue
		}
		switch {
		case it.Role == "user":
			c.said = append(c.said, readMessage(it.Content))
			c.toolOutput = ""
		case it.Type == "function_call_output":
			var text string
			if json.Unmarshal(it.Output, &text) == nil {
				c.toolOutput = text
			}
		}
	}
	return c
}

func readMessage(content json.RawMessage) (s said) {
	if json.Unmarshal(content, &s.text) == nil {
		return s
	}
	var parts []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(content, &parts) != nil {
		return s
	}
	var texts []string
	for i, p := range parts {
		if m := headerRE.FindStringSubmatch(p.Text); i == 0 && m != nil {
			s.speaker = m[1]
			continue
		}
		texts = append(texts, p.Text)
	}
	s.text = strings.Join(texts, "\n")
	return s
}

// last is the message to answer.
func (c conversation) last() said {
	if len(c.said) == 0 {
		return said{}
	}
	return c.said[len(c.said)-1]
}

// bySpeaker returns what the person who spoke last said before, oldest first.
func (c conversation) bySpeaker() []string {
	var texts []string
	for i, s := range c.said {
		if i < len(c.said)-1 && s.speaker == c.last().speaker {
			texts = append(texts, s.text)
		}
	}
	return texts
}
