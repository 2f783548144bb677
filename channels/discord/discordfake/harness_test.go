package discordfake_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"

	"botd/channels/discord/discordfake"
)

// bubble runs a test in fake time that begins after Discord's epoch.
func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)))
		f(t)
	})
}

// client is a hand-written client of the server.
type client struct {
	*discordfake.Server
	t    *testing.T
	net  *discordfake.Memory
	http *http.Client
}

func newClient(t *testing.T, o discordfake.Options) *client {
	t.Helper()
	c := &client{t: t, net: discordfake.NewMemory()}
	o.Listener = c.net
	var err error
	if c.Server, err = discordfake.New(o); err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{DialContext: c.net.Dial}
	c.http = &http.Client{Transport: transport}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if c.Close() == nil {
			t.Error("closed twice")
		}
	})
	return c
}

// answer is what came back of a request.
type answer struct {
	status int
	header http.Header
	body   string
	Code   int    `json:"code"`
	ID     string `json:"id"`
}

func (c *client) do(method, path, body string) answer {
	c.t.Helper()
	return c.request(method, "/api/v10"+path, body, http.Header{"Authorization": {"Bot " + discordfake.DefaultToken}, "User-Agent": {"DiscordBot (test, 1)"}})
}

func (c *client) request(method, path, body string, h http.Header) answer {
	c.t.Helper()
	var r io.Reader
	if body != "" {
		r = strings.NewReader(body)
		if h.Get("Content-Type") == "" {
			h.Set("Content-Type", "application/json")
		}
	}
	req, err := http.NewRequestWithContext(c.t.Context(), method, c.URL()+path, r)
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header = h
	resp, err := c.http.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	a := answer{status: resp.StatusCode, header: resp.Header, body: string(b)}
	if bytes.HasPrefix(b, []byte("{")) {
		if err := json.Unmarshal(b, &a); err != nil {
			c.t.Fatalf("%s %s: %v", method, path, err)
		}
	}
	return a
}

// socket is one gateway connection.
type socket struct {
	t  *testing.T
	ws *websocket.Conn
}

type frame struct {
	Op   int             `json:"op"`
	Data json.RawMessage `json:"d"`
	Seq  int64           `json:"s"`
	Type string          `json:"t"`
}

func (c *client) dial(query string) *socket {
	c.t.Helper()
	d := websocket.Dialer{NetDialContext: c.net.Dial}
	ws, _, err := d.DialContext(c.t.Context(), "ws://discord.test/gateway/?"+query, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = ws.Close() })
	return &socket{c.t, ws}
}

// greeted is a connection on which HELLO was read.
func (c *client) greeted() *socket {
	c.t.Helper()
	s := c.dial("v=10&encoding=json")
	if f := s.read(); f.Op != 10 {
		c.t.Fatalf("first frame %+v, want HELLO", f)
	}
	return s
}

// identified is a connection with a session.
func (c *client) identified(intents discordfake.Intent) (*socket, string) {
	c.t.Helper()
	time.Sleep(5 * time.Second)
	s := c.greeted()
	s.identify(discordfake.DefaultToken, intents)
	f := s.read()
	var ready struct {
		SessionID string `json:"session_id"`
	}
	if err := json.Unmarshal(f.Data, &ready); f.Type != "READY" || err != nil || ready.SessionID == "" {
		c.t.Fatalf("got %+v, want READY", f)
	}
	return s, ready.SessionID
}

func (s *socket) send(v any) {
	s.t.Helper()
	if err := s.ws.WriteJSON(v); err != nil {
		s.t.Fatal(err)
	}
}

func (s *socket) identify(token string, intents discordfake.Intent) {
	s.t.Helper()
	s.send(map[string]any{"op": 2, "d": map[string]any{"token": token, "intents": intents, "properties": map[string]any{}}})
}

func (s *socket) resume(session string, seq int64) {
	s.t.Helper()
	s.send(map[string]any{"op": 6, "d": map[string]any{"token": discordfake.DefaultToken, "session_id": session, "seq": seq}})
}

func (s *socket) read() frame {
	s.t.Helper()
	var f frame
	if err := s.ws.ReadJSON(&f); err != nil {
		s.t.Fatalf("read frame: %v", err)
	}
	return f
}

// readType reads until an event of a type.
func (s *socket) readType(want string) frame {
	s.t.Helper()
	for {
		if f := s.read(); f.Type == want {
			return f
		}
	}
}

// closed reads to the end and returns the close code.
func (s *socket) closed() int {
	s.t.Helper()
	for {
		var f frame
		err := s.ws.ReadJSON(&f)
		if ce, ok := errors.AsType[*websocket.CloseError](err); ok {
			return ce.Code
		}
		if err != nil {
			return 0
		}
	}
}
