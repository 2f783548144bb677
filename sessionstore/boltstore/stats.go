package boltstore

import (
	"context"
	"fmt"
	"time"

	"botd/channels/dispatch"
)

// deadLetter is an entry that was set aside; reason is why, the entry's own tells of its last attempt.
type deadLetter struct {
	at     time.Time
	reason string
	inboxRecord
}

func (l *deadLetter) encode(key []byte) []byte {
	b := newRecord(len(l.event) + len(l.session) + len(l.reason) + len(l.inboxRecord.reason) + 48)
	b = appendTime(b, l.at)
	b = appendBytes(b, l.reason)
	// The entry keeps its own seal inside, as it was in the inbox.
	return seal(key, append(b, l.inboxRecord.encode(key)...))
}

func decodeDeadLetter(key, rec []byte) (l deadLetter, err error) {
	payload, err := unseal(key, rec)
	if err != nil {
		return deadLetter{}, err
	}
	r := reader{b: payload}
	l.at, l.reason = r.time(), string(r.bytes())
	if err := r.err(key); err != nil {
		return deadLetter{}, err
	}
	l.inboxRecord, err = decodeInbox(key, r.b)
	return l, err
}

// Stats implements dispatch.Journal.
func (db *DB) Stats(ctx context.Context) (st dispatch.Stats, err error) {
	err = db.view(ctx, func(tx *readTx) error {
		st = dispatch.Stats{}
		st.Pending = tx.bucket(inbBucket).Stats().KeyN
		st.DeadEvents = tx.bucket(dlqBucket).Stats().KeyN
		if key, rec := tx.bucket(inbBucket).Cursor().First(); key != nil {
			e, err := decodeInbox(key, tx.plain(inbBucket, key, rec))
			if err != nil {
				return err
			}
			st.Oldest = e.received
		}
		c := tx.bucket(kepBucket).Cursor()
		for key, rec := c.First(); key != nil; key, rec = c.Next() {
			switch d, err := decodeOutbox(key, tx.plain(kepBucket, key, rec)); {
			case err != nil:
				return err
			case d.state == stateUnknown:
				st.Unknown++
			case d.state == stateDead:
				st.Dead++
			}
		}
		return nil
	})
	if err != nil {
		return dispatch.Stats{}, fmt.Errorf("read journal statistics: %w", err)
	}
	db.outbox.count(&st)
	return st, nil
}
