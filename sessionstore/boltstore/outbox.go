package boltstore

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"iter"
	"time"

	"botd/channels/dispatch"
	"botd/sessionstore"
)

// The states of a delivery as stored: add, never renumber.
const (
	stateWaiting byte = 1
	stateHeld    byte = 2
	stateUnknown byte = 3
	stateDead    byte = 4
)

var stateCodes = map[dispatch.State]byte{
	dispatch.Waiting: stateWaiting, dispatch.Held: stateHeld, dispatch.Unknown: stateUnknown, dispatch.Dead: stateDead,
}

// outboxRecord is a delivery as stored; the message stays encoded.
type outboxRecord struct {
	state     byte
	uncertain bool
	// next is when it is due while it waits.
	next, created time.Time
	// settled is when it was settled for good.
	settled  time.Time
	attempts int
	id       string
	session  sessionstore.ID
	reason   string
	message  []byte
}

func (d *outboxRecord) encode(key []byte) []byte {
	b := newRecord(len(d.message) + len(d.id) + len(d.session) + len(d.reason) + 48)
	b = append(b, d.state)
	if d.uncertain {
		b = append(b, 1)
	} else {
		b = append(b, 0)
	}
	b = appendTime(appendTime(appendTime(b, d.next), d.created), d.settled)
	b = binary.AppendUvarint(b, uint64(d.attempts))
	b = appendBytes(b, d.id)
	b = appendBytes(b, d.session)
	b = appendBytes(b, d.reason)
	return seal(key, append(b, d.message...))
}

// decodeOutbox takes a record apart; message is part of rec.
func decodeOutbox(key, rec []byte) (outboxRecord, error) {
	payload, err := unseal(key, rec)
	if err != nil {
		return outboxRecord{}, err
	}
	r := reader{b: payload}
	d := outboxRecord{
		state: r.byte(), uncertain: r.byte() == 1, next: r.time(), created: r.time(), settled: r.time(),
		attempts: int(r.uvarint()), id: string(r.bytes()), session: sessionstore.ID(r.bytes()), reason: string(r.bytes()),
	}
	d.message = r.b
	return d, r.err(key)
}

func (d *outboxRecord) ref(key []byte) outboxRef {
	return outboxRef{id: d.id, seq: binary.BigEndian.Uint64(key), state: d.state, next: encodeTime(d.next)}
}

func (d *outboxRecord) delivery() (dispatch.Delivery, error) {
	out := dispatch.Delivery{
		Session: d.session, Created: d.created, NextAt: d.next, Attempts: d.attempts, Reason: d.reason,
	}
	if err := json.Unmarshal(d.message, &out.Message); err != nil {
		return out, fmt.Errorf("delivery %s: %w: %w", d.id, ErrCorrupt, err)
	}
	out.Message.Uncertain = d.uncertain
	return out, nil
}

// Due implements dispatch.Journal. It yields what was due when the iteration began and still waits and is
// due when its page is read: a delivery settled meanwhile is not seen again, one committed meanwhile is
// left to the next iteration. A damaged delivery is yielded as an error, and the iteration goes on.
func (db *DB) Due(ctx context.Context, now time.Time) iter.Seq2[dispatch.Delivery, error] {
	return func(yield func(dispatch.Delivery, error) bool) {
		seqs := db.outbox.due(now)
		for first := true; first || len(seqs) > 0; first = false {
			var page []dispatch.Delivery
			var errs []error
			err := db.view(ctx, func(tx *readTx) error {
				size := 0
				for len(seqs) > 0 && len(page) < pageLen && size < pageBytes {
					key := u64(seqs[0])
					seqs = seqs[1:]
					rec := tx.get(outBucket, key)
					if rec == nil {
						continue
					}
					size += len(rec)
					d, err := decodeOutbox(key, rec)
					if err == nil && (d.state != stateWaiting || d.next.After(now)) {
						continue
					}
					var out dispatch.Delivery
					if err == nil {
						out, err = d.delivery()
					}
					page, errs = append(page, out), append(errs, err)
				}
				return nil
			})
			if err != nil {
				yield(dispatch.Delivery{}, fmt.Errorf("read due deliveries: %w", err))
				return
			}
			for i, d := range page {
				if !yield(d, errs[i]) {
					return
				}
			}
		}
	}
}

