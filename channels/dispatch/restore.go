package dispatch

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"botd/sessionstore"
)

// maxCounted bounds the items that are read to tell how many messages a session holds.
const maxCounted = 10_000

// countMessages returns how many messages of people and of the agent a session holds, 0 when they are too
// many to be counted.
func (d *Dispatcher) countMessages(l *lane, c *command) (n int, err error) {
	var items []sessionstore.Item
	err = d.persist(d.logFor(*c.entry), func() (err error) {
		items, err = d.opts.Store.Items(d.hard, l.id, maxCounted+1)
		return err
	})
	if err != nil || len(items) > maxCounted {
		return 0, err
	}
	for _, it := range items {
		if role, _ := readMessage(it); role == "user" || role == "assistant" {
			n++
		}
	}
	return n, nil
}

// forgotten is what the giver of a reset is told: how much is forgotten and, where it can be brought back,
// how. It is called before the session is cleared.
func (d *Dispatcher) forgotten(l *lane, c *command) (speech, error) {
	says := d.notice(*c.entry, textReset)
	n, err := d.countMessages(l, c)
	if err != nil || n == 0 {
		return says, err
	}
	texts := catalogue(d.language(*c.entry))
	if n > 1 {
		says.part.Text = fmt.Sprintf(texts[textResetCount], n)
	}
	if d.archiver == nil {
		return says, nil
	}
	offer := texts[textRestoreSoon]
	if days := int(d.archiver.ArchiveTime() / (24 * time.Hour)); days > 1 {
		offer = fmt.Sprintf(texts[textRestoreDays], days)
	}
	says.part.Text += "\n" + offer
	return says, nil
}

// restoreNote is what the journal keeps, as the reason of an entry, of a restore that has begun: restoring
// once more would swap what is restored for what it replaced.
const restoreNote = "restoring generation %d in generation %d"

// restored brings back what the session held before it was cleared last, and returns what the giver of
// the restore is told.
func (d *Dispatcher) restored(l *lane, c *command) (says speech, err error) {
	if d.archiver == nil {
		return d.notice(*c.entry, textNothingToRestore), nil
	}
	var done, swapped bool
	err = d.persist(d.logFor(*c.entry), func() (err error) {
		done, swapped, err = d.restore(l.id, c.entry)
		return err
	})
	if err != nil || !done {
		return d.notice(*c.entry, textNothingToRestore), err
	}
	n, err := d.countMessages(l, c)
	texts := catalogue(d.language(*c.entry))
	says = d.notice(*c.entry, textRestored)
	says.part.Text = fmt.Sprintf(texts[textRestored], n)
	if swapped {
		says.part.Text += "\n" + texts[textSetAside]
	}
	return says, err
}

// restore is one attempt of restored. It may be repeated: a restore that was noted and whose archive is no
// longer there was done. It reports whether the session was restored and has something else set aside.
func (d *Dispatcher) restore(id sessionstore.ID, e *Entry) (done, swapped bool, err error) {
	now, err := d.opts.Store.Generation(d.hard, id)
	if err != nil {
		return false, false, err
	}
	archives, err := d.archiver.Archives(d.hard, id)
	if err != nil {
		return false, false, err
	}
	var wanted, began uint64
	if _, err := fmt.Sscanf(e.Reason, restoreNote, &wanted, &began); err != nil {
		if len(archives) == 0 {
			return false, false, nil
		}
		wanted, began = archives[0].Generation, now
		note := fmt.Sprintf(restoreNote, wanted, began)
		if err := d.opts.Journal.Fail(d.hard, []uint64{e.Seq}, note); err != nil {
			return false, false, err
		}
		e.Reason = note
	}
	if slices.ContainsFunc(archives, func(a sessionstore.Archive) bool { return a.Generation == wanted }) {
		err := d.archiver.Restore(d.hard, id, wanted)
		if errors.Is(err, sessionstore.ErrNoArchive) {
			return false, false, nil
		}
		if err != nil {
			return false, false, err
		}
		if archives, err = d.archiver.Archives(d.hard, id); err != nil {
			return false, false, err
		}
	} else if now == began {
		return false, false, nil // forgotten meanwhile
	}
	return true, len(archives) > 0 && archives[0].Generation == began, nil
}
