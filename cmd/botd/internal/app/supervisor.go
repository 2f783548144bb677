package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"
	"sync"

	"botd/channels"
)

// supervisor runs one adapter, so that its failure stays its own.
type supervisor struct {
	adapter channels.Adapter
	log     *slog.Logger

	mu      sync.Mutex
	started bool
	// err is why the channel does not work any more, nil as long as it does.
	err error
}

// connector is implemented by adapters that hold a connection. Ready returns nil while events can arrive.
type connector interface{ Ready() error }

// run returns when the adapter has ended, for whatever reason.
func (s *supervisor) run(ctx context.Context, sink channels.Sink) {
	s.mu.Lock()
	s.started = true
	s.mu.Unlock()
	err := s.guarded(ctx, sink)
	if ctx.Err() != nil {
		return
	}
	if err == nil {
		err = errors.New("the channel has ended by itself")
	}
	s.mu.Lock()
	s.err = err
	s.mu.Unlock()
	s.log.Error("channel has failed and stays off until the next start; the others go on", "err", err)
}

// guarded turns a panic of the adapter into an error.
func (s *supervisor) guarded(ctx context.Context, sink channels.Sink) (err error) {
	defer func() {
		if r := recover(); r != nil {
			s.log.Error("channel has panicked", "stack", string(debug.Stack()))
			err = panicError(r)
		}
	}()
	return s.adapter.Run(ctx, sink)
}

// panicError says what a panic was. Only the runtime's own panics are quoted: others could hold anything.
func panicError(v any) error {
	if e, ok := v.(runtime.Error); ok {
		return fmt.Errorf("panic: %w", e)
	}
	return fmt.Errorf("panic with a %T", v)
}

// check tells how the channel is.
func (s *supervisor) check() check {
	s.mu.Lock()
	started, err := s.started, s.err
	s.mu.Unlock()
	switch {
	case err != nil:
		return check{Status: statusFailed, Detail: err.Error()}
	case !started:
		return check{Status: statusStarting}
	}
	if c, ok := s.adapter.(connector); ok {
		if err := c.Ready(); err != nil {
			return check{Status: statusConnecting, Detail: err.Error()}
		}
	}
	return check{Status: statusOK}
}
