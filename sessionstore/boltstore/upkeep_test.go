package boltstore

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	bolt "go.etcd.io/bbolt"

	"botd/channels"
	"botd/channels/dispatch"
	"botd/sessionstore"
)

// say appends a turn to a session.
func say(t *testing.T, db *DB, id sessionstore.ID, turn, text string) {
	t.Helper()
	generation, err := db.Generation(t.Context(), id)
	must(t, err)
	raw, err := json.Marshal(map[string]string{"role": "user", "content": text})
	must(t, err)
	must(t, db.Append(t.Context(), id, sessionstore.Batch{Turn: turn, Generation: generation, Items: []sessionstore.Item{{Raw: raw}}}))
}

// count returns how many records a bucket holds.
func count(t *testing.T, db *DB, b bucket) (n int) {
	t.Helper()
	must(t, db.view(t.Context(), func(tx *readTx) error { n = tx.bucket(b).Stats().KeyN; return nil }))
	return n
}

// occurrences counts a word in all files of a folder.
func occurrences(t *testing.T, dir, word string) (n int) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must(t, err)
	for _, e := range entries {
		content, err := os.ReadFile(filepath.Join(dir, e.Name()))
		must(t, err)
		n += bytes.Count(content, []byte(word))
	}
	return n
}

// TestEraseLeavesNoByte looks for what a person said in the raw file, after it went through everything
// that a store keeps and moves about.
func TestEraseLeavesNoByte(t *testing.T) {
	t.Parallel()
	const secret, other = "SECRET-WORD", "OTHER-WORD"
	dir := t.TempDir()
	db := openTest(t, Options{Path: filepath.Join(dir, "botd.db")})
	ctx := t.Context()
	const id sessionstore.ID = "line-shop:user:U-" + secret
	for n := range 120 {
		say(t, db, id, fmt.Sprint(secret, n), secret+strings.Repeat(" x", n*3))
		say(t, db, "other", fmt.Sprint("o", n), other)
		if n%50 == 49 {
			must(t, db.Clear(ctx, id))
		}
	}
	say(t, db, id, "big", strings.Repeat(secret, 10_000))
	revision, err := db.Revision(ctx, id)
	must(t, err)
	must(t, db.Rewrite(ctx, id, sessionstore.Rewrite{Revision: revision, Through: 3, Items: []sessionstore.Item{{Raw: []byte(`{"summary":"` + secret + `"}`)}}}))
	for n := range 4 {
		event := channels.Inbound{ID: fmt.Sprint("e", n), Parts: []channels.Part{{Type: channels.Text, Text: secret}}}
		entries, err := db.Put(ctx, []dispatch.Routed{{Session: id, Event: event}})
		must(t, err)
		must(t, db.Fail(ctx, []uint64{entries[0].Seq}, "failed"))
		if n == 0 {
			continue // pending
		}
		generation, err := db.Generation(ctx, id)
		must(t, err)
		name := fmt.Sprint("d", n)
		must(t, db.Commit(ctx, dispatch.TurnResult{
			Session: id, Turn: name, Generation: generation, Consumed: []uint64{entries[0].Seq}, Dead: []string{"", "", "dead", ""}[n],
			Replies: []dispatch.Delivery{{Message: channels.Outbound{ID: name, Parts: event.Parts}}},
		}))
		if state := []dispatch.State{"", "", dispatch.Dead, dispatch.Unknown}[n]; state != "" {
			must(t, db.Settle(ctx, name, dispatch.Outcome{State: state}))
		}
	}
	if occurrences(t, dir, secret) < 100 {
		t.Fatal("the word is not in the file to begin with")
	}
	must(t, db.Erase(ctx, id))
	if n := occurrences(t, dir, secret); n != 0 {
		t.Errorf("the word is left %d times", n)
	}
	items, err := db.Items(ctx, "other", sessionstore.All)
	if err != nil || len(items) != 120 {
		t.Errorf("the other session has %d items, %v, want 120", len(items), err)
	}
	must(t, db.Close())
	if n := occurrences(t, dir, secret); n != 0 {
		t.Errorf("the word is left %d times after Close", n)
	}
}

