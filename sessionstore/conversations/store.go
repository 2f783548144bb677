package conversations

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/openai/openai-go/v3"
	api "github.com/openai/openai-go/v3/conversations"
	"github.com/openai/openai-go/v3/option"

	"botd/sessionstore"
)

var (
	_ sessionstore.Store  = (*Store)(nil)
	_ sessionstore.Lister = (*Store)(nil)
)

// Errors of this package, wrapped with what was being done.
var (
	// ErrIncomplete is returned by Append when the API could not be reached, or not for the whole batch.
	// The batch is kept and completed by the session's next operation.
	ErrIncomplete = errors.New("the batch is not complete yet and will be completed")
	// ErrOutcomeUnknown is returned by Pop when the API may have deleted the item and did not say so.
	ErrOutcomeUnknown = errors.New("the API did not answer; the item may be gone")
)

// DefaultWriteTimeout is that of Options.
const DefaultWriteTimeout = time.Minute

// Options are the settings of Open.
type Options struct {
	// State is required.
	State State
	// APIKey and BaseURL are those of the provider; BaseURL is https://api.openai.com/v1 when empty.
	APIKey, BaseURL string
	// HTTPClient is http.DefaultClient when nil.
	HTTPClient *http.Client
	// WriteTimeout bounds a write that has begun, which no longer heeds its context.
	WriteTimeout time.Duration
}

// Store keeps sessions as conversations. Open makes one.
type Store struct {
	client  openai.Client
	state   State
	timeout time.Duration
	locks   locks

	mu     sync.RWMutex // held for reading by every operation, so that Close waits for them
	closed bool
}

// Open makes a Store. It asks nothing of the API yet. The State stays the caller's to close.
func Open(o Options) (*Store, error) {
	if o.State == nil {
		return nil, errors.New("open conversations store: a State is required")
	}
	if o.BaseURL == "" {
		o.BaseURL = "https://api.openai.com/v1"
	}
	if o.HTTPClient == nil {
		o.HTTPClient = http.DefaultClient
	}
	if o.WriteTimeout == 0 {
		o.WriteTimeout = DefaultWriteTimeout
	}
	return &Store{
		client:  openai.NewClient(option.WithBaseURL(o.BaseURL), option.WithAPIKey(o.APIKey), option.WithHTTPClient(o.HTTPClient)),
		state:   o.State,
		timeout: o.WriteTimeout,
	}, nil
}

// begin starts an operation on a session: it has the session for itself until end is called, and what an
// earlier one left undone is done. ctx is what it goes on under.
func (s *Store) begin(ctx context.Context, id sessionstore.ID) (r *record, end func(), err error) {
	s.mu.RLock()
	if s.closed {
		s.mu.RUnlock()
		return nil, nil, sessionstore.ErrClosed
	}
	if err = id.Validate(); err == nil {
		err = ctx.Err()
	}
	var unlock func()
	if err == nil {
		unlock, err = s.locks.lock(ctx, id)
	}
	if err != nil {
		s.mu.RUnlock()
		return nil, nil, err
	}
	end = func() { unlock(); s.mu.RUnlock() }
	if r, err = s.load(ctx, id); err != nil {
		end()
		return nil, nil, err
	}
	return r, end, nil
}

// begun returns a context for a write that has begun: it no longer ends with ctx, but after the timeout.
func (s *Store) begun(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), s.timeout)
}

// Items implements sessionstore.Store. The items are as the API spells them.
func (s *Store) Items(ctx context.Context, id sessionstore.ID, limit int) ([]sessionstore.Item, error) {
	r, end, err := s.begin(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("read items: %w", err)
	}
	defer end()
	if err := s.settle(ctx, r); err != nil {
		return nil, fmt.Errorf("read items: %w", plain(err))
	}
	items, _, err := s.items(ctx, r, limit)
	if err != nil {
		return nil, fmt.Errorf("read items: %w", plain(err))
	}
	return items, nil
}

