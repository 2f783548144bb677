package redisstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/redis/go-redis/v9"

	"botd/sessionstore"
	"botd/sessionstore/internal/envelope"
)

var (
	_ sessionstore.Store  = (*Store)(nil)
	_ sessionstore.Lister = (*Store)(nil)
)

// page is the most messages that are read at once.
const page = 1000

// Store keeps sessions in Redis. Open makes one.
type Store struct {
	client  redis.UniversalClient
	prefix  string
	ttl     time.Duration
	timeout time.Duration
	do      scripts

	mu     sync.RWMutex // held for reading by every operation, so that Close waits for them
	closed bool
}

// keys returns the keys of a session, in the order that the scripts expect.
func (s *Store) keys(id sessionstore.ID) []string {
	session := s.prefix + ":" + string(id)
	return []string{
		session, session + ":messages", session + ":counter",
		"botd:meta:" + session, "botd:items:" + session, "botd:turns:" + session, s.index(),
	}
}

// index is the key of the set of all session IDs.
func (s *Store) index() string { return "botd:index:" + s.prefix }

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
	if err := checkID(id); err != nil {
		leave()
		return nil, err
	}
	return leave, nil
}

// checkID refuses an ID whose key is another session's: those of "a" are P:a, P:a:messages and P:a:counter.
func checkID(id sessionstore.ID) error {
	for _, end := range []string{":messages", ":counter"} {
		if strings.HasSuffix(string(id), end) {
			return fmt.Errorf("%w: ends in %s, as the SDK names a key of another session", sessionstore.ErrInvalidID, end)
		}
	}
	return id.Validate()
}

// validItem is sessionstore.ValidItem for text: Python insists on UTF-8.
func validItem(raw []byte) bool { return utf8.Valid(raw) && sessionstore.ValidItem(raw) }

// Items implements sessionstore.Store. Messages that are no JSON objects, or envelopes of the SDK's
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
	stop := -1
	for len(items) < limit && stop != 0 {
		w, err := s.window(ctx, id, stop, min(limit-len(items), page))
		if err != nil {
			return nil, err
		}
		for i, raw := range slices.Backward(w.messages) {
			if _, sealed := envelope.Token(raw); !sealed && validItem(raw) {
				items = append(items, w.item(i))
			}
		}
		stop = w.start
	}
	slices.Reverse(items)
	return items, nil
}

// window is a stretch of a session's messages.
type window struct {
	start    int // place of the first message
	messages [][]byte
	records  []record // of the first of them
	recorded int      // how many messages of the session have records
	seq      uint64   // of the last record ever made
}

// item makes an item of a message. One without a record has the sequence number that it will be given.
func (w window) item(i int) sessionstore.Item {
	it := sessionstore.Item{Raw: w.messages[i]}
	if i < len(w.records) {
		r := w.records[i]
		it.Seq, it.Turn, it.At, it.Origin = r.seq, r.turn, r.at, r.origin
		return it
	}
	it.Seq = w.seq + uint64(w.start+i-w.recorded) + 1
	return it
}

func (s *Store) window(ctx context.Context, id sessionstore.ID, stop, count int) (w window, err error) {
	err = s.read(ctx, func() error {
		answer, err := s.do.items.Run(ctx, s.client, s.keys(id), stop, count).Slice()
		if err != nil {
			return err
		}
		w, err = parseWindow(answer)
		return err
	})
	return w, err
}

// errAnswer is an answer that no script gives.
var errAnswer = errors.New("unexpected answer of a script")

func parseWindow(answer []any) (w window, err error) {
	if len(answer) != 5 {
		return w, errAnswer
	}
	start, ok1 := answer[0].(int64)
	messages, ok2 := answer[1].([]any)
	records, ok3 := answer[2].([]any)
	recorded, ok4 := answer[3].(int64)
	seq, ok5 := answer[4].(int64)
	if !ok1 || !ok2 || !ok3 || !ok4 || !ok5 {
		return w, errAnswer
	}
	w = window{start: int(start), recorded: int(recorded), seq: uint64(seq)}
	for _, m := range messages {
		text, _ := m.(string)
		w.messages = append(w.messages, []byte(text))
	}
	for _, r := range records {
		text, _ := r.(string)
		parsed, err := parseRecord(text)
		if err != nil {
			return w, err
		}
		w.records = append(w.records, parsed)
	}
	return w, nil
}

// record is what is kept beside a message. The scripts write its first two fields.
type record struct {
	seq          uint64
	at           time.Time
	turn, origin string
}

// recordHead is the length of a record before the turn: see scripts/common.lua.
const recordHead = 16 + 16 + 40 + 4

