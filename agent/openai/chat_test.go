package openai_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"botd/agent"
	"botd/agent/openai"
)

// chunk is one event of a Chat Completions stream.
func chunk(delta, finish string) string {
	f := "null"
	if finish != "" {
		f = `"` + finish + `"`
	}
	return `{"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":` + delta + `,"finish_reason":` + f + `}],"usage":null}`
}

const chatUsage = `{"id":"c1","object":"chat.completion.chunk","choices":[],"usage":{"prompt_tokens":11,"completion_tokens":7,"total_tokens":18,"prompt_tokens_details":{"cached_tokens":5},"completion_tokens_details":{"reasoning_tokens":3}}}`

func message(text string) string { return string(agent.AssistantMessage(text)) }

func TestChatStream(t *testing.T) {
	t.Parallel()
	call := func(id, name, args string) string { return string(agent.FunctionCall(id, name, args)) }
	counted := agent.Usage{Requests: 1, InputTokens: 11, CachedTokens: 5, OutputTokens: 7, ReasoningTokens: 3}
	tests := map[string]struct {
		body  string
		text  string
		items string
		trunc bool
	}{
		"text": {
			sse(chunk(`{"role":"assistant","content":""}`, ""), chunk(`{"content":"Hel"}`, ""), chunk(`{"content":"lo"}`, ""), chunk(`{}`, "stop"), chatUsage, "[DONE]"),
			"Hello", message("Hello"), false,
		},
		"no end mark after the finish reason": {sse(chunk(`{"content":"Hi"}`, "stop"), chatUsage), "Hi", message("Hi"), false},
		"text and two calls side by side": {
			sse(chunk(`{"content":"Wait. "}`, ""),
				chunk(`{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":""}}]}`, ""),
				chunk(`{"tool_calls":[{"index":0,"function":{"arguments":"{\"x\""}}]}`, ""),
				chunk(`{"tool_calls":[{"index":1,"id":"b","type":"function","function":{"name":"g","arguments":"{}"}}]}`, ""),
				chunk(`{"tool_calls":[{"index":0,"function":{"arguments":":1}"}}]}`, ""),
				chunk(`{}`, "tool_calls"), chatUsage, "[DONE]"),
			"Wait. ", message("Wait. ") + "\n" + call("a", "f", `{"x":1}`) + "\n" + call("b", "g", "{}"), false,
		},
		"calls that all have the number 0": {
			sse(chunk(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]}`, ""),
				chunk(`{"tool_calls":[{"index":0,"id":"b","function":{"name":"g","arguments":"{\"y\":"}}]}`, ""),
				chunk(`{"tool_calls":[{"index":0,"function":{"arguments":"2}"}}]}`, "stop"), chatUsage),
			"", call("a", "f", "{}") + "\n" + call("b", "g", `{"y":2}`), false,
		},
		"calls without a number, all at once": {
			sse(chunk(`{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}},{"id":"b","function":{"name":"g","arguments":{"y":2}}}]}`, "tool_calls"), chatUsage),
			"", call("a", "f", "{}") + "\n" + call("b", "g", `{"y":2}`), false,
		},
		"calls that repeat ID and name in every piece": {
			sse(chunk(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{"}}]}`, ""),
				chunk(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"}"}}]}`, "tool_calls"), chatUsage),
			"", call("a", "f", "{}"), false,
		},
		"reasoning before a call is kept": {
			sse(chunk(`{"reasoning_content":"Let me "}`, ""), chunk(`{"reasoning_content":"see."}`, ""),
				chunk(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]}`, "tool_calls"), chatUsage),
			"", `{"type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"Let me see."}]}` + "\n" + call("a", "f", "{}"), false,
		},
		"reasoning before text is not": {
			sse(chunk(`{"reasoning_content":"Hm."}`, ""), chunk(`{"content":"Hi"}`, "stop"), chatUsage), "Hi", message("Hi"), false,
		},
		"a refusal": {sse(chunk(`{"refusal":"No."}`, "stop"), chatUsage), "No.", message("No."), false},
		"content as a list of parts": {
			sse(chunk(`{"content":[{"type":"text","text":"Hi"}]}`, "stop"), chatUsage), "Hi", message("Hi"), false,
		},
		"cut off at the limit, with a call that was cut": {
			sse(chunk(`{"content":"Hel"}`, ""), chunk(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x"}}]}`, "length"), chatUsage),
			"Hel", message("Hel"), true,
		},
		"filtered after some text": {sse(chunk(`{"content":"Hel"}`, "content_filter"), chatUsage), "Hel", message("Hel"), true},
		"one document although a stream was asked for": {
			`{"id":"c1","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"Hi","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"b","type":"function","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":11,"completion_tokens":7,"prompt_tokens_details":{"cached_tokens":5},"completion_tokens_details":{"reasoning_tokens":3}}}`,
			"", message("Hi") + "\n" + call("a", "f", "{}") + "\n" + call("b", "f", "{}"), false,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProvider(t, body(200, "text/event-stream", tt.body))
			text, done, err := ask(t.Context(), p.model(t, openai.Options{API: openai.Chat}), hello())
			if err != nil {
				t.Fatal(err)
			}
			if text != tt.text || done.Truncated != tt.trunc {
				t.Errorf("text %q, truncated %v", text, done.Truncated)
			}
			if diff := cmp.Diff(tt.items, items(done)); diff != "" {
				t.Errorf("items (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(counted, done.Usage); diff != "" {
				t.Errorf("usage (-want +got):\n%s", diff)
			}
		})
	}
}