// Next implements dispatch.Journal.
func (db *DB) Next(ctx context.Context) (next time.Time, err error) {
	err = db.view(ctx, func(tx *readTx) error {
		ref, ok := db.outbox.earliest()
		if !ok {
			return nil
		}
		if next = decodeTime(ref.next); !next.IsZero() {
			return nil
		}
		// Due at once: since it was committed.
		next = time.Now().UTC()
		key := u64(ref.seq)
		if rec := tx.get(outBucket, key); rec != nil {
			d, err := decodeOutbox(key, rec)
			next = d.created
			return err
		}
		return nil
	})
	if err != nil {
		return time.Time{}, fmt.Errorf("read next delivery: %w", err)
	}
	return next, nil
}

// open returns a delivery that is not settled for good.
func (db *DB) openDelivery(tx *writeTx, id string) (key []byte, d outboxRecord, err error) {
	ref, ok := db.outbox.find(id, &tx.outbox)
	if !ok {
		return nil, d, dispatch.ErrNotFound
	}
	key = u64(ref.seq)
	d, err = decodeOutbox(key, tx.get(outBucket, key))
	return key, d, err
}

// saveDelivery writes a delivery that is not settled for good.
func (tx *writeTx) saveDelivery(key []byte, d *outboxRecord) error {
	if err := tx.putFor(d.session, outBucket, key, d.encode(key)); err != nil {
		return err
	}
	tx.outbox.set(d.ref(key))
	return nil
}

// dropDelivery takes a delivery out of the outbox.
func (tx *writeTx) dropDelivery(key []byte, d *outboxRecord) error {
	if err := tx.delete(outBucket, key); err != nil {
		return err
	}
	ref := d.ref(key)
	ref.gone = true
	tx.outbox.set(ref)
	return nil
}

// Begin implements dispatch.Journal.
func (db *DB) Begin(ctx context.Context, id string) error {
	err := db.write(ctx, 0, func(tx *writeTx) error {
		key, d, err := db.openDelivery(tx, id)
		if err != nil || d.uncertain {
			return err
		}
		d.uncertain = true
		return tx.saveDelivery(key, &d)
	})
	if err != nil {
		return fmt.Errorf("begin delivery %s: %w", id, err)
	}
	return nil
}

// Settle implements dispatch.Journal. What is said of a held delivery is no attempt and is not counted
// as one.
func (db *DB) Settle(ctx context.Context, id string, o dispatch.Outcome) error {
	code, known := stateCodes[o.State]
	if !known && o.State != dispatch.Delivered {
		return fmt.Errorf("settle delivery %s: no such state: %q", id, o.State)
	}
	err := db.writeFreeing(ctx, func(tx *writeTx) error {
		key, d, err := db.openDelivery(tx, id)
		if err != nil {
			return err
		}
		if o.State == dispatch.Delivered {
			return tx.dropDelivery(key, &d)
		}
		if d.state == stateWaiting {
			d.attempts++
		}
		d.state, d.reason, d.next = code, o.Reason, time.Time{}
		switch code {
		case stateWaiting:
			d.next = o.NextAt
			d.uncertain = d.uncertain && !o.Certain
		case stateUnknown, stateDead:
			d.settled = tx.now
			rec := d.encode(key)
			if err := tx.dropDelivery(key, &d); err != nil {
				return err
			}
			return tx.putFor(d.session, kepBucket, key, rec)
		}
		return tx.saveDelivery(key, &d)
	})
	if err != nil {
		return fmt.Errorf("settle delivery %s: %w", id, err)
	}
	return nil
}
