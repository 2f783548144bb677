package boltstore

import (
	"crypto/sha256"
	"encoding/binary"
	"time"

	"botd/sessionstore"
)

// archive is what a header must know to show an epoch again.
type archive struct {
	epoch uint32
	// generation is the one during which the epoch was the session's.
	generation, next, items, through uint64
	view                             uint32
	recent                           turnList
	at, until                        time.Time
}

func (a *archive) encode(key []byte) []byte {
	b := newRecord(len(a.recent) + 72)
	for _, v := range []uint64{a.generation, a.next, a.items, a.through, uint64(a.view)} {
		b = binary.AppendUvarint(b, v)
	}
	b = appendTime(appendTime(b, a.at), a.until)
	return seal(key, appendBytes(b, a.recent))
}

func decodeArchive(key, rec []byte) (archive, error) {
	payload, err := unseal(key, rec)
	if err != nil {
		return archive{}, err
	}
	r := reader{b: payload}
	a := archive{
		generation: r.uvarint(), next: r.uvarint(), items: r.uvarint(), through: r.uvarint(), view: uint32(r.uvarint()),
		at: r.time(), until: r.time(), recent: r.bytes(),
	}
	a.epoch = binary.BigEndian.Uint32(key[8:])
	return a, r.err(key)
}

// clear gives the session a new epoch and generation. The old epoch becomes an archive, or is left to be
// swept when it holds nothing or archives are not wanted. The caller saves the header.
func (db *DB) clear(tx *writeTx, sid uint64, h *header) error {
	if err := db.retire(tx, sid, h); err != nil {
		return err
	}
	h.generation++
	h.revision++
	return nil
}

// retire takes the present epoch, if it was used, from the session and gives it an empty one.
func (db *DB) retire(tx *writeTx, sid uint64, h *header) error {
	if !h.used() {
		return nil
	}
	old := archive{
		epoch: h.epoch, generation: h.generation, next: h.next, items: h.items, through: h.through, view: h.view, recent: h.recent,
		at: tx.now, until: tx.now.Add(db.opts.ArchiveFor),
	}
	h.epoch, h.nextEpoch = h.nextEpoch, h.nextEpoch+1
	h.next, h.items, h.view, h.through, h.recent = 1, 0, 0, 0, nil
	if old.items == 0 || db.opts.ArchiveFor < 0 {
		return tx.sweepEpoch(sid, old)
	}
	key := archiveKey(sid, old.epoch)
	return tx.put(arcBucket, key, old.encode(key))
}

// sweepEpoch leaves an epoch, which nothing leads to any more, to housekeeping.
func (tx *writeTx) sweepEpoch(sid uint64, a archive) error {
	prefixes := [][]byte{epochKey(sid, turnClass, a.epoch), epochKey(sid, itemClass, a.epoch)}
	if a.view != 0 {
		prefixes = append(prefixes, epochKey(sid, viewClass, a.view))
	}
	for _, prefix := range prefixes {
		if err := tx.put(swpBucket, prefix, nil); err != nil {
			return err
		}
	}
	return nil
}

// tombKey names an erased session without telling who it was.
func tombKey(id sessionstore.ID) []byte {
	sum := sha256.Sum256([]byte(id))
	return sum[:16]
}

// tombstone returns the generation that an erased session left behind, 0 when there was none.
func (tx *readTx) tombstone(id sessionstore.ID) (uint64, error) {
	key := tombKey(id)
	rec := tx.get(tmbBucket, key)
	if rec == nil {
		return 0, nil
	}
	generation, _, err := decodeTomb(key, rec)
	return generation, err
}
