package dispatch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"botd/agent"
	"botd/agent/usage"
	"botd/channels"
	"botd/sessionstore"
)

// turnPhase says who may still change what becomes of a turn.
type turnPhase uint8

const (
	// running: a command may revoke it.
	running turnPhase = iota
	// committing: it is too late to revoke; its outcome can be waited for.
	committing
	// revoked: a command has taken its entries; it writes nothing any more.
	revoked
)

// turn is one run over one or several messages.
type turn struct {
	id      string
	lane    *lane
	channel *channel
	// entries are answered together, on the reply handle of the last.
	entries []Entry
	started time.Time

	ctx    context.Context
	cancel context.CancelCauseFunc
	// done is closed when the turn has ended and its lane knows.
	done chan struct{}
	// phase is guarded by Dispatcher.mu.
	phase turnPhase

	// generation is read before the history, so that a reset in between wins.
	generation uint64
	// undo is the turn whose question is asked again, and whose items this one's replace.
	undo string
	ran  time.Duration
	// meter gathers what the run costs, nil where nobody counts.
	meter *usage.Meter
}

// Causes of a turn's end that are no failure of the engine.
var (
	errRevoked  = errors.New("turn was revoked by a command")
	errUnsent   = errors.New("message was taken back")
	errTimeout  = errors.New("turn took too long")
	errNoAnswer = errors.New("the engine ended without an answer")
)

// newTurn is called with mu held.
func (d *Dispatcher) newTurn(l *lane, entries []Entry) *turn {
	first := entries[0]
	t := &turn{
		id:   turnID(first, len(entries)),
		lane: l, channel: d.channel(first.Event.Address.Channel), entries: entries,
		started: time.Now(), done: make(chan struct{}),
	}
	t.ctx, t.cancel = context.WithCancelCause(d.hard)
	return t
}

// asked is the message whose reply handle takes the answer.
func (t *turn) asked() Entry { return t.entries[len(t.entries)-1] }

func (t *turn) attempts() int {
	n := 0
	for _, e := range t.entries {
		n = max(n, e.Attempts)
	}
	return n
}

// revoke takes the turn's entries away from it; false when it is too late. Called with mu held.
func (d *Dispatcher) revoke(t *turn) bool {
	if t.phase != running {
		return false
	}
	t.phase = revoked
	t.lane.turn = nil
	t.cancel(errRevoked)
	return true
}

// startCommit ends the time in which the turn can be revoked; false when it was.
func (d *Dispatcher) startCommit(t *turn) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if t.phase == revoked {
		return false
	}
	t.phase = committing
	return true
}

// runTurn runs a turn to its end and returns the entries that have to be answered by another one.
func (d *Dispatcher) runTurn(t *turn) (again []Entry) {
	defer t.cancel(nil)
	if gone := d.unsent(t); len(gone) > 0 {
		return d.drop(t, gone)
	}
	var answer *answer
	err := guard(func() (err error) {
		answer, err = d.answer(t)
		return err
	})
	t.ran = time.Since(t.started)
	switch {
	case t.revoked():
		d.ended(t, TurnReport{End: Dropped}, errRevoked)
		return nil
	case d.hard.Err() != nil:
		d.ended(t, TurnReport{End: Dropped}, d.hard.Err())
		return t.entries
	case err != nil:
		return d.failed(t, err)
	}
	return d.keep(t, answer)
}

func (t *turn) revoked() bool { return errors.Is(context.Cause(t.ctx), errRevoked) }

// answer is what a turn has to say and to remember.
type answer struct {
	agent.Final
	// told says that the items are in the session already.
	told bool
	// notice is said in place of the answer when there is none to give.
	notice *speech
}

// answer runs the engine, or finds the answer that an interrupted run of this turn has left.
func (d *Dispatcher) answer(t *turn) (*answer, error) {
	history, err := d.recall(t)
	if err != nil {
		return nil, err
	}
	if stored, ok := d.resume(t, history); ok {
		return stored, nil
	}
	var again *question
	if isRetry(t.entries[0]) {
		var none textKey
		if again, none = t.lastQuestion(history); again == nil {
			says := d.notice(t.asked(), none)
			return &answer{notice: &says}, nil
		}
		t.undo, history = again.turn, again.before
	}
	if says, err := d.overBudget(t); says != nil || err != nil {
		t.undo = ""
		return &answer{notice: says}, err
	}
	ctx, cancel := context.WithTimeoutCause(t.ctx, d.live.Load().TurnTimeout, errTimeout)
	defer cancel()
	stopTyping := d.startTyping(ctx, t)
	defer stopTyping()
	final, err := d.runEngine(ctx, t, history, again)
	if err != nil {
		return nil, err
	}
	if again != nil {
		final.Items = again.keep(final.Items)
	}
	return &answer{Final: *final}, nil
}

