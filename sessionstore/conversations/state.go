package conversations

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"botd/sessionstore"
)

// State is a durable map from keys to small values. A Swap that returned nil survives the death of the
// process. It is safe for concurrent use.
type State interface {
	// Get returns a value, nil when the key has none.
	Get(ctx context.Context, key string) ([]byte, error)
	// Swap replaces the value of key, if it is old, by value, in one step, and reports whether it did. A
	// nil old stands for no value, and a nil value takes the key away.
	Swap(ctx context.Context, key string, old, value []byte) (bool, error)
	// Keys returns up to limit keys that begin with prefix and are greater than after, in their order.
	Keys(ctx context.Context, prefix, after string, limit int) ([]string, error)
}

// ErrConflict is returned when another Store changed the session at the same time; nothing was written.
var ErrConflict = errors.New("another process works on this session")

// record is what the State knows of a session.
type record struct {
	Conversation string    `json:"conversation,omitempty"`
	Generation   uint64    `json:"generation,omitempty"`
	Items        int       `json:"items,omitempty"`
	Seq          uint64    `json:"seq,omitempty"` // the last that was given to an item
	Created      time.Time `json:"created"`
	Updated      time.Time `json:"updated"`
	Pending      *pending  `json:"pending,omitempty"`
	// Discarded are conversations that a clear has left and that are still to be deleted.
	Discarded []string `json:"discarded,omitempty"`

	id    sessionstore.ID
	saved []byte // as the State has it
}

// pending is a batch on its way to the API. Turns and origins are bytes, which JSON keeps whatever they are.
type pending struct {
	Turn []byte `json:"turn,omitempty"`
	// After is the ID of the conversation's last item before the batch, empty for none.
	After   string            `json:"after,omitempty"`
	At      time.Time         `json:"at"`
	Items   []json.RawMessage `json:"items"`
	Origins [][]byte          `json:"origins"`
	// Undo: the API refused the batch, and what came through is to be deleted.
	Undo bool `json:"undo,omitempty"`
}

// itemRecord is what the State knows of an item.
type itemRecord struct {
	Seq    uint64    `json:"seq"`
	Turn   []byte    `json:"turn,omitempty"`
	Origin []byte    `json:"origin,omitempty"`
	At     time.Time `json:"at,omitzero"`
}

const sessionKeys = "session/"

func sessionKey(id sessionstore.ID) string { return sessionKeys + string(id) }

// group is the prefix of the keys of one kind that belong to one session in one generation.
func (r *record) group(kind string) string {
	sum := sha256.Sum256([]byte(r.id))
	return kind + "/" + hex.EncodeToString(sum[:16]) + "/" + strconv.FormatUint(r.Generation, 10) + "/"
}

func (r *record) turnKey(turn string) string { return r.group("turn") + turn }

func (r *record) itemKey(item string) string { return r.group("item") + item }

func (s *Store) load(ctx context.Context, id sessionstore.ID) (*record, error) {
	r := &record{id: id}
	raw, err := s.state.Get(ctx, sessionKey(id))
	if err != nil || raw == nil {
		return r, err
	}
	if err := json.Unmarshal(raw, r); err != nil {
		return nil, fmt.Errorf("read the state of a session: %w", err)
	}
	r.saved = raw
	return r, nil
}

func (s *Store) save(ctx context.Context, r *record) error {
	r.Updated = time.Now().UTC()
	if r.Created.IsZero() {
		r.Created = r.Updated
	}
	raw, err := json.Marshal(r)
	if err != nil {
		return err
	}
	ok, err := s.state.Swap(ctx, sessionKey(r.id), r.saved, raw)
	if err != nil {
		return err
	}
	if !ok {
		return ErrConflict
	}
	r.saved = raw
	return nil
}

// put sets a key that only this session's operations touch, whatever it holds.
func (s *Store) put(ctx context.Context, key string, value []byte) error {
	for {
		old, err := s.state.Get(ctx, key)
		if err != nil {
			return err
		}
		if ok, err := s.state.Swap(ctx, key, old, value); ok || err != nil {
			return err
		}
	}
}

func (s *Store) putItem(ctx context.Context, r *record, id string, it itemRecord) error {
	raw, err := json.Marshal(it)
	if err != nil {
		return err
	}
	return s.put(ctx, r.itemKey(id), raw)
}

// item returns what is known of an item; ok is false when another program added it.
func (s *Store) item(ctx context.Context, r *record, id string) (it itemRecord, ok bool, err error) {
	raw, err := s.state.Get(ctx, r.itemKey(id))
	if err != nil || raw == nil {
		return it, false, err
	}
	return it, true, json.Unmarshal(raw, &it)
}

// dropGroup takes every key of a group away.
func (s *Store) dropGroup(ctx context.Context, prefix string) error {
	for {
		keys, err := s.state.Keys(ctx, prefix, "", 100)
		if err != nil || len(keys) == 0 {
			return err
		}
		for _, key := range keys {
			if err := s.put(ctx, key, nil); err != nil {
				return err
			}
		}
	}
}
