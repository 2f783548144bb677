package dispatch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"botd/channels"
	"botd/sessionstore"
)

// Waits between attempts to write: the journal is ours and near as a rule, so they are short.
const (
	firstWriteRetry = 100 * time.Millisecond
	maxWriteRetry   = 5 * time.Second
)

// speech is something to say in answer to an event.
type speech struct {
	to   Entry
	part channels.Part
}

// outbound returns an empty message in answer to an event. In company it shows whom it answers.
func outbound(id string, e Entry) channels.Outbound {
	return channels.Outbound{
		ID: id, To: e.Event.Address, Reply: e.Event.Reply,
		Quote: e.Event.Address.Kind != channels.Direct,
	}
}

// compose turns speeches into the deliveries of a turn. A speech that its platform shows as nothing is
// replaced by a notice that says so.
func (d *Dispatcher) compose(r *TurnResult, speeches ...speech) error {
	r.Replies = nil
	for _, s := range speeches {
		sends, err := d.render(s)
		if err == nil && len(sends) == 0 {
			sends, err = d.render(d.notice(s.to, textEmpty))
		}
		if err != nil {
			return fmt.Errorf("compose reply: %w", err)
		}
		for _, m := range sends {
			m.ID = r.Turn + "/" + strconv.Itoa(len(r.Replies))
			r.Replies = append(r.Replies, Delivery{Message: m, Session: r.Session, Created: time.Now()})
		}
	}
	return nil
}

func (d *Dispatcher) render(s speech) (sends []channels.Outbound, err error) {
	if strings.TrimSpace(s.part.Text) == "" {
		return nil, nil
	}
	m := outbound("", s.to)
	m.Parts = []channels.Part{s.part}
	err = guard(func() error {
		sends = d.channel(s.to.Event.Address.Channel).Adapter.Compose(m)
		return nil
	})
	return sends, err
}

// write makes a result durable: it tries until the result is written, is refused for good, or the
// dispatcher is cut off. Then the entries are done with and the replies are on their way. The error is
// ErrConsumed, one of the session store's, or that of the cut.
func (d *Dispatcher) write(r TurnResult, entries []Entry, remember bool) error {
	d.reserve(r.Replies)
	err := d.persist(d.logAbout(r.Session, entries), func() error {
		if remember && !d.atomic {
			if err := d.remember(r); err != nil {
				return err
			}
		}
		return d.opts.Journal.Commit(d.hard, d.forJournal(r))
	})
	d.mu.Lock()
	defer d.mu.Unlock()
	d.unreserve(r.Replies)
	if err != nil {
		return err
	}
	d.forget(entries...)
	d.enqueue(r.Replies)
	return nil
}

// forJournal returns what the journal is to know of a result. One that could keep sessions, but does not
// keep these, must neither store the items a second time nor judge by its own generations.
func (d *Dispatcher) forJournal(r TurnResult) TurnResult {
	if !d.atomic {
		r.Items, r.Clear, r.Undo, r.Generation = nil, false, "", 0
	}
	return r
}

// remember changes a session that is kept outside of the journal. It may be repeated: an append is
// known by its turn, and a session cleared twice is as empty.
func (d *Dispatcher) remember(r TurnResult) error {
	if r.Clear {
		return d.opts.Store.Clear(d.hard, r.Session)
	}
	if r.Undo != "" {
		if err := d.takeBack(r); err != nil {
			return err
		}
	}
	if len(r.Items) == 0 {
		return nil
	}
	return d.opts.Store.Append(d.hard, r.Session, sessionstore.Batch{
		Turn: r.Turn, Generation: r.Generation, Items: r.Items,
	})
}

// writeNotice writes a result that adds nothing to the session, and so is as true after it was cleared.
func (d *Dispatcher) writeNotice(r TurnResult, entries []Entry) error {
	for {
		err := d.persist(d.logAbout(r.Session, entries), func() (err error) {
			r.Generation, err = d.opts.Store.Generation(d.hard, r.Session)
			return err
		})
		if err == nil {
			err = d.write(r, entries, r.Clear || r.Undo != "")
		}
		if !errors.Is(err, sessionstore.ErrStale) {
			return err
		}
	}
}

// persist repeats a write until it is done or refused for good, or the dispatcher is cut off.
func (d *Dispatcher) persist(log *slog.Logger, write func() error) error {
	for attempt := 1; ; attempt++ {
		err := write()
		if err == nil || refused(err) {
			return err
		}
		if d.hard.Err() != nil {
			return d.hard.Err()
		}
		log.Error("journal or session store not written, trying again", "attempt", attempt, "err", err)
		if err := sleep(d.hard, backoff(firstWriteRetry, maxWriteRetry, attempt, "write")); err != nil {
			return err
		}
	}
}

// refused reports whether repeating a write cannot change its outcome.
func refused(err error) bool {
	for _, e := range []error{
		ErrConsumed, ErrNotFound, sessionstore.ErrStale, sessionstore.ErrChanged,
		sessionstore.ErrInvalidItem, sessionstore.ErrTooLarge, sessionstore.ErrInvalidID,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// recheck lets go of entries of which at least one turned out to be no longer pending, and takes up
// again those that still are, with whatever else has come into the journal meanwhile.
func (d *Dispatcher) recheck(entries []Entry) {
	d.mu.Lock()
	d.forget(entries...)
	d.mu.Unlock()
	err := d.persist(d.logFor(entries[0]), func() error { return d.read(d.hard, working) })
	if err != nil && !errors.Is(err, context.Canceled) {
		d.log.Error("journal not read again", "err", err)
	}
}

// logAbout returns a logger that names what a write is about; an admin's reset may cover no event.
func (d *Dispatcher) logAbout(id sessionstore.ID, entries []Entry) *slog.Logger {
	if len(entries) > 0 {
		return d.logFor(entries[0])
	}
	return d.log.With("session", string(id))
}

func seqs(entries []Entry) []uint64 {
	s := make([]uint64, len(entries))
	for i, e := range entries {
		s[i] = e.Seq
	}
	return s
}