func TestChatRequest(t *testing.T) {
	t.Parallel()
	common := `"model":"gpt-5.2","temperature":0.5,"stream":true,"stream_options":{"include_usage":true},"tool_choice":"none",` +
		`"tools":[{"type":"function","function":{"name":"clock","description":"Tells <time>.","parameters":{"type":"object","properties":{}}}}]`
	tests := map[string]struct {
		dialect openai.Dialect
		want    string
	}{
		"openai":  {openai.OpenAI, "{" + common + `,"max_completion_tokens":100,"store":false,"prompt_cache_key":"cache","safety_identifier":"safe"}`},
		"azure":   {openai.Azure, "{" + common + `,"max_completion_tokens":100,"store":false,"prompt_cache_key":"cache"}`},
		"generic": {openai.Generic, "{" + common + `,"max_tokens":100}`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProvider(t, stream(chunk(`{"content":"x"}`, "stop")))
			if _, _, err := ask(t.Context(), p.model(t, openai.Options{API: openai.Chat, Dialect: tt.dialect}), full()); err != nil {
				t.Fatal(err)
			}
			got := p.requests()[0]
			if got.path != "/v1/chat/completions" {
				t.Errorf("path %s", got.path)
			}
			var fields map[string]json.RawMessage
			if err := json.Unmarshal(got.body, &fields); err != nil {
				t.Fatal(err)
			}
			delete(fields, "messages")
			if diff := cmp.Diff(decode(t, []byte(tt.want)), decode(t, mustJSON(t, fields))); diff != "" {
				t.Errorf("fields (-want +got):\n%s", diff)
			}
		})
	}
}

// Each file of testdata/chat holds items and the messages that the dialects get for them.
func TestItemsBecomeMessages(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/chat/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no recorded conversations: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			t.Parallel()
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var c struct {
				Instructions string
				Items        []json.RawMessage
				OpenAI       json.RawMessage
				Generic      json.RawMessage // the same as OpenAI when left out
			}
			if err := json.Unmarshal(raw, &c); err != nil {
				t.Fatal(err)
			}
			if c.Generic == nil {
				c.Generic = c.OpenAI
			}
			for dialect, want := range map[openai.Dialect]json.RawMessage{openai.OpenAI: c.OpenAI, openai.Generic: c.Generic} {
				p := newProvider(t, stream(chunk(`{"content":"x"}`, "stop")))
				req := &agent.Request{Model: "m", Instructions: c.Instructions, Input: c.Items}
				if _, _, err := ask(t.Context(), p.model(t, openai.Options{API: openai.Chat, Dialect: dialect}), req); err != nil {
					t.Fatal(err)
				}
				var got struct{ Messages json.RawMessage }
				if err := json.Unmarshal(p.requests()[0].body, &got); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(decode(t, want), decode(t, got.Messages)); diff != "" {
					t.Errorf("dialect %d (-want +got):\n%s", dialect, diff)
				}
			}
		})
	}
}
