package boltstore

import (
	"context"
	"encoding/json"
	"fmt"

	"botd/agent"
	"botd/channels/dispatch"
	"botd/sessionstore"
)

// Commit implements dispatch.Journal. A reply whose ID is in the outbox already gives ErrConsumed too.
func (db *DB) Commit(ctx context.Context, r dispatch.TurnResult) error {
	if err := db.commitTurn(ctx, r); err != nil {
		return fmt.Errorf("commit turn: %w", err)
	}
	return nil
}

func (db *DB) commitTurn(ctx context.Context, r dispatch.TurnResult) error {
	if err := r.Session.Validate(); err != nil {
		return err
	}
	if err := (sessionstore.Batch{Turn: r.Turn, Items: r.Items}).Validate(); err != nil {
		return err
	}
	if err := sessionstore.ValidateTallies(r.Tallies); err != nil {
		return err
	}
	messages, err := encodeMessages(r.Replies)
	if err != nil {
		return err
	}
	size := itemsSize(r.Items) + talliesSize(r.Tallies)
	for _, m := range messages {
		size += len(m)
	}
	return db.write(ctx, size, func(tx *writeTx) error {
		sid, h, err := tx.session(r.Session)
		if err != nil {
			return err
		}
		if err := db.mayCommit(tx, sid, &h, r); err != nil {
			return err
		}
		if err := db.commitSession(tx, sid, h, r); err != nil {
			return err
		}
		if err := tx.consume(r.Consumed, r.Dead); err != nil {
			return err
		}
		if err := tx.enqueue(r, messages); err != nil {
			return err
		}
		return db.addTallies(tx, r.Tallies)
	})
}

// encodeMessages encodes the messages of a turn's replies.
func encodeMessages(replies []dispatch.Delivery) ([][]byte, error) {
	seen := make(map[string]bool, len(replies))
	messages := make([][]byte, len(replies))
	for i, d := range replies {
		if d.Message.ID == "" || seen[d.Message.ID] {
			return nil, fmt.Errorf("reply %d: a reply must have an ID of its own", i)
		}
		seen[d.Message.ID] = true
		var err error
		if messages[i], err = json.Marshal(d.Message); err != nil {
			return nil, fmt.Errorf("reply %d: %w", i, err)
		}
	}
	return messages, nil
}

// mayCommit reports whether the turn is still wanted. It writes nothing.
func (db *DB) mayCommit(tx *writeTx, sid uint64, h *header, r dispatch.TurnResult) error {
	if !r.Clear && h.generation != r.Generation {
		return sessionstore.ErrStale
	}
	if r.Undo != "" && !tx.isNewest(sid, h, r.Undo) {
		return fmt.Errorf("undo turn %s: %w", r.Undo, sessionstore.ErrChanged)
	}
	for _, seq := range r.Consumed {
		if tx.get(inbBucket, u64(seq)) == nil {
			return fmt.Errorf("entry %d: %w", seq, dispatch.ErrConsumed)
		}
	}
	for _, d := range r.Replies {
		if _, ok := db.outbox.find(d.Message.ID, &tx.outbox); ok {
			return fmt.Errorf("reply %s is in the outbox: %w", d.Message.ID, dispatch.ErrConsumed)
		}
	}
	return nil
}

// commitSession changes the session as the turn demands.
func (db *DB) commitSession(tx *writeTx, sid uint64, h header, r dispatch.TurnResult) error {
	appends := len(r.Items) > 0 && (r.Clear || !tx.appended(sid, &h, r.Turn))
	if !appends && !r.Clear && r.Undo == "" && r.Usage == (agent.Usage{}) {
		return nil
	}
	sid, h, err := tx.create(sid, h, r.Session)
	if err != nil {
		return err
	}
	if r.Clear {
		if err := db.clear(tx, sid, &h); err != nil {
			return err
		}
	}
	if r.Undo != "" {
		if err := tx.undo(sid, &h, r.Undo); err != nil {
			return err
		}
	}
	if appends {
		if err := tx.append(sid, &h, r.Turn, r.Items); err != nil {
			return err
		}
	}
	h.usage = h.usage.Add(r.Usage)
	return tx.save(sid, &h)
}

// consume takes entries out of the inbox; those of a dead turn become dead letters.
func (tx *writeTx) consume(seqs []uint64, dead string) error {
	for _, seq := range seqs {
		key := u64(seq)
		if dead != "" {
			if err := tx.bury(key, dead); err != nil {
				return err
			}
		}
		if err := tx.delete(inbBucket, key); err != nil {
			return err
		}
	}
	return nil
}

// bury keeps an entry as a dead letter.
func (tx *writeTx) bury(key []byte, reason string) error {
	rec := tx.get(inbBucket, key)
	if rec == nil { // named twice
		return nil
	}
	e, err := decodeInbox(key, rec)
	if err != nil {
		return err
	}
	l := deadLetter{at: tx.now, reason: reason, inboxRecord: e}
	return tx.putFor(e.session, dlqBucket, key, l.encode(key))
}

// enqueue adds the turn's replies to the outbox.
func (tx *writeTx) enqueue(r dispatch.TurnResult, messages [][]byte) error {
	for i, d := range r.Replies {
		seq, err := tx.next(outBucket)
		if err != nil {
			return err
		}
		rec := outboxRecord{
			state: stateWaiting, uncertain: d.Message.Uncertain, next: d.NextAt, created: tx.now,
			id: d.Message.ID, session: d.Session, message: messages[i],
		}
		if rec.session == "" {
			rec.session = r.Session
		}
		if err := tx.saveDelivery(u64(seq), &rec); err != nil {
			return err
		}
	}
	return nil
}
