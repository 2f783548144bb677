package storetest

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"botd/agent"
	"botd/channels/dispatch"
	"botd/sessionstore"
)

func commitWhole(t *testing.T, s Both) {
	entries := put(t, s, "e1", "e2", "e3")
	r := turn("t1", entries[0], entries[2])
	second := reply("t1/1")
	second.Message.Once = true
	r.Replies = append(r.Replies, second)
	before := time.Now().Add(-2 * time.Second)
	commit(t, s, r)
	session{t, s, journalSession}.want(hello, world)
	wantPending(t, s, "e2")
	got := due(t, s, time.Now())
	want := []dispatch.Delivery{reply("t1/0"), second}
	for i := range want {
		want[i].Session = journalSession
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(dispatch.Delivery{}, "Created")); diff != "" {
		t.Errorf("deliveries differ (-want +got):\n%s", diff)
	}
	for _, d := range got {
		if d.Created.Before(before) {
			t.Errorf("delivery created at %v", d.Created)
		}
	}
	if it := (session{t, s, journalSession}).items(1)[0]; it.Turn != "t1" {
		t.Errorf("turn of the item = %q, want t1", it.Turn)
	}
}

func commitConsumedTwice(t *testing.T, s Both) {
	entries := put(t, s, "e1")
	commit(t, s, turn("t1", entries...))
	settle(t, s, "t1/0", dispatch.Outcome{State: dispatch.Delivered})
	wantErr(t, "Commit of the same turn again", s.Commit(t.Context(), turn("t1", entries...)), dispatch.ErrConsumed)
	wantErr(t, "Commit of another turn for the same entry", s.Commit(t.Context(), turn("t2", entries...)), dispatch.ErrConsumed)
	session{t, s, journalSession}.want(hello, world)
	wantDue(t, s, time.Now())
}

func commitPartlyConsumed(t *testing.T, s Both) {
	entries := put(t, s, "e1", "e2")
	commit(t, s, turn("t1", entries[0]))
	wantErr(t, "Commit with one entry consumed before", s.Commit(t.Context(), turn("t2", entries...)), dispatch.ErrConsumed)
	wantPending(t, s, "e2")
	session{t, s, journalSession}.want(hello, world)
	wantDue(t, s, time.Now(), "t1/0")
}

// commitZombie plays a turn that was thought dead and comes back after another one answered.
func commitZombie(t *testing.T, s Both) {
	entries := put(t, s, "e1")
	zombie := turn("t1", entries...)
	commit(t, s, turn("t2", entries...))
	wantErr(t, "Commit of the zombie", s.Commit(t.Context(), zombie), dispatch.ErrConsumed)
	reset := put(t, s, "reset")
	commit(t, s, dispatch.TurnResult{Session: journalSession, Turn: "t3", Clear: true, Consumed: seqsOf(reset)})
	wantErr(t, "Commit of the zombie after a reset", s.Commit(t.Context(), zombie), sessionstore.ErrStale)
	session{t, s, journalSession}.wantEmpty()
	wantDue(t, s, time.Now(), "t2/0")
}

func commitStale(t *testing.T, s Both) {
	entries := put(t, s, "e1")
	session{t, s, journalSession}.clear()
	wantErr(t, "Commit of a turn that began before the clear", s.Commit(t.Context(), turn("t1", entries...)), sessionstore.ErrStale)
	session{t, s, journalSession}.wantEmpty()
	wantPending(t, s, "e1")
	wantDue(t, s, time.Now())
	again := turn("t1", entries...)
	again.Generation = 1
	commit(t, s, again)
	session{t, s, journalSession}.want(hello, world)
}

func commitClears(t *testing.T, s Both) {
	ses := session{t, s, journalSession}
	ses.append("t0", hello)
	entries := put(t, s, "e1", "e2")
	r := turn("t0", entries...)
	r.Clear, r.Generation, r.Items = true, 99, itemsOf(world)
	commit(t, s, r)
	ses.want(world)
	if g := ses.generation(); g != 1 {
		t.Errorf("generation = %d, want 1", g)
	}
	wantPending(t, s)
	wantDue(t, s, time.Now(), "t0/0")
	wantErr(t, "the same Commit again", s.Commit(t.Context(), r), dispatch.ErrConsumed)
	ses.want(world)
}

// commitAppendedTurn checks that items appended by themselves are not appended by the commit again.
func commitAppendedTurn(t *testing.T, s Both) {
	ses := session{t, s, journalSession}
	entries := put(t, s, "e1")
	ses.append("t1", hello, world)
	commit(t, s, turn("t1", entries...))
	ses.want(hello, world)
	wantPending(t, s)
	wantDue(t, s, time.Now(), "t1/0")
}

func commitRefuses(t *testing.T, s Both) {
	entries := put(t, s, "e1")
	ctx := t.Context()
	r := turn("t1", entries...)
	r.Session = ""
	wantErr(t, "Commit without session", s.Commit(ctx, r), sessionstore.ErrInvalidID)
	r = turn("t1", entries...)
	r.Items = itemsOf(hello, `[]`)
	wantErr(t, "Commit of what is no item", s.Commit(ctx, r), sessionstore.ErrInvalidItem)
	r = turn("t1", entries...)
	r.Replies = []dispatch.Delivery{reply("t1/0"), reply("t1/0")}
	if s.Commit(ctx, r) == nil {
		t.Error("Commit of two replies with one ID = nil, want an error")
	}
	r.Replies = []dispatch.Delivery{reply("")}
	if s.Commit(ctx, r) == nil {
		t.Error("Commit of a reply without ID = nil, want an error")
	}
	wantPending(t, s, "e1")
	session{t, s, journalSession}.wantEmpty()
	wantDue(t, s, time.Now())
}

func commitRepliesTwice(t *testing.T, s Both) {
	r := turn("t1")
	commit(t, s, r)
	r.Items = nil
	wantErr(t, "Commit of a reply that waits already", s.Commit(t.Context(), r), dispatch.ErrConsumed)
	wantDue(t, s, time.Now(), "t1/0")
}

func commitWithoutItems(t *testing.T, s Both) {
	entries := put(t, s, "e1", "e2")
	commit(t, s, dispatch.TurnResult{Session: journalSession, Turn: "t1", Consumed: seqsOf(entries[:1])})
	commit(t, s, dispatch.TurnResult{
		Session: journalSession, Turn: "t2", Consumed: seqsOf(entries[1:]), Replies: []dispatch.Delivery{reply("t2/0")},
		Usage: agent.Usage{Requests: 1, InputTokens: 10},
	})
	wantPending(t, s)
	session{t, s, journalSession}.wantEmpty()
	wantDue(t, s, time.Now(), "t2/0")
}

func commitDead(t *testing.T, s Both) {
	entries := put(t, s, "e1", "e2")
	r := turn("t1", entries...)
	r.Items, r.Dead = nil, "failed five times"
	commit(t, s, r)
	wantPending(t, s)
	wantDue(t, s, time.Now(), "t1/0")
	wantStats(t, s, dispatch.Stats{Waiting: 1, DeadEvents: 2})
	if fresh := put(t, s, "e1"); len(fresh) != 0 {
		t.Error("a dead letter is fresh again")
	}
}
