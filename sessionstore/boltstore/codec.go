package boltstore

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"strings"
	"time"

	"botd/sessionstore"
)

// Every record is sealed: version1 crc4 payload. The checksum covers the key too, so that a record in
// the wrong place is as damaged as one with a flipped bit.
const (
	recordVersion = 1
	sealLen       = 5
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// newRecord returns the beginning of a record with room for a payload of n bytes.
func newRecord(n int) []byte {
	b := make([]byte, sealLen, sealLen+n)
	b[0] = recordVersion
	return b
}

// seal completes a record made by newRecord.
func seal(key, rec []byte) []byte {
	binary.BigEndian.PutUint32(rec[1:], checksum(key, rec))
	return rec
}

func checksum(key, rec []byte) uint32 {
	return crc32.Update(crc32.Checksum(key, castagnoli), castagnoli, rec[sealLen:])
}

// unseal returns the payload of a record, which is part of rec.
func unseal(key, rec []byte) ([]byte, error) {
	switch {
	case len(rec) == 0:
		return nil, fmt.Errorf("record %x: %w: empty, or cannot be decrypted", key, ErrCorrupt)
	case len(rec) < sealLen:
		return nil, fmt.Errorf("record %x: %w: cut short", key, ErrCorrupt)
	case rec[0] != recordVersion:
		return nil, fmt.Errorf("record %x: %w: version %d", key, ErrCorrupt, rec[0])
	case binary.BigEndian.Uint32(rec[1:]) != checksum(key, rec):
		return nil, fmt.Errorf("record %x: %w: checksum differs", key, ErrCorrupt)
	}
	return rec[sealLen:], nil
}

// reader takes a payload apart; what is missing reads as zero and sets bad.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) take(n int) []byte {
	if n < 0 || n > len(r.b) {
		r.bad, r.b = true, nil
		return nil
	}
	v := r.b[:n]
	r.b = r.b[n:]
	return v
}

func (r *reader) uvarint() uint64 { return readNumber(r, binary.Uvarint) }

func (r *reader) varint() int64 { return readNumber(r, binary.Varint) }

func readNumber[T int64 | uint64](r *reader, decode func([]byte) (T, int)) T {
	v, n := decode(r.b)
	if n <= 0 {
		r.bad, r.b = true, nil
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) byte() byte {
	if v := r.take(1); v != nil {
		return v[0]
	}
	return 0
}

func (r *reader) bytes() []byte {
	n := r.uvarint()
	if n > uint64(len(r.b)) {
		r.bad, r.b = true, nil
		return nil
	}
	return r.take(int(n))
}

func (r *reader) time() time.Time {
	v := r.take(8)
	if v == nil {
		return time.Time{}
	}
	return decodeTime(int64(binary.BigEndian.Uint64(v)))
}

// err says that the record under key is damaged when something was missing.
func (r *reader) err(key []byte) error {
	if r.bad {
		return fmt.Errorf("record %x: %w: cut short", key, ErrCorrupt)
	}
	return nil
}

func appendBytes[T ~string | ~[]byte](b []byte, v T) []byte {
	return append(binary.AppendUvarint(b, uint64(len(v))), v...)
}

func appendTime(b []byte, t time.Time) []byte {
	return binary.BigEndian.AppendUint64(b, uint64(encodeTime(t)))
}

// now is the time as it is stored: UTC, without a monotonic part.
func now() time.Time { return time.Now().UTC().Round(0) }

// Times are stored as nanoseconds since 1970, the zero time as 0, and those that are too far away for that
// as the last or first that is not.
func encodeTime(t time.Time) int64 {
	switch {
	case t.IsZero():
		return 0
	case t.Year() > 2261:
		return math.MaxInt64
	case t.Year() < 1678:
		return math.MinInt64
	}
	return t.UnixNano()
}

func decodeTime(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}

// Keys of one session in the bucket ses: sid8, a class, an epoch, and what the class needs.
const (
	turnClass   = 0
	viewClass   = 1
	itemClass   = 2
	headerClass = 0xff

	epochLen   = 13 // sid8 class1 epoch4
	itemKeyLen = epochLen + 8
)

func u64(v uint64) []byte { return binary.BigEndian.AppendUint64(make([]byte, 0, 8), v) }

func headerKey(sid uint64) []byte { return append(u64(sid), headerClass) }

// epochKey is the prefix of the keys of one class in one epoch.
func epochKey(sid uint64, class byte, epoch uint32) []byte {
	b := make([]byte, 0, itemKeyLen)
	b = binary.BigEndian.AppendUint64(b, sid)
	b = append(b, class)
	return binary.BigEndian.AppendUint32(b, epoch)
}

func itemKey(sid uint64, class byte, epoch uint32, seq uint64) []byte {
	return binary.BigEndian.AppendUint64(epochKey(sid, class, epoch), seq)
}

func turnKey(sid uint64, epoch uint32, turn string) []byte {
	return append(epochKey(sid, turnClass, epoch), turn...)
}

// archiveKey is the key of an archive: sid8 epoch4.
func archiveKey(sid uint64, epoch uint32) []byte {
	return binary.BigEndian.AppendUint32(u64(sid), epoch)
}

// encodeItem makes the record of an item: turn, origin, time, then the item as it came.
func encodeItem(key []byte, it sessionstore.Item) []byte {
	b := newRecord(len(it.Turn) + len(it.Origin) + len(it.Raw) + 16)
	b = appendBytes(b, it.Turn)
	b = appendBytes(b, it.Origin)
	b = appendTime(b, it.At)
	return seal(key, append(b, it.Raw...))
}

// itemRef is an item that still lies in the file.
type itemRef struct {
	key                []byte
	turn, origin, body []byte
	at                 time.Time
}

func decodeItem(key, rec []byte) (itemRef, error) {
	payload, err := unseal(key, rec)
	if err != nil {
		return itemRef{}, err
	}
	r := reader{b: payload}
	ref := itemRef{key: key, turn: r.bytes(), origin: r.bytes(), at: r.time()}
	ref.body = r.b
	return ref, r.err(key)
}

func (ref itemRef) seq() uint64 { return binary.BigEndian.Uint64(ref.key[epochLen:]) }

// copyItems copies items out of the file, newest first in refs, oldest first in the result, with one
// allocation for all that they say and one for all their names.
func copyItems(refs []itemRef) []sessionstore.Item {
	if len(refs) == 0 {
		return nil
	}
	size, names := 0, 0
	for i := range refs {
		size += len(refs[i].body)
		names += len(refs[i].turn) + len(refs[i].origin)
	}
	arena := make([]byte, 0, size)
	var text strings.Builder
	text.Grow(names)
	// name copies a name, or returns the last one when it is the same.
	name := func(last string, b []byte) string {
		if last == string(b) {
			return last
		}
		from := text.Len()
		text.Write(b)
		return text.String()[from:]
	}
	items := make([]sessionstore.Item, len(refs))
	var turn, origin string
	for i := range refs {
		ref := &refs[len(refs)-1-i]
		turn, origin = name(turn, ref.turn), name(origin, ref.origin)
		from := len(arena)
		arena = append(arena, ref.body...)
		items[i] = sessionstore.Item{
			Seq: ref.seq(), Turn: turn, Origin: origin, At: ref.at, Raw: arena[from:len(arena):len(arena)],
		}
	}
	return items
}
