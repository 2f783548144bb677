package dispatch_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"botd/agent"
	"botd/channels"
	"botd/channels/dispatch"
	"botd/sessionstore"
	"botd/sessionstore/memstore"
)

// The simulator's world: one store, one journal and one platform that outlive every process, and
// processes that reach them through handles which fail, dawdle and, when their process is dead, do
// nothing any more.

var (
	errFault = errors.New("simulated fault")
	errDead  = errors.New("the process is dead")
)

// chance decides everything random by the seed and what it is about, so that a seed means the same
// world whatever the order in which goroutines run.
type chance struct {
	seed uint64
	mu   sync.Mutex
	n    map[string]int
	off  bool // no more faults
}

// roll returns a number in [0, 1) for the next decision about a thing.
func (c *chance) roll(about string) float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n[about]++
	h := fnv.New64a()
	fmt.Fprintf(h, "%d/%s/%d", c.seed, about, c.n[about])
	return rand.New(rand.NewPCG(c.seed, h.Sum64())).Float64()
}

func (c *chance) fault(about string, p float64) bool {
	hit := c.roll(about) < p
	c.mu.Lock()
	defer c.mu.Unlock()
	return hit && !c.off
}

func (c *chance) calm() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.off = true
}

// wait lets up to a time pass, or nothing.
func (c *chance) wait(about string, most time.Duration) {
	if r := c.roll("wait " + about); r < 0.5 {
		time.Sleep(time.Duration(r * 2 * float64(most)))
	}
}

// commitRecord is what the observer saw of one commit.
type commitRecord struct {
	dispatch.TurnResult
	events []dispatch.Entry
	// restored is what the session holds after it was restored, nil for everything else.
	restored []string
}

// text is what was said.
func (c commitRecord) text() string {
	var b strings.Builder
	for _, m := range c.Replies {
		b.WriteString(m.Message.PlainText())
	}
	return b.String()
}

// answers reports whether the commit is that of a turn with an answer of the engine.
func (c commitRecord) answers() bool { return c.Dead == "" && strings.HasPrefix(c.text(), "run ") }

// saysUndone is the number of turns of which the commit says that they were taken back.
func (c commitRecord) saysUndone() int {
	switch text := c.text(); {
	case text == noticeUndone, text == noticeLostQuestion, c.answers() && isRetry(c.events[0]):
		return 1
	}
	return 0
}

// simWorld is what outlives the processes.
type simWorld struct {
	*chance
	atomic   bool
	journal  *memstore.Store
	sessions *memstore.Store // the journal itself when atomic

	mu      sync.Mutex
	entries map[uint64]dispatch.Entry
	commits []commitRecord
	fates   map[string]dispatch.State // of deliveries
	halfway map[string]bool           // turns that are in the sessions and not in the journal
	// shown are the messages that people see, in order; accepted holds the platform's idempotency keys.
	shown    []channels.Outbound
	accepted map[string]bool
	// runs are the runs of the engine: what each saw.
	runs   []simRun
	faults []string
}

type simRun struct {
	session sessionstore.ID
	history []string
}

func newSimWorld(seed uint64, atomic bool) *simWorld {
	w := &simWorld{
		chance: &chance{seed: seed, n: map[string]int{}}, atomic: atomic, journal: memstore.New(),
		entries: map[uint64]dispatch.Entry{}, fates: map[string]dispatch.State{}, halfway: map[string]bool{}, accepted: map[string]bool{},
	}
	w.sessions = w.journal
	if !atomic {
		w.sessions = memstore.New()
	}
	return w
}

func (w *simWorld) violated(format string, args ...any) {
	w.faults = append(w.faults, fmt.Sprintf(format, args...))
}

// record notes a commit; what a broken journal writes piece by piece is taken together by its turn. It
// must be called with mu held.
func (w *simWorld) record(c commitRecord) {
	for i := range w.commits {
		if known := &w.commits[i]; known.Turn == c.Turn && c.Turn != "" {
			known.events = append(known.events, c.events...)
			known.Replies = append(known.Replies, c.Replies...)
			return
		}
	}
	w.commits = append(w.commits, c)
}