// TestEraseAmongOthers erases while others write, and checks that nothing of theirs is lost.
func TestEraseAmongOthers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := openTest(t, Options{Path: filepath.Join(dir, "botd.db")})
	for n := range 50 {
		say(t, db, "gone", fmt.Sprint(n), strings.Repeat("SECRET-WORD", 50))
	}
	var wg sync.WaitGroup
	for p := range 4 {
		wg.Go(func() {
			for n := range 50 {
				say(t, db, sessionstore.ID(fmt.Sprint("p", p)), fmt.Sprint(n), "hello")
			}
		})
	}
	must(t, db.Erase(t.Context(), "gone"))
	wg.Wait()
	for p := range 4 {
		wantItems(t, db, sessionstore.ID(fmt.Sprint("p", p)), 50)
	}
	if n := occurrences(t, dir, "SECRET-WORD"); n != 0 {
		t.Errorf("the word is left %d times", n)
	}
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

// TestBackup takes a backup among writes and opens it.
func TestBackup(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := openTest(t, Options{Path: filepath.Join(dir, "botd.db")})
	for n := range 100 {
		say(t, db, "before", fmt.Sprint(n), "hello")
	}
	stop, began := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for n := 0; ; n++ {
			say(t, db, "during", fmt.Sprint(n), "hello")
			if n == 0 {
				close(began)
			}
			select {
			case <-stop:
				return
			default:
			}
		}
	})
	<-began
	copied := filepath.Join(t.TempDir(), "copy.db")
	f, err := os.OpenFile(copied, os.O_WRONLY|os.O_CREATE, 0o600)
	must(t, err)
	must(t, errors.Join(db.Backup(t.Context(), f), f.Close()))
	close(stop)
	wg.Wait()
	restored := openTest(t, Options{Path: copied})
	if restored.Crashed() {
		t.Error("Crashed() of a backup = true, want false")
	}
	wantItems(t, restored, "before", 100)
	must(t, restored.Verify(t.Context()))

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := db.Backup(ctx, io.Discard); !errors.Is(err, context.Canceled) {
		t.Errorf("Backup with an ended context = %v, want context.Canceled", err)
	}
	errWriter := errors.New("the pipe is broken")
	if err := db.Backup(t.Context(), failingWriter{errWriter}); !errors.Is(err, errWriter) {
		t.Errorf("Backup to a writer that fails = %v, want its error", err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*backup*")); len(left) != 0 {
		t.Errorf("copies are left: %q", left)
	}
}

type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }

// TestOpenRemovesLeftovers checks that copies which a crash left are deleted, and nothing else.
func TestOpenRemovesLeftovers(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "odd [name]*")
	must(t, os.Mkdir(dir, 0o700))
	path := filepath.Join(dir, "botd.db")
	for _, name := range []string{".backup-123", ".backup-9", ".compact", ".new", ".mine", ".backup"} {
		must(t, os.WriteFile(path+name, []byte("x"), 0o600))
	}
	openTest(t, Options{Path: path})
	entries, err := os.ReadDir(dir)
	must(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if got, want := strings.Join(names, " "), "botd.db botd.db.backup botd.db.lock botd.db.mine"; got != want {
		t.Errorf("files after Open: %s, want %s", got, want)
	}
}

// TestCompact checks that compaction gives room back and loses nothing, while others read and write.
func TestCompact(t *testing.T) {
	t.Parallel()
	db := openTest(t, Options{ArchiveFor: -1})
	ctx := t.Context()
	for n := range 60 {
		say(t, db, "large", fmt.Sprint(n), strings.Repeat("x", 100_000))
		say(t, db, "small", fmt.Sprint(n), "hello")
	}
	must(t, db.Commit(ctx, dispatch.TurnResult{Session: "small", Replies: []dispatch.Delivery{{Message: channels.Outbound{ID: "d"}}}}))
	must(t, db.Clear(ctx, "large"))
	must(t, db.Tidy(ctx))
	before, free := db.Size()
	if free < before/2 {
		t.Errorf("%d of %d bytes are free, want most", free, before)
	}
	var wg sync.WaitGroup
	for p := range 4 {
		wg.Go(func() {
			for n := range 30 {
				id := sessionstore.ID(fmt.Sprint("p", p))
				say(t, db, id, fmt.Sprint(n), "hello")
				if items, err := db.Items(ctx, "small", 10); err != nil || len(items) != 10 {
					t.Errorf("Items = %d items, %v, want 10", len(items), err)
				}
			}
		})
	}
	must(t, db.Compact(ctx))
	wg.Wait()
	if after, _ := db.Size(); after > before/3 {
		t.Errorf("size after compaction = %d, was %d", after, before)
	}
	for p := range 4 {
		wantItems(t, db, sessionstore.ID(fmt.Sprint("p", p)), 30)
	}
	wantItems(t, db, "small", 60)
	must(t, db.Settle(ctx, "d", dispatch.Outcome{State: dispatch.Delivered}))
	must(t, db.Close())
	db = openTest(t, Options{Path: db.opts.Path})
	wantItems(t, db, "small", 60)
	if db.Crashed() {
		t.Error("Crashed() after compaction and Close = true, want false")
	}
}