// items returns the newest items, oldest first, and the IDs that the API has given them. A conversation
// that was deleted elsewhere is a session that was cleared.
func (s *Store) items(ctx context.Context, r *record, limit int) (items []sessionstore.Item, ids []string, err error) {
	if limit <= 0 || r.Conversation == "" {
		return nil, nil, nil
	}
	err = s.walk(ctx, r.Conversation, "", api.ItemListParamsOrderDesc, limit, func(it remoteItem) (bool, error) {
		if sessionstore.ValidItem(it.raw) {
			items = append(items, sessionstore.Item{Raw: readable(it.raw)})
			ids = append(ids, it.id)
		}
		return len(items) < limit, nil
	})
	if gone(err) {
		return nil, nil, s.forget(ctx, r)
	}
	if err != nil {
		return nil, nil, err
	}
	slices.Reverse(items)
	slices.Reverse(ids)
	last := r.Seq
	for i := range items {
		known, ok, err := s.item(ctx, r, ids[i])
		if err != nil {
			return nil, nil, err
		}
		if !ok { // another program's, at the end; it will be given this number
			last++
			known.Seq = last
		}
		items[i].Seq, items[i].Turn, items[i].Origin, items[i].At = known.Seq, string(known.Turn), string(known.Origin), known.At
	}
	return items, ids, nil
}

// Generation implements sessionstore.Store.
func (s *Store) Generation(ctx context.Context, id sessionstore.ID) (uint64, error) {
	r, end, err := s.begin(ctx, id)
	if err != nil {
		return 0, fmt.Errorf("read generation: %w", err)
	}
	defer end()
	return r.Generation, nil
}

// Append implements sessionstore.Store.
func (s *Store) Append(ctx context.Context, id sessionstore.ID, b sessionstore.Batch) error {
	r, end, err := s.begin(ctx, id)
	if err != nil {
		return fmt.Errorf("append items: %w", err)
	}
	defer end()
	if err := validate(b); err != nil {
		return fmt.Errorf("append items: %w", err)
	}
	ctx, cancel := s.begun(ctx)
	defer cancel()
	if err := s.append(ctx, r, b); err != nil {
		return fmt.Errorf("append items: %w", plain(err))
	}
	return nil
}

