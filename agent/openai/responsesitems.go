package openai

import (
	"encoding/json"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"
)

// responsesInput is what of the items a provider gets by the Responses API. They go out as they are, but
// for those that the API has no place for: a message of the assistant without an identifier, as Chat
// Completions makes it, is sent in the short form, and reasoning without one not at all. Generic servers
// get only the items and the forms that all of them know.
func responsesInput(d Dialect, items []json.RawMessage) []json.RawMessage {
	out := make([]json.RawMessage, 0, len(items))
	for _, raw := range items {
		it := readItem(raw)
		switch it.typ {
		case "message":
			if it.role == "assistant" && (it.id == "" || d == Generic && hasRefusal(it.content)) && it.content.IsArray() {
				raw = shortMessage(raw, it.content)
			}
		case "reasoning":
			if it.id == "" {
				continue
			}
		case "function_call":
		case "function_call_output":
			if d == Generic && it.output.IsArray() {
				if b, err := sjson.SetBytes(raw, "output", partsText(it.output)); err == nil {
					raw = b
				}
			}
		default:
			if d == Generic {
				continue
			}
		}
		out = append(out, raw)
	}
	return out
}

// item is what the driver looks at in an item.
type item struct {
	typ, role, id   string
	content, output gjson.Result
}

func readItem(raw json.RawMessage) (it item) {
	gjson.ParseBytes(raw).ForEach(func(k, v gjson.Result) bool {
		switch k.Str {
		case "type":
			it.typ = v.Str
		case "role":
			it.role = v.Str
		case "id":
			it.id = v.Str
		case "content":
			it.content = v
		case "output":
			it.output = v
		}
		return true
	})
	if it.typ == "" && it.role != "" {
		it.typ = "message"
	}
	return it
}

func hasRefusal(content gjson.Result) bool {
	return content.Get(`#(type=="refusal")`).Exists()
}

// shortMessage is a message of the assistant in the form that needs no identifier.
func shortMessage(raw json.RawMessage, content gjson.Result) json.RawMessage {
	return encode(struct {
		Role    string `json:"role"`
		Content string `json:"content"`
		Phase   string `json:"phase,omitempty"`
	}{"assistant", partsText(content), gjson.GetBytes(raw, "phase").Str})
}

// partsText is the text of content, be it a string or a list of parts.
func partsText(content gjson.Result) string {
	if content.Type == gjson.String {
		return content.Str
	}
	var text string
	content.ForEach(func(_, p gjson.Result) bool {
		text += p.Get("text").Str + p.Get("refusal").Str
		return true
	})
	return text
}
