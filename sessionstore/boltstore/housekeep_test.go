package boltstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"botd/channels"
	"botd/channels/dispatch"
	"botd/sessionstore"
)

// count returns how many records a bucket holds.
func count(t *testing.T, db *DB, b bucket) (n int) {
	t.Helper()
	must(t, db.view(t.Context(), func(tx *readTx) error { n = tx.bucket(b).Stats().KeyN; return nil }))
	return n
}

// TestHousekeep checks that what is kept for a time is there for that time, and gone afterwards.
func TestHousekeep(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := unsynced(openTest(t, Options{DedupeFor: time.Hour, KeepFor: 48 * time.Hour, ArchiveFor: 24 * time.Hour}))
		ctx, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := db.Housekeep(ctx); err != nil {
				t.Errorf("Housekeep() = %v, want nil", err)
			}
		})
		defer wg.Wait()
		defer stop()
		for n := range 1300 { // several steps
			say(t, db, "s", fmt.Sprint(n), "hello")
		}
		must(t, db.Clear(ctx, "s"))
		say(t, db, "s", "now", "hello")
		say(t, db, "gone", "now", "hello")
		must(t, db.Erase(ctx, "gone"))
		entries, err := db.Put(ctx, []dispatch.Routed{{Session: "s", Event: channels.Inbound{ID: "e"}}})
		must(t, err)
		must(t, db.Commit(ctx, dispatch.TurnResult{
			Session: "s", Generation: 1, Consumed: []uint64{entries[0].Seq}, Dead: "dead",
			Replies: []dispatch.Delivery{{Message: channels.Outbound{ID: "dead"}}, {Message: channels.Outbound{ID: "held"}}},
		}))
		must(t, db.Settle(ctx, "dead", dispatch.Outcome{State: dispatch.Dead}))
		must(t, db.Settle(ctx, "held", dispatch.Outcome{State: dispatch.Held}))
		for _, tt := range []struct {
			after                        time.Duration
			ddp, arc, kep, dlq, tmb, ses int
			what                         string
		}{
			{30 * time.Minute, 1, 1, 1, 1, 1, 1300 + 1288 + 2, "all is kept"},
			{31 * time.Minute, 0, 1, 1, 1, 1, 1300 + 1288 + 2, "the event is forgotten"},
			{23 * time.Hour, 0, 0, 1, 1, 1, 2, "the archive is gone"},
			{25 * time.Hour, 0, 0, 0, 0, 0, 2, "the dead are gone"},
		} {
			time.Sleep(tt.after)
			synctest.Wait()
			for b, want := range map[bucket]int{ddpBucket: tt.ddp, arcBucket: tt.arc, kepBucket: tt.kep, dlqBucket: tt.dlq, tmbBucket: tt.tmb, sesBucket: tt.ses, outBucket: 1} {
				if got := count(t, db, b); got != want {
					t.Errorf("when %s, %s holds %d records, want %d", tt.what, b, got, want)
				}
			}
		}
		if n := count(t, db, swpBucket); n != 0 {
			t.Errorf("%d prefixes are left to sweep", n)
		}
		wantItems(t, db, "s", 1)
	})
}

// TestHousekeepEnds checks that Housekeep ends with the store.
func TestHousekeepEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := openTest(t, Options{})
		done := make(chan error)
		go func() { done <- db.Housekeep(context.Background()) }()
		synctest.Wait()
		must(t, db.Close())
		if err := <-done; !errors.Is(err, sessionstore.ErrClosed) {
			t.Errorf("Housekeep() of a closed store = %v, want ErrClosed", err)
		}
	})
}

// TestSweepAfterCrash checks that what a fork left behind when the process ended is swept, and what it
// completed is not.
func TestSweepAfterCrash(t *testing.T) {
	t.Parallel()
	db := openTest(t, Options{ArchiveFor: -1})
	ctx := t.Context()
	for n := range 10 {
		say(t, db, "s", fmt.Sprint(n), "hello")
	}
	f := fork{to: "half"}
	must(t, db.write(ctx, 0, func(tx *writeTx) error { return db.beginFork(tx, &f) }))
	must(t, db.write(ctx, 0, func(tx *writeTx) error {
		key := itemKey(f.sid, itemClass, f.epoch, 1)
		return tx.put(sesBucket, key, encodeItem(key, sessionstore.Item{Raw: []byte(`{}`)}))
	}))
	before := count(t, db, sesBucket)
	must(t, db.Tidy(ctx))
	if n := count(t, db, sesBucket); n != before {
		t.Errorf("%d records of a fork at work were swept", before-n)
	}
	must(t, db.Close())
	db = openTest(t, Options{Path: db.opts.Path, ArchiveFor: -1})
	must(t, db.Fork(ctx, "s", "whole", 5))
	must(t, db.Tidy(ctx))
	wantItems(t, db, "whole", 5)
	wantItems(t, db, "half", 0)
	must(t, db.Clear(ctx, "s"))
	must(t, db.Tidy(ctx))
	if n := count(t, db, sesBucket); n != 3+5 {
		t.Errorf("%d records are left, want 3 headers and 5 items", n)
	}
}
