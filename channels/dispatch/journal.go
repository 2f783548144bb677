package dispatch

import (
	"context"
	"errors"
	"iter"
	"time"

	"botd/agent"
	"botd/channels"
	"botd/sessionstore"
)

// Errors of a Journal.
var (
	// ErrConsumed is returned by Commit when an entry it consumes is no longer pending: the turn was
	// committed before, or a reset covered it. Nothing was written.
	ErrConsumed = errors.New("event is no longer pending")
	// ErrNotFound is returned for a delivery that does not exist or is settled for good.
	ErrNotFound = errors.New("no such delivery")
)

// Journal is the durable record of events accepted and not yet answered (inbox) and of replies not yet
// delivered (outbox). Methods are safe for concurrent use. A method that returned nil is durable; one
// that returned an error has changed nothing. Values passed in are not kept; values returned are copies.
type Journal interface {
	// Put records the events that are not known yet, in order, in one transaction, and returns their
	// entries. An event is known when its channel and ID were put within the journal's dedupe window,
	// whatever has become of it since; a batch may hold the same event twice.
	Put(ctx context.Context, events []Routed) (fresh []Entry, err error)
	// Pending yields every entry that is not consumed, in the order of Seq.
	Pending(ctx context.Context) iter.Seq2[Entry, error]
	// Fail counts one more failed attempt for each entry, keeps the reason, and returns nothing to the
	// sessions.
	Fail(ctx context.Context, seqs []uint64, reason string) error
	// Commit ends a turn: see TurnResult. All or nothing. Errors: ErrConsumed, sessionstore.ErrStale, and
	// sessionstore.ErrChanged when the turn to be undone is not the session's newest.
	Commit(ctx context.Context, r TurnResult) error
	// Due yields the deliveries that wait and whose NextAt is not after now, in the order of commit.
	Due(ctx context.Context, now time.Time) iter.Seq2[Delivery, error]
	// Next returns when the earliest waiting delivery is due, the zero time when none waits.
	Next(ctx context.Context) (time.Time, error)
	// Begin notes that a send without an idempotency key is about to start. A delivery begun and not
	// settled comes back from Due with Message.Uncertain set.
	Begin(ctx context.Context, id string) error
	// Settle records what became of one attempt to deliver. ErrNotFound when it was settled for good.
	Settle(ctx context.Context, id string, o Outcome) error
	// Stats counts what is in the journal, for metrics and readiness.
	Stats(ctx context.Context) (Stats, error)
}

// Routed is an event with the session it belongs to.
type Routed struct {
	Session sessionstore.ID  `json:"session"`
	Event   channels.Inbound `json:"event"`
}

// Entry is one event in the inbox.
type Entry struct {
	// Seq orders the inbox and identifies the entry; it is never used twice.
	Seq uint64 `json:"seq"`
	Routed
	// Received is when the event was put.
	Received time.Time `json:"received"`
	// Attempts counts the turns that failed on this entry, Reason tells of the last one: see Journal.Fail.
	Attempts int    `json:"attempts,omitempty"`
	Reason   string `json:"reason,omitempty"`
}

// TurnResult is what a turn leaves behind.
type TurnResult struct {
	Session sessionstore.ID
	// Turn is the turn's ID.
	Turn string
	// Generation is the session's generation when the turn began.
	Generation uint64
	// Clear forgets the session, raising its generation, before Items are appended. Generation is then
	// not checked. Only journals that keep the sessions too obey it.
	Clear bool
	// Undo, when not empty, is the turn that the session's newest items must belong to: all of them that it
	// appended, up to the newest item of another turn, are removed before Items are appended. It stays
	// known as appended. Not together with Clear; only journals that keep the sessions too obey it.
	Undo string
	// Items are appended to the session; only journals that keep the sessions too obey it. For others
	// the dispatcher has appended them to the store before.
	Items []sessionstore.Item
	// Consumed are the entries that this turn answers.
	Consumed []uint64
	// Dead, when not empty, is the reason why the consumed entries are set aside as dead letters, kept
	// for the operator.
	Dead string
	// Replies are the deliveries, in order.
	Replies []Delivery
	// Usage is what the run cost.
	Usage agent.Usage
	// Tallies are added to the counters of the store, if it keeps any; see sessionstore.Tallier.
	Tallies []sessionstore.Tally
}

