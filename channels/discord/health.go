package discord

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// health is whether events can arrive now.
type health struct {
	mu      sync.Mutex
	cause   error // nil while connected
	since   time.Time
	changed chan struct{} // closed and replaced when connected
}

var errNotYet = errors.New("not connected yet")

func newHealth() *health {
	return &health{cause: errNotYet, since: time.Now(), changed: make(chan struct{})}
}

func (h *health) up() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.cause != nil {
		h.cause, h.since = nil, time.Now()
		close(h.changed)
		h.changed = make(chan struct{})
	}
}

func (h *health) down(cause error) {
	if cause == nil {
		cause = errNotYet
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.cause == nil {
		h.since = time.Now()
	}
	h.cause = cause
}

// waitUp waits until the gateway session is up.
func (h *health) waitUp(ctx context.Context) error {
	for {
		h.mu.Lock()
		cause, changed := h.cause, h.changed
		h.mu.Unlock()
		if cause == nil {
			return ctx.Err()
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Ready returns nil while the gateway session is up: established, and with its heartbeats acknowledged.
// Otherwise the error says since when it is not, and why.
func (a *Adapter) Ready() error {
	a.health.mu.Lock()
	defer a.health.mu.Unlock()
	if a.health.cause == nil {
		return nil
	}
	return fmt.Errorf("discord gateway down since %s: %w", a.health.since.UTC().Format(time.RFC3339), a.health.cause)
}
