package channeltest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"botd/channels"
)

// patience bounds every wait for a platform. A variable for the test of the suite alone.
var patience = 15 * time.Second

// bench is a rig whose adapter runs.
type bench struct {
	*Rig
	t    *testing.T
	ctx  context.Context
	sink *sink
	stop context.CancelFunc
	done chan error
}

// start runs the adapter and waits until it hears what is said.
func start(t *testing.T, r *Rig) *bench {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 4*patience)
	b := &bench{Rig: r, t: t, ctx: ctx, sink: newSink(), done: make(chan error, 1)}
	run, stop := context.WithCancel(context.WithoutCancel(ctx))
	b.stop = stop
	if hook, ok := r.Adapter.(channels.Webhook); ok {
		if r.Attach == nil {
			t.Fatal("the adapter is a channels.Webhook, and Rig.Attach is nil")
		}
		r.Attach(hook.Webhook(b.sink))
	}
	go func() { b.done <- r.Adapter.Run(run, b.sink) }()
	t.Cleanup(func() {
		b.sink.mend()
		b.end()
		cancel()
		b.checkLogs()
	})
	if r.Ready != nil {
		if err := r.Ready(ctx); err != nil {
			t.Fatalf("wait for the adapter: %v", err)
		}
	}
	return b
}

// end stops Run and returns its error; the second call returns nil.
func (b *bench) end() error {
	b.t.Helper()
	b.stop()
	select {
	case err, ok := <-b.done:
		if ok {
			close(b.done)
		}
		return err
	case <-time.After(patience):
		b.t.Error("Run has not returned although its context ended")
		return nil
	}
}

// checkLogs asserts that neither credentials nor message text were logged.
func (b *bench) checkLogs() {
	b.t.Helper()
	if b.Logs != nil {
		b.checkSecrets("the log", b.Logs())
	}
}

func (b *bench) checkSecrets(where, text string) {
	b.t.Helper()
	for _, secret := range b.Secrets {
		if secret != "" && strings.Contains(text, secret) {
			b.t.Errorf("%s holds a credential", where)
		}
	}
	if strings.Contains(text, marker) {
		b.t.Errorf("%s holds message text: %s", where, text)
	}
}

// say lets the person at p say text, and the name of the place, and waits for the event.
func (b *bench) say(p place, text string, how Manner) (Said, channels.Inbound) {
	b.t.Helper()
	text += " in " + p.name
	said := b.tell(p, text, how)
	if said.Refused {
		b.t.Fatalf("%s: the adapter refused %q although the sink takes it", p.name, text)
	}
	return said, b.await(text)
}

func (b *bench) tell(p place, text string, how Manner) Said {
	b.t.Helper()
	said, err := p.Say(b.ctx, text, how)
	if err != nil {
		b.t.Fatalf("%s: say %q: %v", p.name, text, err)
	}
	return said
}

// await waits for the first event whose text holds text.
func (b *bench) await(text string) channels.Inbound {
	b.t.Helper()
	in, err := b.sink.await(b.ctx, text)
	if err != nil {
		b.t.Fatalf("event with %q: %v", text, err)
	}
	return in
}

// message is an answer at p, to in when it is not nil.
func message(id string, p place, in *channels.Inbound, parts ...channels.Part) channels.Outbound {
	m := channels.Outbound{ID: id, To: p.Address, Parts: parts}
	if in != nil {
		m.To, m.Reply = in.Address, in.Reply
		m.Quote = in.Address.Kind != channels.Direct
	}
	return m
}

func text(s string) channels.Part { return channels.Part{Type: channels.Text, Text: s} }

func markdown(s string) channels.Part { return channels.Part{Type: channels.Markdown, Text: s} }