func parseRecord(text string) (r record, err error) {
	if len(text) < recordHead {
		return r, errAnswer
	}
	seq, err1 := strconv.ParseUint(text[:16], 10, 64)
	at, err2 := strconv.ParseInt(text[16:32], 10, 64)
	n, err3 := strconv.Atoi(text[recordHead-4 : recordHead])
	if errors.Join(err1, err2, err3) != nil || n < 0 || recordHead+n > len(text) {
		return r, errAnswer
	}
	r = record{seq: seq, turn: text[recordHead : recordHead+n], origin: text[recordHead+n:]}
	if at > 0 {
		r.at = time.UnixMilli(at).UTC()
	}
	return r, nil
}

// recordTail is the part of a record that the append script is given.
func recordTail(turn, origin string) string { return fmt.Sprintf("%04d", len(turn)) + turn + origin }

// Generation implements sessionstore.Store.
func (s *Store) Generation(ctx context.Context, id sessionstore.ID) (uint64, error) {
	leave, err := s.enterSession(ctx, id)
	if err != nil {
		return 0, fmt.Errorf("read generation: %w", err)
	}
	defer leave()
	info, _, err := s.info(ctx, id)
	if err != nil {
		return 0, fmt.Errorf("read generation: %w", err)
	}
	return info.Generation, nil
}

// Append implements sessionstore.Store.
func (s *Store) Append(ctx context.Context, id sessionstore.ID, b sessionstore.Batch) error {
	leave, err := s.enterSession(ctx, id)
	if err != nil {
		return fmt.Errorf("append items: %w", err)
	}
	defer leave()
	if err := b.Validate(); err != nil {
		return fmt.Errorf("append items: %w", err)
	}
	for i, it := range b.Items {
		if !utf8.Valid(it.Raw) {
			return fmt.Errorf("append items: item %d: %w in UTF-8", i, sessionstore.ErrInvalidItem)
		}
	}
	if err := s.append(ctx, id, b); err != nil {
		return fmt.Errorf("append items: %w", err)
	}
	return nil
}

func (s *Store) append(ctx context.Context, id sessionstore.ID, b sessionstore.Batch) error {
	if len(b.Items) == 0 { // makes no session and remembers no turn
		info, _, err := s.info(ctx, id)
		if err == nil && info.Generation != b.Generation {
			err = sessionstore.ErrStale
		}
		return err
	}
	args := []any{string(id), strconv.FormatUint(b.Generation, 10), b.Turn, s.ttl.Milliseconds()}
	for _, it := range b.Items {
		args = append(args, []byte(it.Raw), recordTail(b.Turn, it.Origin))
	}
	var written int
	err := s.write(ctx, b.Turn != "", func(ctx context.Context) (err error) {
		written, err = s.do.append.Run(ctx, s.client, s.keys(id), args...).Int()
		return err
	})
	if err == nil && written == 0 {
		err = sessionstore.ErrStale
	}
	return err
}

// Pop implements sessionstore.Store.
func (s *Store) Pop(ctx context.Context, id sessionstore.ID) (sessionstore.Item, error) {
	leave, err := s.enterSession(ctx, id)
	if err != nil {
		return sessionstore.Item{}, fmt.Errorf("pop item: %w", err)
	}
	defer leave()
	for {
		it, err := s.pop(ctx, id)
		if err != nil {
			return sessionstore.Item{}, fmt.Errorf("pop item: %w", err)
		}
		if validItem(it.Raw) {
			return it, nil
		}
	}
}

// pop takes the newest message, valid or not.
func (s *Store) pop(ctx context.Context, id sessionstore.ID) (it sessionstore.Item, err error) {
	err = s.write(ctx, false, func(ctx context.Context) error {
		answer, err := s.do.pop.Run(ctx, s.client, s.keys(id), string(id), s.ttl.Milliseconds()).StringSlice()
		if errors.Is(err, redis.Nil) {
			return nil
		}
		if redis.HasErrorPrefix(err, "SEALED") {
			return ErrSealed
		}
		if err != nil {
			return err
		}
		if len(answer) != 2 {
			return errAnswer
		}
		r, err := parseRecord(answer[1])
		it = sessionstore.Item{Seq: r.seq, Turn: r.turn, At: r.at, Origin: r.origin, Raw: []byte(answer[0])}
		return err
	})
	if err == nil && it.Seq == 0 {
		err = sessionstore.ErrEmpty
	}
	return it, err
}

// Clear implements sessionstore.Store.
func (s *Store) Clear(ctx context.Context, id sessionstore.ID) error {
	leave, err := s.enterSession(ctx, id)
	if err != nil {
		return fmt.Errorf("clear session: %w", err)
	}
	defer leave()
	err = s.write(ctx, false, func(ctx context.Context) error {
		return s.do.clear.Run(ctx, s.client, s.keys(id), string(id), s.ttl.Milliseconds()).Err()
	})
	if err != nil {
		return fmt.Errorf("clear session: %w", err)
	}
	return nil
}

// Close implements sessionstore.Store. It waits for the operations that are under way.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	if err := s.client.Close(); err != nil {
		return fmt.Errorf("close store: %w", err)
	}
	return nil
}
