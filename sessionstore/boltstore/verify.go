package boltstore

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"botd/sessionstore"
)

// maxFaults is how many faults Verify tells.
const maxFaults = 100

// Verify looks at every page and every record of the file and checks that they agree. It returns the
// faults, joined, each wrapping ErrCorrupt; nil when there are none. Writes wait meanwhile, for about a
// second per gigabyte; reads go on.
func (db *DB) Verify(ctx context.Context) error {
	var faults []error
	err := db.writer.do(ctx, &write{alone: func() error {
		return db.view(ctx, func(tx *readTx) error {
			v := &verifier{ctx: ctx, tx: tx}
			if err := v.pages(); err != nil || len(v.faults) > 0 {
				faults = v.faults
				return err // the records of damaged pages tell nothing
			}
			err := v.records(&db.outbox)
			faults = v.faults
			return err
		})
	}})
	if err := errors.Join(append([]error{err}, faults...)...); err != nil {
		return fmt.Errorf("verify %s: %w", db.opts.Path, err)
	}
	return nil
}

type verifier struct {
	ctx    context.Context
	tx     *readTx
	faults []error
	// sids are the sessions, each with its header.
	sids map[uint64]header
	// epochs are the prefixes of records that something leads to.
	epochs map[string]bool
	// items counts what the records of a session show.
	items map[uint64]uint64
}

func (v *verifier) fault(format string, args ...any) {
	if len(v.faults) < maxFaults {
		v.faults = append(v.faults, fmt.Errorf(format+": %w", append(args, ErrCorrupt)...))
	}
}

func (v *verifier) note(err error) {
	if err != nil && len(v.faults) < maxFaults {
		v.faults = append(v.faults, err)
	}
}

func (v *verifier) pages() error {
	checked := v.tx.bolt.Check()
	for err := range checked {
		v.fault("%w", err)
	}
	return v.ctx.Err()
}

// each calls f for each record of a bucket.
func (v *verifier) each(b bucket, f func(key, rec []byte)) error {
	c := v.tx.bucket(b).Cursor()
	for key, rec := c.First(); key != nil; key, rec = c.Next() {
		if err := v.ctx.Err(); err != nil {
			return err
		}
		f(key, v.tx.plain(b, key, rec))
	}
	return nil
}

func (v *verifier) records(x *outboxIndex) error {
	v.sids, v.epochs, v.items = map[uint64]header{}, map[string]bool{}, map[uint64]uint64{}
	outbox := map[string]uint64{}
	for _, job := range []struct {
		bucket bucket
		check  func(key, rec []byte)
	}{
		{keyBucket, v.session},
		{arcBucket, v.archive},
		{swpBucket, func(key, _ []byte) { v.epochs[string(key)] = true }},
		{sesBucket, v.record},
		{inbBucket, func(key, rec []byte) {
			_, err := readEntry(key, rec)
			v.note(err)
			v.numbered(inbBucket, key)
		}},
		{outBucket, func(key, rec []byte) {
			if d := v.delivery(key, rec); d.state == stateWaiting || d.state == stateHeld {
				outbox[d.id] = binary.BigEndian.Uint64(key)
			} else {
				v.fault("delivery %x in the outbox has state %d", key, d.state)
			}
			v.numbered(outBucket, key)
		}},
		{kepBucket, func(key, rec []byte) {
			if d := v.delivery(key, rec); d.state != stateUnknown && d.state != stateDead {
				v.fault("delivery %x among those settled has state %d", key, d.state)
			}
		}},
		{dlqBucket, v.letter},
		{ddpBucket, func(key, rec []byte) {
			if len(rec) != 8 {
				v.fault("event %x has no expiry", key)
			}
		}},
		{tmbBucket, func(key, rec []byte) {
			_, _, err := decodeTomb(key, rec)
			v.note(err)
		}},
		{recBucket, v.stored},
		{rexBucket, v.expiry},
		{tlyBucket, v.counter},
		{tlgBucket, v.countersLog},
		{dekBucket, v.sessionKey},
		{dkiBucket, v.keyNumber},
	} {
		if job.bucket >= plainBuckets && v.tx.master == nil {
			continue
		}
		if err := v.each(job.bucket, job.check); err != nil {
			return err
		}
	}
	for sid, h := range v.sids {
		if v.items[sid] != h.items {
			v.fault("session %d shows %d items and counts %d", sid, v.items[sid], h.items)
		}
	}
	v.index(x, outbox)
	v.recordsKey()
	return nil
}

