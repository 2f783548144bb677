package obs

import (
	"context"
	"errors"
	"strings"
	"sync"

	"botd/agent"
	"botd/channels/dispatch"
)

// Sources are looked at whenever metrics are scraped. They are safe for concurrent use.
type Sources struct {
	// Channels and ToolServers tell how each is.
	Channels    func() []ChannelState
	ToolServers func() map[string]bool
	// Journal counts what the journal holds.
	Journal func(ctx context.Context) (dispatch.Stats, error)
	// StoreSize returns the bytes of the store's file and those of it that are free; nil: there is no file.
	StoreSize func() (file, free int64)
}

// ChannelState is how one channel is.
type ChannelState struct {
	Name, Platform string
	Up             bool
}

// maxValues is how many values a label may have that does not come from the configuration.
const maxValues = 200

// bounded lets only so many different values through.
type bounded struct {
	mu    sync.Mutex
	left  int
	known map[string]struct{}
}

func newBounded(n int) *bounded { return &bounded{left: n, known: map[string]struct{}{}} }

// otherValue stands for all values beyond the bound.
const otherValue = "other"

func (b *bounded) value(s string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, ok := b.known[s]; ok {
		return s
	}
	if b.left == 0 {
		return otherValue
	}
	b.left--
	b.known[s] = struct{}{}
	return s
}

// label is a fixed text as a label's value.
func label(s string) string { return strings.ReplaceAll(s, " ", "_") }

// modelOutcome is how a request to a model ended, in one word.
func modelOutcome(err error) string {
	if err == nil {
		return "ok"
	}
	if e, ok := errors.AsType[*agent.Error](err); ok {
		return label(e.Kind.String())
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return "stopped"
	}
	return otherValue
}

// Observers tells several observers.
type Observers []dispatch.Observer

// TurnEnded implements dispatch.Observer.
func (o Observers) TurnEnded(r dispatch.TurnReport) {
	for _, each := range o {
		each.TurnEnded(r)
	}
}

// SendEnded implements dispatch.Observer.
func (o Observers) SendEnded(r dispatch.SendReport) {
	for _, each := range o {
		each.SendEnded(r)
	}
}

// JoinHooks returns hooks that call all of those given.
func JoinHooks(all ...agent.Hooks) agent.Hooks {
	var joined agent.Hooks
	for _, h := range all {
		joined.Model = both(joined.Model, h.Model)
		joined.Tool = both(joined.Tool, h.Tool)
		if first, second := joined.Handoff, h.Handoff; first != nil && second != nil {
			joined.Handoff = func(turn, from, to string) { first(turn, from, to); second(turn, from, to) }
		} else if second != nil {
			joined.Handoff = second
		}
	}
	return joined
}

func both[T any](first, second func(T)) func(T) {
	if first == nil {
		return second
	}
	if second == nil {
		return first
	}
	return func(v T) { first(v); second(v) }
}
