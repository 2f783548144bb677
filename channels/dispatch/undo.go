package dispatch

import (
	"fmt"
	"slices"
	"strings"

	"botd/sessionstore"
)

// undoNote begins the reason that the journal keeps of a command which takes a turn back from a session
// kept elsewhere. Such a session changes item by item; should the process end on the way, the note says
// which turn was meant, so that the command does not go on to the one before. Only a retry that is
// interrupted so and then stopped, or given up, can leave a question without its answer behind.
const undoNote = "undoing turn "

// undone returns the turn that an undo takes back, "" when there is none. An undo that takes back
// messages not yet answered leaves the session alone, unless one of them has its answer there already,
// left by a run that was interrupted. Somebody else's answer of that kind is still to be said first.
func (d *Dispatcher) undone(l *lane, c *command, covered []Entry) (turn string, err error) {
	if noted, ok := strings.CutPrefix(c.entry.Reason, undoNote); ok {
		return noted, nil
	}
	var history []sessionstore.Item
	err = d.persist(d.logFor(*c.entry), func() (err error) {
		history, err = d.opts.Store.Items(d.hard, l.id, 1)
		return err
	})
	if err != nil || len(history) == 0 {
		return "", err
	}
	turn = history[0].Turn
	stored := func(e Entry) bool { return turnSize(e, turn) > 0 }
	if len(covered) > 0 && !slices.ContainsFunc(covered, stored) {
		return "", nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if slices.ContainsFunc(l.pending, stored) {
		return "", nil
	}
	return turn, nil
}

// undoText is what the giver of an undo is told.
func undoText(covered []Entry, r TurnResult) textKey {
	switch {
	case len(covered) > 0:
		return textTakenBack
	case r.Undo != "":
		return textUndone
	}
	return textNothingToUndo
}

// takeBack removes the items of the turn to be undone from a session that is kept outside of the
// journal, the newest first. It may be repeated: a turn of which nothing is left has been removed.
// ErrChanged: another one's items have come after it.
func (d *Dispatcher) takeBack(r TurnResult) error {
	ofTurn := func(it sessionstore.Item) bool { return it.Turn == r.Undo }
	for noted := false; ; {
		history, err := d.opts.Store.Items(d.hard, r.Session, d.live.Load().MaxHistory)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(history, ofTurn) {
			return nil
		}
		if !ofTurn(history[len(history)-1]) {
			return fmt.Errorf("undo turn %s: %w", r.Undo, sessionstore.ErrChanged)
		}
		if !noted {
			if err := d.opts.Journal.Fail(d.hard, r.Consumed[len(r.Consumed)-1:], undoNote+r.Undo); err != nil {
				return err
			}
			noted = true
		}
		it, err := d.opts.Store.Pop(d.hard, r.Session)
		if err != nil {
			return err
		}
		if ofTurn(it) {
			continue
		}
		// Another program has appended since: what it said goes back to where it was.
		err = d.opts.Store.Append(d.hard, r.Session, sessionstore.Batch{Generation: r.Generation, Items: []sessionstore.Item{it}})
		if err != nil {
			return err
		}
	}
}
