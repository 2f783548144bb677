package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// outcome is what the error of an attempt says about what became of it.
type outcome int

const (
	// failed: nothing was written, and trying again would end the same way.
	failed outcome = iota
	// again: nothing was written, and trying again may succeed.
	again
	// unknown: the connection ended before the answer came.
	unknown
)

// attempts is how often an operation is tried; the waits between them double from firstWait.
const (
	attempts  = 4
	firstWait = 50 * time.Millisecond
)

// retry runs do until it succeeds, fails for good, or was tried often enough. An attempt whose outcome is
// unknown is repeated only if that is safe, which it is for reads and for batches with a turn.
func retry(ctx context.Context, safe bool, judge func(error) outcome, do func() error) error {
	wait := firstWait
	for n := 1; ; n++ {
		err := do()
		if err == nil {
			return nil
		}
		if _, ok := errors.AsType[*gaveUpError](err); ok {
			return err
		}
		o := judge(err)
		if o == failed || n == attempts || o == unknown && !safe {
			return final(o, err)
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			if o == unknown {
				return final(o, err)
			}
			return ctx.Err()
		}
		wait *= 2
	}
}

// final is the error that the caller gets. When the outcome is unknown the cause is only told, not
// wrapped: it may be the end of a write's own time, which must not be taken for the caller's context,
// whose end means that nothing was written.
func final(o outcome, err error) error {
	if o == unknown {
		return fmt.Errorf("%w: %v", ErrOutcomeUnknown, err) //nolint:errorlint // see above
	}
	return err
}

// gaveUpError is the end of the caller's context before anything was sent.
type gaveUpError struct{ err error }

func (e *gaveUpError) Error() string { return e.err.Error() }
func (e *gaveUpError) Unwrap() error { return e.err }

// unsentError is another failure before anything was sent.
type unsentError struct{ err error }

func (e *unsentError) Error() string { return e.err.Error() }
func (e *unsentError) Unwrap() error { return e.err }

// notSent wraps the error of getting a connection.
func notSent(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return &gaveUpError{ctx.Err()}
	}
	return &unsentError{err}
}

// begun returns a context for a write that has begun: it no longer ends with ctx, but after timeout.
func begun(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), timeout)
}