// Delivery is one send that waits in the outbox.
type Delivery struct {
	// Message is what to send. Message.ID identifies the delivery: turn/0, turn/1, …
	Message channels.Outbound `json:"message"`
	Session sessionstore.ID   `json:"session"`
	// Created is when it was committed, NextAt when it is to be tried next; the zero time means at once.
	Created time.Time `json:"created"`
	NextAt  time.Time `json:"next_at,omitzero"`
	// Attempts counts the attempts that failed, Reason tells of the last one.
	Attempts int    `json:"attempts,omitempty"`
	Reason   string `json:"reason,omitempty"`
}

// State is what became of a delivery.
type State string

// The states. The values are stored.
const (
	// Waiting: to be tried at NextAt.
	Waiting State = "waiting"
	// Delivered: accepted by the platform.
	Delivered State = "delivered"
	// Unknown: may have been accepted; never sent again, counts as said. Kept visible for some days.
	Unknown State = "unknown"
	// Held: kept until the operator or the person asks for it.
	Held State = "held"
	// Dead: refused for good. Kept visible for some days.
	Dead State = "dead"
)

// Outcome is the result of one attempt.
type Outcome struct {
	State State
	// NextAt is when to try again, for Waiting.
	NextAt time.Time
	// Certain reports, for Waiting, that the attempt was surely not accepted: Uncertain is taken back.
	Certain bool
	// Reason tells why, for every state but Delivered. It holds no message text and no credentials.
	Reason  string
	Receipt channels.Receipt
}

// Stats counts the contents of a journal.
type Stats struct {
	Pending, Waiting, Held, Unknown, Dead int
	// DeadEvents counts dead letters among events.
	DeadEvents int
	// Oldest is when the oldest pending entry was received, the zero time when there is none.
	Oldest time.Time
}

// Inspector is implemented by journals that show an operator what waits and what is set aside, and give
// that another try. Pages begin after a sequence number; an empty page means that there are no more.
type Inspector interface {
	// Outbox returns up to limit deliveries in a state other than Delivered, in the order of commit.
	Outbox(ctx context.Context, state State, after uint64, limit int) ([]Kept, error)
	// DeadLetters returns up to limit events that were set aside, in the order of their entries.
	DeadLetters(ctx context.Context, after uint64, limit int) ([]DeadLetter, error)
	// Release lets a delivery that is held, unknown or dead wait again, due at once. It keeps its place in
	// the order of commit, its attempts, and whether it is uncertain: one that is unknown is. ErrNotFound.
	Release(ctx context.Context, seq uint64) error
	// Revive makes a dead letter a pending entry again, with a Seq of its own and no attempts. ErrNotFound.
	Revive(ctx context.Context, seq uint64) (Entry, error)
}

// Knower is implemented by journals that tell which events they know, without putting one.
type Knower interface {
	// Known reports whether an event of a channel was put within the dedupe window, see Journal.Put.
	Known(ctx context.Context, channel, id string) (bool, error)
}

// Kept is a delivery in the journal.
type Kept struct {
	// Seq orders the outbox and identifies the delivery, also after its ID was used again.
	Seq uint64 `json:"seq"`
	Delivery
	State State `json:"state"`
	// Settled is when it was settled for good, zero while it waits or is held.
	Settled time.Time `json:"settled,omitzero"`
}

// DeadLetter is an event that was set aside.
type DeadLetter struct {
	Entry
	// Dead is when and DeadReason why it was set aside; LastError is the reason of its last failed attempt.
	Dead       time.Time `json:"dead"`
	DeadReason string    `json:"dead_reason"`
	LastError  string    `json:"last_error,omitempty"`
}
