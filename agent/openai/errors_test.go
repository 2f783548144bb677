package openai_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"botd/agent"
	"botd/agent/openai"
)

// secret stands for what a provider may quote of the conversation in its words.
const secret = "my PIN is 9041"

// wantKind fails unless err is of the kind and tells nothing that it must not.
func wantKind(t *testing.T, err error, kind agent.ErrorKind) *agent.Error {
	t.Helper()
	e, ok := errors.AsType[*agent.Error](err)
	if !ok {
		t.Fatalf("error %v (%T) is no *agent.Error", err, err)
	}
	if e.Kind != kind {
		t.Errorf("kind %q, want %q: %v", e.Kind, kind, err)
	}
	for _, s := range []string{key, secret, "9041", "<html"} {
		if strings.Contains(err.Error(), s) || strings.Contains(fmt.Sprintf("%+v", err), s) {
			t.Errorf("error tells %q: %v", s, err)
		}
	}
	return e
}

// A refusal is sorted the same by both APIs, whatever its form.
func TestRefusals(t *testing.T) {
	t.Parallel()
	std := func(code, typ, message string) string {
		return fmt.Sprintf(`{"error":{"message":%q,"type":%q,"param":null,"code":%q}}`, message+" "+secret, typ, code)
	}
	tests := map[string]struct {
		status int
		body   string
		want   agent.ErrorKind
	}{
		"rate limit":                 {429, std("rate_limit_exceeded", "requests", "Rate limit reached"), agent.RateLimited},
		"tokens per minute":          {429, std("rate_limit_exceeded", "tokens", "Request too large for m on tokens per min"), agent.RateLimited},
		"out of quota":               {429, std("insufficient_quota", "insufficient_quota", "You exceeded your current quota"), agent.QuotaExhausted},
		"out of quota, words only":   {429, `{"error":"Insufficient balance"}`, agent.QuotaExhausted},
		"payment required":           {402, `{"error":{"message":"Insufficient credits","code":402}}`, agent.QuotaExhausted},
		"key refused":                {401, std("invalid_api_key", "invalid_request_error", "Incorrect API key provided: "+key), agent.Unauthorized},
		"not allowed":                {403, std("", "permission_error", "no access"), agent.Unauthorized},
		"too long":                   {400, std("context_length_exceeded", "invalid_request_error", "This model's maximum context length is"), agent.ContextOverflow},
		"too long, vLLM":             {400, `{"object":"error","message":"This model's maximum context length is 4096 tokens","type":"BadRequestError","param":null,"code":400}`, agent.ContextOverflow},
		"too long, llama.cpp":        {400, `{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error","n_prompt_tokens":5000}}`, agent.ContextOverflow},
		"too long, OpenRouter":       {400, `{"error":{"code":"invalid_prompt","message":"x"},"error_type":"context_length_exceeded"}`, agent.ContextOverflow},
		"too large a body":           {413, ``, agent.ContextOverflow},
		"reasoning not verified":     {400, std("invalid_encrypted_content", "invalid_request_error", "The encrypted content could not be verified"), agent.BadReasoning},
		"reasoning without its kin":  {400, std("", "invalid_request_error", "Item 'rs_1' of type 'reasoning' was provided without its required following item"), agent.BadReasoning},
		"item not stored":            {404, std("", "invalid_request_error", "Item with id 'rs_1' not found. Items are not persisted when `store` is set to false"), agent.BadReasoning},
		"unknown model":              {404, std("model_not_found", "invalid_request_error", "The model `m` does not exist"), agent.ModelNotFound},
		"unknown model, bare string": {404, `{"error":"model 'm' not found, try pulling it first"}`, agent.ModelNotFound},
		"unknown model, 400":         {400, `{"error":{"message":"m is not a valid model ID","code":"model_not_found"}}`, agent.ModelNotFound},
		"content refused":            {400, std("content_filter", "", "The response was filtered"), agent.Filtered},
		"invalid":                    {400, std("unsupported_parameter", "invalid_request_error", "Unsupported parameter"), agent.InvalidRequest},
		"invalid, FastAPI":           {422, `{"detail":[{"loc":["body","messages"],"msg":"field required","input":"` + secret + `"}]}`, agent.InvalidRequest},
		"invalid, detail string":     {400, `{"detail":"bad ` + secret + `"}`, agent.InvalidRequest},
		"invalid, list":              {400, `[{"error":{"code":400,"message":"` + secret + `","status":"INVALID_ARGUMENT"}}]`, agent.InvalidRequest},
		"invalid, flat":              {400, `{"code":"bad","message":"` + secret + `"}`, agent.InvalidRequest},
		"invalid, JSON of no form":   {400, `"` + secret + `"`, agent.InvalidRequest},
		"server error":               {500, std("server_error", "server_error", "The server had an error"), agent.Transient},
		"bad gateway, HTML":          {502, `<html><body>` + secret + `</body></html>`, agent.Transient},
		"server error, empty":        {500, ``, agent.Transient},
		"overloaded":                 {503, `{"error":{"message":"overloaded","type":"overloaded_error"}}`, agent.Transient},
		"timeout":                    {408, `{}`, agent.Transient},
		"conflict":                   {409, std("conversation_locked", "", "locked"), agent.Transient},
	}
	for name, tt := range tests {
		for _, api := range []openai.API{openai.Responses, openai.Chat} {
			t.Run(fmt.Sprint(name, "/", api), func(t *testing.T) {
				t.Parallel()
				p := newProvider(t, body(tt.status, "", tt.body))
				text, done, err := ask(t.Context(), p.model(t, openai.Options{API: api}), hello())
				e := wantKind(t, err, tt.want)
				if text != "" || done != nil {
					t.Errorf("text %q, completion %v", text, done)
				}
				if e.RequestID != "req_42" || !strings.Contains(e.Error(), fmt.Sprint("status ", tt.status)) {
					t.Errorf("error tells neither status nor request: %v", e)
				}
			})
		}
	}
}

