package memstore

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"botd/channels/dispatch"
	"botd/sessionstore"
)

// letter is an entry that was set aside.
type letter struct {
	*entry
	at     time.Time
	reason string
}

// Outbox implements dispatch.Inspector.
func (s *Store) Outbox(ctx context.Context, state dispatch.State, after uint64, limit int) ([]dispatch.Kept, error) {
	switch state {
	case dispatch.Waiting, dispatch.Held, dispatch.Unknown, dispatch.Dead:
	default:
		return nil, fmt.Errorf("list deliveries: no such state: %q", state)
	}
	if err := s.enter(ctx); err != nil {
		return nil, fmt.Errorf("list deliveries: %w", err)
	}
	defer s.mu.Unlock()
	var list []dispatch.Kept
	for _, d := range s.journal.outbox {
		if d.state != state || d.seq <= after || len(list) >= limit {
			continue
		}
		c, err := d.copy()
		if err != nil {
			return nil, fmt.Errorf("list deliveries: %w", err)
		}
		list = append(list, dispatch.Kept{Seq: d.seq, Delivery: c, State: state, Settled: d.settledAt})
	}
	return list, nil
}

// DeadLetters implements dispatch.Inspector.
func (s *Store) DeadLetters(ctx context.Context, after uint64, limit int) ([]dispatch.DeadLetter, error) {
	if err := s.enter(ctx); err != nil {
		return nil, fmt.Errorf("list dead letters: %w", err)
	}
	defer s.mu.Unlock()
	slices.SortFunc(s.journal.dead, func(a, b *letter) int { return cmp.Compare(a.Seq, b.Seq) })
	var list []dispatch.DeadLetter
	for _, l := range s.journal.dead {
		if l.Seq <= after || len(list) >= limit {
			continue
		}
		e, err := l.copy()
		if err != nil {
			return nil, fmt.Errorf("list dead letters: %w", err)
		}
		list = append(list, dispatch.DeadLetter{Entry: e, Dead: l.at, DeadReason: l.reason, LastError: l.lastError})
	}
	return list, nil
}

// Release implements dispatch.Inspector.
func (s *Store) Release(ctx context.Context, seq uint64) error {
	if err := s.enter(ctx); err != nil {
		return fmt.Errorf("release delivery %d: %w", seq, err)
	}
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.journal.outbox, func(d *delivery) bool { return d.seq == seq })
	if i < 0 || s.journal.outbox[i].state == dispatch.Waiting {
		return fmt.Errorf("release delivery %d: %w", seq, dispatch.ErrNotFound)
	}
	d := s.journal.outbox[i]
	if d.settled() && s.journal.delivery(d.Message.ID) != nil {
		return fmt.Errorf("release delivery %d: its ID %s is in the outbox again: %w", seq, d.Message.ID, dispatch.ErrNotFound)
	}
	d.uncertain = d.uncertain || d.state == dispatch.Unknown
	d.state, d.NextAt, d.settledAt = dispatch.Waiting, time.Time{}, time.Time{}
	return nil
}

// Revive implements dispatch.Inspector.
func (s *Store) Revive(ctx context.Context, seq uint64) (dispatch.Entry, error) {
	if err := s.enter(ctx); err != nil {
		return dispatch.Entry{}, fmt.Errorf("revive dead letter %d: %w", seq, err)
	}
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.journal.dead, func(l *letter) bool { return l.Seq == seq })
	if i < 0 {
		return dispatch.Entry{}, fmt.Errorf("revive dead letter %d: %w", seq, dispatch.ErrNotFound)
	}
	e := *s.journal.dead[i].entry
	s.journal.dead = slices.Delete(s.journal.dead, i, i+1)
	s.journal.seq++
	e.Seq, e.Attempts, e.lastError = s.journal.seq, 0, ""
	s.journal.inbox = append(s.journal.inbox, &e)
	return e.copy()
}

// erase forgets what belongs to a session.
func (j *journal) erase(id sessionstore.ID) {
	j.inbox = slices.DeleteFunc(j.inbox, func(e *entry) bool { return e.Session == id })
	j.outbox = slices.DeleteFunc(j.outbox, func(d *delivery) bool { return d.Session == id })
	j.dead = slices.DeleteFunc(j.dead, func(l *letter) bool { return l.Session == id })
}
