package boltstore

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	bolt "go.etcd.io/bbolt"

	"botd/sessionstore"
)

// In an encrypted file, each session has a key of its own, wrapped by the master key. The records that
// hold what was said are sealed with it: version1 number8 nonce12 ciphertext tag16, bound to their bucket
// and key, so that none can be put in another's place.
const (
	cryptVersion = 2
	cryptLen     = 9
	// KeyLen is the length of Options.Key, in bytes.
	KeyLen = 32
)

// ErrKey is returned by Open when the file is encrypted and the key is another one or missing, or when a
// key is given for a file that is not encrypted. The file is left as it is.
var ErrKey = errors.New("wrong encryption key")

// kcvKey names the key check value in the bucket sys, which only encrypted files have.
var kcvKey = []byte("kcv")

const kcvText = "key check value"

// ParseKey reads a key written as 64 hexadecimal digits or as base64, with space around it or not. Its
// errors do not show the text.
func ParseKey(text string) ([]byte, error) {
	text = strings.TrimSpace(text)
	for _, decode := range []func(string) ([]byte, error){
		hex.DecodeString, base64.StdEncoding.DecodeString, base64.RawURLEncoding.DecodeString,
	} {
		if key, err := decode(text); err == nil && len(key) == KeyLen {
			return key, nil
		}
	}
	return nil, fmt.Errorf("an encryption key is %d random bytes, as hexadecimal digits or base64: openssl rand -hex %d", KeyLen, KeyLen)
}

