package boltstore

import (
	"context"
	"crypto/cipher"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"botd/channels/dispatch"
	"botd/sessionstore"
)

var (
	_ sessionstore.Store    = (*DB)(nil)
	_ sessionstore.Lister   = (*DB)(nil)
	_ sessionstore.Archiver = (*DB)(nil)
	_ sessionstore.Eraser   = (*DB)(nil)
	_ sessionstore.Rewriter = (*DB)(nil)
	_ sessionstore.Forker   = (*DB)(nil)
	_ dispatch.Journal      = (*DB)(nil)
	_ dispatch.Inspector    = (*DB)(nil)
)

// DB is an open file. Make one with Open.
type DB struct {
	opts   Options
	lock   *fileLock
	writer *writer
	outbox outboxIndex
	// master wraps the keys of sessions, nil in a file that is not encrypted; mu guards it against being
	// replaced under a reader.
	master cipher.AEAD
	failed atomic.Pointer[error]
	// building holds the forks at work, each with the prefix that it writes below.
	building sync.Map
	// crashed says that the file was not closed when it was last used.
	crashed bool

	// mu guards bolt, and info, which tells which file it is, against being replaced or closed under a
	// reader.
	mu        sync.RWMutex
	bolt      *bolt.DB
	info      os.FileInfo
	closeOnce sync.Once
	closeErr  error
}

// Err returns why the store takes no more writes, nil while it does; see ErrFailed and ErrGone.
func (db *DB) Err() error {
	if err := db.failed.Load(); err != nil {
		return *err
	}
	return db.inPlace()
}

// inPlace returns ErrGone when the path no longer leads to the open file. Writing on would succeed, and
// all of it would be lost with the process.
func (db *DB) inPlace() error {
	db.mu.RLock()
	defer db.mu.RUnlock()
	if db.bolt == nil {
		return nil
	}
	switch info, err := os.Stat(db.opts.Path); {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: %s was deleted or moved away; put it back, or restart to begin with an empty one", ErrGone, db.opts.Path)
	case err == nil && !os.SameFile(info, db.info):
		return fmt.Errorf("%w: another file stands at %s; restart to use that one", ErrGone, db.opts.Path)
	}
	return nil
}

// Crashed reports whether the process that used the file before ended without closing it. Nothing is
// lost then; an operator may want to Verify.
func (db *DB) Crashed() bool { return db.crashed }

// view runs read on one state of the file. read copies what it keeps.
func (db *DB) view(ctx context.Context, read func(*readTx) error) (err error) {
	db.mu.RLock()
	defer db.mu.RUnlock()
	if db.bolt == nil {
		return sessionstore.ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	defer recovered(&err, ErrCorrupt)
	err = db.bolt.View(func(btx *bolt.Tx) error { return read(&readTx{bolt: btx, master: db.master}) })
	if errors.Is(err, bolterrors.ErrDatabaseNotOpen) {
		return sessionstore.ErrClosed
	}
	return err
}

// Close waits for the writes and reads under way, marks the file as left in good order and releases it.
func (db *DB) Close() error {
	db.closeOnce.Do(func() {
		db.writer.close()
		db.mu.Lock()
		defer db.mu.Unlock()
		if db.bolt != nil {
			if db.failed.Load() == nil {
				db.closeErr = markClean(db.bolt)
			}
			db.closeErr = errors.Join(db.closeErr, db.bolt.Close())
			db.bolt = nil
		}
		if db.closeErr = errors.Join(db.closeErr, db.lock.release()); db.closeErr != nil {
			db.closeErr = fmt.Errorf("close %s: %w", db.opts.Path, db.closeErr)
		}
	})
	return db.closeErr
}