// TestVerifyTells damages one thing at a time and checks that Verify tells of it.
func TestVerifyTells(t *testing.T) {
	t.Parallel()
	for name, harm := range map[string]func(tx *bolt.Tx) error{
		"flipped bit in an item": func(tx *bolt.Tx) error {
			b := tx.Bucket([]byte("ses"))
			key := itemKey(1, itemClass, 1, 1)
			rec := bytes.Clone(b.Get(key))
			rec[len(rec)-1] ^= 4
			return b.Put(key, rec)
		},
		"item in the wrong place": func(tx *bolt.Tx) error {
			b := tx.Bucket([]byte("ses"))
			return b.Put(itemKey(1, itemClass, 1, 1), bytes.Clone(b.Get(itemKey(1, itemClass, 1, 2))))
		},
		"item missing":           func(tx *bolt.Tx) error { return tx.Bucket([]byte("ses")).Delete(itemKey(1, itemClass, 1, 1)) },
		"header missing":         func(tx *bolt.Tx) error { return tx.Bucket([]byte("ses")).Delete(headerKey(1)) },
		"header too many":        func(tx *bolt.Tx) error { return tx.Bucket([]byte("ses")).Put(headerKey(99), []byte("x")) },
		"key missing":            func(tx *bolt.Tx) error { return tx.Bucket([]byte("key")).Delete([]byte("s")) },
		"key of another session": func(tx *bolt.Tx) error { return tx.Bucket([]byte("key")).Put([]byte("s2"), u64(1)) },
		"items of no session": func(tx *bolt.Tx) error {
			return tx.Bucket([]byte("ses")).Put(itemKey(1, itemClass, 9, 1), []byte("x"))
		},
		"archive of nothing":       func(tx *bolt.Tx) error { return tx.Bucket([]byte("arc")).Put(archiveKey(1, 9), []byte("x")) },
		"event that is no record":  func(tx *bolt.Tx) error { return tx.Bucket([]byte("inb")).Put(u64(1), []byte("x")) },
		"event of a later number":  func(tx *bolt.Tx) error { return tx.Bucket([]byte("inb")).SetSequence(0) },
		"delivery gone":            func(tx *bolt.Tx) error { return tx.Bucket([]byte("out")).Delete(u64(1)) },
		"letter that is no record": func(tx *bolt.Tx) error { return tx.Bucket([]byte("dlq")).Put(u64(1), []byte("x")) },
		"expiry that is no time":   func(tx *bolt.Tx) error { return tx.Bucket([]byte("ddp")).Put([]byte("x"), []byte("x")) },
		"tombstone of no use":      func(tx *bolt.Tx) error { return tx.Bucket([]byte("tmb")).Put([]byte("x"), []byte("x")) },
		"settled delivery that waits": func(tx *bolt.Tx) error {
			return tx.Bucket([]byte("kep")).Put(u64(1), bytes.Clone(tx.Bucket([]byte("out")).Get(u64(1))))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := openDamageable(t, Options{})
			say(t, db, "s", "1", "hello")
			say(t, db, "s", "2", "world")
			_, err := db.Put(t.Context(), []dispatch.Routed{{Session: "s", Event: channels.Inbound{ID: "e"}}})
			must(t, err)
			must(t, db.Commit(t.Context(), dispatch.TurnResult{Session: "s", Replies: []dispatch.Delivery{{Message: channels.Outbound{ID: "d"}}}}))
			must(t, db.Verify(t.Context()))
			must(t, db.bolt.Update(harm))
			if err := db.Verify(t.Context()); !errors.Is(err, ErrCorrupt) {
				t.Errorf("Verify() = %v, want ErrCorrupt", err)
			}
		})
	}
}

var update = flag.Bool("update", false, "write the frozen file of the present schema anew")

