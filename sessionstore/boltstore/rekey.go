package boltstore

import (
	"bytes"
	"context"
	"crypto/cipher"
	"fmt"

	"botd/sessionstore"
)

// Rekey wraps the keys of all sessions with another master key, which Options.Key has to be from then on,
// and overwrites the old wrappings in the file. Reads and writes wait while keys are wrapped. What was said
// is not written anew, and backups made before are still opened by the old key. ErrKey: the file is not
// encrypted. After an error that is not ErrKey the new key may be in use already: repeat Rekey with it.
func (db *DB) Rekey(ctx context.Context, key []byte) error {
	err := db.writer.do(ctx, &write{alone: func() error { return db.rekey(key) }})
	if err == nil {
		err = db.scrub(ctx)
	}
	if err != nil {
		return fmt.Errorf("change encryption key: %w", err)
	}
	return nil
}

func (db *DB) rekey(key []byte) error {
	if err := db.Err(); err != nil {
		return err
	}
	master, err := newAEAD(key)
	if err != nil {
		return err
	}
	// No reader may see one master key and session keys wrapped with the other.
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.master == nil {
		return fmt.Errorf("%w: the file is not encrypted", ErrKey)
	}
	btx, err := db.begin()
	if err != nil {
		return err
	}
	tx := &writeTx{readTx: readTx{bolt: btx, master: db.master}}
	if err := tx.rewrap(master); err != nil {
		rollback(btx)
		return err
	}
	id := btx.ID()
	if err := commitTx(btx); err != nil {
		return db.judge(id, err)
	}
	db.master = master
	return nil
}

// rewrap wraps every session key anew.
func (tx *writeTx) rewrap(master cipher.AEAD) error {
	var numbers [][]byte
	c := tx.bucket(dekBucket).Cursor()
	for number, _ := c.First(); number != nil; number, _ = c.Next() {
		numbers = append(numbers, bytes.Clone(number))
	}
	for _, number := range numbers {
		k, err := decodeSessionKey(number, tx.get(dekBucket, number))
		if err != nil {
			return err
		}
		secret, err := k.unwrap(tx.master, number)
		if err != nil {
			return err
		}
		k.wrapped = master.Seal(nil, nil, secret, k.bound(number))
		if err := tx.put(dekBucket, number, k.encode(number)); err != nil {
			return err
		}
	}
	return tx.put(sysBucket, kcvKey, newKeyCheck(master))
}

// forgetKey has new records of a session encrypted with another key than those there are.
func (tx *writeTx) forgetKey(id sessionstore.ID) error {
	if tx.master == nil || tx.get(dkiBucket, []byte(id)) == nil {
		return nil
	}
	return tx.delete(dkiBucket, []byte(id))
}

// eraseKeysOf deletes the keys of a session but for the one that new records are encrypted with.
func (db *DB) eraseKeysOf(ctx context.Context, id sessionstore.ID) error {
	var numbers [][]byte
	err := db.view(ctx, func(tx *readTx) error {
		if tx.master == nil {
			return nil
		}
		current := tx.get(dkiBucket, []byte(id))
		c := tx.bucket(dekBucket).Cursor()
		for number, rec := c.First(); number != nil; number, rec = c.Next() {
			k, err := decodeSessionKey(number, rec)
			if err == nil && k.session == id && !bytes.Equal(number, current) {
				numbers = append(numbers, bytes.Clone(number))
			}
		}
		return nil
	})
	if err != nil || len(numbers) == 0 {
		return err
	}
	return db.writeFreeing(ctx, func(tx *writeTx) error {
		for _, number := range numbers {
			if err := tx.delete(dekBucket, number); err != nil {
				return err
			}
		}
		return nil
	})
}