// texts are the contents of a session.
func texts(items []sessionstore.Item) []string {
	list := []string{}
	for _, it := range items {
		var m struct{ Role, Content string }
		if err := json.Unmarshal(it.Raw, &m); err != nil {
			panic(err)
		}
		list = append(list, m.Role[:1]+":"+m.Content)
	}
	return list
}

func (w *simWorld) contents(id sessionstore.ID) []string {
	items, err := w.sessions.Items(context.Background(), id, sessionstore.All)
	if err != nil {
		panic(err)
	}
	return texts(items)
}

// without returns the items of a session that come before those of its last turn.
func (w *simWorld) without(id sessionstore.ID, turn string) []sessionstore.Item {
	items, err := w.sessions.Items(context.Background(), id, sessionstore.All)
	if err != nil {
		panic(err)
	}
	for len(items) > 0 && items[len(items)-1].Turn == turn {
		items = items[:len(items)-1]
	}
	return items
}

// remembered checks items that are about to be written, in the place of the turn to be undone: the run
// that made them must have seen the session exactly as it is then. It must be called with mu held.
func (w *simWorld) remembered(id sessionstore.ID, items []sessionstore.Item, undo string) {
	if len(items) == 0 {
		return
	}
	list := texts(items)
	var n int
	if _, err := fmt.Sscanf(list[len(list)-1], "a:run %d", &n); err != nil {
		panic(err)
	}
	now := w.contents(id)
	if undo != "" {
		now = texts(w.without(id, undo))
	}
	if run := w.runs[n]; !slices.Equal(run.history, now) {
		w.violated("run %d writes to a session that it has not seen: it saw %q, the session holds %q", n, run.history, now)
	}
}

// process is one life of the daemon.
type process struct {
	world *simWorld
	mu    sync.Mutex
	dead  bool
}

// op is one call from the process to the world outside: it may fail before it has an effect, and the
// process may die before or after.
func (p *process) op(name string, effect func() error) error {
	if p.gone() {
		return errDead
	}
	w := p.world
	w.wait(name, 200*time.Millisecond)
	if w.fault(name, 0.04) {
		return errFault
	}
	if p.gone() {
		return errDead
	}
	err := effect()
	w.wait(name, 200*time.Millisecond)
	if p.gone() {
		return errDead
	}
	return err
}

func (p *process) gone() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dead
}

func (p *process) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dead = true
}

// simStore is a process's handle on the sessions.
type simStore struct{ *process }

func (s simStore) Items(ctx context.Context, id sessionstore.ID, limit int) (items []sessionstore.Item, err error) {
	err = s.op("items", func() (err error) {
		items, err = s.world.sessions.Items(ctx, id, limit)
		return err
	})
	return items, err
}

func (s simStore) Generation(ctx context.Context, id sessionstore.ID) (n uint64, err error) {
	err = s.op("generation", func() (err error) {
		n, err = s.world.sessions.Generation(ctx, id)
		return err
	})
	return n, err
}

func (s simStore) Append(ctx context.Context, id sessionstore.ID, b sessionstore.Batch) error {
	return s.op("append", func() error {
		w := s.world
		w.mu.Lock()
		defer w.mu.Unlock()
		before := w.contents(id)
		err := w.sessions.Append(ctx, id, b)
		if after := w.contents(id); err == nil && len(after) != len(before) {
			w.halfway[b.Turn] = true
			var n int
			if _, err := fmt.Sscanf(after[len(after)-1], "a:run %d", &n); err != nil {
				panic(err)
			}
			if run := w.runs[n]; !slices.Equal(run.history, before) {
				w.violated("run %d appends to a session that it has not seen: it saw %q, the session held %q", n, run.history, before)
			}
		}
		return err
	})
}

