package openai_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"botd/agent"
	"botd/agent/openai"
)

func TestResponsesStream(t *testing.T) {
	t.Parallel()
	whole := `{"id":"resp_1","object":"response","status":"completed","error":null,"output":[` + messageItem + `],` + usage + `}`
	counted := agent.Usage{Requests: 1, InputTokens: 11, CachedTokens: 5, OutputTokens: 7, ReasoningTokens: 3}
	tests := map[string]struct {
		body  string
		text  string
		items string
		usage agent.Usage
		trunc bool
	}{
		"items of the stream, byte for byte and in their order": {
			sse(created, addedMsg, deltaHel, doneCall, deltaLo, doneMsg, doneReason, completed),
			"Hello", reasonItem + "\n" + messageItem + "\n" + callItem, counted, false,
		},
		"items of the last event, when it has them": {
			sse(deltaHel, deltaLo, doneMsg, strings.Replace(completed, `"output":[]`, `"output":[`+reasonItem+`,`+messageItem+`]`, 1)),
			"Hello", reasonItem + "\n" + messageItem, counted, false,
		},
		"a stream with comments, CRLF and an end mark": {
			": ping\r\n\r\n" + strings.ReplaceAll(sse(deltaHel, deltaLo, doneMsg)+": ping\n\n"+sse(completed, "[DONE]"), "\n", "\r\n"),
			"Hello", messageItem, counted, false,
		},
		"events whose names only the event field tells": {
			"event: response.output_text.delta\ndata: {\"delta\":\"Hello\"}\n\n" + sse(doneMsg, completed),
			"Hello", messageItem, counted, false,
		},
		"one document although a stream was asked for": {whole, "", messageItem, counted, false},
		"two messages": {
			sse(addedMsg, deltaHel, deltaLo, addedMsg, deltaHel, completed), "Hello\n\nHel", "", counted, false,
		},
		"a refusal": {
			sse(`{"type":"response.refusal.delta","delta":"No."}`, completed), "No.", "", counted, false,
		},
		"an answer cut off at the limit, without the call that was cut": {
			sse(deltaHel, strings.Replace(doneCall, `"completed"`, `"incomplete"`, 1),
				`{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"output":[],`+usage+`}}`),
			"Hel", "", counted, true,
		},
		"no count of tokens": {
			sse(doneMsg, `{"type":"response.completed","response":{"status":"completed","output":[],"usage":null}}`),
			"", messageItem,
			agent.Usage{Requests: 1, InputTokens: agent.EstimateTokens([]byte(hello().Instructions)) + agent.EstimateTokens(hello().Input[0]), OutputTokens: agent.EstimateTokens([]byte(messageItem)), Estimated: true},
			false,
		},
		"an error field that is null": {
			sse(strings.Replace(deltaHel, `{`, `{"error":null,`, 1), deltaLo, doneMsg, completed), "Hello", messageItem, counted, false,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProvider(t, body(200, "text/event-stream; charset=utf-8", tt.body))
			text, done, err := ask(t.Context(), p.model(t, openai.Options{API: openai.Responses}), hello())
			if err != nil {
				t.Fatal(err)
			}
			if text != tt.text {
				t.Errorf("text %q, want %q", text, tt.text)
			}
			if diff := cmp.Diff(tt.items, items(done)); diff != "" {
				t.Errorf("items (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.usage, done.Usage); diff != "" {
				t.Errorf("usage (-want +got):\n%s", diff)
			}
			if done.Truncated != tt.trunc || done.RequestID != "req_42" {
				t.Errorf("truncated %v, request %q", done.Truncated, done.RequestID)
			}
		})
	}
}

// full is a request with everything in it.
func full() *agent.Request {
	return &agent.Request{
		Model: "gpt-5.2", Instructions: "Be kind.", CacheKey: "cache", Safety: "safe",
		Temperature: new(0.5), MaxOutputTokens: 100, NoTools: true,
		Tools: []agent.ToolSpec{{Name: "clock", Description: "Tells <time>.", Parameters: json.RawMessage(`{"type":"object","properties":{}}`)}},
		Input: []json.RawMessage{
			json.RawMessage(`{"role":"user","content":"a <b> & c","vendor":9007199254740993}`),
			json.RawMessage(reasonItem), json.RawMessage(callItem),
			json.RawMessage(`{"type":"function_call_output","call_id":"call_1","output":"12:00"}`),
			json.RawMessage(messageItem),
			agent.AssistantMessage("more"),
			json.RawMessage(`{"role":"user","content":[{"type":"input_text","text":"[from \"Ann\" id=x]"},{"type":"input_text","text":"hi"}]}`),
		},
	}
}

