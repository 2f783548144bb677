package boltstore

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"botd/sessionstore"
)

// archives returns what can be restored of a session, the oldest first.
func (tx *readTx) archives(sid uint64) (list []archive, err error) {
	for key, rec := range tx.within(arcBucket, u64(sid), nil) {
		a, err := decodeArchive(key, rec)
		if err != nil {
			return nil, err
		}
		list = append(list, a)
	}
	// By generation: an epoch that was restored is older than its archive.
	slices.SortFunc(list, func(a, b archive) int { return int(int64(a.generation) - int64(b.generation)) })
	return list, nil
}

// ArchiveTime implements sessionstore.Archiver.
func (db *DB) ArchiveTime() time.Duration { return max(db.opts.ArchiveFor, 0) }

// Archives implements sessionstore.Archiver.
func (db *DB) Archives(ctx context.Context, id sessionstore.ID) (list []sessionstore.Archive, err error) {
	if err := id.Validate(); err != nil {
		return nil, fmt.Errorf("list archives: %w", err)
	}
	err = db.view(ctx, func(tx *readTx) error {
		sid := tx.sid(id)
		if sid == 0 {
			return nil
		}
		archives, err := tx.archives(sid)
		for _, a := range slices.Backward(archives) {
			if a.until.After(now()) {
				list = append(list, sessionstore.Archive{Generation: a.generation, Items: int(a.items), At: a.at, Until: a.until})
			}
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list archives: %w", err)
	}
	return list, nil
}

// Restore implements sessionstore.Archiver.
func (db *DB) Restore(ctx context.Context, id sessionstore.ID, generation uint64) error {
	err := id.Validate()
	if err == nil {
		err = db.write(ctx, 0, func(tx *writeTx) error { return db.restore(tx, id, generation) })
	}
	if err != nil {
		return fmt.Errorf("restore session: %w", err)
	}
	return nil
}

func (db *DB) restore(tx *writeTx, id sessionstore.ID, generation uint64) error {
	sid, h, err := tx.session(id)
	if err != nil {
		return err
	}
	archives, err := tx.archives(sid)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(archives, func(a archive) bool { return a.generation == generation && a.until.After(tx.now) })
	if i < 0 {
		return sessionstore.ErrNoArchive
	}
	a := archives[i]
	a.recent = bytes.Clone(a.recent)
	if err := db.clear(tx, sid, &h); err != nil {
		return err
	}
	h.epoch, h.next, h.items, h.view, h.through, h.recent = a.epoch, a.next, a.items, a.view, a.through, a.recent
	if err := tx.delete(arcBucket, archiveKey(sid, a.epoch)); err != nil {
		return err
	}
	return tx.save(sid, &h)
}
