package dispatch

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"botd/channels"
)

// Waits between attempts to deliver.
const (
	firstSendRetry = time.Second
	maxSendRetry   = 5 * time.Minute
	// A refused channel is tried again slowly: only the operator can change anything.
	firstPause = 30 * time.Second
	maxPause   = 10 * time.Minute
)

// settleTimeout bounds the last attempt to record an outcome when the dispatcher is cut off.
const settleTimeout = 2 * time.Second

// place sends the deliveries of one conversation, one at a time and in order. It exists while it has
// something to deliver. All fields are guarded by Dispatcher.mu.
type place struct {
	at      channels.Address
	channel *channel
	queue   []Delivery
	// queued is set from submitting the place to the slots until its send is settled.
	queued bool
	parked bool
	timer  *time.Timer
}

// reserve takes charge of deliveries that are about to be committed, so that nobody who reads the
// journal meanwhile does.
func (d *Dispatcher) reserve(replies []Delivery) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, m := range replies {
		d.deliveries[m.Message.ID] = struct{}{}
	}
}

// unreserve ends reserve. Called with mu held.
func (d *Dispatcher) unreserve(replies []Delivery) {
	for _, m := range replies {
		delete(d.deliveries, m.Message.ID)
	}
}

// enqueue gives deliveries to their places. Called with mu held.
func (d *Dispatcher) enqueue(deliveries []Delivery) {
	for _, m := range deliveries {
		if _, ok := d.deliveries[m.Message.ID]; ok {
			continue
		}
		at := m.Message.To.Place()
		ch := d.channel(at.Channel)
		if ch == nil {
			d.log.Warn("delivery waits for a channel that is not configured", "channel", at.Channel, "delivery", m.Message.ID)
			continue
		}
		d.deliveries[m.Message.ID] = struct{}{}
		p, ok := d.places[at]
		if !ok {
			p = &place{at: at, channel: ch}
			d.places[at] = p
		}
		p.queue = append(p.queue, m)
		d.dispatch(p)
	}
}

// dispatch starts what the place can send now, or arms its timer. Called with mu held after every
// change.
func (d *Dispatcher) dispatch(p *place) {
	if p.queued || p.timer != nil || p.parked {
		return
	}
	ch := p.channel
	if ch.paused && ch.prober == nil && len(p.queue) > 0 {
		ch.prober = p
	}
	switch {
	case len(p.queue) == 0:
		delete(d.places, p.at)
		d.leave(p)
	case ch.paused && ch.prober != p:
		p.parked = true
		ch.parked = append(ch.parked, p)
	default:
		if wait := time.Until(p.queue[0].NextAt); wait > 0 {
			if d.phase != draining {
				p.timer = d.after(wait, func() {
					p.timer = nil
					d.dispatch(p)
				})
			}
			return
		}
		p.queued = true
		ch.sends.submit(func() { d.deliver(p) })
	}
}

// pause holds up all sends of a channel whose credentials are refused, but for those of one place,
// which tries on. Called with mu held.
func (d *Dispatcher) pause(ch *channel, err error) {
	if !ch.paused {
		ch.paused = true
		d.log.Error("channel paused, its credentials are refused", "channel", ch.info.Channel, "err", err)
	}
}

// unpause lets the sends of a channel go on. Called with mu held.
func (d *Dispatcher) unpause(ch *channel) {
	if !ch.paused {
		return
	}
	d.log.Info("channel goes on, its credentials are accepted", "channel", ch.info.Channel)
	ch.paused, ch.prober = false, nil
	parked := ch.parked
	ch.parked = nil
	for _, p := range parked {
		p.parked = false
		d.dispatch(p)
	}
}

// leave gives the duty of trying on to the next place, if p had it. Called with mu held.
func (d *Dispatcher) leave(p *place) {
	ch := p.channel
	if ch.prober != p {
		return
	}
	ch.prober = nil
	if len(ch.parked) > 0 {
		next := ch.parked[0]
		ch.parked = ch.parked[1:]
		next.parked = false
		d.dispatch(next)
	}
}

// deliver makes one attempt to send the first delivery of a place.
func (d *Dispatcher) deliver(p *place) {
	d.mu.Lock()
	m, ch := p.queue[0], p.channel
	d.mu.Unlock()

	o, err := d.attempt(ch, m)
	settled := o.State == "" || d.settle(m, o)

	d.mu.Lock()
	defer d.mu.Unlock()
	p.queued = false
	if !settled || d.hard.Err() != nil {
		// Cut off: the journal gives what is not settled to the next Run.
		return
	}
	if o.State == Waiting {
		head := &p.queue[0]
		head.NextAt, head.Reason = o.NextAt, o.Reason
		head.Attempts++
	} else {
		p.queue[0] = Delivery{}
		p.queue = p.queue[1:]
		delete(d.deliveries, m.Message.ID)
		if d.scan != nil {
			d.scan.deliveries[m.Message.ID] = struct{}{}
		}
	}
	if !sameValue(p.channel.Adapter, ch.Adapter) {
		p.hurry() // the channel has another adapter since, of which this attempt tells nothing
		d.dispatch(p)
		return
	}
	ch = p.channel
	switch channels.KindOf(err) {
	case channels.Unauthorized:
		d.pause(ch, err)
	case channels.Transient, channels.Ambiguous, channels.RateLimited:
		if o.State == Delivered {
			d.unpause(ch)
		}
	default:
		d.unpause(ch)
	}
	d.dispatch(p)
}

