package boltstore

import (
	"context"
	"fmt"
	"slices"

	"botd/sessionstore"
)

// Fork implements sessionstore.Forker. A long session is copied in several steps, into an epoch that
// nothing leads to until the last one.
func (db *DB) Fork(ctx context.Context, from, to sessionstore.ID, through uint64) error {
	if err := db.fork(ctx, from, to, through); err != nil {
		return fmt.Errorf("fork session: %w", err)
	}
	return nil
}

func (db *DB) fork(ctx context.Context, from, to sessionstore.ID, through uint64) error {
	if err := to.Validate(); err != nil {
		return err
	}
	items, err := db.forkable(ctx, from, through)
	if err != nil {
		return err
	}
	f := fork{to: to}
	defer db.building.Delete(&f)
	if err := db.write(ctx, 0, func(tx *writeTx) error { return db.beginFork(tx, &f) }); err != nil {
		return err
	}
	for chunk := range slices.Chunk(items, maxBatch) {
		err := db.write(ctx, itemsSize(chunk), func(tx *writeTx) error {
			for _, it := range chunk {
				key := itemKey(f.sid, itemClass, f.epoch, it.Seq)
				if err := tx.putFor(f.to, sesBucket, key, encodeItem(key, it)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	next := uint64(1)
	if len(items) > 0 {
		next = items[len(items)-1].Seq + 1
	}
	return db.write(ctx, 0, func(tx *writeTx) error { return db.endFork(tx, &f, next, uint64(len(items))) })
}

// fork is a session that is being built.
type fork struct {
	to    sessionstore.ID
	sid   uint64
	epoch uint32
}

// prefix is where the items go.
func (f *fork) prefix() []byte { return epochKey(f.sid, itemClass, f.epoch) }

// forkable copies the items to begin with.
func (db *DB) forkable(ctx context.Context, from sessionstore.ID, through uint64) (items []sessionstore.Item, err error) {
	if err := from.Validate(); err != nil {
		return nil, err
	}
	err = db.view(ctx, func(tx *readTx) error {
		sid, h, err := tx.session(from)
		if sid == 0 || err != nil {
			return err
		}
		if through < h.through {
			h.view, h.through = 0, 0
		}
		var refs []itemRef
		for ref := range tx.newest(sid, &h) {
			if ref.seq() <= through {
				refs = append(refs, ref)
			}
		}
		items = copyItems(refs)
		return nil
	})
	return items, err
}

// beginFork takes an epoch of the session to be made, and notes that it is to be swept should the
// process end before the fork does.
func (db *DB) beginFork(tx *writeTx, f *fork) error {
	sid, h, err := tx.session(f.to)
	if err != nil {
		return err
	}
	if sid != 0 && h.items > 0 {
		return sessionstore.ErrNotEmpty
	}
	if sid, h, err = tx.create(sid, h, f.to); err != nil {
		return err
	}
	f.sid, f.epoch, h.nextEpoch = sid, h.nextEpoch, h.nextEpoch+1
	db.building.Store(f, string(f.prefix()))
	if err := tx.put(swpBucket, f.prefix(), nil); err != nil {
		return err
	}
	return tx.save(sid, &h)
}

// endFork makes the epoch the session's, unless something was appended meanwhile.
func (db *DB) endFork(tx *writeTx, f *fork, next, items uint64) error {
	sid, h, err := tx.session(f.to)
	if err != nil {
		return err
	}
	if sid != f.sid || h.items > 0 {
		return sessionstore.ErrNotEmpty
	}
	if err := db.clear(tx, sid, &h); err != nil {
		return err
	}
	h.epoch, h.next, h.items = f.epoch, next, items
	if err := tx.delete(swpBucket, f.prefix()); err != nil {
		return err
	}
	return tx.save(sid, &h)
}
