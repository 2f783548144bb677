package boltstore

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"time"

	"botd/channels/dispatch"
	"botd/sessionstore"
)

// How much a page of an iteration holds: it is copied out before the consumer sees any of it.
const (
	pageLen   = 128
	pageBytes = 1 << 20
)

// inboxRecord is an entry as stored; the event stays encoded.
type inboxRecord struct {
	received time.Time
	attempts int
	session  sessionstore.ID
	// reason tells of the last failed attempt.
	reason string
	event  []byte
}

func (e *inboxRecord) encode(key []byte) []byte {
	b := newRecord(len(e.event) + len(e.session) + len(e.reason) + 32)
	b = appendTime(b, e.received)
	b = binary.AppendUvarint(b, uint64(e.attempts))
	b = appendBytes(b, e.session)
	b = appendBytes(b, e.reason)
	return seal(key, append(b, e.event...))
}

// decodeInbox takes a record apart; event is part of rec.
func decodeInbox(key, rec []byte) (inboxRecord, error) {
	payload, err := unseal(key, rec)
	if err != nil {
		return inboxRecord{}, err
	}
	r := reader{b: payload}
	e := inboxRecord{
		received: r.time(), attempts: int(r.uvarint()), session: sessionstore.ID(r.bytes()), reason: string(r.bytes()),
	}
	e.event = r.b
	return e, r.err(key)
}

func (e *inboxRecord) entry(seq uint64) (dispatch.Entry, error) {
	out := dispatch.Entry{Seq: seq, Received: e.received, Attempts: e.attempts, Reason: e.reason}
	out.Session = e.session
	if err := json.Unmarshal(e.event, &out.Event); err != nil {
		return out, fmt.Errorf("entry %d: %w: %w", seq, ErrCorrupt, err)
	}
	return out, nil
}

// dedupeKey is the key of an event. IDs that platforms number by time stay neighbours, so that new ones
// are added at one place. Longer ones than a key may be are hashed.
func dedupeKey(channel, id string) []byte {
	const longest = 1024
	if len(channel)+len(id) > longest {
		sum := sha256.Sum256(fmt.Appendf(nil, "%d %s%s", len(channel), channel, id))
		return append([]byte{0xff, 0xff}, sum[:]...)
	}
	b := make([]byte, 0, 2+len(channel)+len(id))
	b = binary.BigEndian.AppendUint16(b, uint16(len(channel)))
	return append(append(b, channel...), id...)
}

// Put implements dispatch.Journal.
func (db *DB) Put(ctx context.Context, events []dispatch.Routed) ([]dispatch.Entry, error) {
	encoded := make([][]byte, len(events))
	keys := make([][]byte, len(events))
	size := 0
	for i, r := range events {
		var err error
		if encoded[i], err = encodeEvent(r); err != nil {
			return nil, fmt.Errorf("put events: event %d: %w", i, err)
		}
		keys[i] = dedupeKey(r.Event.Address.Channel, r.Event.ID)
		size += len(encoded[i])
	}
	type put struct {
		seq uint64
		inboxRecord
	}
	var fresh []put
	err := db.write(ctx, size, func(tx *writeTx) error {
		fresh = fresh[:0]
		for i, r := range events {
			if tx.known(keys[i]) {
				continue
			}
			seq, err := tx.next(inbBucket)
			if err != nil {
				return err
			}
			rec := inboxRecord{received: decodeTime(encodeTime(tx.now)), session: r.Session, event: encoded[i]}
			key := u64(seq)
			if err := tx.putFor(r.Session, inbBucket, key, rec.encode(key)); err != nil {
				return err
			}
			if err := tx.put(ddpBucket, keys[i], u64(uint64(encodeTime(tx.now.Add(db.opts.DedupeFor))))); err != nil {
				return err
			}
			fresh = append(fresh, put{seq, rec})
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("put events: %w", err)
	}
	var entries []dispatch.Entry
	for _, p := range fresh {
		e, err := p.entry(p.seq)
		if err != nil {
			return nil, fmt.Errorf("put events: %w", err)
		}
		entries = append(entries, e)
	}
	return entries, nil
}

func encodeEvent(r dispatch.Routed) ([]byte, error) {
	if err := r.Session.Validate(); err != nil {
		return nil, err
	}
	if r.Event.ID == "" {
		return nil, errors.New("an event must have an ID")
	}
	return json.Marshal(r.Event)
}

// known reports whether an event was put within the dedupe window.
func (tx *writeTx) known(key []byte) bool {
	v := tx.get(ddpBucket, key)
	return len(v) == 8 && tx.now.Before(decodeTime(int64(binary.BigEndian.Uint64(v))))
}

// Pending implements dispatch.Journal. It yields what was pending when the iteration began and is still
// pending when its page is read. A damaged entry is yielded as an error, and the iteration goes on.
func (db *DB) Pending(ctx context.Context) iter.Seq2[dispatch.Entry, error] {
	return func(yield func(dispatch.Entry, error) bool) {
		after, last := uint64(0), uint64(0)
		for {
			var page []dispatch.Entry
			var errs []error
			more, err := false, error(nil)
			err = db.view(ctx, func(tx *readTx) error {
				c := tx.bucket(inbBucket).Cursor()
				if last == 0 {
					key, _ := c.Last()
					if key == nil {
						return nil
					}
					last = binary.BigEndian.Uint64(key)
				}
				size := 0
				for key, rec := c.Seek(u64(after + 1)); key != nil; key, rec = c.Next() {
					seq := binary.BigEndian.Uint64(key)
					if seq > last {
						break
					}
					if size += len(rec); len(page) == pageLen || size > pageBytes && len(page) > 0 {
						more = true
						break
					}
					e, err := readEntry(key, tx.plain(inbBucket, key, rec))
					page, errs = append(page, e), append(errs, err)
					after = seq
				}
				return nil
			})
			if err != nil {
				yield(dispatch.Entry{}, fmt.Errorf("read pending events: %w", err))
				return
			}
			for i, e := range page {
				if !yield(e, errs[i]) {
					return
				}
			}
			if !more {
				return
			}
		}
	}
}

func readEntry(key, rec []byte) (dispatch.Entry, error) {
	seq := binary.BigEndian.Uint64(key)
	r, err := decodeInbox(key, rec)
	if err != nil {
		return dispatch.Entry{Seq: seq}, fmt.Errorf("read pending event: %w", err)
	}
	return r.entry(seq)
}

// Fail implements dispatch.Journal. Entries that are no longer pending are passed over.
func (db *DB) Fail(ctx context.Context, seqs []uint64, reason string) error {
	err := db.write(ctx, 0, func(tx *writeTx) error {
		for _, seq := range seqs {
			key := u64(seq)
			rec := tx.get(inbBucket, key)
			if rec == nil {
				continue
			}
			e, err := decodeInbox(key, rec)
			if err != nil {
				return err
			}
			e.attempts++
			e.reason = reason
			if err := tx.putFor(e.session, inbBucket, key, e.encode(key)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("count failed attempt: %w", err)
	}
	return nil
}
