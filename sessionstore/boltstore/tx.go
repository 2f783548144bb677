package boltstore

import (
	"bytes"
	"crypto/cipher"
	"encoding/binary"
	"fmt"
	"iter"
	"time"

	bolt "go.etcd.io/bbolt"

	"botd/sessionstore"
)

// bucket numbers the top-level buckets.
type bucket int

const (
	sysBucket bucket = iota
	keyBucket
	sesBucket
	inbBucket
	ddpBucket
	outBucket
	kepBucket
	dlqBucket
	arcBucket
	swpBucket
	tmbBucket
	// These came later: files that do not have them get them when they are opened.
	recBucket
	rexBucket
	tlyBucket
	tlgBucket
	// These two are in encrypted files alone.
	dekBucket
	dkiBucket
	buckets

	firstBuckets = recBucket
	plainBuckets = dekBucket
)

// bucketNames are stored in every file: add, never rename or reuse.
var bucketNames = [buckets]string{
	"sys", "key", "ses", "inb", "ddp", "out", "kep", "dlq", "arc", "swp", "tmb", "rec", "rex", "tly", "tlg", "dek", "dki",
}

func (b bucket) String() string { return bucketNames[b] }

// fillPercent leaves little room in full pages: most keys are added at the right edge, in order.
const fillPercent = 0.8

// readTx reads one state of the file. What it returns is part of the file unless a method says
// otherwise, and is valid only until the transaction ends.
type readTx struct {
	bolt *bolt.Tx
	// master is the key that wraps those of sessions, nil in a file that is not encrypted. keys are those
	// unwrapped so far.
	master cipher.AEAD
	keys   map[uint64]cipher.AEAD
	open   [buckets]*bolt.Bucket
}

func (tx *readTx) bucket(b bucket) *bolt.Bucket {
	if tx.open[b] == nil {
		tx.open[b] = tx.bolt.Bucket([]byte(bucketNames[b]))
	}
	return tx.open[b]
}

func (tx *readTx) get(b bucket, key []byte) []byte { return tx.plain(b, key, tx.bucket(b).Get(key)) }

// within ranges over the records of a bucket whose keys begin with prefix and are not less than from, in the
// order of their keys. The bucket must not be changed meanwhile.
func (tx *readTx) within(b bucket, prefix, from []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(key, rec []byte) bool) {
		c := tx.bucket(b).Cursor()
		if bytes.Compare(from, prefix) < 0 {
			from = prefix
		}
		// Nothing begins with nothing too: the end of the bucket has to be asked for.
		for key, rec := c.Seek(from); key != nil && bytes.HasPrefix(key, prefix); key, rec = c.Next() {
			if !yield(key, rec) {
				return
			}
		}
	}
}

// sid returns the number of a session, 0 when it does not exist.
func (tx *readTx) sid(id sessionstore.ID) uint64 {
	if v := tx.get(keyBucket, []byte(id)); len(v) == 8 {
		return binary.BigEndian.Uint64(v)
	}
	return 0
}

// session returns the header of a session and whether it exists. A session that does not exist has the
// generation that an erased one of this ID left behind.
func (tx *readTx) session(id sessionstore.ID) (sid uint64, h header, err error) {
	if sid = tx.sid(id); sid == 0 {
		h.generation, err = tx.tombstone(id)
		return 0, h, err
	}
	key := headerKey(sid)
	rec := tx.get(sesBucket, key)
	if rec == nil {
		return 0, header{}, fmt.Errorf("session without header: %w", ErrCorrupt)
	}
	h, err = decodeHeader(key, rec)
	return sid, h, err
}

// writeTx is one transaction that carries the writes of several callers, one after the other.
type writeTx struct {
	readTx
	now time.Time
	// dirty reports that something was written since the transaction began.
	dirty bool
	// outbox holds the changes that the index of the outbox learns of once they are durable.
	outbox outboxChanges
}

// put writes a record. A nil value is written as an empty one: bbolt gives that back as nil until the
// transaction ends, which says that there is no such key.
func (tx *writeTx) put(b bucket, key, value []byte) error {
	if value == nil {
		value = []byte{}
	}
	tx.dirty = true
	bk := tx.bucket(b)
	bk.FillPercent = fillPercent
	if err := bk.Put(key, value); err != nil {
		return fmt.Errorf("write %s: %w", b, err)
	}
	return nil
}

func (tx *writeTx) delete(b bucket, key []byte) error {
	tx.dirty = true
	if err := tx.bucket(b).Delete(key); err != nil {
		return fmt.Errorf("delete from %s: %w", b, err)
	}
	return nil
}

// next returns the next number of a bucket; no number is given twice.
func (tx *writeTx) next(b bucket) (uint64, error) {
	tx.dirty = true
	n, err := tx.bucket(b).NextSequence()
	if err != nil {
		return 0, fmt.Errorf("number record of %s: %w", b, err)
	}
	return n, nil
}

// create returns the session, making it when sid is 0.
func (tx *writeTx) create(sid uint64, h header, id sessionstore.ID) (uint64, header, error) {
	if sid != 0 {
		return sid, h, nil
	}
	sid, err := tx.next(keyBucket)
	if err != nil {
		return 0, header{}, err
	}
	made := newHeader(id, tx.now)
	made.generation = h.generation
	return sid, made, tx.put(keyBucket, []byte(id), u64(sid))
}

// save writes a header back.
func (tx *writeTx) save(sid uint64, h *header) error {
	h.updated = tx.now
	key := headerKey(sid)
	return tx.put(sesBucket, key, h.encode(key))
}
