// Package attempt tries operations on a database server again when that is safe.
package attempt

import (
	"context"
	"fmt"
	"time"
)

// An operation is tried limit times; the waits between the attempts double from firstWait.
const (
	limit     = 4
	firstWait = 50 * time.Millisecond
)

// Outcome is what the error of an attempt says about what became of it.
type Outcome int

const (
	// Failed means that nothing was written, and trying again would end the same way.
	Failed Outcome = iota
	// Again means that nothing was written, and trying again may succeed.
	Again
	// Unknown means that the connection ended before the answer came.
	Unknown
)

// Rules say what the errors of one kind of server mean.
type Rules struct {
	// Judge tells the outcome of an attempt that failed.
	Judge func(error) Outcome
	// ErrUnknown is the error for an outcome that stays unknown.
	ErrUnknown error
}

// Do runs do until it succeeds, fails for good, or was tried often enough. An attempt whose outcome is
// unknown is repeated only if that is safe, which it is for reads and for batches with a turn.
func (r Rules) Do(ctx context.Context, safe bool, do func() error) error {
	wait := firstWait
	for n := 1; ; n++ {
		err := do()
		if err == nil {
			return nil
		}
		o := r.Judge(err)
		if o == Failed || n == limit || o == Unknown && !safe {
			return r.final(o, err)
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			if o == Unknown {
				return r.final(o, err)
			}
			return ctx.Err()
		}
		wait *= 2
	}
}

// final is the error that the caller gets. When the outcome is unknown the cause is only told, not
// wrapped: it may be the end of a write's own time, which must not be taken for the caller's context,
// whose end means that nothing was written.
func (r Rules) final(o Outcome, err error) error {
	if o == Unknown {
		return fmt.Errorf("%w: %v", r.ErrUnknown, err) //nolint:errorlint // see above
	}
	return err
}
