package admin_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"botd/channels"
	"botd/channels/dispatch"
	"botd/cmd/botd/internal/admin"
	"botd/sessionstore"
	"botd/sessionstore/boltstore"
)

// patience bounds every wait for something that must happen.
const patience = 20 * time.Second

// dispatcher stands in for the real one: it resets by clearing, and notes what it was asked.
type dispatcher struct {
	store sessionstore.Store

	mu    sync.Mutex
	asked []string
	ready error
	// before is called by Reset before it does anything.
	before func(context.Context) error
}

func (d *dispatcher) note(what string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked = append(d.asked, what)
}

func (d *dispatcher) Reset(ctx context.Context, id sessionstore.ID) error {
	d.note("reset " + string(id))
	if d.before != nil {
		if err := d.before(ctx); err != nil {
			return err
		}
	}
	return d.store.Clear(ctx, id)
}

func (d *dispatcher) Wake(context.Context) error { d.note("wake"); return nil }
func (d *dispatcher) Ready() error               { return d.ready }

// house is a server on a socket over a file.
type house struct {
	t          *testing.T
	db         *boltstore.DB
	dispatcher *dispatcher
	level      *slog.LevelVar
	socket     string
	log        *buffer
	client     *admin.Client
	http       *http.Client
}

// open serves a store; edit may change the options.
func open(t *testing.T, edit ...func(*admin.Options)) *house {
	t.Helper()
	db, err := boltstore.Open(boltstore.Options{Path: filepath.Join(t.TempDir(), "botd.db")})
	if err != nil {
		t.Fatal(err)
	}
	h := &house{t: t, db: db, dispatcher: &dispatcher{store: db}, level: new(slog.LevelVar), log: &buffer{}}
	o := admin.Options{
		Store: db, Journal: db, Dispatcher: h.dispatcher, Level: h.level,
		Logger: slog.New(slog.NewTextHandler(h.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Channels: func() []admin.Channel {
			return []admin.Channel{{Name: "line", Platform: "line", Status: "ok"}, {Name: "discord", Platform: "discord", Status: "failed", Detail: "token refused"}}
		},
	}
	for _, f := range edit {
		f(&o)
	}
	h.socket = socketPath(t)
	l, err := admin.Listen(t.Context(), h.socket)
	if err != nil {
		t.Fatal(err)
	}
	s := admin.New(o)
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	t.Cleanup(func() {
		if err := s.Shutdown(context.Background()); err != nil {
			t.Errorf("shut down: %v", err)
		}
		if err := <-ended; err != nil {
			t.Errorf("serve: %v", err)
		}
		if _, err := os.Lstat(h.socket); err == nil {
			t.Error("the socket is still there after the shutdown")
		}
		if err := db.Verify(context.Background()); err != nil {
			t.Error(err)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	if h.client, err = admin.Dial(t.Context(), h.socket); err != nil {
		t.Fatal(err)
	}
	h.client.Wrap(func(next http.RoundTripper) http.RoundTripper { return newJudge(t, next) })
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", h.socket)
	}}
	t.Cleanup(transport.CloseIdleConnections)
	h.http = &http.Client{
		Transport:     newJudge(t, transport),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return h
}

// socketPath is short enough for a socket, whatever the test is called.
func socketPath(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "adm") //nolint:usetesting // t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "s")
}

// raw makes a request as it stands; header is pairs of names and values.
func (h *house) raw(method, target, body string, header ...string) (status int, answer string, res *http.Response) {
	h.t.Helper()
	req, err := http.NewRequestWithContext(h.t.Context(), method, "http://botd"+target, strings.NewReader(body))
	if err != nil {
		h.t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err = h.http.Do(req)
	if err != nil {
		h.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	return res.StatusCode, string(text), res
}

// say appends one item for each text.
func (h *house) say(id sessionstore.ID, texts ...string) {
	h.t.Helper()
	generation, err := h.db.Generation(h.t.Context(), id)
	if err != nil {
		h.t.Fatal(err)
	}
	b := sessionstore.Batch{Generation: generation}
	for _, text := range texts {
		b.Items = append(b.Items, sessionstore.Item{Raw: item(text)})
	}
	if err := h.db.Append(h.t.Context(), id, b); err != nil {
		h.t.Fatal(err)
	}
}

func item(text string) json.RawMessage {
	quoted, _ := json.Marshal(text)
	return json.RawMessage(`{"role": "user",  "content": ` + string(quoted) + `}`)
}

// texts are what a session holds.
func (h *house) items(id sessionstore.ID) int {
	h.t.Helper()
	items, err := h.db.Items(h.t.Context(), id, sessionstore.All)
	if err != nil {
		h.t.Fatal(err)
	}
	return len(items)
}

// put records an event and returns its entry.
func (h *house) put(id sessionstore.ID, event, text string) dispatch.Entry {
	h.t.Helper()
	fresh, err := h.db.Put(h.t.Context(), []dispatch.Routed{{Session: id, Event: channels.Inbound{
		ID: event, Kind: channels.Message, Address: channels.Address{Channel: "line", Kind: channels.Direct, Room: "U1", User: "U1"},
		Speaker: channels.Speaker{ID: "U1", Name: "Alice"}, Time: time.Now(),
		Parts: []channels.Part{{Type: channels.Text, Text: text}}, Reply: []byte("secret-reply-token"),
	}}})
	if err != nil || len(fresh) != 1 {
		h.t.Fatalf("put: %v, %d fresh", err, len(fresh))
	}
	return fresh[0]
}

// deliver makes a delivery that is in the state, and returns its number.
func (h *house) deliver(id sessionstore.ID, name, text string, state dispatch.State) uint64 {
	h.t.Helper()
	ctx := h.t.Context()
	generation, err := h.db.Generation(ctx, id)
	if err != nil {
		h.t.Fatal(err)
	}
	err = h.db.Commit(ctx, dispatch.TurnResult{Session: id, Turn: "turn-" + name, Generation: generation, Replies: []dispatch.Delivery{{
		Session: id, Created: time.Now(), Message: channels.Outbound{
			ID: name, To: channels.Address{Channel: "line", Kind: channels.Direct, Room: "U1", User: "U1"},
			Reply: []byte("secret-reply-token"), Parts: []channels.Part{{Type: channels.Text, Text: text}},
		},
	}}})
	if err != nil {
		h.t.Fatal(err)
	}
	if state != dispatch.Waiting {
		if err := h.db.Settle(ctx, name, dispatch.Outcome{State: state, Reason: "told so"}); err != nil {
			h.t.Fatal(err)
		}
	}
	kept, err := h.db.Outbox(ctx, state, 0, 1000)
	if err != nil {
		h.t.Fatal(err)
	}
	for _, k := range kept {
		if k.Message.ID == name {
			return k.Seq
		}
	}
	h.t.Fatalf("delivery %s is not %s", name, state)
	return 0
}

// buffer collects a log.
type buffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
