package boltstore

import (
	"context"
	"errors"
	"fmt"
	"os"

	bolt "go.etcd.io/bbolt"
)

// Size tells how large the file is and how much of it is free, in bytes. Free space is used again but
// not given back; Compact gives it back.
func (db *DB) Size() (file, free int64) {
	db.mu.RLock()
	defer db.mu.RUnlock()
	if db.bolt == nil {
		return 0, 0
	}
	if err := db.bolt.View(func(tx *bolt.Tx) error { file = tx.Size(); return nil }); err != nil {
		return 0, 0
	}
	stats := db.bolt.Stats()
	return file, int64(stats.FreePageN+stats.PendingPageN) * int64(db.bolt.Info().PageSize)
}

// Compact writes the file anew without its free pages and puts it in the place of the old one. Writes
// wait meanwhile, for some seconds per gigabyte in use; reads go on but for a moment at the end. When it
// fails before that moment, the old file stays in use.
func (db *DB) Compact(ctx context.Context) error {
	err := db.writer.do(ctx, &write{alone: db.compact})
	if err != nil {
		return fmt.Errorf("compact %s: %w", db.opts.Path, err)
	}
	return nil
}

func (db *DB) compact() error {
	if err := db.Err(); err != nil {
		return err
	}
	// bbolt panics on a damaged source in ways of its own.
	if err := checkPages(db.bolt); err != nil {
		return err
	}
	tmp := db.opts.Path + compactSuffix
	if err := copyTo(tmp, db.bolt, db.opts); err != nil {
		return errors.Join(err, os.Remove(tmp))
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	err := db.bolt.Close()
	if err == nil {
		err = replace(tmp, db.opts.Path)
	}
	if err == nil {
		db.info, err = os.Stat(db.opts.Path)
	}
	if err == nil {
		db.bolt, err = openBolt(db.opts, db.opts.Path)
	}
	if err != nil {
		failed := fmt.Errorf("%w: %w", ErrFailed, err)
		db.failed.CompareAndSwap(nil, &failed)
		return failed
	}
	return nil
}

// copyTo writes what is in use to a new file.
func copyTo(path string, src *bolt.DB, opts Options) (err error) {
	defer recovered(&err, ErrCorrupt)
	opts.MaxSize = 0
	dst, err := openBolt(opts, path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dst.Close()) }()
	dst.NoSync = true
	if err := bolt.Compact(dst, src, 1<<20); err != nil {
		return err
	}
	return dst.Sync()
}
