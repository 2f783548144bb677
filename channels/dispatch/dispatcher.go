package dispatch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"botd/channels"
	"botd/sessionstore"
)

// Errors of a Dispatcher.
var (
	// ErrNotReady is returned before Run has replayed the journal.
	ErrNotReady = errors.New("dispatcher has not replayed its journal yet")
	// ErrDraining is returned once Run's context has ended: the process is about to stop, and the
	// platform should send again.
	ErrDraining = errors.New("dispatcher is draining")
	// ErrUnknownChannel is returned for an event of a channel that is not configured.
	ErrUnknownChannel = errors.New("unknown channel")
)

// Dispatcher is the Sink of all adapters. See the package comment.
type Dispatcher struct {
	opts Options
	log  *slog.Logger
	// live is what Reconfigure replaces as a whole.
	live atomic.Pointer[live]
	// atomic says that the journal keeps the sessions too.
	atomic bool
	// archiver is the session store where a reset can be taken back, nil elsewhere.
	archiver sessionstore.Archiver
	// knower is the journal where it tells which events it knows, nil elsewhere.
	knower Knower
	turns  *slots

	// intake is held by each Accept from before its events are put until their lanes know them, and as a
	// whole while the journal is read: so every entry reaches its lane by exactly one of the two ways.
	intake *semaphore.Weighted

	// hard ends when the grace is over: what still runs is cut off. Set by Run before anything works.
	hard context.Context
	// timers and commands count what has to end before Run returns, beside the slots.
	timers   sync.WaitGroup
	commands sync.WaitGroup

	mu    sync.Mutex
	phase phase
	lanes map[sessionstore.ID]*lane
	// entries and deliveries hold what lanes and places have taken charge of.
	entries    map[uint64]struct{}
	deliveries map[string]struct{}
	places     map[channels.Address]*place
	// scan collects what is forgotten while the journal is read, nil at other times.
	scan *scan
}

// phase is the stage of a Dispatcher's life.
type phase uint8

const (
	created phase = iota
	replaying
	working
	draining
)

// channel is a Channel with what the dispatcher keeps about it.
type channel struct {
	Channel
	// retired channels take no more events, and what they have taken is still answered.
	retired  bool
	info     channels.Info
	typer    channels.Typer
	profiler channels.Profiler
	streamer channels.Streamer
	sends    *slots

	// Guarded by Dispatcher.mu: a paused channel is one whose credentials were refused. The prober is the
	// place that tries on; the parked ones wait for it.
	paused bool
	prober *place
	parked []*place
}

// scan is what was settled while the journal was read: the read may still hold it.
type scan struct {
	entries    map[uint64]struct{}
	deliveries map[string]struct{}
}

var _ channels.Sink = (*Dispatcher)(nil)

// New returns a Dispatcher, or an error that names every fault of the options.
func New(o Options) (*Dispatcher, error) {
	o = o.withDefaults()
	errs := []error{o.validate()}
	d := &Dispatcher{
		opts: o, log: o.Logger,
		turns:   newSlots(max(o.MaxConcurrent, 1)),
		intake:  semaphore.NewWeighted(wholeIntake),
		lanes:   map[sessionstore.ID]*lane{},
		entries: map[uint64]struct{}{}, deliveries: map[string]struct{}{},
		places: map[channels.Address]*place{},
	}
	made, err := d.makeChannels(o.Channels)
	errs = append(errs, err)
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("dispatcher options: %w", err)
	}
	d.live.Store(&live{channels: made, engine: o.Engine, Limits: o.limits()})
	d.atomic = sameValue(o.Store, o.Journal)
	if a, ok := o.Store.(sessionstore.Archiver); ok && a.ArchiveTime() > 0 {
		d.archiver = a
	}
	d.knower, _ = o.Journal.(Knower)
	return d, nil
}

