package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"botd/sessionstore"
	"botd/sessionstore/internal/envelope"
)

var (
	_ sessionstore.Store  = (*Store)(nil)
	_ sessionstore.Lister = (*Store)(nil)
)

// Errors of this package, wrapped with what was being done.
var (
	// ErrOutcomeUnknown is returned by a write whose connection ended before the database answered: it may
	// be written or not. A batch with a turn can simply be appended again.
	ErrOutcomeUnknown = errors.New("connection lost before the database answered; the write may have happened")
	// ErrSchema is returned by Open for tables that this package must not or cannot use.
	ErrSchema = errors.New("unsuitable tables")
	// ErrSealed is returned by Pop when the newest item is an envelope of EncryptedSession, which nobody
	// can judge here; nothing was removed.
	ErrSealed = errors.New("the newest item was encrypted by the Agents SDK's EncryptedSession")
	// ErrURL is returned by Open for a URL that it does not understand.
	ErrURL = errors.New("invalid database URL")
)

// page is the most rows that are read at once.
const page = 1000

// Store keeps sessions in a SQL database. Open makes one.
type Store struct {
	db database

	mu     sync.RWMutex // held for reading by every operation, so that Close waits for them
	closed bool
}

// database is what differs from one kind of database to the next. Every method is one transaction. IDs and
// batches were validated. A write heeds ctx only until it begins.
type database interface {
	// rows returns the newest n rows of the session whose number is below before, newest first.
	rows(ctx context.Context, id sessionstore.ID, before int64, n int) ([]row, error)
	generation(ctx context.Context, id sessionstore.ID) (uint64, error)
	append(ctx context.Context, id sessionstore.ID, b sessionstore.Batch) error
	pop(ctx context.Context, id sessionstore.ID) (sessionstore.Item, error)
	clear(ctx context.Context, id sessionstore.ID) error
	sessions(ctx context.Context, prefix string, after sessionstore.ID, limit int) ([]sessionstore.Info, error)
	// checkID reports whether the database can tell this ID from every other.
	checkID(id sessionstore.ID) error
	close() error
}

// row is one row of the messages table with its record in the items table, if there is one.
type row struct {
	id     int64
	data   []byte
	turn   string
	origin string
	at     time.Time
}

func (r row) valid() bool { return validItem(r.data) }

// sealed reports whether the row holds an envelope of EncryptedSession.
func (r row) sealed() bool {
	_, ok := envelope.Token(r.data)
	return ok
}

func (r row) item() sessionstore.Item {
	return sessionstore.Item{Seq: uint64(r.id), Turn: r.turn, At: r.at, Origin: r.origin, Raw: r.data}
}

// validItem is sessionstore.ValidItem for text: SQL text and Python both insist on UTF-8.
func validItem(raw []byte) bool { return utf8.Valid(raw) && sessionstore.ValidItem(raw) }

func validBatch(b sessionstore.Batch) error {
	if err := b.Validate(); err != nil {
		return err
	}
	for i, it := range b.Items {
		if !utf8.Valid(it.Raw) {
			return fmt.Errorf("item %d: %w in UTF-8", i, sessionstore.ErrInvalidItem)
		}
	}
	return nil
}

// enter begins an operation; the caller calls the function it returns when the error is nil.
func (s *Store) enter(ctx context.Context) (leave func(), err error) {
	s.mu.RLock()
	if s.closed {
		s.mu.RUnlock()
		return nil, sessionstore.ErrClosed
	}
	if err := ctx.Err(); err != nil {
		s.mu.RUnlock()
		return nil, err
	}
	return s.mu.RUnlock, nil
}

func (s *Store) enterSession(ctx context.Context, id sessionstore.ID) (leave func(), err error) {
	leave, err = s.enter(ctx)
	if err != nil {
		return nil, err
	}
	if err = id.Validate(); err == nil {
		err = s.db.checkID(id)
	}
	if err != nil {
		leave()
		return nil, err
	}
	return leave, nil
}

