package boltstore

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	bolt "go.etcd.io/bbolt"

	"botd/sessionstore"
)

// Erase implements sessionstore.Eraser. It takes time in proportion to the free space in the file, which
// it overwrites in steps between which other writes go on.
func (db *DB) Erase(ctx context.Context, id sessionstore.ID) error {
	err := id.Validate()
	if err == nil {
		err = db.erase(ctx, id)
	}
	if err != nil {
		return fmt.Errorf("erase session: %w", err)
	}
	return nil
}

func (db *DB) erase(ctx context.Context, id sessionstore.ID) error {
	if err := db.writeFreeing(ctx, func(tx *writeTx) error { return tx.forget(id) }); err != nil {
		return err
	}
	for _, b := range []bucket{inbBucket, outBucket, kepBucket, dlqBucket} {
		if err := db.eraseFrom(ctx, b, id); err != nil {
			return err
		}
	}
	if err := db.sweep(ctx); err != nil {
		return err
	}
	if err := db.eraseKeysOf(ctx, id); err != nil {
		return err
	}
	return db.scrub(ctx)
}

// forget deletes what leads to the session, leaves what it holds to be swept, and remembers its generation.
func (tx *writeTx) forget(id sessionstore.ID) error {
	if err := tx.forgetKey(id); err != nil {
		return err
	}
	sid, h, err := tx.session(id)
	if sid == 0 || err != nil {
		return err
	}
	if err := tx.putTomb(id, h.generation+1); err != nil {
		return err
	}
	archives, err := tx.archives(sid)
	if err != nil {
		return err
	}
	for _, a := range archives {
		if err := tx.delete(arcBucket, archiveKey(sid, a.epoch)); err != nil {
			return err
		}
	}
	if err := tx.delete(keyBucket, []byte(id)); err != nil {
		return err
	}
	if err := tx.delete(sesBucket, headerKey(sid)); err != nil {
		return err
	}
	return tx.put(swpBucket, u64(sid), nil)
}

// eraseFrom deletes the records of a session from one bucket of the journal. A damaged record tells no
// session; one that holds the session's ID is taken for its own.
func (db *DB) eraseFrom(ctx context.Context, b bucket, id sessionstore.ID) error {
	belongs := func(key, rec []byte) bool {
		session, err := sessionOf(b, key, rec)
		return session == id || err != nil && bytes.Contains(rec, []byte(id))
	}
	var from []byte
	for more := true; more; {
		var keys [][]byte
		more = false
		err := db.view(ctx, func(tx *readTx) error {
			c := tx.bucket(b).Cursor()
			seen := 0
			for key, rec := c.Seek(from); key != nil; key, rec = c.Next() {
				if seen++; seen > stepRead || len(keys) == stepKeys {
					more, from = true, bytes.Clone(key)
					break
				}
				if belongs(key, tx.plain(b, key, rec)) {
					keys = append(keys, bytes.Clone(key))
				}
			}
			return nil
		})
		if err == nil && len(keys) > 0 {
			err = db.writeFreeing(ctx, func(tx *writeTx) error { return tx.eraseKeys(b, keys) })
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// sessionOf tells whose a record of the journal is.
func sessionOf(b bucket, key, rec []byte) (sessionstore.ID, error) {
	switch b {
	case inbBucket:
		e, err := decodeInbox(key, rec)
		return e.session, err
	case dlqBucket:
		l, err := decodeDeadLetter(key, rec)
		return l.session, err
	default:
		d, err := decodeOutbox(key, rec)
		return d.session, err
	}
}

// eraseKeys deletes records that may have gone, or moved, meanwhile.
func (tx *writeTx) eraseKeys(b bucket, keys [][]byte) error {
	for _, key := range keys {
		rec := tx.get(b, key)
		if rec == nil {
			continue
		}
		if b == outBucket {
			if d, err := decodeOutbox(key, rec); err == nil {
				if err := tx.dropDelivery(key, &d); err != nil {
					return err
				}
				continue
			}
		}
		if err := tx.delete(b, key); err != nil {
			return err
		}
	}
	return nil
}

// Tombstones: the generation of an erased session, and when it was erased.

func (tx *writeTx) putTomb(id sessionstore.ID, generation uint64) error {
	key := tombKey(id)
	b := binary.AppendUvarint(newRecord(24), generation)
	return tx.put(tmbBucket, key, seal(key, appendTime(b, tx.now)))
}

func decodeTomb(key, rec []byte) (generation uint64, at time.Time, err error) {
	payload, err := unseal(key, rec)
	if err != nil {
		return 0, at, err
	}
	r := reader{b: payload}
	generation, at = r.uvarint(), r.time()
	return generation, at, r.err(key)
}

// Scrubbing fills every free page with zeros: records of a size of which a few fill one page are added
// until the file has to grow, which it does only when no page is free. Pages that a reader of an older
// state still needed are free, at the latest, in the second round.
const (
	scrubRounds  = 2
	scrubRecord  = 1000
	scrubRecords = 2000 // added in one transaction
)

var scrubName = []byte("scrub")

func (db *DB) scrub(ctx context.Context) error {
	for range scrubRounds {
		grown := false
		for n := uint64(0); !grown; n++ {
			err := db.writer.do(ctx, &write{alone: func() (err error) { grown, err = db.scrubStep(n); return err }})
			if err != nil {
				return errors.Join(err, db.endScrub(context.WithoutCancel(ctx)))
			}
		}
		if err := db.endScrub(ctx); err != nil {
			return err
		}
	}
	return db.writer.do(ctx, &write{alone: db.scrubTail})
}

// scrubStep adds zeros in a transaction of its own, because records of other sizes would make the file
// grow although single pages are free.
func (db *DB) scrubStep(n uint64) (grown bool, err error) {
	if err := db.Err(); err != nil {
		return false, err
	}
	tx, err := db.begin()
	if err != nil {
		return false, err
	}
	before := tx.Size()
	b, err := tx.CreateBucketIfNotExists(scrubName)
	zeros := make([]byte, scrubRecord)
	for i := uint64(0); i < scrubRecords && err == nil; i++ {
		err = b.Put(u64(n*scrubRecords+i), zeros)
	}
	if err != nil {
		rollback(tx)
		return false, fmt.Errorf("overwrite free pages: %w", err)
	}
	id := tx.ID()
	if err := commitTx(tx); err != nil {
		return false, db.judge(id, err)
	}
	err = db.bolt.View(func(tx *bolt.Tx) error { grown = tx.Size() > before; return nil })
	return grown, err
}

// endScrub gives the pages back.
func (db *DB) endScrub(ctx context.Context) error {
	return db.writeFreeing(ctx, func(tx *writeTx) error {
		if tx.bolt.Bucket(scrubName) == nil {
			return nil
		}
		tx.dirty = true
		return tx.bolt.DeleteBucket(scrubName)
	})
}

// scrubTail overwrites what lies in the file behind the last page in use: pages of commits that a crash
// cut short.
func (db *DB) scrubTail() (err error) {
	var end int64
	if err := db.bolt.View(func(tx *bolt.Tx) error { end = tx.Size(); return nil }); err != nil {
		return err
	}
	f, err := os.OpenFile(db.opts.Path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Sync(), f.Close()) }()
	buf, zeros := make([]byte, 1<<20), make([]byte, 1<<20)
	for {
		n, err := f.ReadAt(buf, end)
		if !bytes.Equal(buf[:n], zeros[:n]) {
			if _, err := f.WriteAt(zeros[:n], end); err != nil {
				return err
			}
		}
		end += int64(n)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
