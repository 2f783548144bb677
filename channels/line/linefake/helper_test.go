package linefake_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"botd/channels/line/linefake"
)

// world is a platform with one bot, and a webhook server that keeps what it gets.
type world struct {
	*linefake.Server
	t    *testing.T
	bot  *linefake.Bot
	hook *hook
}

// hook is a bot server: it acknowledges with status, or as answer says.
type hook struct {
	mu     sync.Mutex
	bodies [][]byte
	header http.Header
	answer func(n int, w http.ResponseWriter, r *http.Request)
}

func (h *hook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	h.mu.Lock()
	h.bodies = append(h.bodies, body)
	h.header = r.Header.Clone()
	n, answer := len(h.bodies), h.answer
	h.mu.Unlock()
	if answer != nil {
		answer(n, w, r)
	}
}

func (h *hook) got() [][]byte {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([][]byte(nil), h.bodies...)
}

// newWorld needs no socket, so that it also runs within a synctest bubble.
func newWorld(t *testing.T, o linefake.Options, c linefake.BotConfig) *world {
	t.Helper()
	h := &hook{}
	o.Transport = linefake.HandlerTransport(h)
	s := linefake.New(o)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	c.WebhookURL = "http://gateway.test/line"
	return &world{Server: s, t: t, bot: s.AddBot(c), hook: h}
}

// response is an answer of the API.
type response struct {
	status int
	header http.Header
	body   []byte
	err    error
}

func (r response) message() string {
	var e struct{ Message string }
	_ = json.Unmarshal(r.body, &e)
	return e.Message
}

// sent returns the IDs in sentMessages.
func (r response) sent() []string {
	var e struct{ SentMessages []struct{ ID string } }
	_ = json.Unmarshal(r.body, &e)
	var ids []string
	for _, m := range e.SentMessages {
		ids = append(ids, m.ID)
	}
	return ids
}

type option func(*http.Request)

func header(name, value string) option {
	return func(r *http.Request) { r.Header[name] = []string{value} }
}

// call makes one call to the API with the bot's token.
func (w *world) call(method, path, body string, opts ...option) response {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), method, w.URL()+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+w.bot.Token)
	r.Header.Set("Content-Type", "application/json")
	for _, o := range opts {
		o(r)
	}
	res, err := (&http.Client{Transport: w.Transport()}).Do(r)
	if err != nil {
		return response{err: err}
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return response{status: res.StatusCode, header: res.Header, body: bytes.TrimSpace(b)}
}

func (w *world) reply(token string, opts ...option) response {
	w.t.Helper()
	return w.call("POST", "/v2/bot/message/reply", `{"replyToken":"`+token+`","messages":[{"type":"text","text":"hi"}]}`, opts...)
}

func (w *world) push(to, text string, opts ...option) response {
	w.t.Helper()
	return w.call("POST", "/v2/bot/message/push", `{"to":"`+to+`","messages":[{"type":"text","text":"`+text+`"}]}`, opts...)
}

// expect fails the test unless the answer is status with message, where a message is given.
func (w *world) expect(r response, status int, message string) {
	w.t.Helper()
	if r.status != status || message != "" && r.message() != message {
		w.t.Errorf("got %d %q %v, want %d %q", r.status, r.body, r.err, status, message)
	}
}
