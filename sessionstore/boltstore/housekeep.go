package boltstore

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"
)

// How much one step of housekeeping does, so that no caller waits for it for long.
const (
	stepKeys = 500  // deleted in one transaction
	stepRead = 2000 // looked at in one view
)

// HousekeepEvery is how often Housekeep looks for something to do.
const HousekeepEvery = time.Minute

// Housekeep deletes what is no longer kept: swept sessions, expired archives and records, events behind the
// dedupe window, dead letters and settled deliveries that were kept long enough. It works in small steps among
// the other writes until ctx ends, when it returns nil, or until the store fails or is closed. One
// goroutine runs it.
func (db *DB) Housekeep(ctx context.Context) error {
	tick := time.NewTicker(HousekeepEvery)
	defer tick.Stop()
	for {
		err := db.Tidy(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, ErrFailed), isClosed(err):
			return fmt.Errorf("keep house: %w", err)
		case err != nil:
			db.opts.Logger.Warn("housekeeping goes on later", "err", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// Tidy does what there is to do for Housekeep now.
func (db *DB) Tidy(ctx context.Context) error {
	for _, job := range []struct {
		bucket  bucket
		expired func(key, rec []byte, now time.Time) (bool, error)
	}{
		{arcBucket, db.archiveExpired},
		{ddpBucket, dedupeExpired},
		{kepBucket, db.deliveryExpired},
		{dlqBucket, db.letterExpired},
		{tmbBucket, db.tombExpired},
	} {
		if err := db.expire(ctx, job.bucket, job.expired); err != nil {
			return fmt.Errorf("expire %s: %w", job.bucket, err)
		}
	}
	if err := db.expireRecords(ctx); err != nil {
		return fmt.Errorf("expire %s: %w", recBucket, err)
	}
	return db.sweep(ctx)
}

func (db *DB) archiveExpired(key, rec []byte, now time.Time) (bool, error) {
	a, err := decodeArchive(key, rec)
	return !now.Before(a.until), err
}

func dedupeExpired(_, rec []byte, now time.Time) (bool, error) {
	if len(rec) != 8 {
		return true, nil // of no use to anyone
	}
	return !now.Before(decodeTime(int64(binary.BigEndian.Uint64(rec)))), nil
}

func (db *DB) deliveryExpired(key, rec []byte, now time.Time) (bool, error) {
	d, err := decodeOutbox(key, rec)
	return !now.Before(d.settled.Add(db.opts.KeepFor)), err
}

func (db *DB) letterExpired(key, rec []byte, now time.Time) (bool, error) {
	l, err := decodeDeadLetter(key, rec)
	return !now.Before(l.at.Add(db.opts.KeepFor)), err
}

func (db *DB) tombExpired(key, rec []byte, now time.Time) (bool, error) {
	_, at, err := decodeTomb(key, rec)
	return !now.Before(at.Add(db.opts.KeepFor)), err
}

// expire deletes the expired records of one bucket. Damaged ones stay, for an operator to look at.
func (db *DB) expire(ctx context.Context, b bucket, expired func(key, rec []byte, now time.Time) (bool, error)) error {
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
				if gone, err := expired(key, tx.plain(b, key, rec), now()); gone && err == nil {
					keys = append(keys, bytes.Clone(key))
				}
			}
			return nil
		})
		if err == nil && len(keys) > 0 {
			err = db.writeFreeing(ctx, func(tx *writeTx) error { return db.deleteExpired(tx, b, keys, expired) })
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// deleteExpired deletes those records that are there and expired still.
func (db *DB) deleteExpired(tx *writeTx, b bucket, keys [][]byte, expired func(key, rec []byte, now time.Time) (bool, error)) error {
	for _, key := range keys {
		rec := tx.get(b, key)
		if rec == nil {
			continue
		}
		if gone, err := expired(key, rec, tx.now); !gone || err != nil {
			continue
		}
		if b == arcBucket {
			a, err := decodeArchive(key, rec)
			if err != nil {
				return err
			}
			if err := tx.sweepEpoch(binary.BigEndian.Uint64(key), a); err != nil {
				return err
			}
		}
		if err := tx.delete(b, key); err != nil {
			return err
		}
	}
	return nil
}

// sweeping is what one step deletes below one prefix.
type sweeping struct {
	prefix []byte
	keys   [][]byte
	// last says that nothing is left below the prefix afterwards.
	last bool
}

// sweep deletes what nothing leads to any more.
func (db *DB) sweep(ctx context.Context) error {
	var from []byte
	for {
		var step []sweeping
		err := db.view(ctx, func(tx *readTx) error {
			step, from = db.nextSweep(tx, from)
			return nil
		})
		if err == nil && len(step) > 0 {
			err = db.writeFreeing(ctx, func(tx *writeTx) error { return tx.sweep(step) })
		}
		if err != nil || from == nil {
			return err
		}
	}
}

// nextSweep collects the records of one step, and where the next one begins; nil when this is the last.
func (db *DB) nextSweep(tx *readTx, from []byte) (step []sweeping, next []byte) {
	notes, records := tx.bucket(swpBucket).Cursor(), tx.bucket(sesBucket).Cursor()
	n := 0
	for prefix, _ := notes.Seek(from); prefix != nil; prefix, _ = notes.Next() {
		if n >= stepKeys {
			return step, bytes.Clone(prefix)
		}
		if db.beingBuilt(prefix) {
			continue
		}
		s := sweeping{prefix: bytes.Clone(prefix)}
		key, _ := records.Seek(prefix)
		for ; bytes.HasPrefix(key, prefix) && n < stepKeys; key, _ = records.Next() {
			s.keys = append(s.keys, bytes.Clone(key))
			n++
		}
		n++ // the note
		s.last = !bytes.HasPrefix(key, prefix)
		if step = append(step, s); !s.last {
			return step, s.prefix
		}
	}
	return step, nil
}

// sweep deletes the records of a step, and the notes of the prefixes done.
func (tx *writeTx) sweep(step []sweeping) error {
	for _, s := range step {
		if tx.get(swpBucket, s.prefix) == nil {
			continue // a fork has ended, and the records are a session's
		}
		for _, key := range s.keys {
			if err := tx.delete(sesBucket, key); err != nil {
				return err
			}
		}
		if s.last {
			if err := tx.delete(swpBucket, s.prefix); err != nil {
				return err
			}
		}
	}
	return nil
}

// beingBuilt reports whether a fork is at work there.
func (db *DB) beingBuilt(prefix []byte) (found bool) {
	db.building.Range(func(_, p any) bool {
		found = found || p == string(prefix)
		return !found
	})
	return found
}
