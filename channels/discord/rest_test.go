package discord

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"botd/channels"
)

// roundTrip is a transport that is a function.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestClient_Addresses: what stands in a path is escaped, and goes below the base that was configured.
func TestClient_Addresses(t *testing.T) {
	t.Parallel()
	a, err := New(Options{Channel: "discord", Token: testToken, APIBase: "https://proxy.test/to/discord/"})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	a.rest.http.Transport = roundTrip(func(r *http.Request) (*http.Response, error) {
		got = append(got, r.Method+" "+r.URL.String()+" "+r.Header.Get("Authorization"))
		return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader("{}")), Request: r}, nil
	})
	ctx := t.Context()
	_ = a.rest.typing(ctx, "1")
	_ = a.rest.typing(ctx, "../users/@me?x#y")
	_, _ = a.rest.editOriginal(ctx, token{ID: "1", App: "2", Token: "a/b?c%d"}, "x")
	_, _ = a.rest.messagesAfter(ctx, "1", "5")
	want := []string{
		"POST https://proxy.test/to/discord/api/v10/channels/1/typing Bot " + testToken,
		"POST https://proxy.test/to/discord/api/v10/channels/..%2Fusers%2F@me%3Fx%23y/typing Bot " + testToken,
		"PATCH https://proxy.test/to/discord/api/v10/webhooks/2/a%2Fb%3Fc%25d/messages/@original ",
		"GET https://proxy.test/to/discord/api/v10/channels/1/messages?after=5&limit=100 Bot " + testToken,
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("requests\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestClient_TrustsNoPlainGateway: the token does not leave over an open line because an answer says so.
func TestClient_TrustsNoPlainGateway(t *testing.T) {
	t.Parallel()
	for base, want := range map[string]map[string]bool{
		"https://discord.com": {"wss://gateway.discord.gg": true, "ws://gateway.discord.gg": false, "http://x": false, "": false},
		"http://127.0.0.1":    {"wss://gateway.discord.gg": true, "ws://127.0.0.1": true, "http://x": false, "": false},
	} {
		a, err := New(Options{Channel: "discord", Token: testToken, APIBase: base})
		if err != nil {
			t.Fatal(err)
		}
		for gateway, ok := range want {
			if a.rest.trusts(gateway) != ok {
				t.Errorf("%s names %q: trusted %v", base, gateway, !ok)
			}
		}
		if base != "https://discord.com" {
			continue
		}
		a.rest.http.Transport = roundTrip(func(r *http.Request) (*http.Response, error) {
			body := `{"id":"1","url":"ws://gateway.discord.gg","session_start_limit":{"total":1000,"remaining":1000}}`
			return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
		})
		if l, err := a.prepare(t.Context()); l != nil || err == nil {
			t.Errorf("prepare: %v", err)
		}
	}
}

func TestClient_AnswerCutShort(t *testing.T) {
	t.Parallel()
	a := unconnected(t)
	a.rest.http.Transport = roundTrip(func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(io.MultiReader(strings.NewReader(`{"id":`), broken{})), Request: r}, nil
	})
	if _, err := a.rest.createMessage(t.Context(), "1", newMessage{}); channels.KindOf(err) != channels.Transient || err == nil || errors.Is(err, errNotSent) {
		t.Errorf("create message: %v, want a transient error that does not say it was never sent", err)
	}
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }
