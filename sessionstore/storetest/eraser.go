package storetest

import (
	"fmt"
	"testing"

	"botd/channels/dispatch"
	"botd/sessionstore"
)

// Erasing is a store with a journal in which a session can be made really gone.
type Erasing interface {
	Both
	sessionstore.Lister
	sessionstore.Eraser
	sessionstore.Archiver
}

// Eraser checks the contract of sessionstore.Eraser, but for the bytes in the files.
func Eraser(t *testing.T, open func(t *testing.T) Erasing) {
	runAll(t, open, []check[Erasing]{
		{"AllIsGone", eraseAll},
		{"OthersStay", eraseOthersStay},
		{"LateWritesAreRefused", eraseLate},
		{"NothingToErase", eraseNothing},
	})
}

// live gives a session something of every kind that a store keeps.
func live(t *testing.T, s Both, id sessionstore.ID, name string) {
	t.Helper()
	ses := session{t, s, id}
	ses.append(name+"-1", user("before "+name))
	ses.clear()
	ses.append(name+"-2", user("now "+name))
	var events []dispatch.Routed
	for n := range 3 {
		r := routed(fmt.Sprint(name, "-", n))
		r.Session = id
		events = append(events, r)
	}
	entries, err := s.Put(t.Context(), events)
	must(t, "Put", err)
	r := turn(name+"-3", entries[0])
	r.Session, r.Generation, r.Items, r.Dead = id, 1, nil, "dead letter"
	r.Replies = nil
	for _, state := range []string{"waiting", "held", "unknown", "dead"} {
		r.Replies = append(r.Replies, reply(name+"/"+state))
	}
	commit(t, s, r)
	settle(t, s, name+"/held", dispatch.Outcome{State: dispatch.Held, Reason: "quota"})
	settle(t, s, name+"/unknown", dispatch.Outcome{State: dispatch.Unknown, Reason: "lost"})
	settle(t, s, name+"/dead", dispatch.Outcome{State: dispatch.Dead, Reason: "blocked"})
}

func eraseAll(t *testing.T, s Erasing) {
	live(t, s, "s", "x")
	wantStats(t, s, dispatch.Stats{Pending: 2, Waiting: 1, Held: 1, Unknown: 1, Dead: 1, DeadEvents: 1})
	must(t, "Erase", s.Erase(t.Context(), "s"))
	wantStats(t, s, dispatch.Stats{})
	wantPending(t, s)
	wantDue(t, s, farFuture)
	session{t, s, "s"}.wantEmpty()
	if ids := list(t, s, "", 10); len(ids) != 0 {
		t.Errorf("sessions after Erase = %q, want none", ids)
	}
	wantArchives(t, s, "s")
	wantErr(t, "Settle of what was erased", s.Settle(t.Context(), "x/waiting", dispatch.Outcome{State: dispatch.Delivered}), dispatch.ErrNotFound)
}

func eraseOthersStay(t *testing.T, s Erasing) {
	live(t, s, "s", "x")
	live(t, s, "s2", "y")
	must(t, "Erase", s.Erase(t.Context(), "s"))
	wantStats(t, s, dispatch.Stats{Pending: 2, Waiting: 1, Held: 1, Unknown: 1, Dead: 1, DeadEvents: 1})
	wantPending(t, s, "y-1", "y-2")
	wantDue(t, s, farFuture, "y/waiting")
	session{t, s, "s2"}.want(user("now y"))
	wantArchives(t, s, "s2", 0)
}

func eraseLate(t *testing.T, s Erasing) {
	ctx := t.Context()
	ses := session{t, s, "s"}
	entries := put(t, s, "e1")
	session{t, s, journalSession}.append("t0", hello)
	ses.append("t1", hello)
	ses.clear()
	began := ses.generation()
	must(t, "Erase", s.Erase(ctx, "s"))
	must(t, "Erase", s.Erase(ctx, journalSession))
	wantErr(t, "Append of a run begun before the erasure", s.Append(ctx, "s", batch("t2", began, world)), sessionstore.ErrStale)
	wantErr(t, "Commit of a run begun before the erasure", s.Commit(ctx, turn("t2", entries...)), sessionstore.ErrStale)
	if g := ses.generation(); g <= began {
		t.Errorf("generation after Erase = %d, want more than %d", g, began)
	}
	ses.append("t3", world)
	ses.want(world)
	must(t, "Erase", s.Erase(ctx, "s"))
	wantErr(t, "Append of a run begun before the second erasure", s.Append(ctx, "s", batch("t4", began+1, world)), sessionstore.ErrStale)
}

func eraseNothing(t *testing.T, s Erasing) {
	must(t, "Erase of what never was", s.Erase(t.Context(), "s"))
	must(t, "Erase of what never was", s.Erase(t.Context(), "s"))
	session{t, s, "s"}.append("t1", hello)
	session{t, s, "s"}.want(hello)
	wantErr(t, "Erase of no ID", s.Erase(t.Context(), ""), sessionstore.ErrInvalidID)
}
