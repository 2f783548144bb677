package storetest

import (
	"fmt"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"botd/channels/dispatch"
	"botd/sessionstore"
)

// Durable checks that what was written is there after the store was closed and opened again. open is
// called several times with one path.
func Durable(t *testing.T, open func(t *testing.T, path string) Both) {
	for _, tt := range []struct {
		name string
		// before writes, after checks what another opening of the same store tells.
		before, after func(t *testing.T, s Both)
	}{
		{"Sessions", reopenSessionsBefore, reopenSessionsAfter},
		{"Turns", reopenTurnsBefore, reopenTurnsAfter},
		{"Inbox", reopenInboxBefore, reopenInboxAfter},
		{"Outbox", reopenOutboxBefore, reopenOutboxAfter},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "store")
			s := open(t, path)
			tt.before(t, s)
			must(t, "Close", s.Close())
			for range 2 {
				s = open(t, path)
				tt.after(t, s)
				must(t, "Close", s.Close())
			}
		})
	}
}

func reopenSessionsBefore(t *testing.T, s Both) {
	session{t, s, "kept"}.append("t1", hello, world)
	cleared := session{t, s, "cleared"}
	cleared.append("t1", hello)
	cleared.clear()
	cleared.clear()
	popped := session{t, s, "popped"}
	popped.append("t1", hello, world)
	popped.pop()
}

func reopenSessionsAfter(t *testing.T, s Both) {
	session{t, s, "kept"}.want(hello, world)
	cleared := session{t, s, "cleared"}
	cleared.want()
	if g := cleared.generation(); g != 2 {
		t.Errorf("generation = %d, want 2", g)
	}
	session{t, s, "popped"}.want(hello)
	wantErr(t, "Append from before the clear", s.Append(t.Context(), "cleared", batch("t1", 0, hello)), sessionstore.ErrStale)
}

func reopenTurnsBefore(t *testing.T, s Both) {
	session{t, s, "s"}.append("t1", hello)
	commit(t, s, turn("t2", put(t, s, "e1")...))
	session{t, s, "seq"}.append("t1", hello, world)
	session{t, s, "seq"}.pop()
}

func reopenTurnsAfter(t *testing.T, s Both) {
	ses := session{t, s, "s"}
	ses.append("t1", hello)
	ses.want(hello)
	session{t, s, journalSession}.append("t2", hello, world)
	session{t, s, journalSession}.want(hello, world)
	seq := session{t, s, "seq"}
	last := seq.items(1)[0].Seq
	seq.append("", world)
	if got := seq.items(1)[0].Seq; got <= last+1 {
		t.Errorf("Seq of a popped item was used again: %d", got)
	}
	seq.pop()
}

func reopenInboxBefore(t *testing.T, s Both) {
	entries := put(t, s, "e1", "e2", "e3")
	commit(t, s, turn("t1", entries[0]))
	must(t, "Fail", s.Fail(t.Context(), seqsOf(entries[1:2]), "model is away"))
	r := turn("t2", put(t, s, "dead")...)
	r.Dead, r.Replies = "no use", nil
	commit(t, s, r)
}

func reopenInboxAfter(t *testing.T, s Both) {
	wantPending(t, s, "e2", "e3")
	entries := pending(t, s)
	if entries[0].Attempts != 1 {
		t.Errorf("attempts = %d, want 1", entries[0].Attempts)
	}
	if diff := cmp.Diff(routed("e2"), entries[0].Routed); diff != "" {
		t.Errorf("event differs (-want +got):\n%s", diff)
	}
	if fresh := put(t, s, "e1", "e2", "e3", "dead"); len(fresh) != 0 {
		t.Errorf("known events are fresh after opening again: %v", eventIDs(fresh))
	}
	probe := fmt.Sprint("probe-", time.Now().UnixNano())
	fresh := put(t, s, probe)
	if fresh[0].Seq <= entries[1].Seq {
		t.Errorf("Seq %d after opening again, %d was given before", fresh[0].Seq, entries[1].Seq)
	}
	commit(t, s, dispatch.TurnResult{Session: journalSession, Turn: probe, Consumed: seqsOf(fresh)})
	wantStats(t, s, dispatch.Stats{Pending: 2, Waiting: 1, DeadEvents: 1})
}

func reopenOutboxBefore(t *testing.T, s Both) {
	replies(t, s, "first", "begun", "later", "held", "unknown", "dead", "delivered", "last")
	must(t, "Begin", s.Begin(t.Context(), "begun"))
	settle(t, s, "later", dispatch.Outcome{State: dispatch.Waiting, NextAt: farFuture, Reason: "busy"})
	settle(t, s, "held", dispatch.Outcome{State: dispatch.Held, Reason: "quota"})
	settle(t, s, "unknown", dispatch.Outcome{State: dispatch.Unknown, Reason: "connection lost"})
	settle(t, s, "dead", dispatch.Outcome{State: dispatch.Dead, Reason: "blocked"})
	settle(t, s, "delivered", dispatch.Outcome{State: dispatch.Delivered})
}

var farFuture = time.Date(2100, 1, 2, 3, 4, 5, 6, time.UTC)

func reopenOutboxAfter(t *testing.T, s Both) {
	wantDue(t, s, farFuture.Add(-1), "first", "begun", "last")
	wantDue(t, s, farFuture, "first", "begun", "later", "last")
	for _, d := range due(t, s, farFuture) {
		if want := d.Message.ID == "begun"; d.Message.Uncertain != want {
			t.Errorf("delivery %s uncertain = %t, want %t", d.Message.ID, d.Message.Uncertain, want)
		}
		if d.Message.ID == "later" && (d.Attempts != 1 || d.Reason != "busy") {
			t.Errorf("delivery later has %d attempts, reason %q", d.Attempts, d.Reason)
		}
	}
	wantStats(t, s, dispatch.Stats{Waiting: 4, Held: 1, Unknown: 1, Dead: 1})
	for _, id := range []string{"unknown", "dead", "delivered"} {
		wantErr(t, "Settle of "+id, s.Settle(t.Context(), id, dispatch.Outcome{State: dispatch.Waiting}), dispatch.ErrNotFound)
	}
}

// Expiry checks that events are remembered for the dedupe window and no longer. open makes an empty
// store with that window.
func Expiry(t *testing.T, open func(t *testing.T, dedupeFor time.Duration) Both) {
	t.Run("DedupeWindow", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			const window = time.Hour
			s := open(t, window)
			defer s.Close()
			put(t, s, "e1")
			time.Sleep(window / 2)
			put(t, s, "e1", "e2")
			wantPending(t, s, "e1", "e2")
			time.Sleep(window/2 - 1)
			if fresh := put(t, s, "e1"); len(fresh) != 0 {
				t.Error("e1 is fresh within its window")
			}
			time.Sleep(1 * time.Nanosecond)
			if diff := cmp.Diff([]string{"e1"}, eventIDs(put(t, s, "e1", "e2"))); diff != "" {
				t.Errorf("fresh events after the window of e1 differ (-want +got):\n%s", diff)
			}
			wantPending(t, s, "e1", "e2", "e1")
		})
	})
}
