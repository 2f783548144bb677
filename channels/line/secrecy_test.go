package line_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"botd/channels"
	"botd/channels/line"
)

// The markers stand where secrets and people's words are.
const (
	tokenMarker  = "TOKENMARKER"
	secretMarker = "SECRETMARKER"
	replyMarker  = "replytokenmarker"
	quoteMarker  = "quotetokenmarker"
	textMarker   = "TEXTMARKER"
)

// hostile answers of the other side: each repeats the request wherever it can.
var hostile = map[string]roundTripper{
	"echo in the message": echoing(400, func(request string) any { return map[string]any{"message": request} }),
	"echo after a known message": echoing(400, func(request string) any {
		return map[string]any{"message": "The property, '" + request + "', in the request body is invalid"}
	}),
	"echo in the details": echoing(400, func(request string) any {
		return map[string]any{"message": "The request body has 1 error(s)", "details": []any{map[string]any{"message": request, "property": "messages[0].text " + request}}}
	}),
	"echo of the reply token as property": echoing(400, func(string) any {
		return map[string]any{"message": "The request body has 1 error(s)", "details": []any{map[string]any{"property": replyMarker}}}
	}),
	"echo of a refused token":     echoing(401, func(request string) any { return map[string]any{"message": request} }),
	"echo with 500":               echoing(500, func(request string) any { return request }),
	"echo with 429":               echoing(429, func(request string) any { return map[string]any{"message": request} }),
	"echo as OAuth error":         echoing(400, func(request string) any { return map[string]any{"error": request, "error_description": request} }),
	"echo as sent message":        echoing(409, func(request string) any { return map[string]any{"sentMessages": []any{map[string]any{"id": request}}} }),
	"echo as receipt":             echoing(200, func(request string) any { return map[string]any{"sentMessages": []any{map[string]any{"id": request}}} }),
	"echo as profile that is odd": echoing(200, func(request string) any { return []string{request} }),
	"echo as error": func(r *http.Request) (*http.Response, error) {
		return nil, errors.New("cannot send " + dump(r))
	},
	"endless answer": func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 500, Header: http.Header{}, Body: io.NopCloser(endless{})}, nil
	},
	"body that breaks": func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 500, Header: http.Header{}, Body: io.NopCloser(io.MultiReader(strings.NewReader(dump(r)), broken{}))}, nil
	},
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errors.New("broken by " + textMarker) }

// dump is all that a request holds.
func dump(r *http.Request) string {
	var body []byte
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body)
	}
	return fmt.Sprint(r.URL, r.Header, string(body), tokenMarker, secretMarker, replyMarker, quoteMarker, textMarker)
}

func echoing(status int, body func(request string) any) roundTripper {
	return func(r *http.Request) (*http.Response, error) {
		request := dump(r)
		b, err := json.Marshal(body(request))
		if err != nil {
			return nil, err
		}
		h := http.Header{"X-Line-Request-Id": {request}, "Retry-After": {request}, "Content-Type": {"application/json"}}
		return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(bytes.NewReader(b))}, nil
	}
}

// malformed is a server that answers every request with its own bytes, which is no HTTP.
func malformed(t *testing.T) http.RoundTripper {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer c.Close()
				buf := make([]byte, 4096)
				n, _ := c.Read(buf)
				_, _ = c.Write(append([]byte("HTTP/1.1 "+textMarker+" "+tokenMarker+" "), buf[:n]...))
			})
		}
	})
	tr := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "tcp", ln.Addr().String())
	}}
	t.Cleanup(func() { tr.CloseIdleConnections(); ln.Close(); wg.Wait() })
	return tr
}

// TestNoSecretsOrWordsInErrorsAndLogs provokes every failure it can and reads everything that is said.
func TestNoSecretsOrWordsInErrorsAndLogs(t *testing.T) {
	t.Parallel()
	for name, transport := range hostile {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { listen(t, transport) })
		})
	}
	t.Run("malformed answer", func(t *testing.T) {
		t.Parallel()
		listen(t, malformed(t))
	})
}

