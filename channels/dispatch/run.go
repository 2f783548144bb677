package dispatch

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"
)

// Run replays what the journal holds, answers and delivers until ctx ends, and then drains: no new turn
// starts, running ones and due deliveries may go on for Options.Grace and are cut off then. What was
// cut off stays in the journal for the next Run. Run returns when every goroutine has ended, nil after
// a drain; it fails when the journal cannot be read at the start. It is called once.
func (d *Dispatcher) Run(ctx context.Context) error {
	hard, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	if err := d.begin(hard); err != nil {
		return err
	}
	err := d.read(ctx, working)
	if err == nil {
		<-ctx.Done()
	}
	d.drain(cut)
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("replay journal: %w", err)
	}
	return nil
}

func (d *Dispatcher) begin(hard context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.phase != created {
		return errors.New("run dispatcher: it was run before")
	}
	d.phase, d.hard = replaying, hard
	return nil
}

// Wake makes the dispatcher take in what somebody else has changed in the journal: an event that is
// pending again, a held delivery that waits again. What it already has in hand is left alone.
func (d *Dispatcher) Wake(ctx context.Context) error {
	if err := d.Ready(); err != nil {
		return fmt.Errorf("read journal: %w", err)
	}
	if err := d.read(ctx, working); err != nil {
		return fmt.Errorf("read journal: %w", err)
	}
	return nil
}

// wholeIntake is more than there can ever be Accepts at once.
const wholeIntake = math.MaxInt64

// farAhead is beyond any time at which a delivery may be due: waiting ones are loaded all at once, since
// those due later hold back others of their place.
const farAhead = 100 * 365 * 24 * time.Hour

// read takes in what the journal holds and nobody has in hand, and enters the next phase.
func (d *Dispatcher) read(ctx context.Context, next phase) error {
	if err := d.intake.Acquire(ctx, wholeIntake); err != nil {
		return err
	}
	defer d.intake.Release(wholeIntake)
	d.mu.Lock()
	d.scan = &scan{entries: map[uint64]struct{}{}, deliveries: map[string]struct{}{}}
	d.mu.Unlock()

	var entries []Entry
	var due []Delivery
	err := guard(func() error {
		for e, err := range d.opts.Journal.Pending(ctx) {
			if err != nil {
				return fmt.Errorf("read inbox: %w", err)
			}
			entries = append(entries, e)
		}
		for m, err := range d.opts.Journal.Due(ctx, time.Now().Add(farAhead)) {
			if err != nil {
				return fmt.Errorf("read outbox: %w", err)
			}
			due = append(due, m)
		}
		return nil
	})

	d.mu.Lock()
	defer d.mu.Unlock()
	gone := d.scan
	d.scan = nil
	if err != nil {
		return err
	}
	if d.phase == draining {
		return nil
	}
	d.phase = next
	d.enqueue(unsettled(due, gone.deliveries))
	d.assign(unanswered(entries, gone.entries))
	return nil
}

func unsettled(all []Delivery, gone map[string]struct{}) []Delivery {
	kept := all[:0]
	for _, m := range all {
		if _, ok := gone[m.Message.ID]; !ok {
			kept = append(kept, m)
		}
	}
	return kept
}

func unanswered(all []Entry, gone map[uint64]struct{}) []Entry {
	kept := all[:0]
	for _, e := range all {
		if _, ok := gone[e.Seq]; !ok {
			kept = append(kept, e)
		}
	}
	return kept
}

// drain ends all work, gracefully as long as the grace lasts.
func (d *Dispatcher) drain(cut context.CancelFunc) {
	d.mu.Lock()
	d.phase = draining
	for _, l := range d.lanes {
		d.stop(l.timer)
	}
	for _, p := range d.places {
		d.stop(p.timer)
	}
	d.mu.Unlock()

	ended := make(chan struct{})
	go func() {
		defer close(ended)
		d.timers.Wait()
		d.commands.Wait()
		d.turns.wait()
		for _, ch := range d.live.Load().channels {
			ch.sends.wait()
		}
		d.lastIntake()
	}()
	grace := time.NewTimer(d.live.Load().Grace)
	defer grace.Stop()
	select {
	case <-ended:
	case <-grace.C:
		d.log.Warn("grace is over, cutting off what still runs")
		cut()
		for _, ch := range d.live.Load().channels {
			ch.sends.close()
		}
		<-ended
	}
	d.log.Info("dispatcher drained")
}

// lastIntake waits for the Accepts that began before the drain: whoever reads the journal next, in this
// process or another, must find their events.
func (d *Dispatcher) lastIntake() {
	if d.intake.Acquire(d.hard, wholeIntake) == nil {
		d.intake.Release(wholeIntake)
	}
}