// Accept implements channels.Sink: it makes the events that are to be answered durable and hands the
// new ones to their lanes. Events of bots, events that the channel's rules leave out and duplicates are
// accepted and forgotten. Before Run has replayed the journal, events are made durable and answered
// later. Errors: ErrUnknownChannel, ErrDraining, an event without ID, and the journal's; after any of
// them none of the events was accepted.
func (d *Dispatcher) Accept(ctx context.Context, events ...channels.Inbound) error {
	routed, err := d.admit(events)
	if err != nil || len(routed) == 0 {
		return err
	}
	if err := d.intake.Acquire(ctx, 1); err != nil {
		return fmt.Errorf("accept events: %w", err)
	}
	defer d.intake.Release(1)
	if d.at() == draining {
		return fmt.Errorf("accept events: %w", ErrDraining)
	}
	fresh, err := d.opts.Journal.Put(ctx, routed)
	if err != nil {
		return fmt.Errorf("accept events: %w", err)
	}
	for _, e := range fresh {
		// The turn may come to answer more messages, which then shows behind this beginning of its ID.
		d.logFor(e).Debug("event accepted", "turn", turnPrefix(e), "kind", string(e.Event.Kind))
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.phase == working {
		d.assign(fresh)
	}
	return nil
}

// admit keeps the events that are to be answered and finds their sessions.
func (d *Dispatcher) admit(events []channels.Inbound) ([]Routed, error) {
	var routed []Routed
	for _, in := range events {
		ch := d.channel(in.Address.Channel)
		switch {
		case ch == nil || ch.retired:
			return nil, fmt.Errorf("accept event: %w: %q", ErrUnknownChannel, in.Address.Channel)
		case in.ID == "":
			return nil, fmt.Errorf("accept event of channel %q: it has no ID", in.Address.Channel)
		case ch.admits(in):
			if in.Kind == channels.Unsend {
				in.ID = tombstone(in.Refers)
			}
			routed = append(routed, Routed{Session: SessionID(ch.Scope, in.Address), Event: in})
		default:
			d.log.Debug("event left out", "channel", in.Address.Channel, "event_id", in.ID, "kind", string(in.Kind))
		}
	}
	return routed, nil
}

// admits reports whether an event is to be answered. A follow or a join says nothing that could be
// answered. A press on a button that the bot offered speaks to the bot by itself.
func (c *channel) admits(in channels.Inbound) bool {
	switch {
	case in.Speaker.Bot:
		return false
	case in.Kind == channels.Unsend:
		return in.Refers != "" && (in.Address.Kind == channels.Direct || c.Groups != Ignore)
	case in.Kind != channels.Message && in.Kind != channels.Postback:
		return false
	case in.Address.Kind == channels.Direct, c.Groups == All:
		return true
	case c.Groups == Ignore:
		return false
	}
	return in.Mentioned || in.Kind == channels.Postback
}

// Ready returns nil while Run works, ErrNotReady before it has replayed the journal and ErrDraining
// once its context has ended.
func (d *Dispatcher) Ready() error {
	switch d.at() {
	case working:
		return nil
	case draining:
		return ErrDraining
	}
	return ErrNotReady
}

func (d *Dispatcher) at() phase {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.phase
}

// after calls f with mu held once the wait is over, unless it is stopped or the dispatcher drains
// before. Called with mu held.
func (d *Dispatcher) after(wait time.Duration, f func()) *time.Timer {
	d.timers.Add(1)
	return time.AfterFunc(wait, func() {
		defer d.timers.Done()
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.phase != draining {
			f()
		}
	})
}

// stop stops a timer of after's; nil and stopped ones are fine.
func (d *Dispatcher) stop(t *time.Timer) {
	if t != nil && t.Stop() {
		d.timers.Done()
	}
}

// forget marks entries as no longer in the dispatcher's hands. Called with mu held.
func (d *Dispatcher) forget(entries ...Entry) {
	for _, e := range entries {
		delete(d.entries, e.Seq)
		if d.scan != nil {
			d.scan.entries[e.Seq] = struct{}{}
		}
	}
}

// logFor returns a logger that names an event.
func (d *Dispatcher) logFor(e Entry) *slog.Logger {
	return d.log.With("channel", e.Event.Address.Channel, "session", string(e.Session), "event_id", e.Event.ID)
}