func TestResponsesRequest(t *testing.T) {
	t.Parallel()
	input := `[{"role":"user","content":"a <b> & c","vendor":9007199254740993},` + reasonItem + `,` + callItem +
		`,{"type":"function_call_output","call_id":"call_1","output":"12:00"},` + messageItem +
		`,{"role":"assistant","content":"more"},{"role":"user","content":[{"type":"input_text","text":"[from \"Ann\" id=x]"},{"type":"input_text","text":"hi"}]}]`
	common := `"instructions":"Be kind.","max_output_tokens":100,"temperature":0.5,"model":"gpt-5.2","tool_choice":"none","stream":true,` +
		`"tools":[{"type":"function","name":"clock","description":"Tells <time>.","parameters":{"type":"object","properties":{}},"strict":false}]`
	private := `,"store":false,"include":["reasoning.encrypted_content"],"prompt_cache_key":"cache"`
	tests := map[string]struct {
		dialect openai.Dialect
		want    string
	}{
		"openai":  {openai.OpenAI, "{" + common + private + `,"safety_identifier":"safe"}`},
		"azure":   {openai.Azure, "{" + common + private + "}"},
		"generic": {openai.Generic, "{" + common + "}"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProvider(t, stream(doneMsg, completed))
			if _, _, err := ask(t.Context(), p.model(t, openai.Options{API: openai.Responses, Dialect: tt.dialect}), full()); err != nil {
				t.Fatal(err)
			}
			got := p.requests()[0]
			if got.path != "/v1/responses" || got.header.Get("Authorization") != "Bearer "+key || got.header.Get("Accept") != "text/event-stream" {
				t.Errorf("path %s, header %v", got.path, got.header)
			}
			var fields map[string]json.RawMessage
			if err := json.Unmarshal(got.body, &fields); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(input, string(fields["input"])); diff != "" {
				t.Errorf("input is not byte for byte what is remembered (-want +got):\n%s", diff)
			}
			delete(fields, "input")
			if diff := cmp.Diff(decode(t, []byte(tt.want)), decode(t, mustJSON(t, fields))); diff != "" {
				t.Errorf("fields (-want +got):\n%s", diff)
			}
		})
	}
}

func decode(t *testing.T, raw []byte) (v any) {
	t.Helper()
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatalf("%v in %s", err, raw)
	}
	return v
}

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// What generic servers refuse is left out or put in a form that they know.
func TestResponsesInputOfGenericServers(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ in, openai, generic string }{
		"a hosted call":   {`{"type":"web_search_call","id":"ws_1","status":"completed"}`, `{"type":"web_search_call","id":"ws_1","status":"completed"}`, ``},
		"compaction":      {`{"type":"compaction","id":"cmp_1","encrypted_content":"x"}`, `{"type":"compaction","id":"cmp_1","encrypted_content":"x"}`, ``},
		"a reference":     {`{"type":"item_reference","id":"x"}`, `{"type":"item_reference","id":"x"}`, ``},
		"a list output":   {`{"type":"function_call_output","call_id":"c","output":[{"type":"input_text","text":"a"}]}`, `{"type":"function_call_output","call_id":"c","output":[{"type":"input_text","text":"a"}]}`, `{"type":"function_call_output","call_id":"c","output":"a"}`},
		"a refusal":       {`{"type":"message","id":"m","role":"assistant","status":"completed","content":[{"type":"refusal","refusal":"no"}]}`, `{"type":"message","id":"m","role":"assistant","status":"completed","content":[{"type":"refusal","refusal":"no"}]}`, `{"role":"assistant","content":"no"}`},
		"nameless reason": {`{"type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"hm"}]}`, ``, ``},
		"a phase":         {`{"type":"message","role":"assistant","phase":"commentary","content":[{"type":"output_text","text":"hm"}]}`, `{"role":"assistant","content":"hm","phase":"commentary"}`, `{"role":"assistant","content":"hm","phase":"commentary"}`},
	}
	for name, tt := range tests {
		for dialect, want := range map[openai.Dialect]string{openai.OpenAI: tt.openai, openai.Generic: tt.generic} {
			p := newProvider(t, stream(completed))
			req := &agent.Request{Model: "m", Input: []json.RawMessage{json.RawMessage(tt.in)}}
			if _, _, err := ask(t.Context(), p.model(t, openai.Options{API: openai.Responses, Dialect: dialect}), req); err != nil {
				t.Fatal(err)
			}
			var got struct{ Input json.RawMessage }
			if err := json.Unmarshal(p.requests()[0].body, &got); err != nil {
				t.Fatal(err)
			}
			if string(got.Input) != "["+want+"]" {
				t.Errorf("%s, dialect %d: sent %s, want [%s]", name, dialect, got.Input, want)
			}
		}
	}
}
