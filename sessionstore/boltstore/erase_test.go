package boltstore

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"botd/channels"
	"botd/channels/dispatch"
	"botd/sessionstore"
)

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
