package redisstore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
)

// ErrOutcomeUnknown is returned by a write whose connection ended before the server answered: it may be
// written or not. A batch with a turn can simply be appended again.
var ErrOutcomeUnknown = errors.New("connection lost before Redis answered; the write may have happened")

// ErrSealed is returned by Pop when the newest item is an envelope of EncryptedSession, which nobody can
// judge here; nothing was removed.
var ErrSealed = errors.New("the newest item was encrypted by the Agents SDK's EncryptedSession")

// attempts is how often an operation is tried; the waits between them double from firstWait.
const (
	attempts  = 4
	firstWait = 50 * time.Millisecond
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

func judge(err error) outcome {
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		return again
	}
	if errors.Is(err, redis.ErrPoolTimeout) || errors.Is(err, redis.ErrPoolExhausted) {
		return again
	}
	if redis.IsLoadingError(err) || redis.IsReadOnlyError(err) || redis.IsClusterDownError(err) ||
		redis.IsTryAgainError(err) || redis.IsMasterDownError(err) || redis.IsMaxClientsError(err) {
		return again // a server that starts, or a replica that is about to take over
	}
	if _, ok := errors.AsType[redis.Error](err); ok || errors.Is(err, redis.ErrClosed) || errors.Is(err, ErrSealed) {
		return failed
	}
	return unknown
}

// retry runs do until it succeeds, fails for good, or was tried often enough. An attempt whose outcome is
// unknown is repeated only if that is safe, which it is for reads and for batches with a turn.
func retry(ctx context.Context, safe bool, do func() error) error {
	wait := firstWait
	for n := 1; ; n++ {
		err := do()
		if err == nil {
			return nil
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

// read runs a read, again when its connection was lost.
func (s *Store) read(ctx context.Context, do func() error) error {
	err := retry(ctx, true, do)
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// write runs a script that writes. Once begun it no longer ends with ctx, but after the write timeout.
func (s *Store) write(ctx context.Context, safe bool, do func(context.Context) error) error {
	return retry(ctx, safe, func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.timeout)
		defer cancel()
		return do(ctx)
	})
}
