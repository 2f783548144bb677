package openai_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"botd/agent"
	"botd/agent/openai"
	"botd/sessionstore"
)

// remembered is a history of n items: turns of a question, reasoning, a call, its output and an answer.
func remembered(n int) []sessionstore.Item {
	var items []sessionstore.Item
	add := func(raw string) {
		items = append(items, sessionstore.Item{Seq: uint64(len(items)), Origin: "a@p/m", Raw: json.RawMessage(raw)})
	}
	for i := 0; len(items) < n; i++ {
		add(`{"role":"user","content":"Where is my order number 48213, and when will it arrive at the shop?"}`)
		add(fmt.Sprintf(`{"id":"rs_%d","type":"reasoning","summary":[],"encrypted_content":"%s"}`, i, strings.Repeat("gAAAAABo", 60)))
		add(fmt.Sprintf(`{"id":"fc_%d","type":"function_call","status":"completed","call_id":"call_%d","name":"orders","arguments":"{\"number\":48213}"}`, i, i))
		add(fmt.Sprintf(`{"type":"function_call_output","call_id":"call_%d","output":"{\"status\":\"shipped\",\"eta\":\"2026-12-03\",\"carrier\":\"Yamato\"}"}`, i))
		add(fmt.Sprintf(`{"id":"msg_%d","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","annotations":[],"logprobs":[],"text":"%s"}]}`, i, strings.Repeat("It left yesterday and comes on Thursday. ", 6)))
	}
	return items[:n]
}

// BenchmarkRun is a whole run of the engine with one model call, all but the network: repair, encoding of
// the request, decoding of a streamed answer of 200 deltas.
func BenchmarkRun(b *testing.B) {
	answers := map[openai.API]string{openai.Responses: "", openai.Chat: ""}
	for range 200 {
		answers[openai.Responses] += sse(deltaHel)
		answers[openai.Chat] += sse(chunk(`{"content":"Hel"}`, ""))
	}
	answers[openai.Responses] += sse(doneReason, doneMsg, completed)
	answers[openai.Chat] += sse(chunk(`{}`, "stop"), chatUsage, "[DONE]")
	for api, name := range map[openai.API]string{openai.Responses: "responses", openai.Chat: "chat"} {
		for _, n := range []int{100, 200, 400, 800} {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				m, err := openai.New(openai.Options{API: api, Dialect: openai.OpenAI, Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
					if _, err := io.Copy(io.Discard, r.Body); err != nil {
						return nil, err
					}
					return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(answers[api])), Request: r}, nil
				})})
				if err != nil {
					b.Fatal(err)
				}
				e, err := agent.New(agent.Options{
					Budget: agent.Budget{MaxTokens: 1 << 30},
					Agents: []agent.Agent{{Name: "a", Instructions: "Be kind.", Models: []agent.ModelRef{{Model: m, Name: "m", Provider: "p"}}}},
				})
				if err != nil {
					b.Fatal(err)
				}
				turn := agent.Turn{ID: "t", Session: "s", History: remembered(n), Input: []agent.Message{{Parts: []agent.Part{{Text: "hi"}}}}}
				b.ReportAllocs()
				for b.Loop() {
					for _, err := range e.Run(b.Context(), turn) {
						if err != nil {
							b.Fatal(err)
						}
					}
				}
			})
		}
	}
}
