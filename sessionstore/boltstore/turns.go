package boltstore

import (
	"encoding/binary"
)

// A turn that was appended is known by its ID: the newest ones of an epoch are listed in the header, the
// others have a key each. A long session thus changes the pages of the keys once in a while only, and
// most sessions never have any.
const (
	recentTurns = 16
	movedTurns  = recentTurns / 2
)

// turnList is a list of turn IDs, oldest first, each with its length before it.
type turnList []byte

// next returns the first ID and what follows it.
func (l turnList) next() (turn []byte, rest turnList) {
	n, size := binary.Uvarint(l)
	if size <= 0 || n > uint64(len(l)-size) {
		return nil, nil
	}
	return l[size : size+int(n)], l[size+int(n):]
}

func (l turnList) has(turn string) bool {
	for len(l) > 0 {
		var t []byte
		if t, l = l.next(); string(t) == turn {
			return true
		}
	}
	return false
}

func (l turnList) count() (n int) {
	for ; len(l) > 0; n++ {
		_, l = l.next()
	}
	return n
}

// appended reports whether the turn was appended before, in this generation.
func (tx *readTx) appended(sid uint64, h *header, turn string) bool {
	if sid == 0 || turn == "" {
		return false
	}
	return h.recent.has(turn) || tx.get(sesBucket, turnKey(sid, h.epoch, turn)) != nil
}

// remember adds a turn to those appended.
func (tx *writeTx) remember(sid uint64, h *header, turn string) error {
	if turn == "" {
		return nil
	}
	if h.recent.count() >= recentTurns {
		for range movedTurns {
			var old []byte
			old, h.recent = h.recent.next()
			if err := tx.put(sesBucket, turnKey(sid, h.epoch, string(old)), nil); err != nil {
				return err
			}
		}
	}
	// A new slice: the old one is part of the file.
	recent := make([]byte, 0, len(h.recent)+len(turn)+2)
	h.recent = appendBytes(append(recent, h.recent...), turn)
	return nil
}
