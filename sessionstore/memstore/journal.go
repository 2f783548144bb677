package memstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"botd/agent"
	"botd/channels/dispatch"
	"botd/sessionstore"
)

// event is the key of deduplication.
type event struct{ channel, id string }

// journal holds the inbox and the outbox, both in order.
type journal struct {
	known  map[event]time.Time // when each event is forgotten
	swept  time.Time
	seq    uint64
	outSeq uint64
	inbox  []*entry
	dead   []*letter
	outbox []*delivery
}

// entry is one pending event; the event itself is kept encoded, so that what is returned is a copy.
type entry struct {
	dispatch.Entry
	lastError string
	encoded   []byte
}

// delivery is one reply with its state; the message itself is kept encoded.
type delivery struct {
	dispatch.Delivery
	seq       uint64
	settledAt time.Time
	state     dispatch.State
	uncertain bool
	encoded   []byte
}

func (d *delivery) settled() bool { return d.state == dispatch.Unknown || d.state == dispatch.Dead }

func (e *entry) copy() (dispatch.Entry, error) {
	c := e.Entry
	c.Reason = e.lastError
	err := json.Unmarshal(e.encoded, &c.Event)
	return c, err
}

func (d *delivery) copy() (dispatch.Delivery, error) {
	c := d.Delivery
	err := json.Unmarshal(d.encoded, &c.Message)
	c.Message.Uncertain = d.uncertain
	return c, err
}

// Put implements dispatch.Journal.
func (s *Store) Put(ctx context.Context, events []dispatch.Routed) ([]dispatch.Entry, error) {
	if err := s.enter(ctx); err != nil {
		return nil, fmt.Errorf("put events: %w", err)
	}
	defer s.mu.Unlock()
	encoded := make([][]byte, len(events))
	for i, r := range events {
		var err error
		if encoded[i], err = encodeEvent(r); err != nil {
			return nil, fmt.Errorf("put events: event %d: %w", i, err)
		}
	}
	t := now()
	s.journal.forget(t, s.DedupeFor)
	var fresh []dispatch.Entry
	for i, r := range events {
		key := event{r.Event.Address.Channel, r.Event.ID}
		if until, ok := s.journal.known[key]; ok && t.Before(until) {
			continue
		}
		s.journal.known[key] = t.Add(s.DedupeFor)
		s.journal.seq++
		e := &entry{encoded: encoded[i], Entry: dispatch.Entry{Seq: s.journal.seq, Received: t}}
		e.Session = r.Session
		s.journal.inbox = append(s.journal.inbox, e)
		c, err := e.copy()
		if err != nil {
			return nil, fmt.Errorf("put events: event %d: %w", i, err)
		}
		fresh = append(fresh, c)
	}
	return fresh, nil
}

func encodeEvent(r dispatch.Routed) ([]byte, error) {
	if err := r.Session.Validate(); err != nil {
		return nil, err
	}
	if r.Event.ID == "" {
		return nil, errors.New("an event must have an ID")
	}
	return json.Marshal(r.Event)
}

// forget drops the events whose time is over, looking once in a while.
func (j *journal) forget(t time.Time, window time.Duration) {
	if t.Before(j.swept.Add(window / 16)) {
		return
	}
	j.swept = t
	for key, until := range j.known {
		if !t.Before(until) {
			delete(j.known, key)
		}
	}
}

// Pending implements dispatch.Journal.
func (s *Store) Pending(ctx context.Context) iter.Seq2[dispatch.Entry, error] {
	return func(yield func(dispatch.Entry, error) bool) {
		if err := s.enter(ctx); err != nil {
			yield(dispatch.Entry{}, fmt.Errorf("read pending events: %w", err))
			return
		}
		var list []dispatch.Entry
		var err error
		for _, e := range s.journal.inbox {
			var c dispatch.Entry
			if c, err = e.copy(); err != nil {
				break
			}
			list = append(list, c)
		}
		s.mu.Unlock()
		for _, e := range list {
			if !yield(e, nil) {
				return
			}
		}
		if err != nil {
			yield(dispatch.Entry{}, fmt.Errorf("read pending events: %w", err))
		}
	}
}

// find returns the place of a pending entry.
func (j *journal) find(seq uint64) (int, bool) {
	return slices.BinarySearchFunc(j.inbox, seq, func(e *entry, seq uint64) int {
		switch {
		case e.Seq < seq:
			return -1
		case e.Seq > seq:
			return 1
		}
		return 0
	})
}