// recall loads what the session remembers.
func (d *Dispatcher) recall(t *turn) ([]sessionstore.Item, error) {
	var err error
	if t.generation, err = d.opts.Store.Generation(t.ctx, t.lane.id); err != nil {
		return nil, fmt.Errorf("read session: %w", err)
	}
	history, err := d.opts.Store.Items(t.ctx, t.lane.id, d.live.Load().MaxHistory)
	if err != nil {
		return nil, fmt.Errorf("read session: %w", err)
	}
	return history, nil
}

// resume finds the answer of this very turn in the history: its items were appended, and the process
// ended before the journal knew. The turn is cut down to the messages which that run answered.
func (d *Dispatcher) resume(t *turn, history []sessionstore.Item) (*answer, bool) {
	id, n := storedTurn(history, t.entries[0])
	if n == 0 {
		return nil, false
	}
	d.shorten(t, id, n)
	return &answer{Final: agent.Final{Text: answerText(history, id)}, told: true}, true
}

// shorten gives messages back that the turn does not answer after all.
func (d *Dispatcher) shorten(t *turn, id string, n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if t.phase == revoked {
		return
	}
	n = min(n, len(t.entries))
	t.lane.insert(t.entries[n:]...)
	t.id, t.entries = id, t.entries[:n]
}

// input turns the messages into what the engine reads. A retry among them says nothing.
func (t *turn) input(speakers []channels.Speaker) []agent.Message {
	var input []agent.Message
	for i, e := range t.entries {
		if isRetry(e) {
			continue
		}
		s := speakers[i]
		input = append(input, agent.Message{
			Speaker: agent.Speaker{ID: s.ID, Name: s.Name, Locale: s.Locale},
			At:      e.Event.Time,
			Parts:   describe(e.Event.Parts),
		})
	}
	return input
}

// describe turns parts into text; what is not text is named in brackets.
func describe(parts []channels.Part) []agent.Part {
	described := make([]agent.Part, 0, max(len(parts), 1))
	for _, p := range parts {
		text := p.Text
		if p.Type != channels.Text && p.Type != channels.Markdown {
			if text == "" && p.Media != nil {
				text = p.Media.Name
			}
			if text != "" {
				text = ": " + text
			}
			text = "[" + string(p.Type) + text + "]"
		}
		if text != "" {
			described = append(described, agent.Part{Text: text})
		}
	}
	if len(described) == 0 {
		described = append(described, agent.Part{Text: "[empty message]"})
	}
	return described
}

// profileTimeout bounds the look-up of a speaker's name: an answer without it is better than a late one.
const profileTimeout = 2 * time.Second

// speakers returns who said each message, having looked up the names of people in a group whom the
// events left unnamed.
func (d *Dispatcher) speakers(ctx context.Context, t *turn) []channels.Speaker {
	speakers := make([]channels.Speaker, len(t.entries))
	for i, e := range t.entries {
		speakers[i] = e.Event.Speaker
		if e.Event.Address.Kind != channels.Direct && e.Event.Speaker.Name == "" {
			speakers[i] = d.profile(ctx, e)
		}
	}
	return speakers
}

// profile returns the speaker of an event with what the platform adds to it.
func (d *Dispatcher) profile(ctx context.Context, e Entry) channels.Speaker {
	known := e.Event.Speaker
	p := d.channel(e.Event.Address.Channel).profiler
	if p == nil || e.Event.Address.User == "" {
		return known
	}
	ctx, cancel := context.WithTimeout(ctx, profileTimeout)
	defer cancel()
	var found channels.Speaker
	if err := guard(func() (err error) {
		found, err = p.Profile(ctx, e.Event.Address)
		return err
	}); err != nil {
		d.logFor(e).Debug("speaker not found", "err", err)
		return known
	}
	if known.Name == "" {
		known.Name = found.Name
	}
	if known.Locale == "" {
		known.Locale = found.Locale
	}
	return known
}

// runEngine runs the engine to its final event, showing what it writes as a preview. It answers the
// turn's messages, or the question that is to be asked again.
func (d *Dispatcher) runEngine(ctx context.Context, t *turn, history []sessionstore.Item, again *question) (final *agent.Final, err error) {
	asked := t.asked().Event
	var input []agent.Message
	if again != nil {
		input = again.messages
	} else {
		input = t.input(d.speakers(ctx, t))
	}
	view := d.newPreview(ctx, t)
	defer view.close()
	err = guard(func() error {
		for ev, err := range d.engine().Run(ctx, agent.Turn{
			ID: t.id, Session: t.lane.id, Agent: t.channel.Agent,
			History: history, Input: input,
			Group: shared(t.channel.Scope, asked.Address), Place: t.channel.info.Platform,
			Spent: t.spent(),
		}) {
			switch {
			case err != nil:
				return err
			case ev.Final != nil:
				final = ev.Final
				return nil
			case ev.Delta != "":
				view.write(ev.Delta)
			}
		}
		return errNoAnswer
	})
	if err != nil && errors.Is(context.Cause(ctx), errTimeout) {
		err = errTimeout
	}
	return final, err
}