// An answer with a good status counts only when it came to its end.
func TestBrokenAnswers(t *testing.T) {
	t.Parallel()
	chunk := `{"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"Hel"}}]}`
	call := `{"id":"c","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":"}}]}}]}`
	failed := func(code string) string {
		return sse(deltaHel, `{"type":"response.failed","response":{"id":"resp_1","status":"failed","error":{"code":"`+code+`","message":"`+secret+`"},"output":[]}}`)
	}
	tests := map[string]struct {
		api  openai.API
		body string
		want agent.ErrorKind
		text string
	}{
		"responses/clean end without a last event":  {openai.Responses, sse(created, deltaHel, doneMsg), agent.Transient, "Hel"},
		"responses/end amid a line":                 {openai.Responses, sse(created, deltaHel) + `data: {"type":"response.comp`, agent.Transient, "Hel"},
		"responses/last event without its end":      {openai.Responses, sse(deltaHel) + "data: " + completed, agent.Transient, "Hel"},
		"responses/end mark without a last event":   {openai.Responses, sse(deltaHel, "[DONE]"), agent.Transient, "Hel"},
		"responses/empty":                           {openai.Responses, "", agent.Transient, ""},
		"responses/blank lines":                     {openai.Responses, "\n\n\n", agent.Transient, ""},
		"responses/comments only":                   {openai.Responses, ": ping\n\n: ping\n\n", agent.Transient, ""},
		"responses/event that is no JSON":           {openai.Responses, "data: hello\n\n" + sse(completed), agent.Transient, ""},
		"responses/a page":                          {openai.Responses, "<html>" + secret + "</html>", agent.Transient, ""},
		"responses/JSON cut off":                    {openai.Responses, `{"id":"resp_1","status":"comp`, agent.Transient, ""},
		"responses/JSON of another kind":            {openai.Responses, `{"ok":true}`, agent.Transient, ""},
		"responses/JSON still in progress":          {openai.Responses, `{"id":"resp_1","status":"in_progress","output":[]}`, agent.Transient, ""},
		"responses/JSON failed":                     {openai.Responses, `{"id":"resp_1","status":"failed","error":{"code":"server_error","message":"x"}}`, agent.Transient, ""},
		"responses/good status with an error":       {openai.Responses, `{"error":{"code":429,"message":"` + secret + `"}}`, agent.RateLimited, ""},
		"responses/good status with an error text":  {openai.Responses, `{"error":"model 'm' not found"}`, agent.ModelNotFound, ""},
		"responses/flat error event":                {openai.Responses, sse(created, `{"type":"error","code":"server_error","message":"`+secret+`","param":null,"sequence_number":3}`), agent.Transient, ""},
		"responses/flat error event, rate limit":    {openai.Responses, sse(`{"type":"error","code":"rate_limit_exceeded","message":"x"}`), agent.RateLimited, ""},
		"responses/flat error event, too long":      {openai.Responses, sse(`{"type":"error","code":"context_length_exceeded","message":"x"}`), agent.ContextOverflow, ""},
		"responses/nested error event":              {openai.Responses, sse(deltaHel, `{"type":"error","error":{"type":"invalid_request_error","code":"invalid_prompt","message":"`+secret+`"}}`), agent.InvalidRequest, "Hel"},
		"responses/error without a type":            {openai.Responses, sse(`{"error":{"code":502,"message":"upstream"}}`), agent.Transient, ""},
		"responses/failed":                          {openai.Responses, failed("server_error"), agent.Transient, "Hel"},
		"responses/failed, quota":                   {openai.Responses, failed("insufficient_quota"), agent.QuotaExhausted, "Hel"},
		"responses/failed, reasoning not verified":  {openai.Responses, failed("invalid_encrypted_content"), agent.BadReasoning, "Hel"},
		"responses/failed without a word":           {openai.Responses, sse(`{"type":"response.failed","response":{"status":"failed","error":null}}`), agent.Transient, ""},
		"responses/filtered before any text":        {openai.Responses, sse(`{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"content_filter"},"output":[]}}`), agent.Filtered, ""},
		"responses/last event of a response undone": {openai.Responses, sse(`{"type":"response.completed","response":{"status":"failed","error":{"code":"server_error","message":"x"}}}`), agent.Transient, ""},

		"chat/clean end without a finish reason":  {openai.Chat, sse(chunk), agent.Transient, "Hel"},
		"chat/end mark without a finish reason":   {openai.Chat, sse(chunk, "[DONE]"), agent.Transient, "Hel"},
		"chat/end amid the arguments of a call":   {openai.Chat, sse(call, "[DONE]"), agent.Transient, ""},
		"chat/end amid a line":                    {openai.Chat, sse(chunk) + `data: {"choices":[{"fini`, agent.Transient, "Hel"},
		"chat/empty":                              {openai.Chat, "", agent.Transient, ""},
		"chat/a page":                             {openai.Chat, "<!DOCTYPE html>" + secret, agent.Transient, ""},
		"chat/JSON of another kind":               {openai.Chat, `{"ok":true}`, agent.Transient, ""},
		"chat/good status with an error":          {openai.Chat, `{"error":{"message":"` + secret + `","code":502}}`, agent.Transient, ""},
		"chat/error in a chunk":                   {openai.Chat, sse(chunk, `{"id":"c","error":{"code":"server_error","message":"`+secret+`"},"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}]}`), agent.Transient, "Hel"},
		"chat/error in a chunk, as vLLM words it": {openai.Chat, sse(`{"object":"error","message":"too many tokens ` + secret + `","type":"BadRequestError","code":400}`), agent.ContextOverflow, ""},
		"chat/finish reason error":                {openai.Chat, sse(chunk, `{"choices":[{"index":0,"delta":{},"finish_reason":"error"}]}`), agent.Transient, "Hel"},
		"chat/filtered before any text":           {openai.Chat, sse(`{"choices":[{"index":0,"delta":{},"finish_reason":"content_filter"}]}`), agent.Filtered, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProvider(t, body(200, "text/event-stream", tt.body))
			text, done, err := ask(t.Context(), p.model(t, openai.Options{API: tt.api}), hello())
			wantKind(t, err, tt.want)
			if done != nil || text != tt.text {
				t.Errorf("completion %v, text %q, want %q", done, text, tt.text)
			}
			if n := len(p.requests()); n != 1 {
				t.Errorf("%d requests", n)
			}
		})
	}
}

