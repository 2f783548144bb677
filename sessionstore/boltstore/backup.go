package boltstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	bolt "go.etcd.io/bbolt"
)

// Backup writes a copy of the file to w, as it is at one moment, while other reads and writes go on. The
// copy is first made beside the file, which needs as much room again, and checked page by page, so that a
// slow w holds nothing up. To restore it, put it in the place of the file while no process has that open.
//
// A copy holds, in its free pages, what was deleted but not erased before it was made.
func (db *DB) Backup(ctx context.Context, w io.Writer) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("back up %s: %w", db.opts.Path, err)
		}
	}()
	f, err := os.CreateTemp(filepath.Dir(db.opts.Path), filepath.Base(db.opts.Path)+backupSuffix+"*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(f.Name())) }()
	err = db.view(ctx, func(tx *readTx) error {
		_, err := tx.bolt.WriteTo(&contextWriter{ctx, f})
		return err
	})
	if err != nil {
		return err
	}
	if err := finishCopy(f.Name()); err != nil {
		return err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	_, err = io.Copy(&contextWriter{ctx, w}, f)
	return err
}

// finishCopy checks a copy and marks it as left in good order.
func finishCopy(path string) (err error) {
	b, err := openBolt(Options{}.withDefaults(), path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	if err := checkPages(b); err != nil {
		return err
	}
	return markClean(b)
}

// checkPages checks the pages of a file that nobody writes.
func checkPages(b *bolt.DB) (err error) {
	defer recovered(&err, ErrCorrupt)
	return b.View(func(tx *bolt.Tx) error {
		var errs []error
		for err := range tx.Check() {
			if len(errs) < maxFaults {
				errs = append(errs, fmt.Errorf("%w: %w", ErrCorrupt, err))
			}
		}
		return errors.Join(errs...)
	})
}

// contextWriter stops writing when its context ends.
type contextWriter struct {
	ctx context.Context
	w   io.Writer
}

func (w *contextWriter) Write(p []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	return w.w.Write(p)
}