// compose composes m and numbers the sends as the dispatcher does. What comes back has been through the
// journal, which keeps JSON.
func (b *bench) compose(m channels.Outbound) []channels.Outbound {
	b.t.Helper()
	sends := b.Adapter.Compose(m)
	for i := range sends {
		sends[i].ID = fmt.Sprintf("%s/%d", m.ID, i)
		raw, err := json.Marshal(sends[i])
		if err != nil {
			b.t.Fatalf("send %d is not JSON: %v", i, err)
		}
		sends[i] = channels.Outbound{}
		if err := json.Unmarshal(raw, &sends[i]); err != nil {
			b.t.Fatalf("send %d does not come back from JSON: %v", i, err)
		}
	}
	return sends
}

// only is compose for a message that one send holds.
func (b *bench) only(m channels.Outbound) channels.Outbound {
	b.t.Helper()
	sends := b.compose(m)
	if len(sends) != 1 {
		b.t.Fatalf("a short message takes %d sends, want 1", len(sends))
	}
	return sends[0]
}

// deliver tries to send until the outbox would not try any more, and returns the last error.
func (b *bench) deliver(m channels.Outbound) error {
	b.t.Helper()
	var err error
	for range 8 {
		_, err = b.Adapter.Send(b.ctx, m)
		if err == nil {
			return nil
		}
		failure := b.checkError(err)
		if failure.Kind != channels.Transient && failure.Kind != channels.RateLimited {
			return err
		}
		pause(b.ctx, min(failure.RetryAfter, 2*time.Second))
	}
	return err
}

// checkError asserts that err is what Send may return.
func (b *bench) checkError(err error) *channels.Error {
	b.t.Helper()
	failure, ok := errors.AsType[*channels.Error](err)
	if !ok {
		b.t.Errorf("Send: error of type %T, want *channels.Error: %v", err, err)
		return &channels.Error{Kind: channels.Permanent, Err: err}
	}
	if failure.Err == nil {
		b.t.Error("Send: *channels.Error without a cause")
		return failure
	}
	b.checkSecrets("the error", fmt.Sprintf("%v %+v", err, failure.Err))
	return failure
}

// pause waits, at least for a moment, so that others get a turn.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(max(d, time.Millisecond))
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// eventually waits until ok.
func (b *bench) eventually(what string, ok func() bool) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	for !ok() {
		if ctx.Err() != nil {
			b.t.Fatalf("%s: not so after %v", what, patience)
		}
		pause(ctx, 2*time.Millisecond)
	}
}

// shown counts the texts shown at p that hold text.
func shown(p place, text string) int {
	n := 0
	for _, s := range p.Shown() {
		n += strings.Count(s, text)
	}
	return n
}

// sink records events.
type sink struct {
	mu     sync.Mutex
	events []channels.Inbound
	grown  chan struct{}
	// err is what Accept returns; hold is what it waits for.
	err     error
	hold    chan struct{}
	refused int
}

var errSink = errors.New("the journal cannot write")

func newSink() *sink { return &sink{grown: make(chan struct{})} }

func (s *sink) Accept(ctx context.Context, events ...channels.Inbound) error {
	s.mu.Lock()
	hold := s.hold
	s.mu.Unlock()
	if hold != nil {
		select {
		case <-hold:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		s.refused++
		return s.err
	}
	s.events = append(s.events, events...)
	close(s.grown)
	s.grown = make(chan struct{})
	return nil
}

// breakDown makes Accept fail.
func (s *sink) breakDown() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = errSink
}

// stall makes Accept wait.
func (s *sink) stall() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hold = make(chan struct{})
}

// mend makes Accept succeed again, and lets those go on that wait.
func (s *sink) mend() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = nil
	if s.hold != nil {
		close(s.hold)
		s.hold = nil
	}
}

func (s *sink) refusals() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refused
}

func (s *sink) all() []channels.Inbound {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.events)
}

// await returns the first event whose text holds text.
func (s *sink) await(ctx context.Context, text string) (channels.Inbound, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		s.mu.Lock()
		grown := s.grown
		for _, in := range s.events {
			if strings.Contains(in.PlainText(), text) {
				s.mu.Unlock()
				return in, nil
			}
		}
		s.mu.Unlock()
		select {
		case <-grown:
		case <-ctx.Done():
			return channels.Inbound{}, fmt.Errorf("has not arrived: %w", ctx.Err())
		}
	}
}
