package redisstore

import (
	"context"
	"errors"
	"net"

	"github.com/redis/go-redis/v9"

	"botd/sessionstore/internal/attempt"
)

// ErrOutcomeUnknown is returned by a write whose connection ended before the server answered: it may be
// written or not. A batch with a turn can simply be appended again.
var ErrOutcomeUnknown = errors.New("connection lost before Redis answered; the write may have happened")

// ErrSealed is returned by Pop when the newest item is an envelope of EncryptedSession, which nobody can
// judge here; nothing was removed.
var ErrSealed = errors.New("the newest item was encrypted by the Agents SDK's EncryptedSession")

var rules = attempt.Rules{Judge: judge, ErrUnknown: ErrOutcomeUnknown}

func judge(err error) attempt.Outcome {
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		return attempt.Again
	}
	if errors.Is(err, redis.ErrPoolTimeout) || errors.Is(err, redis.ErrPoolExhausted) {
		return attempt.Again
	}
	if redis.IsLoadingError(err) || redis.IsReadOnlyError(err) || redis.IsClusterDownError(err) ||
		redis.IsTryAgainError(err) || redis.IsMasterDownError(err) || redis.IsMaxClientsError(err) {
		return attempt.Again // a server that starts, or a replica that is about to take over
	}
	if _, ok := errors.AsType[redis.Error](err); ok || errors.Is(err, redis.ErrClosed) || errors.Is(err, ErrSealed) {
		return attempt.Failed
	}
	return attempt.Unknown
}

// read runs a read, again when its connection was lost.
func (s *Store) read(ctx context.Context, do func() error) error {
	err := rules.Do(ctx, true, do)
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// write runs a script that writes. Once begun it no longer ends with ctx, but after the write timeout.
func (s *Store) write(ctx context.Context, safe bool, do func(context.Context) error) error {
	return rules.Do(ctx, safe, func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.timeout)
		defer cancel()
		return do(ctx)
	})
}
