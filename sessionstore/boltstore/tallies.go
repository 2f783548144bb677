package boltstore

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"

	"botd/sessionstore"
)

var _ sessionstore.Tallier = (*DB)(nil)

// Counters lie far apart, and a turn adds to about ten of them. It therefore writes one record of all that
// it adds at the end of a log, and every logLen-th such write adds the log up. Who reads counters adds what
// is in the log.
const logLen = 64

// counts are encoded as how many numbers there are, then the numbers.
func appendCounts(b []byte, c sessionstore.Counts) []byte {
	numbers := [...]int64{
		c.Turns, c.Requests, c.InputTokens, c.CachedTokens, c.OutputTokens, c.ReasoningTokens, c.CostMicros,
		c.Estimated, c.Unpriced, c.Pushes,
	}
	b = append(b, byte(len(numbers)))
	for _, n := range numbers {
		b = binary.AppendVarint(b, n)
	}
	return b
}

func (r *reader) counts() (c sessionstore.Counts) {
	numbers := [...]*int64{
		&c.Turns, &c.Requests, &c.InputTokens, &c.CachedTokens, &c.OutputTokens, &c.ReasoningTokens, &c.CostMicros,
		&c.Estimated, &c.Unpriced, &c.Pushes,
	}
	for i := range r.byte() {
		if n := r.varint(); int(i) < len(numbers) {
			*numbers[i] = n
		}
	}
	return c
}

func encodeCounts(key []byte, c sessionstore.Counts) []byte {
	return seal(key, appendCounts(newRecord(32), c))
}

func decodeCounts(key, rec []byte) (sessionstore.Counts, error) {
	payload, err := unseal(key, rec)
	if err != nil {
		return sessionstore.Counts{}, err
	}
	r := reader{b: payload}
	c := r.counts()
	return c, r.err(key)
}

// encodeLog makes the record of what one write adds; decodeLog calls f for each part of it, with a key
// that is part of rec.
func encodeLog(key []byte, add []sessionstore.Tally) []byte {
	b := newRecord(80 * len(add))
	for _, t := range add {
		b = appendCounts(appendBytes(b, t.Key), t.Counts)
	}
	return seal(key, b)
}

func decodeLog(key, rec []byte, f func(key []byte, c sessionstore.Counts)) error {
	payload, err := unseal(key, rec)
	if err != nil {
		return err
	}
	for r := (reader{b: payload}); len(r.b) > 0; {
		name, counts := r.bytes(), r.counts()
		if r.bad {
			return r.err(key)
		}
		f(name, counts)
	}
	return nil
}

// AddTallies implements sessionstore.Tallier.
func (db *DB) AddTallies(ctx context.Context, add ...sessionstore.Tally) error {
	err := sessionstore.ValidateTallies(add)
	if err == nil {
		err = db.write(ctx, talliesSize(add), func(tx *writeTx) error { return db.addTallies(tx, add) })
	}
	if err != nil {
		return fmt.Errorf("add to counters: %w", err)
	}
	return nil
}

func talliesSize(add []sessionstore.Tally) (n int) {
	for _, t := range add {
		n += len(t.Key) + 32
	}
	return n
}

// addTallies adds to the log, and adds that up when it is long.
func (db *DB) addTallies(tx *writeTx, add []sessionstore.Tally) error {
	if len(add) == 0 {
		return nil
	}
	seq, err := tx.next(tlgBucket)
	if err != nil {
		return err
	}
	key := u64(seq)
	if err := tx.put(tlgBucket, key, encodeLog(key, add)); err != nil {
		return err
	}
	if first, _ := tx.bucket(tlgBucket).Cursor().First(); seq-binary.BigEndian.Uint64(first) < logLen-1 {
		return nil
	}
	return db.addUp(tx)
}

// addUp adds the log to the counters and empties it. Counters tell what was used; that one is damaged is
// no reason to refuse a turn, so it begins anew.
func (db *DB) addUp(tx *writeTx) error {
	sums := map[string]sessionstore.Counts{}
	var entries [][]byte
	for key, rec := range tx.within(tlgBucket, nil, nil) {
		entries = append(entries, bytes.Clone(key))
		err := decodeLog(key, rec, func(name []byte, counts sessionstore.Counts) {
			sums[string(name)] = sums[string(name)].Add(counts)
		})
		if err != nil {
			db.opts.Logger.Error("what a turn has used is not counted", "err", err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		key := []byte(name)
		counts := sums[name]
		if rec := tx.get(tlyBucket, key); rec != nil {
			old, err := decodeCounts(key, rec)
			if err != nil {
				db.opts.Logger.Error("a counter begins anew", "err", err)
			}
			counts = counts.Add(old)
		}
		if err := tx.put(tlyBucket, key, encodeCounts(key, counts)); err != nil {
			return err
		}
	}
	for _, key := range entries {
		if err := tx.delete(tlgBucket, key); err != nil {
			return err
		}
	}
	return nil
}

// Tallies implements sessionstore.Tallier. Damaged counters are passed over; Verify tells of them.
func (db *DB) Tallies(ctx context.Context, prefix, after string, limit int) (list []sessionstore.Tally, err error) {
	err = db.view(ctx, func(tx *readTx) error {
		list = tx.tallies(prefix, after, limit)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list counters: %w", err)
	}
	return list, nil
}

func (tx *readTx) tallies(prefix, after string, limit int) (list []sessionstore.Tally) {
	for key, rec := range tx.within(tlyBucket, []byte(prefix), []byte(after)) {
		if len(list) >= limit {
			break
		}
		if string(key) == after {
			continue
		}
		if counts, err := decodeCounts(key, rec); err == nil {
			list = append(list, sessionstore.Tally{Key: string(key), Counts: counts})
		}
	}
	if limit <= 0 {
		return nil
	}
	for key, rec := range tx.within(tlgBucket, nil, nil) {
		_ = decodeLog(key, rec, func(name []byte, counts sessionstore.Counts) {
			if !bytes.HasPrefix(name, []byte(prefix)) || string(name) <= after {
				return
			}
			i, found := slices.BinarySearchFunc(list, name, func(t sessionstore.Tally, name []byte) int {
				return strings.Compare(t.Key, string(name))
			})
			switch {
			case found:
				list[i].Counts = list[i].Counts.Add(counts)
			case i < limit:
				list = slices.Insert(list, i, sessionstore.Tally{Key: string(name), Counts: counts})
				list = list[:min(len(list), limit)]
			}
		})
	}
	return list
}

// DropTallies implements sessionstore.Tallier, in steps between which other writes go on.
func (db *DB) DropTallies(ctx context.Context, prefix string) error {
	for more := true; more; {
		err := db.writeFreeing(ctx, func(tx *writeTx) (err error) { more, err = db.dropTallies(tx, prefix); return err })
		if err != nil {
			return fmt.Errorf("drop counters: %w", err)
		}
	}
	return nil
}

func (db *DB) dropTallies(tx *writeTx, prefix string) (more bool, err error) {
	if first, _ := tx.bucket(tlgBucket).Cursor().First(); first != nil {
		if err := db.addUp(tx); err != nil {
			return false, err
		}
	}
	var keys [][]byte
	for key := range tx.within(tlyBucket, []byte(prefix), nil) {
		if keys = append(keys, bytes.Clone(key)); len(keys) == stepKeys {
			more = true
			break
		}
	}
	for _, key := range keys {
		if err := tx.delete(tlyBucket, key); err != nil {
			return false, err
		}
	}
	return more, nil
}
