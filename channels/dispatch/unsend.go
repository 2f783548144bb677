package dispatch

import (
	"cmp"
	"errors"
	"slices"

	"botd/channels"
)

// tombstone is the ID under which the journal keeps that a message was taken back, for as long as it knows
// events: the message itself may come later than that, or again.
func tombstone(message string) string { return "unsend:" + message }

func messageID(in channels.Inbound) string { return cmp.Or(in.MessageID, in.ID) }

// takesBack reports whether an unsend is about a message.
func takesBack(unsend, e Entry) bool {
	return e.Event.Address.Channel == unsend.Event.Address.Channel && messageID(e.Event) == unsend.Event.Refers
}

// unsent returns the messages of a turn that were taken back before they had come, or come again. Where the
// journal does not tell, it knows of none.
func (d *Dispatcher) unsent(t *turn) []Entry {
	var gone []Entry
	for _, e := range t.entries {
		if d.knower == nil {
			break
		}
		known, err := d.knower.Known(t.ctx, e.Event.Address.Channel, tombstone(messageID(e.Event)))
		if err != nil {
			d.logFor(e).Warn("not known whether the message was taken back", "err", err)
		}
		if known {
			gone = append(gone, e)
		}
	}
	return gone
}

// drop consumes messages of a turn that were taken back, silently, and returns those that are left.
func (d *Dispatcher) drop(t *turn, gone []Entry) (again []Entry) {
	if !d.startCommit(t) {
		d.ended(t, TurnReport{End: Dropped}, errRevoked)
		return nil
	}
	r := TurnResult{Session: t.lane.id, Turn: turnID(gone[0], 1), Consumed: seqs(gone)}
	err := d.writeNotice(r, gone)
	d.ended(t, TurnReport{End: Dropped}, cmp.Or(err, errUnsent))
	switch {
	case errors.Is(err, ErrConsumed):
		d.recheck(t.entries)
		return nil
	case err != nil:
		return t.entries
	}
	return slices.DeleteFunc(slices.Clone(t.entries), func(e Entry) bool {
		return slices.ContainsFunc(gone, func(g Entry) bool { return g.Seq == e.Seq })
	})
}
