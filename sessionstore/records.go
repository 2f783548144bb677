package sessionstore

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"time"
)

// ErrNoRecord is returned for a record that does not exist.
var ErrNoRecord = errors.New("no such record")

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
	// a zero byte, within the limits.
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
	// asks for. Deleting what does not exist with AnyVersion is no error.
	ChangeRecords(ctx context.Context, changes ...RecordChange) error
}
