package boltstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"botd/sessionstore"
	"botd/sessionstore/memstore"
	"botd/sessionstore/storetest"
)

// openTest opens a file that is checked, page by page and record by record, when the test ends.
func openTest(t testing.TB, opts Options) *DB {
	t.Helper()
	db := openDamageable(t, opts)
	t.Cleanup(func() {
		if err := db.Verify(context.Background()); err != nil && !isClosed(err) && db.Err() == nil {
			t.Error(err)
		}
	})
	return db
}

// openDamageable opens a file whose pages alone are checked when the test ends.
func openDamageable(t testing.TB, opts Options) *DB {
	t.Helper()
	if opts.Path == "" {
		opts.Path = filepath.Join(t.TempDir(), "botd.db")
	}
	opts.Logger = slog.New(slog.NewTextHandler(t.Output(), nil))
	db, err := Open(opts)
	if err != nil {
		t.Fatalf("Open() = %v, want nil", err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil && db.Err() == nil {
			t.Errorf("Close() = %v, want nil", err)
		}
		checkFile(t, opts.Path)
	})
	return db
}

// checkFile checks the pages of a file that is not open.
func checkFile(t testing.TB, path string) {
	t.Helper()
	b, err := bolt.Open(path, 0o600, &bolt.Options{ReadOnly: true, Timeout: time.Second, PreLoadFreelist: true})
	if err != nil {
		t.Errorf("open %s to check it: %v", path, err)
		return
	}
	err = b.View(func(tx *bolt.Tx) error {
		var errs []error
		for err := range tx.Check() {
			errs = append(errs, err)
		}
		return errors.Join(errs...)
	})
	if err := errors.Join(err, b.Close()); err != nil {
		t.Errorf("check of %s: %v", path, err)
	}
}

func TestStore(t *testing.T) {
	t.Parallel()
	storetest.Store(t, func(t *testing.T) sessionstore.Store { return openTest(t, Options{}) })
}

func TestLister(t *testing.T) {
	t.Parallel()
	storetest.Lister(t, func(t *testing.T) storetest.Listing { return openTest(t, Options{}) })
}

func TestJournal(t *testing.T) {
	t.Parallel()
	storetest.Journal(t, func(t *testing.T) storetest.Both { return openTest(t, Options{}) })
}

func TestDurable(t *testing.T) {
	t.Parallel()
	storetest.Durable(t, func(t *testing.T, path string) storetest.Both { return openTest(t, Options{Path: path}) })
}

func TestExpiry(t *testing.T) {
	t.Parallel()
	storetest.Expiry(t, func(t *testing.T, dedupeFor time.Duration) storetest.Both {
		return openTest(t, Options{DedupeFor: dedupeFor})
	})
}

// TestModel compares with memstore. A round takes a file of its own; the files of one test lie side by
// side and are checked when their round ends.
func TestModel(t *testing.T) {
	t.Parallel()
	dir, rounds := t.TempDir(), 0
	storetest.Model(t,
		func() storetest.Modelled { return memstore.New() },
		func() storetest.Modelled {
			rounds++
			return unsynced(mustOpen(t, Options{Path: filepath.Join(dir, fmt.Sprint(rounds, ".db"))}))
		},
		func(s storetest.Modelled) storetest.Modelled {
			path := s.(*DB).opts.Path
			if err := s.Close(); err != nil {
				t.Errorf("Close() = %v, want nil", err)
			}
			return unsynced(mustOpen(t, Options{Path: path}))
		},
		func(s storetest.Modelled) {
			if err := s.(*DB).Verify(t.Context()); err != nil {
				t.Error(err)
			}
			if err := s.Close(); err != nil {
				t.Errorf("Close() = %v, want nil", err)
			}
			path := s.(*DB).opts.Path
			checkFile(t, path)
			if err := os.Remove(path); err != nil {
				t.Error(err)
			}
		})
}

func mustOpen(t testing.TB, opts Options) *DB {
	t.Helper()
	db, err := Open(opts)
	if err != nil {
		t.Fatalf("Open() = %v, want nil", err)
	}
	return db
}

// unsynced lets a test of logic alone, of which no process dies, do without waiting for the disk.
func unsynced(db *DB) *DB {
	db.bolt.NoSync = true
	return db
}