// hijack answers with the bytes and then cuts the connection.
func hijack(t *testing.T, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		c, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Errorf("hijack: %v", err)
			return
		}
		defer c.Close()
		_, _ = io.WriteString(c, text)
		if tcp, ok := c.(*net.TCPConn); ok && strings.HasPrefix(text, "HTTP/1.1 200") {
			_ = tcp.CloseWrite()
		}
	}
}

func TestCutConnections(t *testing.T) {
	t.Parallel()
	head := "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
	chunk := sse(deltaHel)
	tests := map[string]struct{ bytes, text string }{
		"before the header":   {"", ""},
		"amid the header":     {"HTTP/1.1 2", ""},
		"before any event":    {head, ""},
		"after some events":   {head + fmt.Sprintf("%x\r\n%s\r\n", len(chunk), chunk), "Hel"},
		"amid a chunk":        {head + fmt.Sprintf("%x\r\n%s", len(chunk)+50, chunk), "Hel"},
		"short of its length": {"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n" + chunk, "Hel"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProvider(t, hijack(t, tt.bytes))
			text, done, err := ask(t.Context(), p.model(t, openai.Options{API: openai.Responses}), hello())
			wantKind(t, err, agent.Transient)
			if text != tt.text || done != nil {
				t.Errorf("text %q, completion %v", text, done)
			}
			if strings.Contains(err.Error(), "http://") {
				t.Errorf("error tells the URL: %v", err)
			}
		})
	}
}

