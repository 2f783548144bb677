package storetest

import (
	"testing"

	"botd/channels/dispatch"
	"botd/sessionstore"
)

func commitUndoes(t *testing.T, s Both) {
	ses := session{t, s, journalSession}
	ses.append("t1", hello)
	ses.append("t2", hello, world, numbered(1))
	entries := put(t, s, "e1")
	undo := dispatch.TurnResult{
		Session: journalSession, Turn: "u", Undo: "t2", Consumed: seqsOf(entries), Replies: []dispatch.Delivery{reply("u/0")},
	}
	commit(t, s, undo)
	ses.want(hello)
	wantPending(t, s)
	if g := ses.generation(); g != 0 {
		t.Errorf("generation after an undo = %d, want 0", g)
	}
	wantErr(t, "the same Commit again", s.Commit(t.Context(), undo), sessionstore.ErrChanged)
	ses.append("t2", world) // it is known, and so not appended again
	ses.want(hello)
	ses.append("t3", world)
	items := ses.items(sessionstore.All)
	if items[1].Seq <= 4 {
		t.Errorf("Seq %d was used before the undo", items[1].Seq)
	}
}

func commitUndoesAndAppends(t *testing.T, s Both) {
	ses := session{t, s, journalSession}
	ses.append("t1", hello)
	ses.append("t2", hello, world)
	r := turn("t3", put(t, s, "e1")...)
	r.Undo, r.Items = "t2", itemsOf(world, numbered(3))
	commit(t, s, r)
	ses.want(hello, world, numbered(3))
	for _, it := range ses.items(2) {
		if it.Turn != "t3" {
			t.Errorf("turn of %s = %q, want t3", it.Raw, it.Turn)
		}
	}
}

// commitUndoesNewestOnly checks that an undo that comes too late removes nothing, and nothing of others.
func commitUndoesNewestOnly(t *testing.T, s Both) {
	ses := session{t, s, journalSession}
	entries := put(t, s, "e1")
	undo := turn("u", entries...)
	for _, tt := range []struct {
		before func()
		undo   string
		want   []string
	}{
		{func() {}, "t1", nil},
		{func() { ses.append("t1", hello) }, "t2", []string{hello}},
		{func() { ses.append("t2", world) }, "t1", []string{hello, world}},
		{func() { ses.append("", numbered(1)) }, "t2", []string{hello, world, numbered(1)}},
	} {
		tt.before()
		undo.Undo = tt.undo
		wantErr(t, "Commit that undoes "+tt.undo, s.Commit(t.Context(), undo), sessionstore.ErrChanged)
		ses.want(tt.want...)
		wantPending(t, s, "e1")
		wantDue(t, s, farFuture)
	}
	undo.Undo, undo.Generation = "t2", 7
	wantErr(t, "Commit of a run of another generation", s.Commit(t.Context(), undo), sessionstore.ErrStale)
}