func validate(b sessionstore.Batch) error {
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

func (s *Store) append(ctx context.Context, r *record, b sessionstore.Batch) error {
	if r.Generation != b.Generation {
		return sessionstore.ErrStale
	}
	if len(b.Items) == 0 {
		return nil
	}
	if err := s.settle(ctx, r); err != nil {
		if r.Pending != nil && b.Turn != "" && string(r.Pending.Turn) == b.Turn {
			return incomplete(err)
		}
		return err
	}
	if r.Generation != b.Generation { // the conversation was found to be deleted
		return sessionstore.ErrStale
	}
	if b.Turn != "" {
		if known, err := s.state.Get(ctx, r.turnKey(b.Turn)); known != nil || err != nil {
			return err
		}
	}
	p := &pending{Turn: []byte(b.Turn), At: time.Now().UTC()}
	for _, it := range b.Items {
		if raw, ok := sendable(it.Raw); ok {
			p.Items, p.Origins = append(p.Items, raw), append(p.Origins, []byte(it.Origin))
		}
	}
	if err := s.prepare(ctx, r, p); err != nil {
		if gone(err) {
			return errors.Join(sessionstore.ErrStale, s.forget(ctx, r))
		}
		return err
	}
	r.Pending = p
	if err := s.save(ctx, r); err != nil {
		return err
	}
	return s.finish(ctx, r, nil)
}

// prepare makes the session's conversation when it has none, and notes what it ends with.
func (s *Store) prepare(ctx context.Context, r *record, p *pending) error {
	if r.Conversation == "" {
		c, err := s.client.Conversations.New(ctx, api.ConversationNewParams{})
		if err != nil {
			return err
		}
		r.Conversation = c.ID
		return s.save(ctx, r)
	}
	var foreign []string // newest first
	err := patiently(ctx, func() error {
		foreign, p.After = nil, ""
		return s.walk(ctx, r.Conversation, "", api.ItemListParamsOrderDesc, listLimit, func(it remoteItem) (bool, error) {
			if p.After == "" {
				p.After = it.id
			}
			_, known, err := s.item(ctx, r, it.id)
			if !known {
				foreign = append(foreign, it.id)
			}
			return !known, err
		})
	})
	if err != nil {
		return err
	}
	for _, id := range slices.Backward(foreign) {
		r.Seq++
		r.Items++
		if err := s.putItem(ctx, r, id, itemRecord{Seq: r.Seq}); err != nil {
			return err
		}
	}
	return nil
}

// Pop implements sessionstore.Store.
func (s *Store) Pop(ctx context.Context, id sessionstore.ID) (sessionstore.Item, error) {
	r, end, err := s.begin(ctx, id)
	if err != nil {
		return sessionstore.Item{}, fmt.Errorf("pop item: %w", err)
	}
	defer end()
	ctx, cancel := s.begun(ctx)
	defer cancel()
	it, err := s.pop(ctx, r)
	if err != nil {
		return sessionstore.Item{}, fmt.Errorf("pop item: %w", plain(err))
	}
	return it, nil
}

func (s *Store) pop(ctx context.Context, r *record) (it sessionstore.Item, err error) {
	if err := s.settle(ctx, r); err != nil {
		return it, err
	}
	items, ids, err := s.items(ctx, r, 1)
	if err != nil {
		return it, err
	}
	if len(items) == 0 {
		return it, sessionstore.ErrEmpty
	}
	if err := s.remove(ctx, r.Conversation, ids[0]); err != nil {
		if _, answered := errors.AsType[*openai.Error](err); !answered {
			return it, fmt.Errorf("%w: %v", ErrOutcomeUnknown, err) //nolint:errorlint // must not be taken for the caller's context
		}
		return it, err
	}
	if items[0].Seq > r.Seq {
		r.Seq = items[0].Seq // a foreign item's, which is not to be used again
	}
	r.Items = max(0, r.Items-1)
	return items[0], errors.Join(s.put(ctx, r.itemKey(ids[0]), nil), s.save(ctx, r))
}

// remove deletes an item; one that is not there is deleted.
func (s *Store) remove(ctx context.Context, conversation, item string) error {
	return patiently(ctx, func() error {
		_, err := s.client.Conversations.Items.Delete(ctx, conversation, item)
		if gone(err) {
			return nil
		}
		return err
	})
}

// Sessions implements sessionstore.Lister, from the State alone.
func (s *Store) Sessions(ctx context.Context, prefix string, after sessionstore.ID, limit int) ([]sessionstore.Info, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	err := ctx.Err()
	if s.closed {
		err = sessionstore.ErrClosed
	}
	if err != nil {
		return nil, fmt.Errorf("list sessions: %w", err)
	}
	if limit <= 0 {
		return nil, nil
	}
	keys, err := s.state.Keys(ctx, sessionKeys+prefix, sessionKeys+string(after), limit)
	if err != nil {
		return nil, fmt.Errorf("list sessions: %w", err)
	}
	var infos []sessionstore.Info
	for _, key := range keys {
		r, err := s.load(ctx, sessionstore.ID(strings.TrimPrefix(key, sessionKeys)))
		if err != nil {
			return nil, fmt.Errorf("list sessions: %w", err)
		}
		infos = append(infos, sessionstore.Info{ID: r.id, Items: r.Items, Generation: r.Generation, Created: r.Created, Updated: r.Updated})
	}
	return infos, nil
}

// Close implements sessionstore.Store. It waits for the operations that are under way.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return nil
}
