package openai

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"

	openai "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"
	"github.com/tidwall/gjson"

	"botd/agent"
)

var responsesDriver = &driver{path: "responses", params: responsesParams, read: readResponses}

// responsesParams makes the body of POST /responses.
func responsesParams(d Dialect, req *agent.Request) ([]byte, error) {
	p := responses.ResponseNewParams{Model: req.Model}
	if req.Instructions != "" {
		p.Instructions = openai.String(req.Instructions)
	}
	for _, t := range req.Tools {
		p.Tools = append(p.Tools, param.Override[responses.ToolUnionParam](responsesTool(t)))
	}
	if req.NoTools {
		p.ToolChoice.OfToolChoiceMode = param.NewOpt(responses.ToolChoiceOptionsNone)
	}
	if req.Temperature != nil {
		p.Temperature = openai.Float(*req.Temperature)
	}
	if req.MaxOutputTokens > 0 {
		p.MaxOutputTokens = openai.Int(int64(req.MaxOutputTokens))
	}
	if d != Generic {
		p.Store = openai.Bool(false)
		p.Include = []responses.ResponseIncludable{responses.ResponseIncludableReasoningEncryptedContent}
		if req.CacheKey != "" {
			p.PromptCacheKey = openai.String(req.CacheKey)
		}
		if req.Safety != "" && d == OpenAI {
			p.SafetyIdentifier = openai.String(req.Safety)
		}
	}
	fields, err := p.MarshalJSON()
	if err != nil {
		return nil, err
	}
	return withConversation(fields, "input", responsesInput(d, req.Input)), nil
}

func responsesTool(t agent.ToolSpec) json.RawMessage {
	return encode(struct {
		Type        string          `json:"type"`
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		Parameters  json.RawMessage `json:"parameters"`
		Strict      bool            `json:"strict"`
	}{"function", t.Name, t.Description, t.Parameters, false})
}

// responsesAnswer collects a streamed answer.
type responsesAnswer struct {
	items []indexed
	// text tells that text was passed on, gap that a new message has begun since.
	text, gap bool
}

type indexed struct {
	index int64
	raw   json.RawMessage
}

func readResponses(resp *http.Response, req *agent.Request, yield func(agent.ModelEvent, error) bool) (*agent.Completion, error) {
	body, err := openBody(resp)
	if err != nil {
		return nil, err
	}
	var a responsesAnswer
	if body.whole != nil {
		if e := gjson.GetBytes(body.whole, "error"); e.Exists() && e.Type != gjson.Null {
			return nil, failureFromJSON(body.whole)
		}
		return a.finish(gjson.ParseBytes(body.whole), req)
	}
	for ev, err := range body.events {
		if err != nil {
			return nil, err
		}
		v := gjson.ParseBytes(ev.Data)
		typ := v.Get("type").Str
		if typ == "" {
			typ = ev.Type
		}
		switch typ {
		case "response.output_text.delta", "response.refusal.delta":
			if !a.delta(v.Get("delta").Str, yield) {
				return nil, errStopped
			}
		case "response.output_item.added":
			a.gap = a.text && v.Get("item.type").Str == "message"
		case "response.output_item.done":
			a.items = append(a.items, indexed{v.Get("output_index").Int(), json.RawMessage(v.Get("item").Raw)})
		case "response.completed", "response.incomplete":
			return a.finish(v.Get("response"), req)
		case "response.failed", "response.cancelled":
			return nil, failureFromJSON([]byte(v.Get("response").Raw))
		case "error":
			return nil, failureFromJSON(ev.Data)
		default:
			if e := v.Get("error"); e.IsObject() || e.Type == gjson.String {
				return nil, failureFromJSON(ev.Data)
			}
		}
	}
	return nil, early("the stream ended before the answer did")
}

func (a *responsesAnswer) delta(text string, yield func(agent.ModelEvent, error) bool) bool {
	if text == "" {
		return true
	}
	if a.gap {
		text = "\n\n" + text
		a.gap = false
	}
	a.text = true
	return yield(agent.ModelEvent{Delta: text}, nil)
}

// finish makes the completion of a response that has ended.
func (a *responsesAnswer) finish(r gjson.Result, req *agent.Request) (*agent.Completion, error) {
	status := r.Get("status").Str
	reason := r.Get("incomplete_details.reason").Str
	switch {
	case status == "failed" || status == "cancelled":
		return nil, failureFromJSON([]byte(r.Raw))
	case status != "completed" && status != "incomplete":
		return nil, early("the answer is not a response")
	}
	done := &agent.Completion{Truncated: status == "incomplete"}
	if out := r.Get("output").Array(); len(out) > 0 {
		for _, it := range out {
			done.Items = append(done.Items, json.RawMessage(it.Raw))
		}
	} else {
		slices.SortStableFunc(a.items, func(x, y indexed) int { return cmp.Compare(x.index, y.index) })
		for _, it := range a.items {
			done.Items = append(done.Items, it.raw)
		}
	}
	// A call that was cut off cannot be run, and what it was to be is not known.
	done.Items = slices.DeleteFunc(done.Items, func(raw json.RawMessage) bool {
		v := gjson.GetManyBytes(raw, "type", "status")
		return v[0].Str == "function_call" && v[1].Str != "" && v[1].Str != "completed"
	})
	if len(done.Items) == 0 && reason == "content_filter" {
		return nil, &failure{code: "content_filter"}
	}
	u := r.Get("usage")
	done.Usage = estimate(agent.Usage{
		InputTokens:     int(u.Get("input_tokens").Int()),
		CachedTokens:    int(u.Get("input_tokens_details.cached_tokens").Int()),
		OutputTokens:    int(u.Get("output_tokens").Int()),
		ReasoningTokens: int(u.Get("output_tokens_details.reasoning_tokens").Int()),
	}, req, done.Items)
	return done, nil
}
