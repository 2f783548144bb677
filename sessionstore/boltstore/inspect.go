package boltstore

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	bolt "go.etcd.io/bbolt"

	"botd/channels/dispatch"
)

// page calls take for the records of a bucket behind a number, until it has had limit of them.
func page(b *bolt.Bucket, after uint64, limit int, take func(key, rec []byte) (taken bool, err error)) error {
	c := b.Cursor()
	n := 0
	for key, rec := c.Seek(u64(after + 1)); key != nil && n < limit; key, rec = c.Next() {
		taken, err := take(key, rec)
		if err != nil {
			return err
		}
		if taken {
			n++
		}
	}
	return nil
}

// Outbox implements dispatch.Inspector.
func (db *DB) Outbox(ctx context.Context, state dispatch.State, after uint64, limit int) (list []dispatch.Kept, err error) {
	code, ok := stateCodes[state]
	if !ok {
		return nil, fmt.Errorf("list deliveries: no such state: %q", state)
	}
	b := outBucket
	if code == stateUnknown || code == stateDead {
		b = kepBucket
	}
	err = db.view(ctx, func(tx *readTx) error {
		return page(tx.bucket(b), after, limit, func(key, rec []byte) (bool, error) {
			d, err := decodeOutbox(key, tx.plain(b, key, rec))
			if err != nil || d.state != code {
				return false, err
			}
			out, err := d.delivery()
			list = append(list, dispatch.Kept{Seq: binary.BigEndian.Uint64(key), Delivery: out, State: state, Settled: d.settled})
			return true, err
		})
	})
	if err != nil {
		return nil, fmt.Errorf("list deliveries: %w", err)
	}
	return list, nil
}

// DeadLetters implements dispatch.Inspector.
func (db *DB) DeadLetters(ctx context.Context, after uint64, limit int) (list []dispatch.DeadLetter, err error) {
	err = db.view(ctx, func(tx *readTx) error {
		return page(tx.bucket(dlqBucket), after, limit, func(key, rec []byte) (bool, error) {
			l, err := decodeDeadLetter(key, tx.plain(dlqBucket, key, rec))
			if err != nil {
				return false, err
			}
			e, err := l.entry(binary.BigEndian.Uint64(key))
			list = append(list, dispatch.DeadLetter{Entry: e, Dead: l.at, DeadReason: l.reason, LastError: l.inboxRecord.reason})
			return true, err
		})
	})
	if err != nil {
		return nil, fmt.Errorf("list dead letters: %w", err)
	}
	return list, nil
}

// Release implements dispatch.Inspector.
func (db *DB) Release(ctx context.Context, seq uint64) error {
	if err := db.write(ctx, 0, func(tx *writeTx) error { return db.release(tx, u64(seq)) }); err != nil {
		return fmt.Errorf("release delivery %d: %w", seq, err)
	}
	return nil
}

func (db *DB) release(tx *writeTx, key []byte) error {
	from := outBucket
	rec := tx.get(outBucket, key)
	if rec == nil {
		from = kepBucket
		if rec = tx.get(kepBucket, key); rec == nil {
			return dispatch.ErrNotFound
		}
	}
	d, err := decodeOutbox(key, rec)
	if err != nil {
		return err
	}
	if d.state == stateWaiting {
		return dispatch.ErrNotFound
	}
	if from == kepBucket {
		if _, taken := db.outbox.find(d.id, &tx.outbox); taken {
			return fmt.Errorf("its ID %s is in the outbox again: %w", d.id, dispatch.ErrNotFound)
		}
		if err := tx.delete(kepBucket, key); err != nil {
			return err
		}
	}
	d.uncertain = d.uncertain || d.state == stateUnknown
	d.state, d.next, d.settled = stateWaiting, time.Time{}, time.Time{}
	return tx.saveDelivery(key, &d)
}

// Revive implements dispatch.Inspector.
func (db *DB) Revive(ctx context.Context, seq uint64) (dispatch.Entry, error) {
	var revived inboxRecord
	var next uint64
	err := db.write(ctx, 0, func(tx *writeTx) error {
		old := u64(seq)
		rec := tx.get(dlqBucket, old)
		if rec == nil {
			return dispatch.ErrNotFound
		}
		l, err := decodeDeadLetter(old, rec)
		if err != nil {
			return err
		}
		if next, err = tx.next(inbBucket); err != nil {
			return err
		}
		revived = inboxRecord{received: l.received, session: l.session, event: append([]byte(nil), l.event...)}
		key := u64(next)
		if err := tx.putFor(l.session, inbBucket, key, revived.encode(key)); err != nil {
			return err
		}
		return tx.delete(dlqBucket, old)
	})
	var e dispatch.Entry
	if err == nil {
		e, err = revived.entry(next)
	}
	if err != nil {
		return dispatch.Entry{}, fmt.Errorf("revive dead letter %d: %w", seq, err)
	}
	return e, nil
}