// Fail implements dispatch.Journal. Entries that are no longer pending are passed over.
func (s *Store) Fail(ctx context.Context, seqs []uint64, reason string) error {
	if err := s.enter(ctx); err != nil {
		return fmt.Errorf("count failed attempt: %w", err)
	}
	defer s.mu.Unlock()
	for _, seq := range seqs {
		if i, ok := s.journal.find(seq); ok {
			s.journal.inbox[i].Attempts++
			s.journal.inbox[i].lastError = reason
		}
	}
	return nil
}

// Commit implements dispatch.Journal.
func (s *Store) Commit(ctx context.Context, r dispatch.TurnResult) error {
	if err := s.enterSession(ctx, r.Session); err != nil {
		return fmt.Errorf("commit turn: %w", err)
	}
	defer s.mu.Unlock()
	if err := (sessionstore.Batch{Turn: r.Turn, Items: r.Items}).Validate(); err != nil {
		return fmt.Errorf("commit turn: %w", err)
	}
	if err := sessionstore.ValidateTallies(r.Tallies); err != nil {
		return fmt.Errorf("commit turn: %w", err)
	}
	replies, err := s.journal.encode(r)
	if err != nil {
		return fmt.Errorf("commit turn: %w", err)
	}
	if !r.Clear && s.generation(r.Session) != r.Generation {
		return fmt.Errorf("commit turn: %w", sessionstore.ErrStale)
	}
	if r.Undo != "" && !s.newest(r.Session, r.Undo) {
		return fmt.Errorf("commit turn: undo turn %s: %w", r.Undo, sessionstore.ErrChanged)
	}
	for _, seq := range r.Consumed {
		if _, ok := s.journal.find(seq); !ok {
			return fmt.Errorf("commit turn: entry %d: %w", seq, dispatch.ErrConsumed)
		}
	}
	for _, d := range replies {
		if s.journal.delivery(d.Message.ID) != nil {
			return fmt.Errorf("commit turn: reply %s is in the outbox: %w", d.Message.ID, dispatch.ErrConsumed)
		}
	}
	if r.Clear {
		s.clear(r.Session)
	}
	for r.Undo != "" && s.newest(r.Session, r.Undo) {
		s.sessions[r.Session].pop()
	}
	s.append(r.Session, r.Turn, r.Items)
	if r.Usage != (agent.Usage{}) {
		ses := s.at(r.Session)
		ses.usage = ses.usage.Add(r.Usage)
	}
	for _, seq := range r.Consumed {
		if i, ok := s.journal.find(seq); ok {
			e := s.journal.inbox[i]
			s.journal.inbox = slices.Delete(s.journal.inbox, i, i+1)
			if r.Dead != "" {
				s.journal.dead = append(s.journal.dead, &letter{entry: e, at: now(), reason: r.Dead})
			}
		}
	}
	for _, d := range replies {
		s.journal.outSeq++
		d.seq = s.journal.outSeq
	}
	s.journal.outbox = append(s.journal.outbox, replies...)
	s.addTallies(r.Tallies)
	return nil
}

// encode makes the records of a turn's replies.
func (j *journal) encode(r dispatch.TurnResult) ([]*delivery, error) {
	seen := map[string]bool{}
	replies := make([]*delivery, len(r.Replies))
	for i, d := range r.Replies {
		if d.Message.ID == "" || seen[d.Message.ID] {
			return nil, fmt.Errorf("reply %d: a reply must have an ID of its own", i)
		}
		seen[d.Message.ID] = true
		encoded, err := json.Marshal(d.Message)
		if err != nil {
			return nil, fmt.Errorf("reply %d: %w", i, err)
		}
		rec := &delivery{Delivery: d, state: dispatch.Waiting, uncertain: d.Message.Uncertain, encoded: encoded}
		if rec.Session == "" {
			rec.Session = r.Session
		}
		rec.Created, rec.NextAt = now(), d.NextAt.UTC().Round(0)
		rec.Attempts, rec.Reason = 0, ""
		rec.Message.Parts, rec.Message.Reply = nil, nil
		replies[i] = rec
	}
	return replies, nil
}