// TestFrozenFiles opens a file written by each version of the schema. The files are never changed: a new
// schema gets one of its own.
func TestFrozenFiles(t *testing.T) {
	t.Parallel()
	for version := 1; version <= schema; version++ {
		t.Run(fmt.Sprint("schema ", version), func(t *testing.T) {
			t.Parallel()
			frozen := filepath.Join("testdata", fmt.Sprintf("schema%d.db", version))
			if *update && version == schema {
				freeze(t, frozen)
			}
			content, err := os.ReadFile(frozen)
			must(t, err)
			path := filepath.Join(t.TempDir(), "botd.db")
			must(t, os.WriteFile(path, content, 0o600))
			db := openTest(t, Options{Path: path, DedupeFor: 200 * 365 * day, ArchiveFor: 200 * 365 * day})
			ctx := t.Context()
			wantItems(t, db, "plain", 40)
			wantItems(t, db, "rewritten", 3)
			wantItems(t, db, "cleared", 1)
			archives, err := db.Archives(ctx, "cleared")
			if err != nil || len(archives) != 1 || archives[0].Items != 2 {
				t.Errorf("Archives = %+v, %v, want one of 2 items", archives, err)
			}
			say(t, db, "plain", "t0", "once more")
			say(t, db, "plain", "t39", "once more")
			wantItems(t, db, "plain", 40)
			if g, err := db.Generation(ctx, "erased"); err != nil || g != 1 {
				t.Errorf("Generation of an erased session = %d, %v, want 1", g, err)
			}
			st, err := db.Stats(ctx)
			st.Oldest = time.Time{}
			if want := (dispatch.Stats{Pending: 1, Waiting: 1, Held: 1, Unknown: 1, Dead: 1, DeadEvents: 1}); err != nil || st != want {
				t.Errorf("Stats = %+v, %v, want %+v", st, err, want)
			}
			for e, err := range db.Pending(ctx) {
				if err != nil || e.Event.ID != "pending" || e.Attempts != 1 || e.Event.PlainText() != "日本語" {
					t.Errorf("pending entry = %+v, %v", e, err)
				}
			}
			for d, err := range db.Due(ctx, time.Now()) {
				if err != nil || d.Message.ID != "waiting" || !d.Message.Uncertain || d.Session != "plain" {
					t.Errorf("due delivery = %+v, %v", d, err)
				}
			}
		})
	}
}

// freeze writes a file with something of every kind.
func freeze(t *testing.T, path string) {
	must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	live := filepath.Join(t.TempDir(), "botd.db")
	db := openTest(t, Options{Path: live, DedupeFor: 200 * 365 * day, ArchiveFor: 200 * 365 * day})
	ctx := t.Context()
	for n := range 40 {
		say(t, db, "plain", fmt.Sprint("t", n), "hello")
	}
	for n := range 4 {
		say(t, db, "rewritten", fmt.Sprint("t", n), "hello")
	}
	must(t, db.Rewrite(ctx, "rewritten", sessionstore.Rewrite{Through: 2, Items: []sessionstore.Item{{Raw: []byte(`{"summary":true}`)}}}))
	say(t, db, "cleared", "t1", "hello")
	say(t, db, "cleared", "t2", "hello")
	must(t, db.Clear(ctx, "cleared"))
	say(t, db, "cleared", "t1", "hello")
	say(t, db, "erased", "t1", "hello")
	must(t, db.Erase(ctx, "erased"))
	var seqs []uint64
	for _, id := range []string{"dead", "pending"} {
		entries, err := db.Put(ctx, []dispatch.Routed{{Session: "plain", Event: channels.Inbound{ID: id, Parts: []channels.Part{{Type: channels.Text, Text: "日本語"}}}}})
		must(t, err)
		must(t, db.Fail(ctx, []uint64{entries[0].Seq}, "failed"))
		seqs = append(seqs, entries[0].Seq)
	}
	r := dispatch.TurnResult{Session: "plain", Turn: "x", Consumed: seqs[:1], Dead: "no use"}
	for _, id := range []string{"waiting", "held", "unknown", "dead"} {
		r.Replies = append(r.Replies, dispatch.Delivery{Message: channels.Outbound{ID: id}})
	}
	must(t, db.Commit(ctx, r))
	must(t, db.Begin(ctx, "waiting"))
	for _, state := range []dispatch.State{dispatch.Held, dispatch.Unknown, dispatch.Dead} {
		must(t, db.Settle(ctx, string(state), dispatch.Outcome{State: state}))
	}
	must(t, db.Compact(ctx))
	must(t, db.Close())
	content, err := os.ReadFile(live)
	must(t, err)
	// Without the room that the file grew by and does not use yet.
	page := os.Getpagesize()
	pages := (len(bytes.TrimRight(content, "\x00")) + page - 1) / page
	must(t, os.WriteFile(path, content[:pages*page], 0o644))
}