func (s simStore) Pop(ctx context.Context, id sessionstore.ID) (it sessionstore.Item, err error) {
	err = s.op("pop", func() (err error) {
		w := s.world
		w.mu.Lock()
		defer w.mu.Unlock()
		if it, err = w.sessions.Pop(ctx, id); err != nil {
			return err
		}
		part := "part of " + it.Turn
		if rest := w.without(id, it.Turn); len(rest) == len(w.contents(id)) {
			delete(w.halfway, part)
			if !w.halfway[it.Turn] { // otherwise nobody was told what it had to say
				w.record(commitRecord{TurnResult: dispatch.TurnResult{Session: id, Undo: it.Turn}})
			}
			delete(w.halfway, it.Turn)
		} else {
			w.halfway[part] = true
		}
		return nil
	})
	return it, err
}

func (s simStore) Clear(ctx context.Context, id sessionstore.ID) error {
	return s.op("clear", func() error { return s.world.sessions.Clear(ctx, id) })
}

func (s simStore) Close() error { return nil }

func (s simStore) ArchiveTime() time.Duration { return s.world.sessions.ArchiveTime() }

func (s simStore) Archives(ctx context.Context, id sessionstore.ID) (list []sessionstore.Archive, err error) {
	err = s.op("archives", func() (err error) {
		list, err = s.world.sessions.Archives(ctx, id)
		return err
	})
	return list, err
}

func (s simStore) Restore(ctx context.Context, id sessionstore.ID, generation uint64) error {
	return s.op("restore", func() error {
		w := s.world
		w.mu.Lock()
		defer w.mu.Unlock()
		err := w.sessions.Restore(ctx, id, generation)
		if err == nil {
			w.record(commitRecord{TurnResult: dispatch.TurnResult{Session: id}, restored: w.contents(id)})
		}
		return err
	})
}

// simJournal is a process's handle on the journal, and on the sessions too where it keeps them.
type simJournal struct{ simStore }

func (j simJournal) Put(ctx context.Context, events []dispatch.Routed) (fresh []dispatch.Entry, err error) {
	err = j.op("put", func() (err error) {
		fresh, err = j.world.journal.Put(ctx, events)
		j.world.mu.Lock()
		defer j.world.mu.Unlock()
		for _, e := range fresh {
			j.world.entries[e.Seq] = e
		}
		return err
	})
	return fresh, err
}

func (j simJournal) Pending(ctx context.Context) iter.Seq2[dispatch.Entry, error] {
	return func(yield func(dispatch.Entry, error) bool) {
		if err := j.op("pending", func() error { return nil }); err != nil {
			yield(dispatch.Entry{}, err)
			return
		}
		j.world.journal.Pending(ctx)(yield)
	}
}

func (j simJournal) Fail(ctx context.Context, seqs []uint64, reason string) error {
	return j.op("fail", func() error { return j.world.journal.Fail(ctx, seqs, reason) })
}

func (j simJournal) Commit(ctx context.Context, r dispatch.TurnResult) error {
	return j.op("commit", func() error {
		w := j.world
		w.mu.Lock()
		defer w.mu.Unlock()
		before := len(w.faults)
		w.remembered(r.Session, r.Items, r.Undo)
		err := w.journal.Commit(ctx, r)
		if err != nil {
			w.faults = w.faults[:before] // it was not written after all
			return err
		}
		record := commitRecord{TurnResult: r}
		for _, seq := range r.Consumed {
			record.events = append(record.events, w.entries[seq])
		}
		w.record(record)
		delete(w.halfway, r.Turn)
		return nil
	})
}

func (j simJournal) Due(ctx context.Context, now time.Time) iter.Seq2[dispatch.Delivery, error] {
	return func(yield func(dispatch.Delivery, error) bool) {
		if err := j.op("due", func() error { return nil }); err != nil {
			yield(dispatch.Delivery{}, err)
			return
		}
		j.world.journal.Due(ctx, now)(yield)
	}
}

func (j simJournal) Known(ctx context.Context, channel, id string) (bool, error) {
	return j.world.journal.Known(ctx, channel, id)
}

func (j simJournal) Next(ctx context.Context) (time.Time, error) { return j.world.journal.Next(ctx) }

func (j simJournal) Begin(ctx context.Context, id string) error {
	return j.op("begin", func() error { return j.world.journal.Begin(ctx, id) })
}

