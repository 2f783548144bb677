package dispatch

import (
	"slices"
	"time"

	"botd/channels"
	"botd/sessionstore"
)

// maxWindows bounds how long a person who never pauses delays the turn, in merge windows.
const maxWindows = 5

// maxInterrupts bounds how often such a person has the answer begun anew, see Interrupt.
const maxInterrupts = 5

// lane runs the turns of one session, one at a time and in order. It exists while it has something to
// do. All fields are guarded by Dispatcher.mu.
type lane struct {
	id sessionstore.ID
	// pending are the messages that wait, by Seq.
	pending []Entry
	// turn is the one that runs, nil when none does or when a command has taken its entries away.
	turn *turn
	// queued is set from submitting the lane to the slots until it is its turn.
	queued bool
	// commands wait; commanding is set while a goroutine works through them. No turn starts meanwhile.
	commands   []*command
	commanding bool
	// notBefore delays the next turn after a failed one.
	notBefore time.Time
	timer     *time.Timer
}

// assign gives entries to their lanes. Called with mu held.
func (d *Dispatcher) assign(entries []Entry) {
	var touched []*lane
	for _, e := range entries {
		if _, ok := d.entries[e.Seq]; ok {
			continue
		}
		ch := d.channel(e.Event.Address.Channel)
		if ch == nil {
			d.logFor(e).Warn("event waits for a channel that is not configured")
			continue
		}
		d.entries[e.Seq] = struct{}{}
		l := d.lane(e.Session)
		switch kind := ch.command(e.Event); kind {
		case notCommand, commandRetry:
			l.insert(e)
			d.rejoin(l, e)
		default:
			l.commands = append(l.commands, &command{kind: kind, entry: &e})
		}
		touched = append(touched, l)
	}
	for _, l := range touched {
		d.schedule(l)
	}
}

// lane returns the lane of a session. Called with mu held.
func (d *Dispatcher) lane(id sessionstore.ID) *lane {
	l, ok := d.lanes[id]
	if !ok {
		l = &lane{id: id}
		d.lanes[id] = l
	}
	return l
}

// insert puts messages where their Seq belongs: two Accepts may arrive here in the other order.
func (l *lane) insert(entries ...Entry) {
	for _, e := range entries {
		at, _ := slices.BinarySearchFunc(l.pending, e.Seq, func(p Entry, seq uint64) int {
			switch {
			case p.Seq < seq:
				return -1
			case p.Seq > seq:
				return 1
			}
			return 0
		})
		l.pending = slices.Insert(l.pending, at, e)
	}
}

// schedule starts what the lane can do now, arms its timer for what it can do later, and removes a lane
// with nothing to do. Called with mu held after every change.
func (d *Dispatcher) schedule(l *lane) {
	if d.phase == draining {
		return
	}
	if len(l.commands) > 0 && !l.commanding {
		l.commanding = true
		d.commands.Go(func() { d.runCommands(l) })
	}
	if l.commanding || l.turn != nil || l.queued {
		return
	}
	d.stop(l.timer)
	l.timer = nil
	if len(l.pending) == 0 {
		delete(d.lanes, l.id)
		return
	}
	if wait := time.Until(d.startTime(l)); wait > 0 {
		l.timer = d.after(wait, func() {
			l.timer = nil
			d.schedule(l)
		})
		return
	}
	l.queued = true
	d.turns.submit(func() { d.step(l) })
}

// startTime returns when the next turn may start: after the backoff of the last one, and when nobody
// can join it any more. Called with mu held.
func (d *Dispatcher) startTime(l *lane) time.Time {
	first := l.pending[0]
	window := d.channel(first.Event.Address.Channel).MergeWindow
	n := d.joining(l.pending)
	if window == 0 || n < len(l.pending) || isRetry(l.pending[n-1]) {
		return l.notBefore
	}
	at := l.pending[n-1].Received.Add(window)
	if limit := first.Received.Add(maxWindows * window); limit.Before(at) {
		at = limit
	}
	if at.Before(l.notBefore) {
		return l.notBefore
	}
	return at
}

// joining returns how many of the pending messages the next turn answers: those that follow the first
// without anybody else's in between, so that the order stays as it was said. A retry joins the person's
// message before it, and ends what joins.
func (d *Dispatcher) joining(pending []Entry) int {
	ch := d.channel(pending[0].Event.Address.Channel)
	merges := ch.MergeWindow > 0 || ch.MidRun == Interrupt
	n := 1
	for n < len(pending) && !isRetry(pending[n-1]) && sameConversation(pending[0], pending[n]) {
		if !merges && !isRetry(pending[n]) {
			break
		}
		n++
	}
	return n
}

// rejoin ends the running turn when what has just arrived would have joined it and is not to wait: a
// retry, and with Interrupt any message. Both are then answered together, anew. Called with mu held.
func (d *Dispatcher) rejoin(l *lane, e Entry) {
	t := l.turn
	if t == nil || e.Seq < t.asked().Seq {
		return
	}
	if !isRetry(e) && (t.channel.MidRun != Interrupt || len(t.entries) > maxInterrupts) {
		return
	}
	together := slices.Concat(t.entries, l.pending)
	if n := d.joining(together); n <= len(t.entries) || together[n-1].Seq < e.Seq || !d.revoke(t) {
		return
	}
	l.insert(t.entries...)
}

// sameConversation reports whether two messages are known to be the same person's at the same place.
func sameConversation(a, b Entry) bool {
	return a.Event.Address.Place() == b.Event.Address.Place() && samePerson(a, b)
}

// samePerson reports whether two messages are known to be the same person's. Two people whom the
// platform does not tell are not.
func samePerson(a, b Entry) bool {
	x, y := a.Event.Address, b.Event.Address
	if x.Kind == channels.Direct && y.Kind == channels.Direct && x.Place() == y.Place() {
		return true
	}
	return x.Channel == y.Channel && x.User != "" && x.User == y.User
}

// step runs one turn of a lane.
func (d *Dispatcher) step(l *lane) {
	t := d.take(l)
	if t == nil {
		return
	}
	again := d.runTurn(t)
	d.mu.Lock()
	defer d.mu.Unlock()
	defer close(t.done)
	if t.phase == revoked {
		return
	}
	l.turn = nil
	l.insert(again...)
	d.schedule(l)
}

// take makes a turn of the lane's first messages, nil when there is no reason for one any more.
func (d *Dispatcher) take(l *lane) *turn {
	d.mu.Lock()
	defer d.mu.Unlock()
	l.queued = false
	if d.phase == draining {
		return nil
	}
	if l.commanding || len(l.pending) == 0 {
		d.schedule(l)
		return nil
	}
	n := d.joining(l.pending)
	l.turn = d.newTurn(l, slices.Clone(l.pending[:n]))
	l.pending = slices.Delete(l.pending, 0, n)
	return l.turn
}
