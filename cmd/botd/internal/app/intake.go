package app

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"botd/channels"
	"botd/channels/dispatch"
)

// refusalCounts is how long a refused event tells of the gateway's state. The next one renews it, so it
// must outlast the pauses between redeliveries, and it must end, or a load balancer that heeds readiness
// would never bring the event that proves the opposite.
const refusalCounts = time.Minute

// intake is the sink of all channels. It hands events on, and remembers when they cannot be kept: a full
// disk shows in that before it shows anywhere else.
type intake struct {
	sink channels.Sink
	// seen is told of every event; nil: nobody is.
	seen func(channel, kind string, kept bool)

	mu  sync.Mutex
	err error
	at  time.Time
}

// Accept implements channels.Sink.
func (i *intake) Accept(ctx context.Context, events ...channels.Inbound) error {
	err := i.sink.Accept(ctx, events...)
	if i.seen != nil {
		for _, in := range events {
			i.seen(in.Address.Channel, string(in.Kind), err == nil)
		}
	}
	if errors.Is(err, dispatch.ErrDraining) || errors.Is(err, dispatch.ErrUnknownChannel) || ctx.Err() != nil {
		return err // says nothing of the store
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.err, i.at = err, time.Now()
	return err
}

// check returns why the newest events were refused, nil when they were not, or long ago.
func (i *intake) check() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if ago := time.Since(i.at); i.err != nil && ago < refusalCounts {
		return fmt.Errorf("events were refused %s ago: %w", ago.Round(time.Second), i.err)
	}
	return nil
}
