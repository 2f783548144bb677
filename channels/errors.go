package channels

import (
	"errors"
	"fmt"
	"time"
)

// ErrorKind tells the outbox what to do after a failed send.
type ErrorKind uint8

const (
	// Transient means: the platform or the way to it failed before it could accept; try again with backoff.
	// The zero value: an error about which nothing is known is tried again only if that cannot double.
	Transient ErrorKind = iota
	// RateLimited means: try again after RetryAfter.
	RateLimited
	// Ambiguous means: the message may have been accepted, and the platform has no key to ask with. Never sent
	// again; counts as said.
	Ambiguous
	// Permanent means: the platform refuses this message for good.
	Permanent
	// Gone means: the person or room cannot be reached any more (blocked, left, deleted).
	Gone
	// QuotaExhausted means: the account may send no more until its plan or month changes.
	QuotaExhausted
	// Unauthorized means: the credentials are refused; the channel pauses until the operator acts.
	Unauthorized
	// NeedsEvent means: the platform, or the channel's policy, takes this message only as the answer to a fresh
	// event of the same place. It is held until one comes.
	NeedsEvent
)

var kindNames = [...]string{"transient", "rate limited", "ambiguous", "permanent", "gone", "quota exhausted", "unauthorized", "needs an event"}

// String returns the kind in words.
func (k ErrorKind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("ErrorKind(%d)", uint8(k))
}

// Error is the error of Adapter.Send. It never holds message text or credentials.
type Error struct {
	Kind ErrorKind
	// RetryAfter is how long the platform asks to wait, 0 when it does not say.
	RetryAfter time.Duration
	Err        error
}

// Error says the kind and the cause.
func (e *Error) Error() string { return e.Kind.String() + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// KindOf returns the kind of err, Transient when err is no *Error.
func KindOf(err error) ErrorKind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return Transient
}
