package boltstore

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"botd/sessionstore"
)

var (
	_ sessionstore.Recorder = (*DB)(nil)
	_ sessionstore.Scrubber = (*DB)(nil)
)

// recordKey is the key of a record: kind 0 key. A kind holds no zero byte.
func recordKey(kind, key string) []byte {
	b := make([]byte, 0, len(kind)+1+len(key))
	return append(append(append(b, kind...), 0), key...)
}

// splitRecordKey takes such a key apart.
func splitRecordKey(b []byte) (kind, key string, ok bool) { return strings.Cut(string(b), "\x00") }

// expiryKey is the key in the index of what ceases to exist: until8, then the record's own.
func expiryKey(until time.Time, key []byte) []byte {
	return append(u64(uint64(encodeTime(until))), key...)
}

// storedRecord is a record as stored; its value is part of the file.
type storedRecord struct {
	version   uint64
	at, until time.Time
	value     []byte
}

func (r *storedRecord) encode(key []byte) []byte {
	b := binary.AppendUvarint(newRecord(len(r.value)+26), r.version)
	b = appendTime(appendTime(b, r.at), r.until)
	return seal(key, append(b, r.value...))
}

func decodeRecord(key, rec []byte) (storedRecord, error) {
	payload, err := unseal(key, rec)
	if err != nil {
		return storedRecord{}, err
	}
	rd := reader{b: payload}
	r := storedRecord{version: rd.uvarint(), at: rd.time(), until: rd.time()}
	r.value = rd.b
	return r, rd.err(key)
}

func (r *storedRecord) lives(now time.Time) bool { return r.until.IsZero() || now.Before(r.until) }

func (r *storedRecord) record(kind, key string) sessionstore.Record {
	return sessionstore.Record{
		Kind: kind, Key: key, Value: json.RawMessage(bytes.Clone(r.value)), Version: r.version, At: r.at, Until: r.until,
	}
}

// Record implements sessionstore.Recorder.
func (db *DB) Record(ctx context.Context, kind, key string) (rec sessionstore.Record, err error) {
	err = db.view(ctx, func(tx *readTx) error {
		k := recordKey(kind, key)
		stored := tx.get(recBucket, k)
		if stored == nil {
			return sessionstore.ErrNoRecord
		}
		r, err := decodeRecord(k, stored)
		if err != nil {
			return err
		}
		if !r.lives(now()) {
			return sessionstore.ErrNoRecord
		}
		rec = r.record(kind, key)
		return nil
	})
	if err != nil {
		return sessionstore.Record{}, fmt.Errorf("read record: %w", err)
	}
	return rec, nil
}

// Records implements sessionstore.Recorder. Damaged records are passed over; Verify tells of them.
func (db *DB) Records(ctx context.Context, kind, prefix, after string, limit int) (list []sessionstore.Record, err error) {
	err = db.view(ctx, func(tx *readTx) error {
		list = nil
		t := now()
		for key, rec := range tx.within(recBucket, recordKey(kind, prefix), recordKey(kind, after)) {
			if len(list) >= limit {
				break
			}
			_, name, _ := splitRecordKey(key)
			if name <= after {
				continue
			}
			if r, err := decodeRecord(key, tx.plain(recBucket, key, rec)); err == nil && r.lives(t) {
				list = append(list, r.record(kind, name))
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list records: %w", err)
	}
	return list, nil
}

// ChangeRecords implements sessionstore.Recorder.
func (db *DB) ChangeRecords(ctx context.Context, changes ...sessionstore.RecordChange) error {
	err := sessionstore.ValidateChanges(changes)
	if err == nil {
		err = db.changeRecords(ctx, changes)
	}
	if err != nil {
		return fmt.Errorf("change records: %w", err)
	}
	return nil
}

func (db *DB) changeRecords(ctx context.Context, changes []sessionstore.RecordChange) error {
	size, frees := 0, len(changes) > 0
	for _, c := range changes {
		size += len(c.Value) + len(c.Key)
		frees = frees && c.Value == nil
	}
	return db.writer.do(ctx, &write{size: size, frees: frees, run: func(tx *writeTx) error {
		olds := make([]storedRecord, len(changes))
		for i, c := range changes {
			var err error
			if olds[i], err = tx.mayChange(c); err != nil {
				return fmt.Errorf("change %d: %w", i, err)
			}
		}
		for i, c := range changes {
			if err := tx.change(c, olds[i]); err != nil {
				return err
			}
		}
		return nil
	}})
}

// mayChange returns the record as it is, which may be past its time, and whether the change fits its version.
func (tx *writeTx) mayChange(c sessionstore.RecordChange) (old storedRecord, err error) {
	key := recordKey(c.Kind, c.Key)
	if rec := tx.get(recBucket, key); rec != nil {
		if old, err = decodeRecord(key, rec); err != nil && c.Version != sessionstore.AnyVersion {
			return old, err
		}
	}
	old.value = nil // it is part of a page that the change rewrites
	var version uint64
	if old.version != 0 && old.lives(tx.now) {
		version = old.version
	}
	if c.Version != sessionstore.AnyVersion && c.Version != version {
		return old, sessionstore.ErrChanged
	}
	return old, nil
}

// change writes or deletes a record and keeps the index of what ceases to exist.
func (tx *writeTx) change(c sessionstore.RecordChange, old storedRecord) error {
	key := recordKey(c.Kind, c.Key)
	if !old.until.IsZero() && !(c.Value != nil && old.until.Equal(c.Until)) {
		if err := tx.delete(rexBucket, expiryKey(old.until, key)); err != nil {
			return err
		}
	}
	if c.Value == nil {
		if tx.bucket(recBucket).Get(key) == nil {
			return nil
		}
		return tx.delete(recBucket, key)
	}
	version, err := tx.next(recBucket)
	if err != nil {
		return err
	}
	r := storedRecord{version: version, at: tx.now, until: c.Until, value: c.Value}
	if !r.until.IsZero() {
		if err := tx.put(rexBucket, expiryKey(r.until, key), nil); err != nil {
			return err
		}
	}
	return tx.putRecord(key, r.encode(key))
}

// expireRecords deletes the records whose time is over, the earliest first.
func (db *DB) expireRecords(ctx context.Context) error {
	for more := true; more; {
		var due [][]byte
		more = false
		err := db.view(ctx, func(tx *readTx) error {
			end := u64(uint64(encodeTime(now())))
			c := tx.bucket(rexBucket).Cursor()
			for key, _ := c.First(); len(key) > 8 && bytes.Compare(key[:8], end) <= 0; key, _ = c.Next() {
				if len(due) == stepKeys {
					more = true
					break
				}
				due = append(due, bytes.Clone(key))
			}
			return nil
		})
		if err == nil && len(due) > 0 {
			err = db.writeFreeing(ctx, func(tx *writeTx) error { return tx.expireRecords(due) })
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (tx *writeTx) expireRecords(due [][]byte) error {
	for _, entry := range due {
		if tx.get(rexBucket, entry) == nil {
			continue // changed meanwhile
		}
		key := entry[8:]
		r, err := decodeRecord(key, tx.get(recBucket, key))
		if err == nil && bytes.Equal(expiryKey(r.until, key), entry) {
			if err := tx.delete(recBucket, key); err != nil {
				return err
			}
		}
		if err := tx.delete(rexBucket, entry); err != nil {
			return err
		}
	}
	return nil
}

// Scrub implements sessionstore.Scrubber.
func (db *DB) Scrub(ctx context.Context) error {
	if err := db.scrub(ctx); err != nil {
		return fmt.Errorf("scrub: %w", err)
	}
	return nil
}
