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

// Housekeep deletes what is no longer kept: swept sessions, expired archives, events behind the dedupe
// window, dead letters and settled deliveries that were kept long enough. It works in small steps among
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
		{arcBucket, db.archiveExpired}, {ddpBucket, dedupeExpired}, {kepBucket, db.deliveryExpired},
		{dlqBucket, db.letterExpired}, {tmbBucket, db.tombExpired},
	} {
		if err := db.expire(ctx, job.bucket, job.expired); err != nil {
			return fmt.Errorf("expire %s: %w", job.bucket, err)
		}
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
				if gone, err := expired(key, rec, now()); gone && err == nil {
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

// sweep deletes what nothing leads to any more.
func (db *DB) sweep(ctx context.Context) error {
	var from []byte
	for {
		var prefix []byte
		err := db.view(ctx, func(tx *readTx) error {
			key, _ := tx.bucket(swpBucket).Cursor().Seek(from)
			prefix = bytes.Clone(key)
			return nil
		})
		if err != nil || prefix == nil {
			return err
		}
		if !db.beingBuilt(prefix) {
			if err := db.sweepPrefix(ctx, prefix); err != nil {
				return err
			}
		}
		from = append(prefix, 0)
	}
}

// beingBuilt reports whether a fork is at work there.
func (db *DB) beingBuilt(prefix []byte) (found bool) {
	db.building.Range(func(_, p any) bool {
		found = found || p == string(prefix)
		return !found
	})
	return found
}

// sweepPrefix deletes the records of ses below one prefix, and then the note that says so.
func (db *DB) sweepPrefix(ctx context.Context, prefix []byte) error {
	for {
		var keys [][]byte
		err := db.view(ctx, func(tx *readTx) error {
			c := tx.bucket(sesBucket).Cursor()
			for key, _ := c.Seek(prefix); bytes.HasPrefix(key, prefix) && len(keys) < stepKeys; key, _ = c.Next() {
				keys = append(keys, bytes.Clone(key))
			}
			return nil
		})
		if err != nil {
			return err
		}
		err = db.writeFreeing(ctx, func(tx *writeTx) error {
			if tx.bucket(swpBucket).Get(prefix) == nil {
				return nil // a fork has ended, and the records are a session's
			}
			for _, key := range keys {
				if err := tx.delete(sesBucket, key); err != nil {
					return err
				}
			}
			if len(keys) < stepKeys {
				return tx.delete(swpBucket, prefix)
			}
			return nil
		})
		if err != nil || len(keys) < stepKeys {
			return err
		}
	}
}
