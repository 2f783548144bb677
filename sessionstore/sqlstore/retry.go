package sqlstore

import (
	"context"
	"errors"
	"time"

	"botd/sessionstore/internal/attempt"
)

// retry runs do as attempt.Rules.Do does. The end of the caller's context before anything was sent is
// final, whatever judge would say of it.
func retry(ctx context.Context, safe bool, judge func(error) attempt.Outcome, do func() error) error {
	rules := attempt.Rules{ErrUnknown: ErrOutcomeUnknown, Judge: func(err error) attempt.Outcome {
		if _, ok := errors.AsType[*gaveUpError](err); ok {
			return attempt.Failed
		}
		return judge(err)
	}}
	return rules.Do(ctx, safe, do)
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