// session checks that a key leads to a header that knows it.
func (v *verifier) session(key, value []byte) {
	if len(value) != 8 {
		v.fault("session key leads to %x", value)
		return
	}
	sid := binary.BigEndian.Uint64(value)
	if _, taken := v.sids[sid]; taken {
		v.fault("session %d has two keys", sid)
	}
	_, h, err := v.tx.session(sessionstore.ID(key))
	if err != nil {
		v.note(err)
		return
	}
	if string(h.id) != string(key) {
		v.fault("header of session %d is another session's", sid)
	}
	if sid > v.tx.bucket(keyBucket).Sequence() {
		v.fault("session %d was never made", sid)
	}
	if h.epoch >= h.nextEpoch || h.view >= h.nextEpoch || h.through >= h.next {
		v.fault("header of session %d contradicts itself", sid)
	}
	v.sids[sid] = h
	v.lead(sid, h.epoch, h.view)
}

// lead notes that records of an epoch belong to something.
func (v *verifier) lead(sid uint64, epoch, view uint32) {
	v.epochs[string(epochKey(sid, turnClass, epoch))] = true
	v.epochs[string(epochKey(sid, itemClass, epoch))] = true
	v.epochs[string(epochKey(sid, viewClass, view))] = true
}

func (v *verifier) archive(key, rec []byte) {
	a, err := decodeArchive(key, rec)
	if err != nil {
		v.note(err)
		return
	}
	sid := binary.BigEndian.Uint64(key)
	if h, ok := v.sids[sid]; !ok || a.epoch >= h.nextEpoch || a.epoch == h.epoch {
		v.fault("archive %x belongs to nothing", key)
	}
	v.lead(sid, a.epoch, a.view)
}

// record checks one record of the bucket ses.
func (v *verifier) record(key, rec []byte) {
	if len(key) < 9 {
		v.fault("key %x in ses is too short", key)
		return
	}
	sid := binary.BigEndian.Uint64(key)
	swept := v.epochs[string(key[:8])]
	if key[8] == headerClass {
		if _, ok := v.sids[sid]; !ok && !swept {
			v.fault("header %x belongs to nothing", key)
		}
		return
	}
	if len(key) < epochLen || !swept && !v.epochs[string(key[:epochLen])] {
		v.fault("record %x belongs to nothing", key)
		return
	}
	if key[8] == turnClass {
		return
	}
	ref, err := decodeItem(key, rec)
	if err != nil {
		v.note(err)
		return
	}
	if !sessionstore.ValidItem(ref.body) {
		v.fault("item %x is no JSON object", key)
	}
	h := v.sids[sid]
	epoch := binary.BigEndian.Uint32(key[9:])
	if key[8] == itemClass && epoch == h.epoch && ref.seq() > h.through || key[8] == viewClass && epoch == h.view {
		v.items[sid]++
	}
}

func (v *verifier) delivery(key, rec []byte) outboxRecord {
	d, err := decodeOutbox(key, rec)
	if err == nil {
		_, err = d.delivery()
	}
	v.note(err)
	return d
}

func (v *verifier) letter(key, rec []byte) {
	l, err := decodeDeadLetter(key, rec)
	if err == nil {
		_, err = l.entry(0)
	}
	v.note(err)
}

// sessionKey checks that a key can be unwrapped.
func (v *verifier) sessionKey(number, rec []byte) {
	k, err := decodeSessionKey(number, rec)
	if err == nil {
		_, err = k.unwrap(v.tx.master, number)
	}
	v.note(err)
	v.numbered(dekBucket, number)
}

// keyNumber checks that a session has a key of its own.
func (v *verifier) keyNumber(id, number []byte) {
	k, err := decodeSessionKey(number, v.tx.get(dekBucket, number))
	if err != nil {
		v.note(err)
	} else if string(k.session) != string(id) {
		v.fault("key %x is another session's", number)
	}
}

// numbered checks that a number will not be given again.
func (v *verifier) numbered(b bucket, key []byte) {
	if len(key) != 8 || binary.BigEndian.Uint64(key) > v.tx.bucket(b).Sequence() {
		v.fault("record %x of %s was never numbered", key, b)
	}
}

// index checks that the index of the outbox knows what the file holds.
func (v *verifier) index(x *outboxIndex, outbox map[string]uint64) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	for id, ref := range x.byID {
		if outbox[id] != ref.seq {
			v.fault("the index leads delivery %s to %d, the file to %d", id, ref.seq, outbox[id])
		}
	}
	for id := range outbox {
		if x.byID[id] == nil {
			v.fault("the index does not know delivery %s", id)
		}
	}
}
