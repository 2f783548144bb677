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
		v := gjson.GetManyBytes(raw, "type", "role", "id", "output", "content")
		typ, role, id := v[0].Str, v[1].Str, v[2].Str
		if typ == "" && role != "" {
			typ = "message"
		}
		switch typ {
		case "message":
			if role == "assistant" && (id == "" || d == Generic && hasRefusal(v[4])) && v[4].IsArray() {
				raw = shortMessage(raw, v[4])
			}
		case "reasoning":
			if id == "" {
				continue
			}
		case "function_call":
		case "function_call_output":
			if d == Generic && v[3].IsArray() {
				if b, err := sjson.SetBytes(raw, "output", partsText(v[3])); err == nil {
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