// Items implements sessionstore.Store. Rows that do not hold a JSON object, or an envelope of the SDK's
// EncryptedSession, are passed over.
func (s *Store) Items(ctx context.Context, id sessionstore.ID, limit int) ([]sessionstore.Item, error) {
	leave, err := s.enterSession(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("read items: %w", err)
	}
	defer leave()
	items, err := s.items(ctx, id, limit)
	if err != nil {
		return nil, fmt.Errorf("read items: %w", err)
	}
	return items, nil
}

func (s *Store) items(ctx context.Context, id sessionstore.ID, limit int) ([]sessionstore.Item, error) {
	var items []sessionstore.Item // newest first
	before := int64(maxRow)
	for len(items) < limit {
		n := min(limit-len(items), page)
		rows, err := s.db.rows(ctx, id, before, n)
		if err != nil {
			return nil, err
		}
		for _, r := range rows {
			if r.valid() && !r.sealed() {
				items = append(items, r.item())
			}
		}
		if len(rows) < n {
			break
		}
		before = rows[len(rows)-1].id
	}
	slices.Reverse(items)
	return items, nil
}

// Generation implements sessionstore.Store.
func (s *Store) Generation(ctx context.Context, id sessionstore.ID) (uint64, error) {
	leave, err := s.enterSession(ctx, id)
	if err != nil {
		return 0, fmt.Errorf("read generation: %w", err)
	}
	defer leave()
	g, err := s.db.generation(ctx, id)
	if err != nil {
		return 0, fmt.Errorf("read generation: %w", err)
	}
	return g, nil
}

// Append implements sessionstore.Store.
func (s *Store) Append(ctx context.Context, id sessionstore.ID, b sessionstore.Batch) error {
	leave, err := s.enterSession(ctx, id)
	if err != nil {
		return fmt.Errorf("append items: %w", err)
	}
	defer leave()
	if err := validBatch(b); err != nil {
		return fmt.Errorf("append items: %w", err)
	}
	if len(b.Items) == 0 {
		err = s.appendNothing(ctx, id, b.Generation)
	} else {
		err = s.db.append(ctx, id, b)
	}
	if err != nil {
		return fmt.Errorf("append items: %w", err)
	}
	return nil
}

// appendNothing is an append without items: it makes no session and remembers no turn.
func (s *Store) appendNothing(ctx context.Context, id sessionstore.ID, generation uint64) error {
	g, err := s.db.generation(ctx, id)
	if err != nil {
		return err
	}
	if g != generation {
		return sessionstore.ErrStale
	}
	return nil
}

// Pop implements sessionstore.Store.
func (s *Store) Pop(ctx context.Context, id sessionstore.ID) (sessionstore.Item, error) {
	leave, err := s.enterSession(ctx, id)
	if err != nil {
		return sessionstore.Item{}, fmt.Errorf("pop item: %w", err)
	}
	defer leave()
	it, err := s.db.pop(ctx, id)
	if err != nil {
		return sessionstore.Item{}, fmt.Errorf("pop item: %w", err)
	}
	return it, nil
}

// Clear implements sessionstore.Store.
func (s *Store) Clear(ctx context.Context, id sessionstore.ID) error {
	leave, err := s.enterSession(ctx, id)
	if err != nil {
		return fmt.Errorf("clear session: %w", err)
	}
	defer leave()
	if err := s.db.clear(ctx, id); err != nil {
		return fmt.Errorf("clear session: %w", err)
	}
	return nil
}

// Sessions implements sessionstore.Lister. A session that was cleared is listed without items. Info.Items
// counts rows, those that do not hold a valid item included.
func (s *Store) Sessions(ctx context.Context, prefix string, after sessionstore.ID, limit int) ([]sessionstore.Info, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return nil, fmt.Errorf("list sessions: %w", err)
	}
	defer leave()
	if limit <= 0 {
		return nil, nil
	}
	infos, err := s.db.sessions(ctx, prefix, after, limit)
	if err != nil {
		return nil, fmt.Errorf("list sessions: %w", err)
	}
	return infos, nil
}

// Close implements sessionstore.Store. It waits for the operations that are under way.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	if err := s.db.close(); err != nil {
		return fmt.Errorf("close store: %w", err)
	}
	return nil
}