func TestNobodyListens(t *testing.T) {
	t.Parallel()
	m, err := openai.New(openai.Options{BaseURL: "http://user:hunter2@127.0.0.1:1/v1", APIKey: key, MaxRetries: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	_, _, err = ask(t.Context(), m, hello())
	wantKind(t, err, agent.Transient)
	if strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), "refused") {
		t.Errorf("got %v", err)
	}
}

func TestCancelAmidAnAnswer(t *testing.T) {
	t.Parallel()
	for _, when := range []string{"before the header", "amid the stream"} {
		t.Run(when, func(t *testing.T) {
			t.Parallel()
			began := make(chan struct{})
			p := newProvider(t, func(w http.ResponseWriter, r *http.Request) {
				if when == "amid the stream" {
					stream(deltaHel)(w, r)
					_ = http.NewResponseController(w).Flush()
				}
				close(began)
				<-r.Context().Done()
			})
			ctx, cancel := context.WithCancel(t.Context())
			go func() { <-began; cancel() }()
			_, done, err := ask(ctx, p.model(t, openai.Options{API: openai.Responses}), hello())
			if !errors.Is(err, context.Canceled) || done != nil {
				t.Errorf("got %v, %v", err, done)
			}
			if _, ok := errors.AsType[*agent.Error](err); ok {
				t.Errorf("a stop of the user is told as a failure of the provider: %v", err)
			}
		})
	}
}

// Breaking off the iteration closes the connection: the provider stops working, and no goroutine stays.
func TestStoppingClosesTheConnection(t *testing.T) {
	t.Parallel()
	closed := make(chan struct{})
	p := newProvider(t, func(w http.ResponseWriter, r *http.Request) {
		stream(deltaHel)(w, r)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		close(closed)
	})
	for range p.model(t, openai.Options{API: openai.Responses}).Stream(t.Context(), hello()) {
		break
	}
	select {
	case <-closed:
	case <-time.After(10 * time.Second):
		t.Fatal("the connection stays open")
	}
}

func TestSilenceEndsARequest(t *testing.T) {
	t.Parallel()
	const idle = 150 * time.Millisecond
	hang := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if text != "" {
				stream(text)(w, r)
				_ = http.NewResponseController(w).Flush()
			}
			<-r.Context().Done()
		}
	}
	for name, answer := range map[string]http.HandlerFunc{"before the header": hang(""), "amid the stream": hang(deltaHel)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProvider(t, answer)
			m := p.model(t, openai.Options{API: openai.Responses, IdleTimeout: idle, MaxRetries: 5})
			_, done, err := ask(t.Context(), m, hello())
			wantKind(t, err, agent.Transient)
			if done != nil || errors.Is(err, context.Canceled) {
				t.Errorf("silence is told as a stop: %v", err)
			}
			if n := len(p.requests()); n != 1 {
				t.Errorf("%d requests: a silent provider is not to be asked again", n)
			}
		})
	}
}

// Keep-alives count as life, and so does the time that the reader takes.
func TestSlowButLivingAnswers(t *testing.T) {
	t.Parallel()
	const idle = time.Second
	p := newProvider(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, piece := range []string{": ping\n\n", sse(deltaHel), ": ping\n\n", "\n", sse(deltaLo), sse(doneMsg, completed)} {
			_, _ = io.WriteString(w, piece)
			_ = http.NewResponseController(w).Flush()
			select {
			case <-r.Context().Done():
			case <-time.After(idle / 20):
			}
		}
	})
	m := p.model(t, openai.Options{API: openai.Responses, IdleTimeout: idle})
	var done *agent.Completion
	for ev, err := range m.Stream(t.Context(), hello()) {
		if err != nil {
			t.Fatal(err)
		}
		if ev.Delta == "Hel" {
			time.Sleep(idle + idle/2) // a slow consumer over a real socket: there is no fake clock here
		}
		done = ev.Done
	}
	if done == nil {
		t.Error("no completion")
	}
}

