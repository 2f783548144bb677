package sessionstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"
)

// Errors of a Recorder and a Tallier, beside ErrChanged.
var (
	// ErrNoRecord is returned for a record that does not exist.
	ErrNoRecord = errors.New("no such record")
	// ErrInvalidRecord is returned for names beyond their limits or with a zero byte, for a value that is
	// not JSON, and for changes of which two are of one record; nothing was written. A value that is too
	// long gives ErrTooLarge.
	ErrInvalidRecord = errors.New("invalid record")
)

// Limits of records, in bytes.
const (
	// MaxRecordKindLen and MaxRecordKeyLen bound the names of a record.
	MaxRecordKindLen = 64
	MaxRecordKeyLen  = 1024
	// MaxRecordLen bounds its value.
	MaxRecordLen = 1 << 20
)

// AnyVersion lets a change of a record take place whatever its version is.
const AnyVersion = math.MaxUint64

// Record is a small durable fact beside the conversations: a link between two accounts, a block, a note, a
// pause, a setting, a line of the audit.
type Record struct {
	// Kind names the sort of fact ("link", "block"), Key the one fact within it. Both are any text without
	// a zero byte, not empty, within the limits.
	Kind, Key string
	// Value is one JSON value.
	Value json.RawMessage
	// Version changes with every write; it is never 0 and never used twice for one key while the record lives.
	Version uint64
	// At is when the value was written.
	At time.Time
	// Until is when the record ceases to exist, zero for never.
	Until time.Time
}

// RecordChange writes or deletes one record.
type RecordChange struct {
	Kind, Key string
	// Value is the new value; nil deletes the record.
	Value json.RawMessage
	// Until is when the record ceases to exist, zero for never.
	Until time.Time
	// Version is the version that the record must have for the change to take place: 0 for a record that must
	// not exist, AnyVersion for any.
	Version uint64
}

// Recorder is implemented by stores that keep records. What is past its Until does not exist to any method.
type Recorder interface {
	// Record returns one record; ErrNoRecord.
	Record(ctx context.Context, kind, key string) (Record, error)
	// Records returns up to limit records of a kind whose key begins with prefix and is greater than after, in
	// the order of their keys' bytes. An empty result means that there are no more.
	Records(ctx context.Context, kind, prefix, after string, limit int) ([]Record, error)
	// ChangeRecords makes all the changes or none. ErrChanged when a record has another version than a change
	// asks for. Deleting what does not exist with AnyVersion is no error. No record may be changed twice in
	// one call.
	ChangeRecords(ctx context.Context, changes ...RecordChange) error
}

// ValidateChanges reports whether a Recorder can make the changes, were it not for versions.
func ValidateChanges(changes []RecordChange) error {
	type name struct{ kind, key string }
	seen := make(map[name]bool, len(changes))
	for i, c := range changes {
		if err := c.validate(); err != nil {
			return fmt.Errorf("change %d: %w", i, err)
		}
		n := name{c.Kind, c.Key}
		if seen[n] {
			return fmt.Errorf("change %d: %w: its record is changed twice", i, ErrInvalidRecord)
		}
		seen[n] = true
	}
	return nil
}

func (c RecordChange) validate() error {
	if err := validName("kind", c.Kind, MaxRecordKindLen); err != nil {
		return err
	}
	if err := validName("key", c.Key, MaxRecordKeyLen); err != nil {
		return err
	}
	switch {
	case len(c.Value) > MaxRecordLen:
		return fmt.Errorf("value of %d bytes: %w (at most %d bytes)", len(c.Value), ErrTooLarge, MaxRecordLen)
	case c.Value != nil && !json.Valid(c.Value):
		return fmt.Errorf("%w: its value is not JSON", ErrInvalidRecord)
	}
	return nil
}

func validName(what, name string, longest int) error {
	if len(name) == 0 || len(name) > longest || strings.IndexByte(name, 0) >= 0 {
		return fmt.Errorf("%w: a %s of %d bytes (1 to %d bytes, none of them zero)", ErrInvalidRecord, what, len(name), longest)
	}
	return nil
}
