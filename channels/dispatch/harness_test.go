package dispatch_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"botd/agent"
	"botd/channels"
	"botd/channels/dispatch"
	"botd/sessionstore"
	"botd/sessionstore/memstore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// platform stands in for an adapter and what is behind it.
type platform struct {
	name  string
	once  bool // sends have no idempotency key
	limit int  // longest text of one send, 0 for any
	send  func(ctx context.Context, m channels.Outbound) error

	mu   sync.Mutex
	sent []channels.Outbound
}

func (p *platform) Info() channels.Info {
	return channels.Info{Channel: p.name, Platform: "fake", TypingEvery: 5 * time.Second}
}

func (p *platform) Run(ctx context.Context, _ channels.Sink) error {
	<-ctx.Done()
	return nil
}

func (p *platform) Compose(m channels.Outbound) []channels.Outbound {
	text := strings.TrimSpace(m.PlainText())
	var sends []channels.Outbound
	for text != "" {
		n := len(text)
		if p.limit > 0 {
			n = min(n, p.limit)
		}
		s := m
		s.Parts, s.Once = []channels.Part{{Type: channels.Text, Text: text[:n]}}, p.once
		if len(sends) > 0 {
			s.Reply = nil
		}
		sends = append(sends, s)
		text = text[n:]
	}
	return sends
}

