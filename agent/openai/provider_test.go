package openai_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"botd/agent"
	"botd/agent/openai"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const key = "sk-secret-0123456789"

// provider is a server on the loopback that answers as it is told and keeps what it was asked.
type provider struct {
	*httptest.Server
	mu     sync.Mutex
	asked  []asked
	answer http.HandlerFunc
}

type asked struct {
	path   string
	header http.Header
	body   []byte
}

func newProvider(t *testing.T, answer http.HandlerFunc) *provider {
	t.Helper()
	p := &provider{answer: answer}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("read request: %v", err)
		}
		p.mu.Lock()
		p.asked = append(p.asked, asked{r.URL.Path, r.Header.Clone(), body})
		p.mu.Unlock()
		p.answer(w, r)
	}))
	t.Cleanup(p.Close)
	return p
}

func (p *provider) requests() []asked {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]asked(nil), p.asked...)
}

// model returns a model over the provider that does not repeat requests unless o says so.
func (p *provider) model(t *testing.T, o openai.Options) *openai.Model {
	t.Helper()
	o.BaseURL = p.URL + "/v1"
	if o.APIKey == "" {
		o.APIKey = key
	}
	if o.MaxRetries == 0 {
		o.MaxRetries = -1
	}
	m, err := openai.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m
}

// body answers every request with one status, content type and body.
func body(status int, contentType, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if contentType != "" {
			w.Header().Set("Content-Type", contentType)
		}
		w.Header().Set("X-Request-Id", "req_42")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, text)
	}
}

// stream answers with events, given as their JSON.
func stream(events ...string) http.HandlerFunc { return body(200, "text/event-stream", sse(events...)) }

func sse(events ...string) string {
	var b strings.Builder
	for _, e := range events {
		var v struct{ Type string }
		if json.Unmarshal([]byte(e), &v) == nil && v.Type != "" {
			fmt.Fprintf(&b, "event: %s\n", v.Type)
		}
		fmt.Fprintf(&b, "data: %s\n\n", e)
	}
	return b.String()
}

// ask sends a request and returns the text that was streamed, the completion and the error.
func ask(ctx context.Context, m *openai.Model, req *agent.Request) (text string, done *agent.Completion, err error) {
	for ev, e := range m.Stream(ctx, req) {
		text += ev.Delta
		if ev.Done != nil {
			done = ev.Done
		}
		err = e
	}
	return text, done, err
}

func hello() *agent.Request {
	return &agent.Request{Model: "m", Instructions: "Be kind.", Input: []json.RawMessage{agent.UserMessage("hello there")}}
}

func items(done *agent.Completion) string {
	var b []string
	for _, it := range done.Items {
		b = append(b, string(it))
	}
	return strings.Join(b, "\n")
}

// Events of a Responses stream, as OpenAI sends them.
const (
	created     = `{"type":"response.created","sequence_number":0,"response":{"id":"resp_1","object":"response","status":"in_progress","output":[]}}`
	addedMsg    = `{"type":"response.output_item.added","output_index":1,"item":{"id":"msg_1","type":"message","status":"in_progress","role":"assistant","content":[]}}`
	deltaHel    = `{"type":"response.output_text.delta","item_id":"msg_1","output_index":1,"content_index":0,"delta":"Hel"}`
	deltaLo     = `{"type":"response.output_text.delta","item_id":"msg_1","output_index":1,"content_index":0,"delta":"lo"}`
	reasonItem  = `{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"gAAA<>&","n":9007199254740993,"f":1.0}`
	messageItem = `{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","annotations":[],"logprobs":[],"text":"Hello"}]}`
	callItem    = `{"id":"fc_1","type":"function_call","status":"completed","call_id":"call_1","name":"clock","arguments":"{\"zone\":\"UTC\"}"}`
	doneReason  = `{"type":"response.output_item.done","output_index":0,"item":` + reasonItem + `}`
	doneMsg     = `{"type":"response.output_item.done","output_index":1,"item":` + messageItem + `}`
	doneCall    = `{"type":"response.output_item.done","output_index":2,"item":` + callItem + `}`
	usage       = `"usage":{"input_tokens":11,"input_tokens_details":{"cached_tokens":5},"output_tokens":7,"output_tokens_details":{"reasoning_tokens":3},"total_tokens":18}`
	completed   = `{"type":"response.completed","response":{"id":"resp_1","object":"response","status":"completed","error":null,"incomplete_details":null,"output":[],` + usage + `}}`
)
