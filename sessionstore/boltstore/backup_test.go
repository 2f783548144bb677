package boltstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"botd/channels"
	"botd/channels/dispatch"
	"botd/sessionstore"
)

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