func (p *platform) Send(ctx context.Context, m channels.Outbound) (channels.Receipt, error) {
	if p.send != nil {
		if err := p.send(ctx, m); err != nil {
			return channels.Receipt{}, err
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sent = append(p.sent, m)
	return channels.Receipt{MessageIDs: []string{m.ID}}, nil
}

// messages returns what was accepted by the platform so far.
func (p *platform) messages() []channels.Outbound {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.sent)
}

// texts returns what was shown so far.
func (p *platform) texts() []string {
	texts := []string{}
	for _, m := range p.messages() {
		texts = append(texts, m.PlainText())
	}
	return texts
}

// engine answers as a function does.
type engine func(ctx context.Context, t agent.Turn) (string, error)

func (e engine) Run(ctx context.Context, t agent.Turn) iter.Seq2[agent.Event, error] {
	return func(yield func(agent.Event, error) bool) {
		text, err := e(ctx, t)
		if err != nil {
			yield(agent.Event{}, err)
			return
		}
		yield(agent.Event{Final: final(t, text)}, nil)
	}
}

// final is a result of a run as the real engine makes it.
func final(t agent.Turn, text string) *agent.Final {
	f := &agent.Final{Text: text, Agent: t.Agent, Usage: agent.Usage{Requests: 1, InputTokens: 3, OutputTokens: 5}}
	for _, m := range t.Input {
		f.Items = append(f.Items, item("user", m.Parts[0].Text))
	}
	f.Items = append(f.Items, item("assistant", text))
	return f
}

func item(role, text string) sessionstore.Item {
	raw, err := json.Marshal(map[string]string{"role": role, "content": text})
	if err != nil {
		panic(err)
	}
	return sessionstore.Item{Raw: raw}
}

// heard is what the people of a turn have said.
func heard(t agent.Turn) string {
	var said []string
	for _, m := range t.Input {
		for _, p := range m.Parts {
			said = append(said, p.Text)
		}
	}
	return strings.Join(said, "+")
}

// echo answers everything at once.
func echo(_ context.Context, t agent.Turn) (string, error) { return "re " + heard(t), nil }

// slow answers after a time.
func slow(wait time.Duration) engine {
	return func(ctx context.Context, t agent.Turn) (string, error) {
		select {
		case <-time.After(wait):
			return echo(ctx, t)
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

// world is a dispatcher with its surroundings, in a synctest bubble.
type world struct {
	t        testing.TB
	store    *memstore.Store
	memory   *memstore.Store // keeps the sessions: store or another
	platform *platform
	*dispatch.Dispatcher
	reports *reports
	logs    *logBuffer
	stop    func() // ends Run's context and waits for Run
}

// setup is what a test changes about a world before it begins.
type setup struct {
	dispatch.Options
	dispatch.Channel
	world *world
}

// begin makes a world and lets Run replay. It ends with the test.
func begin(t testing.TB, change ...func(*setup)) *world {
	t.Helper()
	w := prepare(t, change...)
	w.run()
	return w
}

// prepare makes a world that does not run yet.
func prepare(t testing.TB, change ...func(*setup)) *world {
	t.Helper()
	w := &world{t: t, store: memstore.New(), memory: memstore.New(), platform: &platform{name: "ch"}, reports: &reports{}, logs: &logBuffer{}}
	return w.restart(change...)
}

// restart makes a new dispatcher over the same store and platform, as after a crash.
func (w *world) restart(change ...func(*setup)) *world {
	w.t.Helper()
	next := *w
	s := &setup{world: &next}
	s.Store, s.Journal, s.Engine, s.Observer = w.store, w.store, engine(echo), w.reports
	s.Logger = slog.New(slog.NewTextHandler(w.logs, &slog.HandlerOptions{Level: slog.LevelDebug}))
	s.Adapter = w.platform
	for _, c := range change {
		c(s)
	}
	if s.Channels == nil {
		s.Channels = []dispatch.Channel{s.Channel}
	}
	d, err := dispatch.New(s.Options)
	if err != nil {
		w.t.Fatal(err)
	}
	if next.Dispatcher = d; s.Store != sessionstore.Store(w.memory) {
		next.memory = w.store
	}
	return &next
}

func (w *world) run() {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	w.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			w.t.Errorf("Run: %v", err)
		}
	})
	w.t.Cleanup(w.stop)
	synctest.Wait()
	if err := w.Ready(); err != nil {
		w.t.Fatalf("Ready after replay: %v", err)
	}
}

// pass lets time pass, and everything happen that happens by then.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// accept hands events in and lets everything happen that happens at once.
func (w *world) accept(events ...channels.Inbound) {
	w.t.Helper()
	if err := w.Accept(context.Background(), events...); err != nil {
		w.t.Fatalf("Accept: %v", err)
	}
	synctest.Wait()
}

// shows checks what the platform has shown so far.
func (w *world) shows(want ...string) {
	w.t.Helper()
	if got := w.platform.texts(); !slices.Equal(got, want) {
		w.t.Errorf("platform shows\n\t%q\nwant\n\t%q", got, want)
	}
}

// remembers checks what the session holds.
func (w *world) remembers(id sessionstore.ID, want ...string) {
	w.t.Helper()
	if got := contents(w.t, w.memory, id); !slices.Equal(got, want) {
		w.t.Errorf("session %s holds\n\t%q\nwant\n\t%q", id, got, want)
	}
}

func contents(t testing.TB, s sessionstore.Store, id sessionstore.ID) []string {
	t.Helper()
	items, err := s.Items(context.Background(), id, sessionstore.All)
	if err != nil {
		t.Fatal(err)
	}
	texts := []string{}
	for _, it := range items {
		var m struct{ Role, Content string }
		if err := json.Unmarshal(it.Raw, &m); err != nil {
			t.Fatal(err)
		}
		texts = append(texts, m.Role[:1]+":"+m.Content)
	}
	return texts
}

// stats reads the journal's statistics.
func (w *world) stats() dispatch.Stats {
	w.t.Helper()
	st, err := w.store.Stats(context.Background())
	if err != nil {
		w.t.Fatal(err)
	}
	st.Oldest = time.Time{}
	return st
}

// settled checks that nothing is left in the journal.
func (w *world) settled() {
	w.t.Helper()
	if st := w.stats(); st.Pending+st.Waiting > 0 {
		w.t.Errorf("journal still holds %+v", st)
	}
}

// direct is a message of a person in a direct chat.
func direct(user, id, text string) channels.Inbound {
	return channels.Inbound{
		ID: id, Kind: channels.Message, Time: time.Now(), Mentioned: true,
		Address: channels.Address{Channel: "ch", Kind: channels.Direct, Room: user, User: user},
		Speaker: channels.Speaker{ID: user, Name: strings.ToUpper(user), Locale: "en"},
		Parts:   []channels.Part{{Type: channels.Text, Text: text}},
		Reply:   []byte("token-" + id),
	}
}

// group is a message of a person in a group, speaking to the bot.
func group(room, user, id, text string) channels.Inbound {
	in := direct(user, id, text)
	in.Address.Kind, in.Address.Room = channels.Group, room
	return in
}

// reports collects what the observer is told.
type reports struct {
	mu    sync.Mutex
	turns []dispatch.TurnReport
	sends []dispatch.SendReport
}

func (r *reports) TurnEnded(t dispatch.TurnReport) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.turns = append(r.turns, t)
}

func (r *reports) SendEnded(s dispatch.SendReport) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sends = append(r.sends, s)
}

// ends lists how the runs ended so far.
func (r *reports) ends() []dispatch.TurnEnd {
	r.mu.Lock()
	defer r.mu.Unlock()
	ends := []dispatch.TurnEnd{}
	for _, t := range r.turns {
		ends = append(ends, t.End)
	}
	return ends
}

// logBuffer collects the log.
type logBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// failing makes an engine that fails as told, attempt after attempt, and answers when that is used up.
func failing(errs ...error) engine {
	var mu sync.Mutex
	return func(ctx context.Context, t agent.Turn) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		if len(errs) == 0 {
			return echo(ctx, t)
		}
		err := errs[0]
		errs = errs[1:]
		return "", err
	}
}

func engineError(kind agent.ErrorKind) error {
	return &agent.Error{Kind: kind, Err: fmt.Errorf("as told")}
}

// withForeignStore keeps the sessions outside of the journal.
func withForeignStore(s *setup) { s.Store = s.world.memory }

func withEngine(e engine) func(*setup) { return func(s *setup) { s.Engine = e } }
