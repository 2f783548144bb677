package admin

import (
	"encoding/json"
	"time"

	"botd/channels"
	"botd/channels/dispatch"
	"botd/sessionstore"
)

// Session is one line of memory, without its items.
type Session struct {
	ID         sessionstore.ID `json:"id"`
	Items      int             `json:"items"`
	Generation uint64          `json:"generation"`
	Created    time.Time       `json:"created,omitzero"`
	Updated    time.Time       `json:"updated,omitzero"`
	// Archives are what can be restored, the latest first; nil in lists.
	Archives []Archive `json:"archives,omitempty"`
}

// Archive is what a session held before it was reset.
type Archive struct {
	Generation uint64    `json:"generation"`
	Items      int       `json:"items"`
	At         time.Time `json:"at,omitzero"`
	Until      time.Time `json:"until,omitzero"`
}

// Item is one element of a session. Raw is what the model is shown.
type Item struct {
	Seq    uint64          `json:"seq"`
	Turn   string          `json:"turn,omitempty"`
	At     time.Time       `json:"at,omitzero"`
	Origin string          `json:"origin,omitempty"`
	Raw    json.RawMessage `json:"raw"`
}

// Page is one page of a list. Next is the cursor of the page after, empty on the last one.
type Page[T any] struct {
	Data []T    `json:"data"`
	Next string `json:"next,omitempty"`
}

// ResetResult tells what a reset did.
type ResetResult struct {
	Session sessionstore.ID `json:"session"`
	// Generation is the session's generation after the reset.
	Generation uint64 `json:"generation"`
	// Archive undoes the reset; nil when nothing was stored, or the store keeps no archives.
	Archive *Archive `json:"archive,omitempty"`
}

// RestoreRequest names what to restore. Without Generation it is the latest archive.
type RestoreRequest struct {
	Generation *uint64 `json:"generation,omitempty"`
}

// RestoreResult tells what is a session's memory again.
type RestoreResult struct {
	Session  sessionstore.ID `json:"session"`
	Restored Archive         `json:"restored"`
}

// EraseResult tells what is gone.
type EraseResult struct {
	Session sessionstore.ID `json:"session"`
	// Items counts what was stored and Archived what could have been restored.
	Items    int       `json:"items"`
	Archived int       `json:"archived"`
	ErasedAt time.Time `json:"erased_at"`
}

// Delivery is one send in the outbox. Its text is told only when asked for.
type Delivery struct {
	Seq      uint64           `json:"seq"`
	ID       string           `json:"id"`
	State    dispatch.State   `json:"state"`
	Session  sessionstore.ID  `json:"session"`
	To       channels.Address `json:"to"`
	Created  time.Time        `json:"created,omitzero"`
	NextAt   time.Time        `json:"next_at,omitzero"`
	Settled  time.Time        `json:"settled,omitzero"`
	Attempts int              `json:"attempts"`
	Reason   string           `json:"reason,omitempty"`
	Text     string           `json:"text,omitempty"`
}

// DeadEvent is an event that was set aside. Its text is told only when asked for.
type DeadEvent struct {
	Seq       uint64           `json:"seq"`
	ID        string           `json:"id"`
	Session   sessionstore.ID  `json:"session"`
	From      channels.Address `json:"from"`
	Name      string           `json:"name,omitempty"`
	Received  time.Time        `json:"received,omitzero"`
	Dead      time.Time        `json:"dead,omitzero"`
	Attempts  int              `json:"attempts"`
	Reason    string           `json:"reason,omitempty"`
	LastError string           `json:"last_error,omitempty"`
	Text      string           `json:"text,omitempty"`
}

// Stats counts what is under way and what was set aside.
type Stats struct {
	Pending    int       `json:"pending"`
	Waiting    int       `json:"waiting"`
	Held       int       `json:"held"`
	Unknown    int       `json:"unknown"`
	Dead       int       `json:"dead"`
	DeadEvents int       `json:"dead_events"`
	Oldest     time.Time `json:"oldest,omitzero"`
	// File is nil for stores that have none.
	File *FileStats `json:"file,omitempty"`
}

// FileStats is the size of the store's file, in bytes.
type FileStats struct {
	Size int64 `json:"size"`
	Free int64 `json:"free"`
}

// Channel is the state of one bot account.
type Channel struct {
	Name     string `json:"name"`
	Platform string `json:"platform"`
	// Status is ok, starting, connecting or failed; Detail says why it is not ok.
	Status string `json:"status"`
	Detail string `json:"detail,omitempty"`
}

// LogLevel is the least severe level that is logged: debug, info, warn or error.
type LogLevel struct {
	Level string `json:"level"`
}

// VerifyResult tells whether the store's file is sound.
type VerifyResult struct {
	OK     bool     `json:"ok"`
	Faults []string `json:"faults,omitempty"`
}
