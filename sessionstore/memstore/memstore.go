package memstore

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"botd/agent"
	"botd/channels/dispatch"
	"botd/sessionstore"
)

var (
	_ sessionstore.Store    = (*Store)(nil)
	_ sessionstore.Lister   = (*Store)(nil)
	_ sessionstore.Archiver = (*Store)(nil)
	_ sessionstore.Eraser   = (*Store)(nil)
	_ sessionstore.Rewriter = (*Store)(nil)
	_ sessionstore.Forker   = (*Store)(nil)
	_ dispatch.Journal      = (*Store)(nil)
	_ dispatch.Inspector    = (*Store)(nil)
)

// How long a Store made by New keeps things.
const (
	DedupeFor  = 7 * 24 * time.Hour
	ArchiveFor = 30 * 24 * time.Hour
)

// Store keeps sessions and the journal in memory. Make one with New.
type Store struct {
	// DedupeFor is how long an event is remembered after it was put, ArchiveFor how long a cleared session
	// can be restored. Set them before the first use.
	DedupeFor, ArchiveFor time.Duration

	mu       sync.Mutex
	closed   bool
	sessions map[sessionstore.ID]*session
	// erased holds the generations of sessions that were erased.
	erased  map[sessionstore.ID]uint64
	journal journal
	records records
	tallies map[string]sessionstore.Counts
}

// session is one line of memory.
type session struct {
	generation, revision uint64
	epoch
	archives         []archive
	created, updated time.Time
	usage            agent.Usage
}

// epoch is what a session holds from one clear to the next.
type epoch struct {
	next  uint64
	items []sessionstore.Item
	// view is shown in place of the items up to through.
	view    []sessionstore.Item
	through uint64
	turns   map[string]bool
}

// New returns an empty Store.
func New() *Store {
	return &Store{
		DedupeFor: DedupeFor, ArchiveFor: ArchiveFor,
		sessions: map[sessionstore.ID]*session{}, erased: map[sessionstore.ID]uint64{},
		journal: journal{known: map[event]time.Time{}},
		records: records{kinds: map[string][]sessionstore.Record{}},
		tallies: map[string]sessionstore.Counts{},
	}
}

// now is the time as it is stored: UTC, without a monotonic part.
func now() time.Time { return time.Now().UTC().Round(0) }

// enter locks the store for one operation; the caller unlocks it when the error is nil.
func (s *Store) enter(ctx context.Context) error {
	s.mu.Lock()
	err := ctx.Err()
	if s.closed {
		err = sessionstore.ErrClosed
	}
	if err != nil {
		s.mu.Unlock()
	}
	return err
}

// enterSession is enter for an operation on one session.
func (s *Store) enterSession(ctx context.Context, id sessionstore.ID) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	if err := id.Validate(); err != nil {
		s.mu.Unlock()
		return err
	}
	return nil
}

// at returns the session, making it when it does not exist.
func (s *Store) at(id sessionstore.ID) *session {
	ses := s.sessions[id]
	if ses == nil {
		t := now()
		ses = &session{generation: s.erased[id], created: t, updated: t}
		s.sessions[id] = ses
	}
	return ses
}

// generation is the session's generation, 0 when it does not exist and never did.
func (s *Store) generation(id sessionstore.ID) uint64 {
	if ses := s.sessions[id]; ses != nil {
		return ses.generation
	}
	return s.erased[id]
}

// shown returns the items that the session shows, which are not copies.
func (e *epoch) shown() []sessionstore.Item {
	if e.through == 0 {
		return e.items
	}
	i := slices.IndexFunc(e.items, func(it sessionstore.Item) bool { return it.Seq > e.through })
	if i < 0 {
		i = len(e.items)
	}
	return append(slices.Clip(e.view), e.items[i:]...)
}

// copies returns items with what they say copied.
func copies(items []sessionstore.Item) []sessionstore.Item {
	items = slices.Clone(items)
	for i := range items {
		items[i].Raw = slices.Clone(items[i].Raw)
	}
	return items
}

// Items implements sessionstore.Store.
func (s *Store) Items(ctx context.Context, id sessionstore.ID, limit int) ([]sessionstore.Item, error) {
	if err := s.enterSession(ctx, id); err != nil {
		return nil, fmt.Errorf("read items: %w", err)
	}
	defer s.mu.Unlock()
	ses := s.sessions[id]
	if ses == nil || limit <= 0 {
		return nil, nil
	}
	items := ses.shown()
	return copies(items[max(0, len(items)-limit):]), nil
}

