package line_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"testing"

	"botd/channels"
	"botd/channels/line"
	"botd/channels/line/linefake"
)

// sink keeps what it is given, or fails.
type sink struct {
	mu     sync.Mutex
	events []channels.Inbound
	err    error
	accept func(context.Context, []channels.Inbound) error
}

func (s *sink) Accept(ctx context.Context, events ...channels.Inbound) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return s.err
	}
	if s.accept != nil {
		if err := s.accept(ctx, events); err != nil {
			return err
		}
	}
	s.events = append(s.events, events...)
	return nil
}

func (s *sink) got() []channels.Inbound {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]channels.Inbound(nil), s.events...)
}

// last returns the event that came last.
func (s *sink) last(t *testing.T) channels.Inbound {
	t.Helper()
	got := s.got()
	if len(got) == 0 {
		t.Fatal("no event was accepted")
	}
	return got[len(got)-1]
}

// world is an adapter joined to a fake platform without sockets, so that it runs within a synctest
// bubble too.
type world struct {
	t     *testing.T
	fake  *linefake.Server
	bot   *linefake.Bot
	a     *line.Adapter
	sink  *sink
	alice *linefake.User
	chat  *linefake.Chat
}

// lateHandler is a handler that is known only after the transport to it.
type lateHandler struct{ http.Handler }

func newWorld(t *testing.T, edit ...func(*line.Options)) *world {
	t.Helper()
	hook := &lateHandler{}
	w := &world{t: t, sink: &sink{}}
	w.fake = linefake.New(linefake.Options{Transport: linefake.HandlerTransport(hook)})
	t.Cleanup(func() {
		if err := w.fake.Close(); err != nil {
			t.Error(err)
		}
	})
	w.bot = w.fake.AddBot(linefake.BotConfig{Name: "Shop", WebhookURL: "http://gateway.test/line"})
	w.alice = w.fake.AddUser(linefake.UserConfig{Name: "Alice", Language: "ja"})
	w.chat = w.bot.Direct(w.alice)
	w.a = w.adapter(edit...)
	hook.Handler = w.a.Webhook(w.sink)
	return w
}

// adapter returns one more adapter for the bot.
func (w *world) adapter(edit ...func(*line.Options)) *line.Adapter {
	w.t.Helper()
	o := line.Options{
		Channel: "line-shop", Secret: w.bot.Secret, Token: w.bot.Token,
		APIBase: w.fake.URL(), DataBase: w.fake.URL(),
		HTTPClient: &http.Client{Transport: w.fake.Transport()},
		Logger:     slog.New(slog.NewTextHandler(w.t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	for _, e := range edit {
		e(&o)
	}
	a, err := line.New(o)
	if err != nil {
		w.t.Fatal(err)
	}
	return a
}

// say lets Alice say something in the direct chat and returns what the sink got.
func (w *world) say(text string) channels.Inbound {
	w.t.Helper()
	return w.post(w.chat, w.alice, linefake.Text{Text: text})
}

func (w *world) post(c *linefake.Chat, from *linefake.User, content linefake.Content) channels.Inbound {
	w.t.Helper()
	_, res := c.Post(w.t.Context(), from, content)
	if !res.OK() {
		w.t.Fatalf("webhook was not acknowledged: %+v", res)
	}
	return w.sink.last(w.t)
}

// answer composes an answer to the event.
func (w *world) answer(in channels.Inbound, markdown string) []channels.Outbound {
	w.t.Helper()
	sends := w.a.Compose(channels.Outbound{
		To: in.Address, Reply: in.Reply, Quote: in.Address.Kind != channels.Direct,
		Parts: []channels.Part{{Type: channels.Markdown, Text: markdown}},
	})
	for i := range sends {
		sends[i].ID = "turn/" + string(rune('0'+i))
	}
	return sends
}

// one is answer for an answer that takes one send.
func (w *world) one(in channels.Inbound, markdown string) channels.Outbound {
	w.t.Helper()
	sends := w.answer(in, markdown)
	if len(sends) != 1 {
		w.t.Fatalf("%d sends, want 1", len(sends))
	}
	return sends[0]
}

// expectKind fails the test unless err is a *channels.Error of the kind.
func expectKind(t *testing.T, err error, want channels.ErrorKind) {
	t.Helper()
	if e, is := errors.AsType[*channels.Error](err); !is || e.Kind != want {
		t.Errorf("got error %v, want one of kind %q", err, want)
	}
}

// texts returns the texts of the bubbles.
func texts(bubbles []linefake.Bubble) []string {
	var out []string
	for _, b := range bubbles {
		out = append(out, b.Text)
	}
	return out
}

// vias returns how the bubbles came.
func vias(bubbles []linefake.Bubble) []linefake.Via {
	var out []linefake.Via
	for _, b := range bubbles {
		out = append(out, b.Via)
	}
	return out
}

// clientOf returns a client that reaches the platform.
func clientOf(w *world) *http.Client { return &http.Client{Transport: w.fake.Transport()} }
