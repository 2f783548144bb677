package boltstore

import (
	"bytes"
	"errors"
	"testing"

	bolt "go.etcd.io/bbolt"

	"botd/channels"
	"botd/channels/dispatch"
)

// TestVerifyTells damages one thing at a time and checks that Verify tells of it.
func TestVerifyTells(t *testing.T) {
	t.Parallel()
	for name, harm := range map[string]func(tx *bolt.Tx) error{
		"flipped bit in an item": func(tx *bolt.Tx) error {
			b := tx.Bucket([]byte("ses"))
			key := itemKey(1, itemClass, 1, 1)
			rec := bytes.Clone(b.Get(key))
			rec[len(rec)-1] ^= 4
			return b.Put(key, rec)
		},
		"item in the wrong place": func(tx *bolt.Tx) error {
			b := tx.Bucket([]byte("ses"))
			return b.Put(itemKey(1, itemClass, 1, 1), bytes.Clone(b.Get(itemKey(1, itemClass, 1, 2))))
		},
		"item missing":           func(tx *bolt.Tx) error { return tx.Bucket([]byte("ses")).Delete(itemKey(1, itemClass, 1, 1)) },
		"header missing":         func(tx *bolt.Tx) error { return tx.Bucket([]byte("ses")).Delete(headerKey(1)) },
		"header too many":        func(tx *bolt.Tx) error { return tx.Bucket([]byte("ses")).Put(headerKey(99), []byte("x")) },
		"key missing":            func(tx *bolt.Tx) error { return tx.Bucket([]byte("key")).Delete([]byte("s")) },
		"key of another session": func(tx *bolt.Tx) error { return tx.Bucket([]byte("key")).Put([]byte("s2"), u64(1)) },
		"items of no session": func(tx *bolt.Tx) error {
			return tx.Bucket([]byte("ses")).Put(itemKey(1, itemClass, 9, 1), []byte("x"))
		},
		"archive of nothing":       func(tx *bolt.Tx) error { return tx.Bucket([]byte("arc")).Put(archiveKey(1, 9), []byte("x")) },
		"event that is no record":  func(tx *bolt.Tx) error { return tx.Bucket([]byte("inb")).Put(u64(1), []byte("x")) },
		"event of a later number":  func(tx *bolt.Tx) error { return tx.Bucket([]byte("inb")).SetSequence(0) },
		"delivery gone":            func(tx *bolt.Tx) error { return tx.Bucket([]byte("out")).Delete(u64(1)) },
		"letter that is no record": func(tx *bolt.Tx) error { return tx.Bucket([]byte("dlq")).Put(u64(1), []byte("x")) },
		"expiry that is no time":   func(tx *bolt.Tx) error { return tx.Bucket([]byte("ddp")).Put([]byte("x"), []byte("x")) },
		"tombstone of no use":      func(tx *bolt.Tx) error { return tx.Bucket([]byte("tmb")).Put([]byte("x"), []byte("x")) },
		"settled delivery that waits": func(tx *bolt.Tx) error {
			return tx.Bucket([]byte("kep")).Put(u64(1), bytes.Clone(tx.Bucket([]byte("out")).Get(u64(1))))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := openDamageable(t, Options{})
			say(t, db, "s", "1", "hello")
			say(t, db, "s", "2", "world")
			_, err := db.Put(t.Context(), []dispatch.Routed{{Session: "s", Event: channels.Inbound{ID: "e"}}})
			must(t, err)
			must(t, db.Commit(t.Context(), dispatch.TurnResult{Session: "s", Replies: []dispatch.Delivery{{Message: channels.Outbound{ID: "d"}}}}))
			must(t, db.Verify(t.Context()))
			must(t, db.bolt.Update(harm))
			if err := db.Verify(t.Context()); !errors.Is(err, ErrCorrupt) {
				t.Errorf("Verify() = %v, want ErrCorrupt", err)
			}
		})
	}
}
