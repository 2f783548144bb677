package boltstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"botd/sessionstore"
)

func put(key string) func(*writeTx) error {
	return func(tx *writeTx) error { return tx.put(sysBucket, []byte(key), []byte("x")) }
}

func has(t *testing.T, db *DB, key string) (found bool) {
	t.Helper()
	err := db.view(t.Context(), func(tx *readTx) error {
		found = tx.get(sysBucket, []byte(key)) != nil
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// gate occupies the writer until open is called, so that what comes next has to queue.
func gate(t *testing.T, db *DB) (open func()) {
	t.Helper()
	entered, release := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		var once sync.Once
		if err := db.write(context.Background(), 0, func(tx *writeTx) error {
			once.Do(func() { close(entered) })
			<-release
			return tx.put(sysBucket, []byte("gate"), nil)
		}); err != nil {
			t.Errorf("the write at the gate = %v, want nil", err)
		}
	})
	<-entered
	return func() { close(release); wg.Wait() }
}

func commits(db *DB) int64 {
	s := db.bolt.Stats()
	return s.TxStats.GetWrite()
}

// TestWriterGroups checks that what queues up behind a commit is committed together.
func TestWriterGroups(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const n = 100
		db := openTest(t, Options{})
		open := gate(t, db)
		var wg sync.WaitGroup
		txs := map[int]int{}
		for i := range n {
			wg.Go(func() {
				err := db.write(t.Context(), 0, func(tx *writeTx) error {
					txs[tx.bolt.ID()]++ // one write at a time runs
					return put(fmt.Sprint(i))(tx)
				})
				if err != nil {
					t.Errorf("write %d = %v, want nil", i, err)
				}
			})
		}
		synctest.Wait()
		open()
		wg.Wait()
		if len(txs) != 1 {
			t.Errorf("%d writes took %d transactions, want 1", n, len(txs))
		}
		for i := range n {
			if !has(t, db, fmt.Sprint(i)) {
				t.Errorf("write %d is not there", i)
			}
		}
	})
}

// TestWriterFailsAlone checks that a write that fails in the middle, panics or refuses leaves its
// neighbours alone.
func TestWriterFailsAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := openTest(t, Options{})
		errOdd, errLate := errors.New("refused"), errors.New("failed in the middle")
		kinds := []struct {
			name string
			run  func(tx *writeTx) error
			ok   func(error) bool
		}{
			{"good", nil, func(err error) bool { return err == nil }},
			{"refused", func(*writeTx) error { return errOdd }, func(err error) bool { return errors.Is(err, errOdd) }},
			{"late", func(tx *writeTx) error { return errors.Join(put("half-late")(tx), errLate) }, func(err error) bool { return errors.Is(err, errLate) }},
			{"panic", func(tx *writeTx) error { _ = put("half-panic")(tx); panic("ouch") }, func(err error) bool { return err != nil && strings.Contains(err.Error(), "ouch") }},
		}
		open := gate(t, db)
		var wg sync.WaitGroup
		for i := range 40 {
			kind := kinds[i%len(kinds)]
			run := kind.run
			if run == nil {
				run = put(fmt.Sprint("good-", i))
			}
			wg.Go(func() {
				if err := db.write(t.Context(), 0, run); !kind.ok(err) {
					t.Errorf("write that is %s = %v", kind.name, err)
				}
			})
		}
		synctest.Wait()
		open()
		wg.Wait()
		for i := 0; i < 40; i += len(kinds) {
			if !has(t, db, fmt.Sprint("good-", i)) {
				t.Errorf("good write %d is not there", i)
			}
		}
		for _, key := range []string{"half-late", "half-panic"} {
			if has(t, db, key) {
				t.Errorf("%s of a write that failed is there", key)
			}
		}
		if err := db.Err(); err != nil {
			t.Errorf("Err() = %v, want nil", err)
		}
	})
}

// TestWriterCancel checks that a write that still waits is withdrawn when its context ends, and that its
// caller need not wait for those before it.
func TestWriterCancel(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := openTest(t, Options{})
		open := gate(t, db)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- db.write(ctx, 0, put("withdrawn")) }()
		synctest.Wait()
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := db.write(t.Context(), 0, put("behind")); err != nil {
				t.Errorf("write behind = %v, want nil", err)
			}
		})
		synctest.Wait()
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("withdrawn write = %v, want context.Canceled", err)
		}
		open()
		wg.Wait()
		if has(t, db, "withdrawn") || !has(t, db, "behind") {
			t.Error("a withdrawn write is there, or the one behind it is not")
		}
	})
}

// TestWriterTellsTheOutcome checks that a caller whose context ends during the commit is told how it
// ended.
func TestWriterTellsTheOutcome(t *testing.T) {
	t.Parallel()
	db := openTest(t, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	err := db.write(ctx, 0, func(tx *writeTx) error {
		cancel()
		return put("written")(tx)
	})
	if err != nil || !has(t, db, "written") {
		t.Errorf("write during which the context ended = %v, written %t", err, has(t, db, "written"))
	}
}

// TestWriterRefusalCostsNothing checks that writes that change nothing do not touch the disk.
func TestWriterRefusalCostsNothing(t *testing.T) {
	t.Parallel()
	db := openTest(t, Options{})
	before := commits(db)
	for range 10 {
		if err := db.write(t.Context(), 0, func(*writeTx) error { return nil }); err != nil {
			t.Fatal(err)
		}
		if err := db.Append(t.Context(), "s", sessionstore.Batch{Generation: 7}); !errors.Is(err, sessionstore.ErrStale) {
			t.Fatal(err)
		}
	}
	if after := commits(db); after != before {
		t.Errorf("writes that change nothing wrote %d times", after-before)
	}
}

// TestWriterLimitsBatches checks that one transaction does not carry everything there is.
func TestWriterLimitsBatches(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := openTest(t, Options{})
		open := gate(t, db)
		var wg sync.WaitGroup
		sizes := map[int]int{}
		for i := range 10 {
			wg.Go(func() {
				err := db.write(t.Context(), maxBatchBytes/2, func(tx *writeTx) error {
					sizes[tx.bolt.ID()]++
					return put(fmt.Sprint(i))(tx)
				})
				if err != nil {
					t.Errorf("write = %v, want nil", err)
				}
			})
		}
		synctest.Wait()
		open()
		wg.Wait()
		for id, n := range sizes {
			if n > 2 {
				t.Errorf("transaction %d carries %d writes of half the limit each", id, n)
			}
		}
	})
}

// TestCloseWaits checks that Close lets the writes under way finish and refuses later ones.
func TestCloseWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := openTest(t, Options{})
		open := gate(t, db)
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := db.write(t.Context(), 0, put("queued")); err != nil {
				t.Errorf("write queued before Close = %v, want nil", err)
			}
		})
		synctest.Wait()
		wg.Go(func() {
			if err := db.Close(); err != nil {
				t.Errorf("Close() = %v, want nil", err)
			}
		})
		synctest.Wait()
		if err := db.write(t.Context(), 0, put("late")); !errors.Is(err, sessionstore.ErrClosed) {
			t.Errorf("write after Close = %v, want ErrClosed", err)
		}
		open()
		wg.Wait()
		if db := openTest(t, Options{Path: db.opts.Path}); !has(t, db, "queued") || has(t, db, "late") {
			t.Error("the write before Close is not there, or the one after it is")
		}
	})
}