// Generation implements sessionstore.Store.
func (s *Store) Generation(ctx context.Context, id sessionstore.ID) (uint64, error) {
	if err := s.enterSession(ctx, id); err != nil {
		return 0, fmt.Errorf("read generation: %w", err)
	}
	defer s.mu.Unlock()
	return s.generation(id), nil
}

// Append implements sessionstore.Store.
func (s *Store) Append(ctx context.Context, id sessionstore.ID, b sessionstore.Batch) error {
	if err := s.enterSession(ctx, id); err != nil {
		return fmt.Errorf("append items: %w", err)
	}
	defer s.mu.Unlock()
	if err := b.Validate(); err != nil {
		return fmt.Errorf("append items: %w", err)
	}
	if s.generation(id) != b.Generation {
		return fmt.Errorf("append items: %w", sessionstore.ErrStale)
	}
	s.append(id, b.Turn, b.Items)
	return nil
}

// append adds items that were found good, unless their turn was appended before.
func (s *Store) append(id sessionstore.ID, turn string, items []sessionstore.Item) {
	if len(items) == 0 {
		return
	}
	ses := s.at(id)
	if turn != "" {
		if ses.turns[turn] {
			return
		}
		if ses.turns == nil {
			ses.turns = map[string]bool{}
		}
		ses.turns[turn] = true
	}
	ses.updated = now()
	for _, it := range items {
		ses.next++
		ses.items = append(ses.items, sessionstore.Item{
			Seq: ses.next, Turn: turn, At: ses.updated, Origin: it.Origin, Raw: slices.Clone(it.Raw),
		})
	}
}

// Pop implements sessionstore.Store.
func (s *Store) Pop(ctx context.Context, id sessionstore.ID) (sessionstore.Item, error) {
	if err := s.enterSession(ctx, id); err != nil {
		return sessionstore.Item{}, fmt.Errorf("pop item: %w", err)
	}
	defer s.mu.Unlock()
	ses := s.sessions[id]
	if ses == nil || len(ses.shown()) == 0 {
		return sessionstore.Item{}, fmt.Errorf("pop item: %w", sessionstore.ErrEmpty)
	}
	return ses.pop(), nil
}

// pop removes the newest item of a session that shows some.
func (ses *session) pop() sessionstore.Item {
	from := &ses.items
	if n := len(ses.items); n == 0 || ses.items[n-1].Seq <= ses.through {
		from = &ses.view
	}
	last := len(*from) - 1
	it := (*from)[last]
	it.Raw = slices.Clone(it.Raw)
	*from = slices.Delete(*from, last, last+1)
	ses.revision++
	ses.updated = now()
	return it
}

// newest reports whether the newest item that a session shows is of a turn.
func (s *Store) newest(id sessionstore.ID, turn string) bool {
	ses := s.sessions[id]
	if ses == nil {
		return false
	}
	items := ses.shown()
	return len(items) > 0 && items[len(items)-1].Turn == turn
}

// Clear implements sessionstore.Store.
func (s *Store) Clear(ctx context.Context, id sessionstore.ID) error {
	if err := s.enterSession(ctx, id); err != nil {
		return fmt.Errorf("clear session: %w", err)
	}
	defer s.mu.Unlock()
	s.clear(id)
	return nil
}

func (s *Store) clear(id sessionstore.ID) {
	ses := s.at(id)
	s.retire(ses)
	ses.generation++
	ses.revision++
	ses.updated = now()
}

// Sessions implements sessionstore.Lister.
func (s *Store) Sessions(ctx context.Context, prefix string, after sessionstore.ID, limit int) ([]sessionstore.Info, error) {
	if err := s.enter(ctx); err != nil {
		return nil, fmt.Errorf("list sessions: %w", err)
	}
	defer s.mu.Unlock()
	var infos []sessionstore.Info
	for id, ses := range s.sessions {
		if id > after && strings.HasPrefix(string(id), prefix) {
			infos = append(infos, sessionstore.Info{
				ID: id, Items: len(ses.shown()), Generation: ses.generation, Created: ses.created, Updated: ses.updated,
			})
		}
	}
	slices.SortFunc(infos, func(a, b sessionstore.Info) int { return strings.Compare(string(a.ID), string(b.ID)) })
	return infos[:max(0, min(limit, len(infos)))], nil
}

// Usage returns what the session's turns have cost since it was made.
func (s *Store) Usage(ctx context.Context, id sessionstore.ID) (agent.Usage, error) {
	if err := s.enterSession(ctx, id); err != nil {
		return agent.Usage{}, fmt.Errorf("read usage: %w", err)
	}
	defer s.mu.Unlock()
	if ses := s.sessions[id]; ses != nil {
		return ses.usage, nil
	}
	return agent.Usage{}, nil
}

// Close implements sessionstore.Store.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return nil
}
