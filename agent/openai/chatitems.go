package openai

import (
	"encoding/json"
	"strings"

	"github.com/tidwall/gjson"
)

// chatMessage is one message of a Chat Completions request.
type chatMessage struct {
	Role string `json:"role"`
	// Content is a string, a list of parts, or null.
	Content    any        `json:"content,omitempty"`
	Reasoning  string     `json:"reasoning_content,omitempty"`
	ToolCalls  []chatCall `json:"tool_calls,omitempty"`
	ToolCallID string     `json:"tool_call_id,omitempty"`
}

type chatCall struct {
	ID       string       `json:"id"`
	Type     string       `json:"type"`
	Function chatFunction `json:"function"`
}

type chatFunction struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

type chatPart struct {
	Type     string     `json:"type"`
	Text     string     `json:"text,omitempty"`
	ImageURL *chatImage `json:"image_url,omitempty"`
}

type chatImage struct {
	URL    string `json:"url"`
	Detail string `json:"detail,omitempty"`
}

// chatMessages converts instructions and repaired items to messages. What a model made between two
// messages of people or outputs becomes one message, and the outputs of its calls follow it at once, as
// the API demands. Items that Chat Completions has no form for are left out.
//
// Generic servers get a text as one string, and the messages that one role sent in a row as one: the
// templates of many models take neither lists nor two messages of one role.
func chatMessages(d Dialect, instructions string, items []json.RawMessage) []chatMessage {
	c := chatConverter{dialect: d, outputs: make(map[string]string)}
	if instructions != "" {
		c.messages = append(c.messages, chatMessage{Role: "system", Content: instructions})
	}
	parsed := make([]gjson.Result, len(items))
	for i, raw := range items {
		parsed[i] = gjson.ParseBytes(raw)
		if parsed[i].Get("type").Str == "function_call_output" {
			c.outputs[parsed[i].Get("call_id").Str] = partsText(parsed[i].Get("output"))
		}
		if parsed[i].Get("role").Str == "user" {
			c.lastUser = i
		}
	}
	for i, v := range parsed {
		c.item(i, v)
	}
	c.flush()
	return c.messages
}

type chatConverter struct {
	dialect  Dialect
	messages []chatMessage
	// outputs holds the outputs by call ID, lastUser the index of the last message of a person.
	outputs  map[string]string
	lastUser int
	// text, reasoning and calls are what the model made since the last flush.
	text, reasoning []string
	calls           []chatCall
}

func (c *chatConverter) item(i int, v gjson.Result) {
	role := v.Get("role").Str
	switch typ := v.Get("type").Str; {
	case role == "assistant":
		if text := partsText(v.Get("content")); text != "" {
			c.text = append(c.text, text)
		}
	case role != "":
		c.flush()
		c.person(role, v.Get("content"))
	case typ == "function_call":
		id := v.Get("call_id").Str
		if _, answered := c.outputs[id]; !answered {
			return
		}
		c.calls = append(c.calls, chatCall{ID: id, Type: "function", Function: chatFunction{
			Name: v.Get("name").Str, Arguments: v.Get("arguments").Str,
		}})
	case typ == "function_call_output":
		c.flush()
	case typ == "reasoning":
		// Only within the turn under way, and only readable reasoning: it is asked for again with the
		// outputs of the tools that it led to, and refused later.
		if text := partsText(v.Get("content")); c.dialect == Generic && i > c.lastUser && text != "" {
			c.reasoning = append(c.reasoning, text)
		}
	}
}

// flush ends a message of the assistant and puts the outputs of its calls behind it.
func (c *chatConverter) flush() {
	if len(c.text) == 0 && len(c.calls) == 0 {
		c.reasoning = nil
		return
	}
	m := chatMessage{Role: "assistant", ToolCalls: c.calls}
	if len(c.text) > 0 {
		m.Content = strings.Join(c.text, "\n\n")
	}
	if len(c.calls) > 0 {
		m.Reasoning = strings.Join(c.reasoning, "\n\n")
	}
	c.add(m)
	for _, call := range c.calls {
		c.add(chatMessage{Role: "tool", ToolCallID: call.ID, Content: c.outputs[call.ID]})
	}
	c.text, c.reasoning, c.calls = nil, nil, nil
}

// person converts a message that no model made.
func (c *chatConverter) person(role string, content gjson.Result) {
	if role == "developer" && c.dialect == Generic {
		role = "system"
	}
	var parts []chatPart
	image := false
	if content.Type == gjson.String {
		parts = []chatPart{{Type: "text", Text: content.Str}}
	}
	content.ForEach(func(_, p gjson.Result) bool {
		switch p.Get("type").Str {
		case "input_text", "output_text", "text":
			parts = append(parts, chatPart{Type: "text", Text: p.Get("text").Str})
		case "input_image":
			if url := p.Get("image_url").Str; url != "" {
				image = true
				parts = append(parts, chatPart{Type: "image_url", ImageURL: &chatImage{URL: url, Detail: p.Get("detail").Str}})
			}
		}
		return true
	})
	if image && role == "user" {
		c.add(chatMessage{Role: role, Content: parts})
		return
	}
	var texts []string
	for _, p := range parts {
		if p.Text != "" {
			texts = append(texts, p.Text)
		}
	}
	if len(texts) > 0 {
		c.add(chatMessage{Role: role, Content: strings.Join(texts, "\n")})
	}
}

// add appends a message, or for generic servers adds its text to the one before, of the same role.
func (c *chatConverter) add(m chatMessage) {
	if n := len(c.messages); c.dialect == Generic && n > 0 && m.Role != "tool" && len(m.ToolCalls) == 0 {
		last := &c.messages[n-1]
		before, ok1 := last.Content.(string)
		text, ok2 := m.Content.(string)
		if ok1 && ok2 && last.Role == m.Role && len(last.ToolCalls) == 0 {
			last.Content = before + "\n\n" + text
			return
		}
	}
	c.messages = append(c.messages, m)
}