func (j simJournal) Settle(ctx context.Context, id string, o dispatch.Outcome) error {
	return j.op("settle", func() error {
		err := j.world.journal.Settle(ctx, id, o)
		j.world.mu.Lock()
		defer j.world.mu.Unlock()
		if err == nil {
			j.world.fates[id] = o.State
		}
		return err
	})
}

func (j simJournal) Stats(ctx context.Context) (dispatch.Stats, error) {
	return j.world.journal.Stats(ctx)
}

// simAdapter is a process's handle on one channel of the platform. The channel "once" has no
// idempotency keys.
type simAdapter struct {
	*process
	platform
}

func (a *simAdapter) Send(ctx context.Context, m channels.Outbound) (channels.Receipt, error) {
	w := a.world
	if m.Once && m.Uncertain {
		return channels.Receipt{}, sendError(channels.Ambiguous)
	}
	lost := channels.Transient // what it means that the platform's word does not arrive
	if m.Once {
		lost = channels.Ambiguous
	}
	w.wait("send", 500*time.Millisecond)
	fate := w.roll("fate " + m.ID)
	if w.calmed() {
		fate = 1
	}
	if a.gone() {
		return channels.Receipt{}, errDead
	}
	switch {
	case fate < 0.08:
		return channels.Receipt{}, sendError(channels.Transient)
	case fate < 0.12:
		return channels.Receipt{}, &channels.Error{Kind: channels.RateLimited, RetryAfter: 2 * time.Second, Err: errFault}
	case fate < 0.14:
		return channels.Receipt{}, sendError(lost)
	case fate < 0.16:
		return channels.Receipt{}, sendError(channels.Permanent)
	case fate < 0.17:
		return channels.Receipt{}, sendError(channels.QuotaExhausted)
	case fate < 0.18:
		return channels.Receipt{}, sendError(channels.Unauthorized)
	}
	a.show(m)
	w.wait("sent", 500*time.Millisecond)
	if fate < 0.22 || ctx.Err() != nil {
		return channels.Receipt{}, sendError(lost)
	}
	return channels.Receipt{}, nil
}

func (w *simWorld) calmed() bool {
	w.chance.mu.Lock()
	defer w.chance.mu.Unlock()
	return w.off
}

// show is the platform's acceptance of a message.
func (a *simAdapter) show(m channels.Outbound) {
	w := a.world
	w.mu.Lock()
	defer w.mu.Unlock()
	if !m.Once && w.accepted[m.ID] {
		return
	}
	w.accepted[m.ID] = true
	w.shown = append(w.shown, m)
}

// simEngine answers, fails and dawdles.
type simEngine struct{ *simWorld }

func (e simEngine) Run(ctx context.Context, t agent.Turn) iter.Seq2[agent.Event, error] {
	return func(yield func(agent.Event, error) bool) {
		e.mu.Lock()
		n := len(e.runs)
		e.runs = append(e.runs, simRun{session: t.Session, history: texts(t.History)})
		e.mu.Unlock()
		about := "run " + t.ID
		wait := time.Duration(e.roll(about) * float64(3*time.Second))
		if e.fault(about, 0.1) { // deaf
			time.Sleep(wait)
		} else {
			select {
			case <-time.After(wait):
			case <-ctx.Done():
				yield(agent.Event{}, ctx.Err())
				return
			}
		}
		switch {
		case e.fault(about, 0.1):
			yield(agent.Event{}, engineError(agent.Transient))
		case e.fault(about, 0.03):
			yield(agent.Event{}, engineError(agent.ContextOverflow))
		case e.fault(about, 0.02):
			panic("engine")
		default:
			yield(agent.Event{Final: final(t, fmt.Sprintf("run %d to %s", n, heard(t)))}, nil)
		}
	}
}

// isCommand reports whether an event is a command in the simulator's events.
func isCommand(e dispatch.Entry) bool { return strings.HasPrefix(e.Event.PlainText(), "/") }

func isRetry(e dispatch.Entry) bool { return e.Event.PlainText() == "/retry" }
