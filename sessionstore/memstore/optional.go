package memstore

import (
	"context"
	"fmt"
	"slices"
	"time"

	"botd/sessionstore"
)

// archive is an epoch that was cleared.
type archive struct {
	epoch
	generation uint64
	at, until  time.Time
}

// retire takes what the session holds away, and keeps it as an archive when there is something to keep.
func (s *Store) retire(ses *session) {
	if len(ses.shown()) > 0 && s.ArchiveFor >= 0 {
		t := now()
		ses.archives = append(ses.archives, archive{ses.epoch, ses.generation, t, t.Add(s.ArchiveFor)})
	}
	ses.epoch = epoch{}
}

// ArchiveTime implements sessionstore.Archiver.
func (s *Store) ArchiveTime() time.Duration { return max(s.ArchiveFor, 0) }

// Archives implements sessionstore.Archiver.
func (s *Store) Archives(ctx context.Context, id sessionstore.ID) ([]sessionstore.Archive, error) {
	if err := s.enterSession(ctx, id); err != nil {
		return nil, fmt.Errorf("list archives: %w", err)
	}
	defer s.mu.Unlock()
	ses := s.sessions[id]
	if ses == nil {
		return nil, nil
	}
	t := now()
	ses.archives = slices.DeleteFunc(ses.archives, func(a archive) bool { return !t.Before(a.until) })
	var list []sessionstore.Archive
	for _, a := range slices.Backward(ses.archives) {
		list = append(list, sessionstore.Archive{Generation: a.generation, Items: len(a.shown()), At: a.at, Until: a.until})
	}
	return list, nil
}

// Restore implements sessionstore.Archiver.
func (s *Store) Restore(ctx context.Context, id sessionstore.ID, generation uint64) error {
	if err := s.enterSession(ctx, id); err != nil {
		return fmt.Errorf("restore session: %w", err)
	}
	defer s.mu.Unlock()
	ses := s.sessions[id]
	if ses == nil {
		return fmt.Errorf("restore session: %w", sessionstore.ErrNoArchive)
	}
	t := now()
	i := slices.IndexFunc(ses.archives, func(a archive) bool { return a.generation == generation && t.Before(a.until) })
	if i < 0 {
		return fmt.Errorf("restore session: %w", sessionstore.ErrNoArchive)
	}
	restored := ses.archives[i].epoch
	ses.archives = slices.Delete(ses.archives, i, i+1)
	s.retire(ses)
	ses.epoch = restored
	ses.generation++
	ses.revision++
	ses.updated = t
	return nil
}

// Erase implements sessionstore.Eraser.
func (s *Store) Erase(ctx context.Context, id sessionstore.ID) error {
	if err := s.enterSession(ctx, id); err != nil {
		return fmt.Errorf("erase session: %w", err)
	}
	defer s.mu.Unlock()
	if s.sessions[id] != nil {
		s.erased[id] = s.generation(id) + 1
		delete(s.sessions, id)
	}
	s.journal.erase(id)
	return nil
}

// Revision implements sessionstore.Rewriter.
func (s *Store) Revision(ctx context.Context, id sessionstore.ID) (uint64, error) {
	if err := s.enterSession(ctx, id); err != nil {
		return 0, fmt.Errorf("read revision: %w", err)
	}
	defer s.mu.Unlock()
	if ses := s.sessions[id]; ses != nil {
		return ses.revision, nil
	}
	return 0, nil
}

// Rewrite implements sessionstore.Rewriter.
func (s *Store) Rewrite(ctx context.Context, id sessionstore.ID, r sessionstore.Rewrite) error {
	if err := s.enterSession(ctx, id); err != nil {
		return fmt.Errorf("rewrite session: %w", err)
	}
	defer s.mu.Unlock()
	if err := (sessionstore.Batch{Items: r.Items}).Validate(); err != nil {
		return fmt.Errorf("rewrite session: %w", err)
	}
	ses := s.sessions[id]
	if ses == nil || ses.revision != r.Revision {
		return fmt.Errorf("rewrite session: %w", sessionstore.ErrChanged)
	}
	if r.Through == 0 || r.Through > ses.next || r.Through < ses.through || uint64(len(r.Items)) > r.Through {
		return fmt.Errorf("rewrite session: %d items through %d do not fit", len(r.Items), r.Through)
	}
	view := copies(r.Items)
	t := now()
	for i := range view {
		view[i].Seq = r.Through - uint64(len(view)-1-i)
		if view[i].At.IsZero() {
			view[i].At = t
		}
	}
	ses.view, ses.through = view, r.Through
	ses.revision++
	ses.updated = t
	return nil
}

// History implements sessionstore.Rewriter.
func (s *Store) History(ctx context.Context, id sessionstore.ID, after uint64, limit int) ([]sessionstore.Item, error) {
	if err := s.enterSession(ctx, id); err != nil {
		return nil, fmt.Errorf("read history: %w", err)
	}
	defer s.mu.Unlock()
	ses := s.sessions[id]
	if ses == nil {
		return nil, nil
	}
	i := slices.IndexFunc(ses.items, func(it sessionstore.Item) bool { return it.Seq > after })
	if i < 0 || limit <= 0 {
		return nil, nil
	}
	return copies(ses.items[i : i+min(limit, len(ses.items)-i)]), nil
}

// Fork implements sessionstore.Forker.
func (s *Store) Fork(ctx context.Context, from, to sessionstore.ID, through uint64) error {
	if err := s.enterSession(ctx, from); err != nil {
		return fmt.Errorf("fork session: %w", err)
	}
	defer s.mu.Unlock()
	if err := to.Validate(); err != nil {
		return fmt.Errorf("fork session: %w", err)
	}
	if ses := s.sessions[to]; ses != nil && len(ses.shown()) > 0 {
		return fmt.Errorf("fork session: %w", sessionstore.ErrNotEmpty)
	}
	var items []sessionstore.Item
	if ses := s.sessions[from]; ses != nil {
		if items = ses.shown(); through < ses.through {
			items = ses.items
		}
	}
	items = copies(items)
	items = slices.DeleteFunc(items, func(it sessionstore.Item) bool { return it.Seq > through })
	ses := s.at(to)
	s.clear(to)
	ses.items = items
	if len(items) > 0 {
		ses.next = items[len(items)-1].Seq
	}
	return nil
}