func TestRetries(t *testing.T) {
	t.Parallel()
	first := func(header http.Header, status int, text string) http.HandlerFunc {
		n := 0
		return func(w http.ResponseWriter, r *http.Request) {
			if n++; n == 1 {
				maps.Copy(w.Header(), header)
				body(status, "application/json", text)(w, r)
				return
			}
			stream(doneMsg, completed)(w, r)
		}
	}
	soon := http.Header{"Retry-After-Ms": {"1"}}
	tests := map[string]struct {
		answer   http.HandlerFunc
		requests int
		after    time.Duration
	}{
		"overloaded":         {first(soon, 503, ""), 2, 0},
		"rate limit, soon":   {first(soon, 429, `{"error":{"code":"rate_limit_exceeded"}}`), 2, 0},
		"rate limit, later":  {first(http.Header{"Retry-After": {"30"}}, 429, `{"error":{"code":"rate_limit_exceeded"}}`), 1, 30 * time.Second},
		"out of quota":       {first(soon, 429, `{"error":{"code":"insufficient_quota"}}`), 1, time.Millisecond},
		"invalid":            {first(soon, 400, `{"error":{"code":"bad"}}`), 1, time.Millisecond},
		"cut after its head": {first(nil, 200, sse(deltaHel)), 1, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProvider(t, tt.answer)
			_, done, err := ask(t.Context(), p.model(t, openai.Options{API: openai.Responses, MaxRetries: 2}), hello())
			if n := len(p.requests()); n != tt.requests {
				t.Errorf("%d requests, want %d", n, tt.requests)
			}
			if (done != nil) != (tt.requests == 2) {
				t.Errorf("completion %v, error %v", done, err)
			}
			if e, ok := errors.AsType[*agent.Error](err); ok && e.RetryAfter != tt.after {
				t.Errorf("retry after %v, want %v", e.RetryAfter, tt.after)
			}
		})
	}
}

func TestAutoFindsTheAPI(t *testing.T) {
	t.Parallel()
	chatOK := sse(`{"choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":"stop"}]}`, "[DONE]")
	refuse := func(status int, text string) func(http.ResponseWriter, *http.Request) {
		return body(status, "", text)
	}
	tests := map[string]struct {
		responses http.HandlerFunc
		paths     string // of two requests in a row
	}{
		"has Responses":             {stream(doneMsg, completed), "R R"},
		"404":                       {refuse(404, "404 page not found"), "R C C"},
		"405":                       {refuse(405, ""), "R C C"},
		"501":                       {refuse(501, `{"error":"not implemented"}`), "R C C"},
		"400 that names it":         {refuse(400, `{"error":"unknown path /v1/responses"}`), "R C C"},
		"401 says nothing":          {refuse(401, `{}`), "R R"},
		"429 says nothing":          {refuse(429, `{}`), "R R"},
		"500 says nothing":          {refuse(500, ``), "R R"},
		"400 says nothing":          {refuse(400, `{"error":{"message":"bad input"}}`), "R R"},
		"404 of the model":          {refuse(404, `{"error":{"message":"model 'm' not found"}}`), "R R"},
		"404 of an item":            {refuse(404, `{"error":{"message":"Item with id 'rs_1' not found"}}`), "R R"},
		"a cut stream says nothing": {stream(deltaHel), "R R"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProvider(t, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/v1/responses" {
					tt.responses(w, r)
					return
				}
				body(200, "text/event-stream", chatOK)(w, r)
			})
			m := p.model(t, openai.Options{})
			for range 2 {
				_, _, _ = ask(t.Context(), m, hello())
			}
			var got []string
			for _, a := range p.requests() {
				got = append(got, map[string]string{"/v1/responses": "R", "/v1/chat/completions": "C"}[a.path])
			}
			if strings.Join(got, " ") != tt.paths {
				t.Errorf("asked %v, want %s", got, tt.paths)
			}
		})
	}
}

// A wrong base URL lacks both: nothing may be concluded from that.
func TestAutoConcludesNothingWhenBothFail(t *testing.T) {
	t.Parallel()
	p := newProvider(t, body(404, "", "404 page not found"))
	m := p.model(t, openai.Options{})
	for range 2 {
		_, _, err := ask(t.Context(), m, hello())
		wantKind(t, err, agent.InvalidRequest)
	}
	if got := len(p.requests()); got != 4 {
		t.Errorf("%d requests, want both APIs tried twice", got)
	}
}

func TestNothingSecretIsLogged(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	p := newProvider(t, body(404, "", "404 "+secret))
	m := p.model(t, openai.Options{Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	_, _, err := ask(t.Context(), m, hello())
	wantKind(t, err, agent.InvalidRequest)
	if s := log.String(); strings.Contains(s, key) || strings.Contains(s, secret) || strings.Contains(s, "hello there") {
		t.Errorf("log tells too much: %s", s)
	}
}