// attempt sends once and decides what the result means. No state means that nothing was sent, because
// the delivery is settled already or the dispatcher was cut off.
func (d *Dispatcher) attempt(ch *channel, m Delivery) (Outcome, error) {
	if m.Message.Once {
		log := d.log.With("channel", ch.info.Channel, "delivery", m.Message.ID)
		if err := d.persist(log, func() error { return d.opts.Journal.Begin(d.hard, m.Message.ID) }); err != nil {
			return Outcome{}, nil
		}
	}
	if d.hard.Err() != nil {
		return Outcome{}, nil
	}
	ctx, cancel := context.WithTimeout(d.hard, d.opts.SendTimeout)
	defer cancel()
	began := time.Now()
	var receipt channels.Receipt
	err := guard(func() (err error) {
		receipt, err = ch.Adapter.Send(ctx, m.Message)
		return err
	})
	o := d.outcome(m, err)
	o.Receipt = receipt
	r := SendReport{
		Channel: ch.info.Channel, Delivery: m.Message.ID, State: o.State, Kind: channels.KindOf(err), Err: err,
		Took: time.Since(began), Age: time.Since(m.Created),
	}
	d.logSend(m, r)
	d.opts.Observer.SendEnded(r)
	return o, err
}

// outcome decides what becomes of a delivery after an attempt.
func (d *Dispatcher) outcome(m Delivery, err error) Outcome {
	if err == nil {
		return Outcome{State: Delivered}
	}
	failure, known := errors.AsType[*channels.Error](err)
	if !known {
		failure = &channels.Error{Kind: channels.Transient}
		if m.Message.Once {
			// Nothing is known of the error, so the message may have been accepted.
			failure.Kind = channels.Ambiguous
		}
	}
	o := Outcome{State: Waiting, Reason: failure.Kind.String()}
	n := m.Attempts + 1
	var wait time.Duration
	switch failure.Kind {
	case channels.Ambiguous:
		o.State = Unknown
	case channels.Permanent, channels.Gone:
		o.State = Dead
	case channels.QuotaExhausted:
		o.State = Held
	case channels.Unauthorized:
		wait = backoff(firstPause, maxPause, n, m.Message.ID)
	default:
		wait = backoff(firstSendRetry, maxSendRetry, n, m.Message.ID)
	}
	if o.State != Waiting {
		return o
	}
	if time.Since(m.Created) > d.opts.MaxDeliveryAge {
		return Outcome{State: Dead, Reason: "given up: " + o.Reason}
	}
	o.NextAt = time.Now().Add(max(wait, failure.RetryAfter))
	// This attempt was surely not accepted, but that says nothing of an earlier one.
	o.Certain = m.Message.Once && !m.Message.Uncertain
	return o
}

// settle records an outcome and reports whether that was done. When the dispatcher is cut off it tries
// a last time.
func (d *Dispatcher) settle(m Delivery, o Outcome) bool {
	log := d.log.With("channel", m.Message.To.Channel, "delivery", m.Message.ID)
	err := d.persist(log, func() error { return d.opts.Journal.Settle(d.hard, m.Message.ID, o) })
	if err == nil || errors.Is(err, ErrNotFound) {
		return true
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(d.hard), settleTimeout)
	defer cancel()
	if err := d.opts.Journal.Settle(ctx, m.Message.ID, o); err != nil && !errors.Is(err, ErrNotFound) {
		log.Error("outcome of a send not recorded", "state", string(o.State), "err", err)
		return false
	}
	return true
}

// TurnOf returns the ID of the turn that a delivery belongs to.
func TurnOf(delivery string) string {
	turn, _, _ := strings.Cut(delivery, "/")
	return turn
}

// logSend logs an attempt: a failure is worth a warning when it ends the delivery.
func (d *Dispatcher) logSend(m Delivery, r SendReport) {
	level := slog.LevelDebug
	switch {
	case r.Err == nil:
	case r.State == Waiting:
		level = slog.LevelInfo
	default:
		level = slog.LevelWarn
	}
	attrs := []slog.Attr{
		slog.String("channel", r.Channel), slog.String("session", string(m.Session)),
		slog.String("turn", TurnOf(m.Message.ID)), slog.String("delivery", m.Message.ID), slog.Int("attempt", m.Attempts+1),
		slog.String("state", string(r.State)), slog.Duration("took", r.Took),
	}
	if r.Err != nil {
		attrs = append(attrs, slog.Any("err", r.Err))
	}
	d.log.LogAttrs(context.Background(), level, "send ended", attrs...)
}
