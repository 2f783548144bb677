package boltstore

import (
	"bytes"
	"encoding/binary"
	"encoding/json"

	"botd/sessionstore"
)

// stored checks one record of a Recorder.
func (v *verifier) stored(key, rec []byte) {
	r, err := decodeRecord(key, rec)
	if err != nil {
		v.note(err)
		return
	}
	kind, name, ok := splitRecordKey(key)
	if !ok || kind == "" || name == "" {
		v.fault("record %x has no kind or no key", key)
	}
	if !json.Valid(r.value) {
		v.fault("record %x is no JSON", key)
	}
	if r.version == 0 || r.version > v.tx.bucket(recBucket).Sequence() {
		v.fault("record %x has version %d, which was never given", key, r.version)
	}
	if !r.until.IsZero() && v.tx.get(rexBucket, expiryKey(r.until, key)) == nil {
		v.fault("record %x would never cease to exist", key)
	}
}

// expiry checks that an entry of the index of what ceases to exist leads to a record of that time.
func (v *verifier) expiry(entry, _ []byte) {
	if len(entry) <= 8 {
		v.fault("entry %x of %s is too short", entry, rexBucket)
		return
	}
	key := entry[8:]
	if r, err := decodeRecord(key, v.tx.get(recBucket, key)); err == nil && !bytes.Equal(expiryKey(r.until, key), entry) {
		v.fault("record %x is to cease to exist at another time than its own", key)
	} else if v.tx.get(recBucket, key) == nil {
		v.fault("entry %x of %s leads to nothing", entry, rexBucket)
	}
}

func (v *verifier) counter(key, rec []byte) {
	_, err := decodeCounts(key, rec)
	v.note(err)
}

func (v *verifier) countersLog(key, rec []byte) {
	v.note(decodeLog(key, rec, func([]byte, sessionstore.Counts) {}))
	v.numbered(tlgBucket, key)
}

// recordsKey checks that the key of records is one that belongs to no session.
func (v *verifier) recordsKey() {
	number := v.tx.get(sysBucket, recordsKey)
	if number == nil {
		return
	}
	if len(number) != binary.Size(uint64(0)) {
		v.fault("the key of records has the number %x", number)
		return
	}
	k, err := decodeSessionKey(number, v.tx.get(dekBucket, number))
	if err != nil {
		v.note(err)
	} else if k.session != "" {
		v.fault("the key of records, %x, is a session's", number)
	}
}
