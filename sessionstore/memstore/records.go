package memstore

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"botd/sessionstore"
)

var (
	_ sessionstore.Recorder = (*Store)(nil)
	_ sessionstore.Tallier  = (*Store)(nil)
	_ sessionstore.Scrubber = (*Store)(nil)
)

// records holds the records of each kind in the order of their keys.
type records struct {
	version uint64
	kinds   map[string][]sessionstore.Record
}

func byKey(r sessionstore.Record, key string) int { return cmp.Compare(r.Key, key) }

func lives(r sessionstore.Record, t time.Time) bool { return r.Until.IsZero() || t.Before(r.Until) }

// find returns the place of a record, or where it would be, and whether it exists.
func (rs *records) find(kind, key string, t time.Time) (i int, ok bool) {
	i, ok = slices.BinarySearchFunc(rs.kinds[kind], key, byKey)
	return i, ok && lives(rs.kinds[kind][i], t)
}

// Record implements sessionstore.Recorder.
func (s *Store) Record(ctx context.Context, kind, key string) (sessionstore.Record, error) {
	if err := s.enter(ctx); err != nil {
		return sessionstore.Record{}, fmt.Errorf("read record: %w", err)
	}
	defer s.mu.Unlock()
	i, ok := s.records.find(kind, key, now())
	if !ok {
		return sessionstore.Record{}, fmt.Errorf("read record: %w", sessionstore.ErrNoRecord)
	}
	r := s.records.kinds[kind][i]
	r.Value = slices.Clone(r.Value)
	return r, nil
}

// Records implements sessionstore.Recorder.
func (s *Store) Records(ctx context.Context, kind, prefix, after string, limit int) ([]sessionstore.Record, error) {
	if err := s.enter(ctx); err != nil {
		return nil, fmt.Errorf("list records: %w", err)
	}
	defer s.mu.Unlock()
	t := now()
	var list []sessionstore.Record
	all := s.records.kinds[kind]
	i, _ := slices.BinarySearchFunc(all, max(prefix, after), byKey)
	for ; i < len(all) && len(list) < limit; i++ {
		r := all[i]
		if !strings.HasPrefix(r.Key, prefix) {
			break
		}
		if r.Key > after && lives(r, t) {
			r.Value = slices.Clone(r.Value)
			list = append(list, r)
		}
	}
	return list, nil
}

// ChangeRecords implements sessionstore.Recorder.
func (s *Store) ChangeRecords(ctx context.Context, changes ...sessionstore.RecordChange) error {
	if err := s.enter(ctx); err != nil {
		return fmt.Errorf("change records: %w", err)
	}
	defer s.mu.Unlock()
	if err := sessionstore.ValidateChanges(changes); err != nil {
		return fmt.Errorf("change records: %w", err)
	}
	t := now()
	for n, c := range changes {
		var version uint64
		if i, ok := s.records.find(c.Kind, c.Key, t); ok {
			version = s.records.kinds[c.Kind][i].Version
		}
		if c.Version != sessionstore.AnyVersion && c.Version != version {
			return fmt.Errorf("change records: change %d: %w", n, sessionstore.ErrChanged)
		}
	}
	for _, c := range changes {
		s.records.change(c, t)
	}
	return nil
}

func (rs *records) change(c sessionstore.RecordChange, t time.Time) {
	list := slices.DeleteFunc(rs.kinds[c.Kind], func(r sessionstore.Record) bool { return !lives(r, t) || r.Key == c.Key })
	if c.Value != nil {
		rs.version++
		i, _ := slices.BinarySearchFunc(list, c.Key, byKey)
		list = slices.Insert(list, i, sessionstore.Record{
			Kind: c.Kind, Key: c.Key, Value: slices.Clone(c.Value), Version: rs.version, At: t, Until: c.Until.UTC().Round(0),
		})
	}
	rs.kinds[c.Kind] = list
}

// AddTallies implements sessionstore.Tallier.
func (s *Store) AddTallies(ctx context.Context, add ...sessionstore.Tally) error {
	if err := s.enter(ctx); err != nil {
		return fmt.Errorf("add to counters: %w", err)
	}
	defer s.mu.Unlock()
	if err := sessionstore.ValidateTallies(add); err != nil {
		return fmt.Errorf("add to counters: %w", err)
	}
	s.addTallies(add)
	return nil
}

func (s *Store) addTallies(add []sessionstore.Tally) {
	for _, t := range add {
		s.tallies[t.Key] = s.tallies[t.Key].Add(t.Counts)
	}
}

// Tallies implements sessionstore.Tallier.
func (s *Store) Tallies(ctx context.Context, prefix, after string, limit int) ([]sessionstore.Tally, error) {
	if err := s.enter(ctx); err != nil {
		return nil, fmt.Errorf("list counters: %w", err)
	}
	defer s.mu.Unlock()
	var list []sessionstore.Tally
	for key, counts := range s.tallies {
		if key > after && strings.HasPrefix(key, prefix) {
			list = append(list, sessionstore.Tally{Key: key, Counts: counts})
		}
	}
	slices.SortFunc(list, func(a, b sessionstore.Tally) int { return cmp.Compare(a.Key, b.Key) })
	return list[:max(0, min(limit, len(list)))], nil
}

// DropTallies implements sessionstore.Tallier.
func (s *Store) DropTallies(ctx context.Context, prefix string) error {
	if err := s.enter(ctx); err != nil {
		return fmt.Errorf("drop counters: %w", err)
	}
	defer s.mu.Unlock()
	for key := range s.tallies {
		if strings.HasPrefix(key, prefix) {
			delete(s.tallies, key)
		}
	}
	return nil
}

// Scrub implements sessionstore.Scrubber: there are no files.
func (s *Store) Scrub(ctx context.Context) error {
	if err := s.enter(ctx); err != nil {
		return fmt.Errorf("scrub: %w", err)
	}
	s.mu.Unlock()
	return nil
}
