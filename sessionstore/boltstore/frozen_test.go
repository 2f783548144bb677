package boltstore

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"botd/channels"
	"botd/channels/dispatch"
	"botd/sessionstore"
)

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
