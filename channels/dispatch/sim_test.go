package dispatch_test

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"botd/channels"
	"botd/channels/dispatch"
	"botd/sessionstore"
)

var (
	simSeeds = flag.Int("sim.seeds", 400, "number of worlds to simulate")
	simSeed  = flag.Int64("sim.seed", -1, "simulate this world only")
)

// breakage is a part of the protocol that is deliberately broken: see sim_mutation_test.go.
type breakage struct {
	journal func(simJournal) dispatch.Journal
	store   func(simStore) sessionstore.Store
	adapter func(*simAdapter) channels.Adapter
}

// TestSimulation runs people, faults, crashes and restarts against each other in many small worlds,
// and checks what was promised once each has come to rest.
func TestSimulation(t *testing.T) {
	t.Parallel()
	first, n := int64(1), int64(*simSeeds)
	if *simSeed >= 0 {
		first, n = *simSeed, 1
	} else if testing.Short() {
		n = min(n, 50)
	}
	for seed := first; seed < first+n; seed++ {
		if faults := simulate(t, uint64(seed), breakage{}); len(faults) > 0 {
			t.Fatalf("seed %d (replay with -run TestSimulation -sim.seed=%d):\n\t%s", seed, seed, strings.Join(faults, "\n\t"))
		}
	}
}

// simulate runs one world and returns the promises that it broke.
func simulate(t *testing.T, seed uint64, broken breakage) (faults []string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &simulation{
			simWorld: newSimWorld(seed, seed%3 != 0), t: t, broken: broken,
			rng: rand.New(rand.NewPCG(seed, 7)), merge: time.Duration(seed%4/3) * time.Second,
			midRun: []dispatch.MidRun{dispatch.Queue, dispatch.Interrupt}[seed%5/3], wanted: map[string]channels.Inbound{},
		}
		s.run()
		faults = s.judge()
	})
	return faults
}

// simulation is one world in motion.
type simulation struct {
	*simWorld
	t      *testing.T
	broken breakage
	rng    *rand.Rand // of the goroutine that drives the world
	merge  time.Duration
	midRun dispatch.MidRun
	wanted map[string]channels.Inbound // all events, by channel and ID

	current struct {
		sync.Mutex
		*dispatch.Dispatcher
	}
	lives sync.WaitGroup
	life  *process
	stop  context.CancelFunc
	ended chan struct{}
}

func (s *simulation) run() {
	s.begin()
	var people sync.WaitGroup
	for name, events := range s.script() {
		people.Go(func() { s.feed(name, events) })
	}
	for range s.rng.IntN(8) {
		time.Sleep(time.Duration(s.rng.Int64N(int64(4 * time.Second))))
		switch s.rng.IntN(8) {
		case 0, 1:
			s.leave()
		case 2, 3:
			s.clearOutside()
		case 4, 5:
			_ = s.serving().Wake(context.Background()) // it may not be ready
		default:
			s.crash()
		}
	}
	people.Wait()
	s.calm()
	time.Sleep(time.Hour)
	s.leave()
	s.stop()
	s.lives.Wait()
}