// listen provokes failures and fails the test if a marker is said.
func listen(t *testing.T, transport http.RoundTripper) {
	t.Helper()
	said := &lockedBuffer{}
	client := &http.Client{Transport: transport}
	stateless, err := line.NewStatelessTokens(line.StatelessOptions{
		ChannelID: "1", Secret: secretMarker, APIBase: "http://127.0.0.1:1", HTTPClient: client,
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, tokens := range []line.TokenSource{nil, stateless} {
		o := line.Options{
			Channel: "line-shop", Secret: secretMarker, Token: tokenMarker, Tokens: tokens,
			APIBase: "http://127.0.0.1:1", HTTPClient: client,
			Logger: slog.New(slog.NewJSONHandler(said, &slog.HandlerOptions{Level: slog.LevelDebug})),
		}
		if tokens != nil {
			o.Token = ""
		}
		a, err := line.New(o)
		if err != nil {
			t.Fatal(err)
		}
		provoke(t, a, said)
	}
	out := said.String()
	for _, marker := range []string{tokenMarker, secretMarker, replyMarker, quoteMarker, textMarker} {
		if i := strings.Index(out, marker); i >= 0 {
			t.Errorf("%s was said: …%s…", marker, out[max(0, i-200):min(len(out), i+50)])
		}
	}
}

// provoke uses everything an adapter has and writes down every error.
func provoke(t *testing.T, a *line.Adapter, said io.Writer) {
	t.Helper()
	const user = "U0123456789abcdef0123456789abcdef"
	tell := func(err error) {
		fmt.Fprintf(said, "%v %+v\n", err, err)
		if err != nil {
			slog.New(slog.NewJSONHandler(said, nil)).Error("failed", "err", err)
		}
	}
	for _, reply := range []string{"", `{"token":"` + replyMarker + `","deadline":"2999-01-01T00:00:00Z","quote":"` + quoteMarker + `"}`, `{"token":"` + replyMarker} {
		for _, parts := range [][]channels.Part{{text(textMarker)}, {md(textMarker)}, {{Type: channels.PartType(textMarker)}}} {
			for _, room := range []string{user, textMarker} {
				for _, uncertain := range []bool{false, true} {
					_, err := a.Send(t.Context(), channels.Outbound{
						ID: "turn/0", To: channels.Address{Kind: channels.Direct, Room: room, User: user}, Reply: []byte(reply),
						Quote: true, Once: reply != "", Uncertain: uncertain, Parts: parts,
					})
					tell(err)
				}
			}
		}
	}
	tell(a.Typing(t.Context(), channels.Address{Kind: channels.Direct, Room: user}))
	_, err := a.Profile(t.Context(), channels.Address{Kind: channels.Direct, Room: user, User: user})
	tell(err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx, nil) }()
	h := a.Webhook(refusing{})
	for _, body := range []string{
		textMarker, `{"destination":"` + textMarker + `"}`, `{"destination":"` + user + `","events":"` + textMarker + `"}`,
		`{"destination":"` + user + `","events":["` + textMarker + `",{"type":"` + textMarker + `"},{"type":"message","replyToken":"` + replyMarker + `","mode":"` + textMarker + `","message":{"text":"` + textMarker + `"}}]}`,
		`{"destination":"` + user + `","events":[{"type":"message","webhookEventId":"1","source":{"type":"user","userId":"` + user + `"},"replyToken":"` + replyMarker + `","message":{"id":"1","type":"text","text":"` + textMarker + `"}}]}`,
		`{"destination":"U00000000000000000000000000000000","events":[]}`,
	} {
		fmt.Fprintln(said, post(h, secretMarker, body), post(h, "wrong", body))
	}
	cancel()
	tell(<-done)
}

// refusing is a sink that keeps nothing.
type refusing struct{}

func (refusing) Accept(context.Context, ...channels.Inbound) error {
	return errors.New("journal is full")
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