// newAEAD returns AES-256-GCM with a random nonce before each ciphertext.
func newAEAD(key []byte) (cipher.AEAD, error) {
	if len(key) != KeyLen {
		return nil, fmt.Errorf("an encryption key has %d bytes, this one %d", KeyLen, len(key))
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// newKeyCheck returns what tells the master key from others.
func newKeyCheck(master cipher.AEAD) []byte { return master.Seal(nil, nil, []byte(kcvText), kcvKey) }

// checkKey compares the master key, nil for none, with the file.
func checkKey(sys *bolt.Bucket, encrypted bool, master cipher.AEAD) error {
	switch {
	case !encrypted && master == nil:
		return nil
	case !encrypted:
		return fmt.Errorf("%w: a key is given and the file is not encrypted; a file is encrypted from its beginning or not at all", ErrKey)
	case master == nil:
		return fmt.Errorf("%w: the file is encrypted and no key is given", ErrKey)
	}
	if _, err := master.Open(nil, nil, sys.Get(kcvKey), kcvKey); err != nil {
		return fmt.Errorf("%w: the file was encrypted with another key", ErrKey)
	}
	return nil
}

// encrypts reports whether the records of a bucket are encrypted in an encrypted file, all or, in ses,
// those of items.
func (b bucket) encrypts(key []byte) bool {
	switch b {
	case inbBucket, outBucket, kepBucket, dlqBucket, recBucket:
		return true
	case sesBucket:
		return len(key) == itemKeyLen && (key[8] == itemClass || key[8] == viewClass)
	default:
		return false
	}
}

// bound is what a ciphertext is bound to: its bucket and key.
func bound(b bucket, key []byte) []byte { return append([]byte(b.String()), key...) }

// sessionKey is a session's key as stored, under its number.
type sessionKey struct {
	session sessionstore.ID
	wrapped []byte
}

func (k *sessionKey) encode(number []byte) []byte {
	b := appendBytes(newRecord(len(k.session)+len(k.wrapped)+4), k.session)
	return seal(number, append(b, k.wrapped...))
}

func decodeSessionKey(number, rec []byte) (sessionKey, error) {
	payload, err := unseal(number, rec)
	if err != nil {
		return sessionKey{}, err
	}
	r := reader{b: payload}
	k := sessionKey{session: sessionstore.ID(r.bytes())}
	k.wrapped = r.b
	return k, r.err(number)
}

func (k *sessionKey) bound(number []byte) []byte {
	return append(bound(dekBucket, number), k.session...)
}

// unwrap returns the key itself.
func (k *sessionKey) unwrap(master cipher.AEAD, number []byte) ([]byte, error) {
	key, err := master.Open(nil, nil, k.wrapped, k.bound(number))
	if err != nil {
		return nil, fmt.Errorf("session key %x: %w: it cannot be unwrapped", number, ErrCorrupt)
	}
	return key, nil
}

// key returns the session key of a number.
func (tx *readTx) key(number []byte) (cipher.AEAD, error) {
	n := binary.BigEndian.Uint64(number)
	if k := tx.keys[n]; k != nil {
		return k, nil
	}
	stored, err := decodeSessionKey(number, tx.get(dekBucket, number))
	if err != nil {
		return nil, err
	}
	secret, err := stored.unwrap(tx.master, number)
	if err != nil {
		return nil, err
	}
	k, err := newAEAD(secret)
	if err != nil {
		return nil, err
	}
	if tx.keys == nil {
		tx.keys = map[uint64]cipher.AEAD{}
	}
	tx.keys[n] = k
	return k, nil
}

// plain returns a record as it was before it was encrypted: rec itself in a file that is not. A record
// that cannot be decrypted reads as one of no length, which is damaged wherever it is looked at.
func (tx *readTx) plain(b bucket, key, rec []byte) []byte {
	if tx.master == nil || rec == nil || !b.encrypts(key) {
		return rec
	}
	if len(rec) < cryptLen || rec[0] != cryptVersion {
		return []byte{}
	}
	k, err := tx.key(rec[1:cryptLen])
	if err != nil {
		return []byte{}
	}
	plain, err := k.Open(nil, nil, rec[cryptLen:], bound(b, key))
	if err != nil {
		return []byte{}
	}
	return plain
}

// putFor writes a record that holds what was said in a session, encrypted when the file is.
func (tx *writeTx) putFor(id sessionstore.ID, b bucket, key, rec []byte) error {
	return tx.putSealed(b, key, rec, id, dkiBucket, []byte(id))
}

// recordsKey names, in the bucket sys, the number of the key that records are encrypted with.
var recordsKey = []byte("records")

// putRecord writes what a Recorder keeps, encrypted when the file is.
func (tx *writeTx) putRecord(key, rec []byte) error {
	return tx.putSealed(recBucket, key, rec, "", sysBucket, recordsKey)
}

// putSealed writes a record, encrypted when the file is with the key that has its number under name in the
// bucket numbers. When there is none, it makes one for the session, or, for no ID, for what belongs to none.
func (tx *writeTx) putSealed(b bucket, key, rec []byte, id sessionstore.ID, numbers bucket, name []byte) error {
	if tx.master == nil {
		return tx.put(b, key, rec)
	}
	number := tx.get(numbers, name)
	if len(number) != 8 {
		var err error
		if number, err = tx.newKey(id); err != nil {
			return err
		}
		if err := tx.put(numbers, name, number); err != nil {
			return err
		}
	}
	k, err := tx.key(number)
	if err != nil {
		return err
	}
	out := make([]byte, 0, cryptLen+len(rec)+k.Overhead())
	out = append(append(out, cryptVersion), number...)
	return tx.put(b, key, k.Seal(out, nil, rec, bound(b, key)))
}

// newKey makes a key for a session, or, for no ID, the key of records that belong to none.
func (tx *writeTx) newKey(id sessionstore.ID) (number []byte, err error) {
	n, err := tx.next(dekBucket)
	if err != nil {
		return nil, err
	}
	number = u64(n)
	secret := make([]byte, KeyLen)
	_, _ = rand.Read(secret) // never fails
	stored := sessionKey{session: id}
	stored.wrapped = tx.master.Seal(nil, nil, secret, stored.bound(number))
	return number, tx.put(dekBucket, number, stored.encode(number))
}
