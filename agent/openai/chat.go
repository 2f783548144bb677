package openai

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	openai "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/shared"
	"github.com/tidwall/gjson"

	"botd/agent"
)

var chatDriver = &driver{path: "chat/completions", params: chatParams, read: readChat}

// chatParams makes the body of POST /chat/completions.
func chatParams(d Dialect, req *agent.Request) ([]byte, error) {
	p := openai.ChatCompletionNewParams{
		Model: req.Model,
		// Without it the count of tokens is left out of a stream.
		StreamOptions: openai.ChatCompletionStreamOptionsParam{IncludeUsage: openai.Bool(true)},
	}
	for _, t := range req.Tools {
		p.Tools = append(p.Tools, openai.ChatCompletionFunctionTool(
			param.Override[shared.FunctionDefinitionParam](chatTool(t))))
	}
	if req.NoTools {
		p.ToolChoice.OfAuto = openai.String("none")
	}
	if req.Temperature != nil {
		p.Temperature = openai.Float(*req.Temperature)
	}
	if d == Generic {
		if req.MaxOutputTokens > 0 {
			p.MaxTokens = openai.Int(int64(req.MaxOutputTokens))
		}
	} else {
		if req.MaxOutputTokens > 0 {
			p.MaxCompletionTokens = openai.Int(int64(req.MaxOutputTokens))
		}
		p.Store = openai.Bool(false)
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
	messages := chatMessages(d, req.Instructions, req.Input)
	raw := make([]json.RawMessage, len(messages))
	for i, m := range messages {
		raw[i] = encode(m)
	}
	return withConversation(fields, "messages", raw), nil
}

func chatTool(t agent.ToolSpec) json.RawMessage {
	return encode(struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		Parameters  json.RawMessage `json:"parameters"`
	}{t.Name, t.Description, t.Parameters})
}

// chatAnswer collects a streamed answer.
type chatAnswer struct {
	text, refusal, reasoning strings.Builder
	calls                    []chatToolCall
	finish                   string
	usage                    agent.Usage
}

type chatToolCall struct {
	index    int64
	id, name string
	args     []byte
}

func readChat(resp *http.Response, req *agent.Request, yield func(agent.ModelEvent, error) bool) (*agent.Completion, error) {
	body, err := openBody(resp)
	if err != nil {
		return nil, err
	}
	a := &chatAnswer{}
	if body.whole != nil {
		if _, err := a.add(gjson.ParseBytes(body.whole), "message"); err != nil {
			return nil, err
		}
		return a.completion(req)
	}
	for ev, err := range body.events {
		if err != nil {
			// All that matters has come once the answer has said why it ended.
			if a.finish != "" {
				break
			}
			return nil, err
		}
		text, err := a.add(gjson.ParseBytes(ev.Data), "delta")
		if err != nil {
			return nil, err
		}
		if text != "" && !yield(agent.ModelEvent{Delta: text}, nil) {
			return nil, errStopped
		}
	}
	return a.completion(req)
}

// add takes in one chunk, or a whole answer, and returns the text that it adds.
func (a *chatAnswer) add(chunk gjson.Result, field string) (string, error) {
	if e := chunk.Get("error"); e.IsObject() || e.Type == gjson.String {
		return "", failureFromJSON([]byte(chunk.Raw))
	}
	if chunk.Get("object").Str == "error" {
		return "", failureFromJSON([]byte(chunk.Raw))
	}
	if u := chunk.Get("usage"); u.IsObject() {
		a.usage = agent.Usage{
			InputTokens:     int(u.Get("prompt_tokens").Int()),
			CachedTokens:    int(u.Get("prompt_tokens_details.cached_tokens").Int()),
			OutputTokens:    int(u.Get("completion_tokens").Int()),
			ReasoningTokens: int(u.Get("completion_tokens_details.reasoning_tokens").Int()),
		}
	}
	choice := chunk.Get("choices.0")
	delta := choice.Get(field)
	text := partsText(delta.Get("content"))
	a.text.WriteString(text)
	refusal := delta.Get("refusal").Str
	a.refusal.WriteString(refusal)
	a.reasoning.WriteString(delta.Get("reasoning_content").Str)
	for i, c := range delta.Get("tool_calls").Array() {
		a.addCall(c, int64(i), field == "message")
	}
	if f := choice.Get("finish_reason").Str; f != "" {
		a.finish = f
	}
	return text + refusal, nil
}

// addCall takes in a piece of a tool call. Servers count the calls, or give all the same number, or none;
// a piece with a name and another ID begins a new call in any case.
func (a *chatAnswer) addCall(c gjson.Result, place int64, whole bool) {
	id, name := c.Get("id").Str, c.Get("function.name").Str
	index := place
	if n := c.Get("index"); n.Type == gjson.Number && !whole {
		index = n.Int()
	}
	var call *chatToolCall
	for i := range slices.Backward(a.calls) {
		if a.calls[i].index == index {
			call = &a.calls[i]
			break
		}
	}
	if call == nil || name != "" && id != "" && call.id != "" && id != call.id {
		a.calls = append(a.calls, chatToolCall{index: index})
		call = &a.calls[len(a.calls)-1]
	}
	if id != "" {
		call.id = id
	}
	if name != "" {
		call.name = name
	}
	args := c.Get("function.arguments")
	if args.IsObject() {
		call.args = append(call.args, args.Raw...) // some servers do not write the object as a string
	} else {
		call.args = append(call.args, args.Str...)
	}
}

// completion makes items of an answer that has ended.
func (a *chatAnswer) completion(req *agent.Request) (*agent.Completion, error) {
	switch a.finish {
	case "":
		return nil, early("the stream ended before the answer did")
	case "error":
		return nil, early("the provider broke off the answer")
	}
	done := &agent.Completion{Truncated: a.finish == "length" || a.finish == "content_filter"}
	text := a.text.String() + a.refusal.String()
	if text == "" && a.finish == "content_filter" {
		return nil, &failure{code: "content_filter"}
	}
	if a.reasoning.Len() > 0 && len(a.calls) > 0 {
		done.Items = append(done.Items, reasoningItem(a.reasoning.String()))
	}
	if text != "" {
		done.Items = append(done.Items, agent.AssistantMessage(text))
	}
	for i := range a.calls {
		c := &a.calls[i]
		if done.Truncated && !json.Valid(c.args) {
			continue // cut off: what it was to be is not known
		}
		done.Items = append(done.Items, agent.FunctionCall(c.id, c.name, string(c.args)))
	}
	done.Usage = estimate(a.usage, req, done.Items)
	return done, nil
}

// reasoningItem keeps what a model thought before it called tools: some ask to see it again with the
// outputs.
func reasoningItem(text string) json.RawMessage {
	type part struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	return encode(struct {
		Type    string   `json:"type"`
		Summary []string `json:"summary"`
		Content []part   `json:"content"`
	}{"reasoning", []string{}, []part{{"reasoning_text", text}}})
}
