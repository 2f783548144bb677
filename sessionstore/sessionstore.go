package sessionstore

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"
)

// ID names a session. It is opaque here; the dispatcher makes it from an address.
type ID string

// MaxIDLen is the longest ID that every store takes, in bytes.
const MaxIDLen = 512

// Limits that every store keeps, in bytes.
const (
	// MaxItemLen is the longest item.
	MaxItemLen = 16 << 20
	// MaxTurnLen is the longest turn ID.
	MaxTurnLen = 512
)

// Validate reports whether the ID is usable: 1 to MaxIDLen bytes.
func (id ID) Validate() error {
	if len(id) == 0 || len(id) > MaxIDLen {
		return fmt.Errorf("session ID of %d bytes: %w (1 to %d bytes)", len(id), ErrInvalidID, MaxIDLen)
	}
	return nil
}

// All is the limit that asks Items for every item.
const All = math.MaxInt

// Errors that every store returns, wrapped with what was being done.
var (
	// ErrInvalidID is returned for an empty or too long ID.
	ErrInvalidID = errors.New("invalid session ID")
	// ErrInvalidItem is returned by a write whose items are not all JSON objects; nothing was written.
	ErrInvalidItem = errors.New("an item must be a JSON object")
	// ErrTooLarge is returned by a write with an item or a turn ID beyond the limits; nothing was written.
	ErrTooLarge = errors.New("too large")
	// ErrEmpty is returned by Pop when no valid item is left.
	ErrEmpty = errors.New("session is empty")
	// ErrStale is returned by a write that began before the session was cleared; nothing was written.
	ErrStale = errors.New("session was cleared since")
	// ErrClosed is returned by every operation after Close, an empty Append included.
	ErrClosed = errors.New("store is closed")
)

// Item is one element of a session.
type Item struct {
	// Seq orders items within a session; it grows, and is never used twice within a generation.
	Seq uint64
	// Turn is the ID of the turn that appended the item.
	Turn string
	// At is when it was appended, to the millisecond or better. It orders nothing.
	At time.Time
	// Origin names what made the item, as agent@provider/model; empty for what people said and for
	// stores that cannot keep it.
	Origin string
	// Raw is the item as it came: one JSON object.
	Raw json.RawMessage
}

// Batch is what one turn appends.
type Batch struct {
	// Turn identifies the turn. A turn that was appended before, in the same generation, is a no-op.
	// Empty: the batch is appended unconditionally.
	Turn string
	// Generation is the session's generation when the turn began; see Store.Generation.
	Generation uint64
	// Items are appended in order. Only Raw and Origin are read.
	Items []Item
}

// Validate reports whether every item is a JSON object and all is within the limits.
func (b Batch) Validate() error {
	if len(b.Turn) > MaxTurnLen {
		return fmt.Errorf("turn ID of %d bytes: %w (at most %d bytes)", len(b.Turn), ErrTooLarge, MaxTurnLen)
	}
	for i, it := range b.Items {
		if len(it.Raw) > MaxItemLen {
			return fmt.Errorf("item %d of %d bytes: %w (at most %d bytes)", i, len(it.Raw), ErrTooLarge, MaxItemLen)
		}
		if !ValidItem(it.Raw) {
			return fmt.Errorf("item %d: %w", i, ErrInvalidItem)
		}
	}
	return nil
}

// ValidItem reports whether raw is one JSON object.
func ValidItem(raw []byte) bool {
	t := bytes.TrimLeft(raw, " \t\r\n")
	return len(t) > 0 && t[0] == '{' && json.Valid(raw)
}

// Store keeps sessions. Returned items are copies that the caller owns; items passed in are not kept
// or changed after the call returns.
type Store interface {
	// Items returns the newest limit valid items, oldest first; limit ≤ 0 gives none, All gives every
	// item. Items that are corrupt in the store do not count and are not returned. A session that does
	// not exist is empty.
	Items(ctx context.Context, id ID, limit int) ([]Item, error)
	// Generation counts the times the session was cleared; 0 for a session that never was. A run reads
	// it before Items and passes it to Append, so that a clear in between wins.
	Generation(ctx context.Context, id ID) (uint64, error)
	// Append adds a batch, all or nothing. ErrStale: the session was cleared since b.Generation. When ctx
	// ends during the write, Append still waits for its outcome: a nil error means written, and an error
	// that is ctx's means that nothing was.
	Append(ctx context.Context, id ID, b Batch) error
	// Pop removes and returns the newest valid item, removing corrupt ones on the way; ErrEmpty when
	// there is none.
	Pop(ctx context.Context, id ID) (Item, error)
	// Clear forgets the session's items and adds one to its generation. Clearing an empty session is no
	// error and counts too.
	Clear(ctx context.Context, id ID) error
	// Close releases what the store holds; closing twice is no error.
	Close() error
}

// Info describes one session without its items.
type Info struct {
	ID         ID
	Items      int
	Generation uint64
	Created    time.Time
	Updated    time.Time
}

// Lister is implemented by stores that can enumerate their sessions.
type Lister interface {
	// Sessions returns up to limit sessions whose ID is greater than after, in the order of their IDs;
	// only those whose ID begins with prefix. An empty result means that there are no more.
	Sessions(ctx context.Context, prefix string, after ID, limit int) ([]Info, error)
}