// begin starts a process.
func (s *simulation) begin() {
	s.life = &process{world: s.simWorld}
	options := dispatch.Options{
		Engine: simEngine{s.simWorld}, Grace: 2 * time.Second, MaxConcurrent: 3, MaxSends: 2, MaxHistory: 1000,
	}
	if *simSeed >= 0 {
		options.Logger = slog.New(slog.NewTextHandler(s.t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	j := simJournal{simStore{s.life}}
	options.Journal = j
	if s.broken.journal != nil {
		options.Journal = s.broken.journal(j)
	}
	if s.atomic {
		options.Store = options.Journal.(sessionstore.Store)
	} else {
		options.Store = j.simStore
		if s.broken.store != nil {
			options.Store = s.broken.store(j.simStore)
		}
	}
	for _, name := range []string{"keys", "once"} {
		a := &simAdapter{process: s.life, platform: platform{name: name, once: name == "once", limit: 40}}
		c := dispatch.Channel{Adapter: a, MergeWindow: s.merge, Admins: []string{"cat"}, MidRun: s.midRun}
		if s.broken.adapter != nil {
			c.Adapter = s.broken.adapter(a)
		}
		options.Channels = append(options.Channels, c)
	}
	d, err := dispatch.New(options)
	if err != nil {
		s.t.Error(err)
		return
	}
	life := s.life
	s.serve(life, d)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	s.stop, s.ended = cancel, ended
	s.lives.Go(func() {
		defer close(ended)
		for d.Run(ctx) != nil && !life.gone() {
			// The journal could not be read: the service manager starts the daemon again.
			time.Sleep(time.Second)
			if d, err = dispatch.New(options); err != nil {
				panic(err)
			}
			s.serve(life, d)
		}
	})
}

// serve makes a dispatcher the one that the platform reaches, unless its process has died meanwhile.
func (s *simulation) serve(p *process, d *dispatch.Dispatcher) {
	s.current.Lock()
	defer s.current.Unlock()
	if !p.gone() {
		s.current.Dispatcher = d
	}
}

// crash kills the process and starts another one at once, while what is left of the old one still runs.
func (s *simulation) crash() {
	s.life.kill()
	s.stop()
	s.begin()
}

// leave stops the process in good order and starts another one.
func (s *simulation) leave() {
	s.stop()
	<-s.ended
	s.begin()
}

// clearOutside clears a session behind the dispatcher's back, as another process may. It waits for a
// moment at which no turn is half way between session and journal: what is said after that would
// rightly not be remembered.
func (s *simulation) clearOutside() {
	id := sessionstore.ID([]string{"keys:user:ann", "once:group:g"}[s.rng.IntN(2)])
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.halfway) > 0 {
		return
	}
	if err := s.sessions.Clear(context.Background(), id); err != nil {
		s.t.Error(err)
	}
	s.record(commitRecord{TurnResult: dispatch.TurnResult{Session: id, Clear: true}})
}

// script makes up what people say, conversation by conversation.
func (s *simulation) script() map[string][]channels.Inbound {
	script := map[string][]channels.Inbound{}
	for _, channel := range []string{"keys", "once"} {
		for _, place := range []string{"ann", "bob", "g", "room"} {
			var events []channels.Inbound
			for i := range s.rng.IntN(7) {
				id := fmt.Sprint(place, i)
				text := id
				if r := s.rng.IntN(26); r < 10 {
					text = []string{"/stop", "/reset", "/reset", "/help", "/undo", "/undo", "/retry", "/retry", "/restore", "/restore"}[r]
				}
				in := direct(place, id, text)
				if place == "g" || place == "room" {
					in = group(place, []string{"cat", "dan", ""}[s.rng.IntN(3)], id, text)
				}
				if place == "room" {
					in.Address.Kind = channels.Room
				}
				in.Address.Channel = channel
				in.Reply = []byte(channel + id)
				if s.rng.IntN(20) == 0 {
					// Of a message said before or to come; the journal knows the event by it.
					in.Kind, in.Parts, in.Refers = channels.Unsend, nil, fmt.Sprint(place, s.rng.IntN(7))
					in.ID, id = "unsend:"+in.Refers, "unsend:"+in.Refers
				}
				events = append(events, in)
				s.wanted[channel+id] = in
			}
			script[channel+place] = events
		}
	}
	return script
}

// feed is an adapter that hands in the events of one conversation in order, each until it is accepted,
// and some of them once more.
func (s *simulation) feed(name string, events []channels.Inbound) {
	for len(events) > 0 {
		time.Sleep(time.Duration(s.roll("pause "+name) * float64(4*time.Second)))
		n := 1 + int(s.roll("batch "+name)*1.5)
		n = min(n, len(events))
		for s.accept(events[:n]...) != nil {
			time.Sleep(300 * time.Millisecond)
		}
		if s.roll("again "+name) < 0.2 {
			_ = s.accept(events[:n]...) // a redelivery may fail: its first delivery has not
		}
		events = events[n:]
	}
}

func (s *simulation) accept(events ...channels.Inbound) error {
	return s.serving().Accept(context.Background(), events...)
}

func (s *simulation) serving() *dispatch.Dispatcher {
	s.current.Lock()
	defer s.current.Unlock()
	return s.current.Dispatcher
}

// judge returns the promises that were broken.
func (s *simulation) judge() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	st, err := s.journal.Stats(context.Background())
	if err != nil {
		s.t.Error(err)
	}
	if st.Pending+st.Waiting > 0 {
		s.violated("after all, the journal still holds %+v", st)
	}
	s.judgeAnswers()
	s.judgeOrder()
	s.judgeUnsent()
	s.judgeMemory()
	if len(s.faults) > 0 && *simSeed >= 0 {
		for _, c := range s.commits {
			s.t.Logf("commit %s %s clear=%v dead=%q", c.Session, c.Turn, c.Clear, c.Dead)
			for _, e := range c.events {
				s.t.Logf("    event %d %s %q", e.Seq, e.Event.ID, e.Event.PlainText())
			}
			for _, m := range c.Replies {
				s.t.Logf("    reply %s %q: %q", m.Message.ID, m.Message.PlainText(), s.fates[m.Message.ID])
			}
		}
		for _, m := range s.shown {
			s.t.Logf("shown %v %s %q", m.To.Place(), m.ID, m.PlainText())
		}
	}
	return s.faults
}

// judgeAnswers: every event is covered by exactly one reply or by a command's notice, and nothing is
// shown twice.
func (s *simulation) judgeAnswers() {
	shown := map[string]int{}
	for _, m := range s.shown {
		shown[m.ID]++
	}
	covered := map[string]int{}
	handled := map[string]int{}
	for _, c := range s.commits {
		for _, e := range c.events {
			covered[e.Event.Address.Channel+e.Event.ID]++
		}
		if len(c.Replies) == 0 && slices.ContainsFunc(c.events, func(e dispatch.Entry) bool { return !s.unsent(e) }) {
			s.violated("turn %s covers %d events and says nothing", c.Turn, len(c.events))
		}
		for _, m := range c.Replies {
			if len(m.Message.Reply) > 0 {
				handled[string(m.Message.Reply)]++
			}
			id := m.Message.ID
			switch fate := s.fates[id]; {
			case shown[id] > 1:
				s.violated("%s is shown %d times", id, shown[id])
			case fate == dispatch.Delivered && shown[id] == 0:
				s.violated("%s counts as delivered and is not shown", id)
			case fate != dispatch.Delivered && fate != dispatch.Unknown && shown[id] > 0 && !s.lateLoss(id):
				s.violated("%s is %q and shown", id, fate)
			case fate == "" || fate == dispatch.Waiting:
				s.violated("%s has no end: %q", id, fate)
			}
		}
	}
	for id := range s.wanted {
		if covered[id] != 1 {
			s.violated("event %s is covered %d times", id, covered[id])
		}
		if handled[id] > 1 {
			s.violated("event %s is answered %d times", id, handled[id])
		}
	}
}

// unsent reports whether an event takes a message back, or is a message that was taken back.
func (s *simulation) unsent(e dispatch.Entry) bool {
	_, gone := s.wanted[e.Event.Address.Channel+"unsend:"+e.Event.ID]
	return gone || e.Event.Kind == channels.Unsend
}

// lateLoss reports whether a message with an idempotency key was accepted, and a later attempt that was
// needed because the platform's word was lost was refused: it is both shown and given up.
func (s *simulation) lateLoss(id string) bool {
	return s.accepted[id] && s.fates[id] != dispatch.Waiting
}

// judgeUnsent: nothing that came after it had been taken back is answered.
func (s *simulation) judgeUnsent() {
	back := map[string]uint64{}
	for _, e := range s.entries {
		if e.Event.Kind == channels.Unsend {
			back[e.Event.Address.Channel+e.Event.Refers] = e.Seq
		}
	}
	for _, c := range s.commits {
		for _, e := range c.events {
			if seq := back[e.Event.Address.Channel+e.Event.ID]; seq > 0 && e.Seq > seq && c.answers() {
				s.violated("event %d is answered, which event %d had taken back", e.Seq, seq)
			}
		}
	}
}

// judgeOrder: turns of a session are committed in the order of their events, and shown so.
func (s *simulation) judgeOrder() {
	last := map[sessionstore.ID]uint64{}
	order := map[string]int{}
	for i, c := range s.commits {
		// Help, refusals, and what takes back what waits behind somebody else's running turn, are said while
		// that turn may be committed, at no place in particular.
		aside := len(c.events) > 0 && c.events[0].Event.PlainText() == "/help" ||
			c.text() == noticeTakenBack || c.text() == noticeAdminsOnly
		for j, m := range c.Replies {
			if !aside {
				order[m.Message.ID] = i*1000 + j
			}
		}
		for _, e := range c.events {
			switch {
			case isCommand(e) && !c.answers():
				if c.Clear {
					last[c.Session] = max(last[c.Session], e.Seq)
				}
			case !c.answers():
			case e.Seq < last[c.Session]:
				s.violated("session %s: event %d is answered after %d", c.Session, e.Seq, last[c.Session])
			default:
				last[c.Session] = e.Seq
			}
		}
	}
	type line struct {
		place   channels.Address
		session string
	}
	shown := map[line]int{}
	sessions := map[string]string{}
	for _, c := range s.commits {
		for _, m := range c.Replies {
			sessions[m.Message.ID] = string(c.Session)
		}
	}
	for _, m := range s.shown {
		l := line{m.To.Place(), sessions[m.ID]}
		at, ordered := order[m.ID]
		if !ordered {
			continue
		}
		if at < shown[l] {
			s.violated("session %s: %s is shown out of order", l.session, m.ID)
		}
		shown[l] = at
	}
}

// judgeMemory: each session holds exactly the answers of its turns since it was cleared, without those
// that were taken back, and each command takes back as many as it says.
func (s *simulation) judgeMemory() {
	said := map[sessionstore.ID][]string{}
	restored := map[sessionstore.ID]int{}
	undone, broken, cleared := map[sessionstore.ID]int{}, map[sessionstore.ID]int{}, map[sessionstore.ID]int{}
	for _, c := range s.commits {
		undone[c.Session] -= c.saysUndone()
		if c.Clear && len(c.events) == 0 {
			cleared[c.Session]++ // it may have been quicker than an undo
		}
		if c.saysUndone() == 0 && slices.ContainsFunc(c.events, isRetry) {
			broken[c.Session]++ // it may have been interrupted half way, and then given up or covered
		}
		if c.Undo != "" {
			undone[c.Session]++
			if n := len(said[c.Session]); n > 0 {
				said[c.Session] = said[c.Session][:n-1]
			} else {
				s.violated("session %s: turn %s is taken back, nothing was said", c.Session, c.Undo)
			}
		}
		if c.restored != nil {
			restored[c.Session]++
			said[c.Session] = answersIn(c.restored)
		}
		if strings.HasPrefix(c.text(), "Done. I remember our earlier conversation") {
			restored[c.Session]--
		}
		if c.Clear || (len(c.events) > 0 && c.events[0].Event.PlainText() == "/reset" && c.text() != noticeAdminsOnly) {
			said[c.Session] = nil
			continue
		}
		if c.answers() {
			said[c.Session] = append(said[c.Session], "a:"+c.text())
		}
	}
	for id, n := range restored {
		if n != 0 {
			s.violated("session %s was restored %d times more than people were told", id, n)
		}
	}
	for id, n := range undone {
		if n < -cleared[id] || n > broken[id] {
			s.violated("session %s: %d turns more were taken back than people were told", id, n)
		}
	}
	for id, want := range said {
		if broken[id] > 0 && !s.atomic {
			continue // the question may be left without its answer
		}
		got := answersIn(s.contents(id))
		if !slices.Equal(got, want) {
			s.violated("session %s holds %q, said was %q", id, got, want)
		}
	}
}

// answersIn returns the answers among the contents of a session.
func answersIn(contents []string) []string {
	var answers []string
	for _, text := range contents {
		if strings.HasPrefix(text, "a:") {
			answers = append(answers, text)
		}
	}
	return answers
}
