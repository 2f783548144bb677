package discord

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"botd/channels"
)

const (
	// intakeEvents and intakeBytes bound what waits for the sink; past either the connection is cut, and
	// Discord keeps what follows for a resume.
	intakeEvents = 1000
	intakeBytes  = 16 << 20
	// batchSize is how many events are handed to the sink at once.
	batchSize = 64

	firstAcceptRetry = 100 * time.Millisecond
	maxAcceptRetry   = 5 * time.Second
	// drainWait is how long Run goes on handing in what it has received after its context has ended.
	drainWait = 3 * time.Second
)

// arrival is one event on its way to the sink.
type arrival struct {
	event string // MESSAGE_CREATE or INTERACTION_CREATE
	raw   json.RawMessage
	// acked is nil for a message. For an interaction it is closed when the acknowledgement has ended.
	acked <-chan struct{}
	ok    *bool // whether it was acknowledged; valid once acked is closed
}

// intake keeps the order of events between the gateway's reader, which must never wait, and the worker
// that hands them to the sink.
type intake struct {
	mu     sync.Mutex
	items  []arrival
	bytes  int
	full   bool
	closed bool
	wake   chan struct{} // has a value when items or closed have changed
	room   chan struct{} // closed and replaced when there is room again
}

func newIntake() *intake {
	return &intake{wake: make(chan struct{}, 1), room: make(chan struct{})}
}

// push adds an event. It never waits and never drops; full reports that no more should come.
func (q *intake) push(a arrival) (full bool) {
	q.mu.Lock()
	q.items = append(q.items, a)
	q.bytes += len(a.raw)
	if len(q.items) > intakeEvents || q.bytes > intakeBytes {
		q.full = true
	}
	full = q.full
	q.mu.Unlock()
	signal(q.wake)
	return full
}

// close lets take return nil once everything is taken.
func (q *intake) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	signal(q.wake)
}

// take waits for events and returns the first ones in order, nil when the intake is closed and empty or
// ctx has ended.
func (q *intake) take(ctx context.Context) []arrival {
	for {
		q.mu.Lock()
		n := min(len(q.items), batchSize)
		for i, a := range q.items[:n] {
			if i > 0 && !a.settled() {
				n = i
				break
			}
		}
		batch := append([]arrival(nil), q.items[:n]...)
		clear(q.items[:n])
		q.items = q.items[n:]
		for _, a := range batch {
			q.bytes -= len(a.raw)
		}
		if q.full && len(q.items) <= intakeEvents/2 && q.bytes <= intakeBytes/2 {
			q.full = false
			close(q.room)
			q.room = make(chan struct{})
		}
		closed := q.closed
		q.mu.Unlock()
		if n > 0 {
			return batch
		}
		if closed {
			return nil
		}
		select {
		case <-q.wake:
		case <-ctx.Done():
			return nil
		}
	}
}

// settled reports that nothing has to be waited for before the event is handed in.
func (a arrival) settled() bool {
	if a.acked == nil {
		return true
	}
	select {
	case <-a.acked:
		return true
	default:
		return false
	}
}

// waitDrained waits while the intake is over its bounds.
func (q *intake) waitDrained(ctx context.Context) error {
	for {
		q.mu.Lock()
		full, room := q.full, q.room
		q.mu.Unlock()
		if !full {
			return ctx.Err()
		}
		select {
		case <-room:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// work hands events to the sink, in order, until the intake is closed and empty or ctx ends. stopping is
// closed when Run's context has ended: from then on an event that the sink refuses is left for the
// catch-up of the next start.
func (a *Adapter) work(ctx context.Context, stopping <-chan struct{}) {
	for {
		batch := a.intake.take(ctx)
		if batch == nil {
			return
		}
		a.waitCaughtUp(ctx, stopping)
		events := make([]channels.Inbound, 0, len(batch))
		marks := make([]mark, 0, len(batch))
		for _, arrived := range batch {
			in, ok, m := a.translate(ctx, arrived)
			if ok {
				events = append(events, in)
			}
			marks = append(marks, m)
		}
		if len(events) > 0 && !a.accept(ctx, stopping, events) {
			return
		}
		for _, m := range marks {
			a.read.advance(everywhere, m.id)
			if m.chat != "" {
				a.read.advance(m.chat, m.id)
			}
		}
	}
}

// mark is how far an event moves the read positions: id is empty when it moves none, chat is the room of a
// direct chat.
type mark struct{ id, chat string }

// accept hands events in until the sink takes them, and reports that it did.
func (a *Adapter) accept(ctx context.Context, stopping <-chan struct{}, events []channels.Inbound) bool {
	said := ""
	for wait := firstAcceptRetry; ; wait = min(2*wait, maxAcceptRetry) {
		err := contained(func() error { return a.sink.Accept(ctx, events...) })
		if err == nil {
			return true
		}
		select {
		case <-stopping:
			a.log.Warn("events left for the next start", "events", len(events), "err", err)
			return false
		default:
		}
		if text := err.Error(); text != said {
			said = text
			a.log.Error("events not accepted, trying again", "events", len(events), "err", err)
		}
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-stopping:
		case <-ctx.Done():
			t.Stop()
			return false
		}
		t.Stop()
	}
}

// translate turns what arrived into an event for the sink; ok is false when there is none in it. An odd
// event is set aside alone: nothing that Discord sends can stop those behind it.
func (a *Adapter) translate(ctx context.Context, arrived arrival) (in channels.Inbound, ok bool, pos mark) {
	err := contained(func() (err error) {
		if arrived.acked != nil {
			select {
			case <-arrived.acked:
			case <-ctx.Done():
				return ctx.Err()
			}
			in, err = a.commandInbound(ctx, arrived.raw, *arrived.ok)
			ok = err == nil
			return err
		}
		m, err := decodeMessage(arrived.raw)
		if err != nil {
			return err
		}
		if pos.id = m.ID; m.direct() {
			pos.chat = m.ChannelID
		}
		in, ok = a.inbound(ctx, m)
		return nil
	})
	if err != nil {
		a.log.Warn("event set aside", "event", arrived.event, "err", fmt.Errorf("read event: %w", err))
		return channels.Inbound{}, false, pos
	}
	return in, ok, pos
}
