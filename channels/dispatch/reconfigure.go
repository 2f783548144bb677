package dispatch

import (
	"errors"
	"fmt"
	"time"

	"botd/channels"
)

// Limits are the bounds that Reconfigure can change; see the fields of Options with these names.
type Limits struct {
	MaxConcurrent int
	MaxHistory    int
	TurnTimeout   time.Duration
	Grace         time.Duration
}

func (o Options) limits() Limits {
	return Limits{MaxConcurrent: o.MaxConcurrent, MaxHistory: o.MaxHistory, TurnTimeout: o.TurnTimeout, Grace: o.Grace}
}

// live is what Reconfigure replaces as a whole. It is never changed once it is in place.
type live struct {
	channels map[string]*channel
	engine   Engine
	Limits
}

// Setup is what can be changed while Run works.
type Setup struct {
	// Channels are all the channels there are to be. One that is missing is retired: it takes no more events,
	// what it has taken is still answered through its adapter, and its name may come back.
	Channels []Channel
	Engine   Engine
	Limits   Limits
}

// Reconfigure replaces channels, engine and limits, at once and without losing anything: a turn that runs
// ends with the engine it began with, and deliveries that wait go out through the new adapter of their
// channel, at once when the old one's credentials were refused. The caller stops the adapters that are
// no longer among the channels. An error changes nothing; ErrDraining once Run's context has ended.
func (d *Dispatcher) Reconfigure(s Setup) error {
	o := d.opts
	o.Channels, o.Engine = s.Channels, s.Engine
	o.MaxConcurrent, o.MaxHistory, o.TurnTimeout, o.Grace = s.Limits.MaxConcurrent, s.Limits.MaxHistory, s.Limits.TurnTimeout, s.Limits.Grace
	o = o.withDefaults()
	made, err := d.makeChannels(o.Channels)
	if err := errors.Join(o.validate(), err); err != nil {
		return fmt.Errorf("reconfigure dispatcher: %w", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.phase == draining {
		return fmt.Errorf("reconfigure dispatcher: %w", ErrDraining)
	}
	old := d.live.Load()
	for name, before := range old.channels {
		after, stays := made[name]
		if !stays {
			retired := *before
			retired.retired, retired.prober, retired.parked = true, nil, nil
			made[name] = &retired
			continue
		}
		after.sends = before.sends
		after.paused = before.paused && sameValue(after.Adapter, before.Adapter)
	}
	d.live.Store(&live{channels: made, engine: o.Engine, Limits: o.limits()})
	d.turns.resize(max(o.MaxConcurrent, 1))
	for _, before := range old.channels {
		d.move(before, made[before.info.Channel])
	}
	for _, l := range d.lanes {
		d.schedule(l) // the rules of waiting may be others now
	}
	return nil
}

// move hands the places of a channel to what took its stead. Called with mu held.
func (d *Dispatcher) move(before, after *channel) {
	var moved []*place
	for _, p := range d.places {
		if p.channel != before {
			continue
		}
		p.channel, p.parked = after, false
		if !sameValue(after.Adapter, before.Adapter) {
			p.hurry()
			d.stop(p.timer)
			p.timer = nil
		}
		moved = append(moved, p)
	}
	before.prober, before.parked = nil, nil
	for _, p := range moved {
		d.dispatch(p)
	}
}

// hurry has what waits for better credentials tried at once. Called with mu held.
func (p *place) hurry() {
	if len(p.queue) > 0 && p.queue[0].Reason == channels.Unauthorized.String() {
		p.queue[0].NextAt = time.Time{}
	}
}

// makeChannels returns channels by name, with every fault of their rules.
func (d *Dispatcher) makeChannels(all []Channel) (map[string]*channel, error) {
	made := make(map[string]*channel, len(all))
	var errs []error
	for i, c := range all {
		if err := c.validate(); err != nil {
			errs = append(errs, fmt.Errorf("channel %d: %w", i, err))
			continue
		}
		ch := &channel{Channel: c, info: c.Adapter.Info(), sends: newSlots(max(d.opts.MaxSends, 1))}
		ch.typer, _ = c.Adapter.(channels.Typer)
		ch.profiler, _ = c.Adapter.(channels.Profiler)
		if !c.NoPreview {
			ch.streamer, _ = c.Adapter.(channels.Streamer)
		}
		if _, twice := made[ch.info.Channel]; twice {
			errs = append(errs, fmt.Errorf("channel %d: another channel is named %q too", i, ch.info.Channel))
		}
		made[ch.info.Channel] = ch
	}
	return made, errors.Join(errs...)
}

// channel returns the channel of a name, nil when there never was one.
func (d *Dispatcher) channel(name string) *channel { return d.live.Load().channels[name] }

// engine returns the engine for the next run.
func (d *Dispatcher) engine() Engine { return d.live.Load().engine }
