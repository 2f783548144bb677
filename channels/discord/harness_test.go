package discord

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"botd/channels"
	"botd/channels/discord/discordfake"
)

const testToken = "MARKER.of-the.bot-token"

// bubble runs a test in a bubble of fake time that begins in 2026, after Discord's epoch.
func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)))
		f(t)
	})
}

// scene is a fake Discord with a few people and rooms, an adapter and its sink.
type scene struct {
	t     *testing.T
	srv   *discordfake.Server
	net   *discordfake.Memory
	sink  *sink
	logs  *logs
	opts  Options
	a     *Adapter
	stop  context.CancelFunc
	ended chan error

	ada, bob             discordfake.User
	guild, role          string
	room, thread, direct string
}

type change func(*discordfake.Options, *Options)

// newScene builds the scene; the adapter does not run yet.
func newScene(t *testing.T, changes ...change) *scene {
	t.Helper()
	s := &scene{t: t, net: discordfake.NewMemory(), sink: &sink{}, logs: &logs{}}
	fake := discordfake.Options{Token: testToken, Listener: s.net}
	opts := Options{
		Channel: "discord", Token: testToken, APIBase: "http://discord.test", Dial: s.net.Dial,
		Logger: slog.New(slog.NewTextHandler(s.logs, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	for _, c := range changes {
		c(&fake, &opts)
	}
	var err error
	if s.srv, err = discordfake.New(fake); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.close)
	s.opts = opts
	if s.a, err = New(opts); err != nil {
		t.Fatal(err)
	}
	s.ada, s.bob = s.srv.Person("Ada"), s.srv.Person("Bob")
	s.guild, s.role = s.srv.Guild("Guild")
	s.room = s.srv.Room(s.guild, "general")
	s.thread = s.srv.Thread(s.room, "talk")
	s.direct = s.srv.DM(s.ada.ID)
	return s
}

// run starts the adapter.
func (s *scene) run() {
	ctx, cancel := context.WithCancel(context.WithoutCancel(s.t.Context()))
	s.stop, s.ended = cancel, make(chan error, 1)
	go func() { s.ended <- s.a.Run(ctx, s.sink) }()
}

// started is a scene whose adapter has connected.
func started(t *testing.T, changes ...change) *scene {
	t.Helper()
	s := newScene(t, changes...)
	s.run()
	s.wait()
	if err := s.a.Ready(); err != nil {
		t.Fatalf("adapter not ready: %v", err)
	}
	return s
}

// wait lets everything happen that needs no time.
func (s *scene) wait() { synctest.Wait() }

// end stops the adapter and returns the error of Run.
func (s *scene) end() error {
	s.stop()
	err := <-s.ended
	s.ended <- err
	return err
}

func (s *scene) close() {
	if s.stop != nil {
		s.end()
	}
	if s.a != nil {
		s.a.rest.http.CloseIdleConnections()
	}
	if err := s.srv.Close(); err != nil {
		s.t.Error(err)
	}
	if all := s.logs.String(); strings.Contains(all, "MARKER") {
		s.t.Errorf("a token or message text was logged:\n%s", all)
	}
}

// say posts a message and waits until it has arrived.
func (s *scene) say(m discordfake.Saying) discordfake.Message {
	s.t.Helper()
	sent, err := s.srv.Say(m)
	if err != nil {
		s.t.Fatal(err)
	}
	s.wait()
	return sent
}

// mention is a text that calls the bot.
func (s *scene) mention(text string) string { return "<@" + s.srv.Bot().ID + "> " + text }

// hear says something and returns the event that it became.
func (s *scene) hear(m discordfake.Saying) channels.Inbound {
	s.t.Helper()
	n := len(s.sink.all())
	s.say(m)
	all := s.sink.all()
	if len(all) != n+1 {
		s.t.Fatalf("%d events came of one message", len(all)-n)
	}
	return all[n]
}

// send composes and sends an answer.
func (s *scene) send(m channels.Outbound) ([]channels.Receipt, error) {
	s.t.Helper()
	var receipts []channels.Receipt
	for i, part := range s.a.Compose(m) {
		part.ID = m.ID + "/" + string(rune('0'+i))
		r, err := s.a.Send(s.t.Context(), part)
		if err != nil {
			return receipts, err
		}
		receipts = append(receipts, r)
	}
	return receipts, nil
}

// answer is an answer in Markdown to an event.
func answer(in channels.Inbound, text string) channels.Outbound {
	return channels.Outbound{ID: "turn-" + in.ID, To: in.Address, Reply: in.Reply, Quote: true, Parts: []channels.Part{{Type: channels.Markdown, Text: text}}}
}

// sink records what it accepts.
type sink struct {
	mu     sync.Mutex
	events []channels.Inbound
	fail   func(events []channels.Inbound) error
}

func (s *sink) Accept(ctx context.Context, events ...channels.Inbound) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail != nil {
		if err := s.fail(events); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	s.events = append(s.events, events...)
	return nil
}

func (s *sink) refuse(fail func([]channels.Inbound) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = fail
}

func (s *sink) all() []channels.Inbound {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.events)
}

func (s *sink) texts() []string {
	var texts []string
	for _, e := range s.all() {
		texts = append(texts, e.PlainText())
	}
	return texts
}

var errSink = errors.New("the journal is away")

// logs is a buffer for several goroutines.
type logs struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