// delivery returns what is not settled for good, nil when there is no such delivery.
func (j *journal) delivery(id string) *delivery {
	for _, d := range j.outbox {
		if d.Message.ID == id && !d.settled() {
			return d
		}
	}
	return nil
}

// Due implements dispatch.Journal.
func (s *Store) Due(ctx context.Context, at time.Time) iter.Seq2[dispatch.Delivery, error] {
	return func(yield func(dispatch.Delivery, error) bool) {
		if err := s.enter(ctx); err != nil {
			yield(dispatch.Delivery{}, fmt.Errorf("read due deliveries: %w", err))
			return
		}
		var list []dispatch.Delivery
		var err error
		for _, d := range s.journal.outbox {
			if d.state != dispatch.Waiting || d.NextAt.After(at) {
				continue
			}
			var c dispatch.Delivery
			if c, err = d.copy(); err != nil {
				break
			}
			list = append(list, c)
		}
		s.mu.Unlock()
		for _, d := range list {
			if !yield(d, nil) {
				return
			}
		}
		if err != nil {
			yield(dispatch.Delivery{}, fmt.Errorf("read due deliveries: %w", err))
		}
	}
}

// Next implements dispatch.Journal.
func (s *Store) Next(ctx context.Context) (time.Time, error) {
	if err := s.enter(ctx); err != nil {
		return time.Time{}, fmt.Errorf("read next delivery: %w", err)
	}
	defer s.mu.Unlock()
	var next time.Time
	for _, d := range s.journal.outbox {
		if d.state != dispatch.Waiting {
			continue
		}
		due := d.NextAt
		if due.IsZero() {
			due = d.Created
		}
		if next.IsZero() || due.Before(next) {
			next = due
		}
	}
	return next, nil
}

// Begin implements dispatch.Journal.
func (s *Store) Begin(ctx context.Context, id string) error {
	if err := s.enter(ctx); err != nil {
		return fmt.Errorf("begin delivery: %w", err)
	}
	defer s.mu.Unlock()
	d := s.journal.delivery(id)
	if d == nil {
		return fmt.Errorf("begin delivery %s: %w", id, dispatch.ErrNotFound)
	}
	d.uncertain = true
	return nil
}

// Settle implements dispatch.Journal. What is said of a held delivery is no attempt and is not counted
// as one.
func (s *Store) Settle(ctx context.Context, id string, o dispatch.Outcome) error {
	switch o.State {
	case dispatch.Delivered, dispatch.Waiting, dispatch.Held, dispatch.Unknown, dispatch.Dead:
	default:
		return fmt.Errorf("settle delivery %s: no such state: %q", id, o.State)
	}
	if err := s.enter(ctx); err != nil {
		return fmt.Errorf("settle delivery: %w", err)
	}
	defer s.mu.Unlock()
	d := s.journal.delivery(id)
	if d == nil {
		return fmt.Errorf("settle delivery %s: %w", id, dispatch.ErrNotFound)
	}
	if o.State == dispatch.Delivered {
		s.journal.outbox = slices.DeleteFunc(s.journal.outbox, func(other *delivery) bool { return other == d })
		return nil
	}
	if d.state == dispatch.Waiting {
		d.Attempts++
	}
	d.state, d.Reason, d.NextAt = o.State, o.Reason, time.Time{}
	if d.settled() {
		d.settledAt = now()
	}
	if o.State == dispatch.Waiting {
		d.NextAt = o.NextAt.UTC().Round(0)
		d.uncertain = d.uncertain && !o.Certain
	}
	return nil
}

// Stats implements dispatch.Journal.
func (s *Store) Stats(ctx context.Context) (dispatch.Stats, error) {
	if err := s.enter(ctx); err != nil {
		return dispatch.Stats{}, fmt.Errorf("read journal statistics: %w", err)
	}
	defer s.mu.Unlock()
	st := dispatch.Stats{Pending: len(s.journal.inbox), DeadEvents: len(s.journal.dead)}
	for _, d := range s.journal.outbox {
		switch d.state {
		case dispatch.Waiting:
			st.Waiting++
		case dispatch.Held:
			st.Held++
		case dispatch.Unknown:
			st.Unknown++
		case dispatch.Dead:
			st.Dead++
		}
	}
	if len(s.journal.inbox) > 0 {
		st.Oldest = s.journal.inbox[0].Received
	}
	return st, nil
}
