package console_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"botd/channels"
	"botd/channels/channeltest"
	"botd/channels/console"
)

func TestConformance(t *testing.T) {
	channeltest.Run(t, func(t *testing.T) *channeltest.Rig {
		adapter, err := console.New(console.Options{Channel: "console"})
		if err != nil {
			t.Fatal(err)
		}
		s := newServer(t)
		return &channeltest.Rig{
			Adapter: adapter,
			Attach:  s.attach,
			Direct: s.place(t, "", channels.Address{
				Channel: "console", Kind: channels.Direct, Room: "ann", User: "ann",
			}),
			Group: s.place(t, "lobby", channels.Address{
				Channel: "console", Kind: channels.Group, Room: "lobby", User: "bob",
			}),
		}
	})
}

// server serves an adapter's handler and watches what it shows.
type server struct {
	url      string
	attached chan struct{}
	handler  http.Handler
	watchers sync.WaitGroup
}

func newServer(t *testing.T) *server {
	t.Helper()
	s := &server{attached: make(chan struct{})}
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-s.attached:
			s.handler.ServeHTTP(w, r)
		case <-r.Context().Done():
		}
	}))
	s.url = h.URL + "/console"
	t.Cleanup(func() {
		h.CloseClientConnections()
		h.Close()
		s.watchers.Wait()
		http.DefaultClient.CloseIdleConnections()
	})
	return s
}

func (s *server) attach(h http.Handler) {
	s.handler = h
	close(s.attached)
}

// post posts a message and returns the status.
func (s *server) post(ctx context.Context, body map[string]any) (int, error) {
	raw, err := json.Marshal(body)
	if err != nil {
		return 0, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+"/messages", bytes.NewReader(raw))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	return res.StatusCode, nil
}

func (s *server) place(t *testing.T, room string, at channels.Address) channeltest.Place {
	w := s.watch(t, at.User, room)
	n := 0
	post := func(ctx context.Context, body map[string]any) (channeltest.Said, error) {
		status, err := s.post(ctx, body)
		return channeltest.Said{Refused: status != http.StatusAccepted, Ref: body}, err
	}
	return channeltest.Place{
		Address: at,
		Say: func(ctx context.Context, text string, how channeltest.Manner) (channeltest.Said, error) {
			n++
			body := map[string]any{"user": at.User, "text": text, "id": fmt.Sprint(n)}
			if how.Mention {
				body["text"] = "@botd " + text
			}
			if room != "" {
				body["room"] = room
			}
			if how.ReplyTo != "" {
				body["reply_to"] = how.ReplyTo
			}
			return post(ctx, body)
		},
		Redeliver: func(ctx context.Context, said channeltest.Said) error {
			_, err := post(ctx, said.Ref.(map[string]any))
			return err
		},
		Shown: func() []string { return w.texts(func(console.Message) bool { return true }) },
		Answers: func(said channeltest.Said) []string {
			suffix := fmt.Sprintf("-%s-%s", at.User, said.Ref.(map[string]any)["id"])
			return w.texts(func(m console.Message) bool { return strings.HasSuffix(m.ReplyTo, suffix) })
		},
		Typing: w.typed,
	}
}

// watcher is a client of the events, which reads until the server goes.
type watcher struct {
	mu       sync.Mutex
	messages []console.Message
	preview  string
	typing   bool
}

func (s *server) watch(t *testing.T, user, room string) *watcher {
	w := &watcher{}
	query := url.Values{"user": {user}}
	if room != "" {
		query.Set("room", room)
	}
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	s.watchers.Go(func() {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/events?"+query.Encode(), nil)
		if err != nil {
			t.Error(err)
			return
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			return // the case ended before it began
		}
		defer res.Body.Close()
		lines := bufio.NewScanner(res.Body)
		lines.Buffer(nil, 1<<20)
		event := ""
		for lines.Scan() {
			if name, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
				event = name
			}
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				w.take(t, event, data)
			}
		}
	})
	return w
}

func (w *watcher) take(t *testing.T, event, data string) {
	var m console.Message
	if err := json.Unmarshal([]byte(data), &m); err != nil {
		t.Errorf("event %s: %v", event, err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch event {
	case "message":
		w.messages, w.preview = append(w.messages, m), ""
	case "preview":
		w.preview = m.Text
	case "typing":
		w.typing = true
	default:
		t.Errorf("unknown event %q", event)
	}
}

func (w *watcher) texts(want func(console.Message) bool) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []string
	for _, m := range w.messages {
		if want(m) {
			out = append(out, m.Text)
		}
	}
	if w.preview != "" {
		out = append(out, w.preview)
	}
	return out
}

func (w *watcher) typed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.typing
}

// recorder is a sink that keeps what it takes.
type recorder struct {
	mu     sync.Mutex
	events []channels.Inbound
	err    error
	grown  chan struct{}
}

func newRecorder() *recorder { return &recorder{grown: make(chan struct{}, 100)} }

func (r *recorder) Accept(_ context.Context, events ...channels.Inbound) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		return r.err
	}
	r.events = append(r.events, events...)
	r.grown <- struct{}{}
	return nil
}

func (r *recorder) all() []channels.Inbound {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.events)
}
