package storetest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"botd/channels/dispatch"
)

// Inspecting is a journal that shows what is set aside.
type Inspecting interface {
	Both
	dispatch.Inspector
}

// Inspector checks the contract of dispatch.Inspector.
func Inspector(t *testing.T, open func(t *testing.T) Inspecting) {
	runAll(t, open, []check[Inspecting]{
		{"OutboxByState", inspectOutbox},
		{"OutboxInPages", inspectPages},
		{"Release", inspectRelease},
		{"ReleaseRefuses", inspectReleaseRefuses},
		{"DeadLetters", inspectDeadLetters},
		{"Revive", inspectRevive},
	})
}

func outbox(t *testing.T, s Inspecting, state dispatch.State) []dispatch.Kept {
	t.Helper()
	list, err := s.Outbox(t.Context(), state, 0, 1000)
	must(t, "Outbox", err)
	return list
}

func inspectOutbox(t *testing.T, s Inspecting) {
	replies(t, s, "w", "h", "u", "d", "w2")
	settle(t, s, "h", dispatch.Outcome{State: dispatch.Held, Reason: "quota"})
	settle(t, s, "u", dispatch.Outcome{State: dispatch.Unknown, Reason: "lost"})
	settle(t, s, "d", dispatch.Outcome{State: dispatch.Dead, Reason: "blocked"})
	for state, want := range map[dispatch.State][]string{
		dispatch.Waiting: {"w ", "w2 "}, dispatch.Held: {"h quota"}, dispatch.Unknown: {"u lost"}, dispatch.Dead: {"d blocked"},
	} {
		var got []string
		for _, k := range outbox(t, s, state) {
			got = append(got, k.Message.ID+" "+k.Reason)
			if k.State != state || k.Session != journalSession || k.Message.PlainText() != "answer "+k.Message.ID {
				t.Errorf("delivery %s tells state %s, session %s, text %q", k.Message.ID, k.State, k.Session, k.Message.PlainText())
			}
			if forGood := state == dispatch.Unknown || state == dispatch.Dead; k.Settled.IsZero() == forGood {
				t.Errorf("delivery %s that is %s was settled at %v", k.Message.ID, state, k.Settled)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("deliveries that are %s differ (-want +got):\n%s", state, diff)
		}
	}
	for _, state := range []dispatch.State{dispatch.Delivered, "nonsense"} {
		if _, err := s.Outbox(t.Context(), state, 0, 1); err == nil {
			t.Errorf("Outbox of state %q = nil, want an error", state)
		}
	}
}

func inspectPages(t *testing.T, s Inspecting) {
	var want, got []string
	for n := range 25 {
		want = append(want, fmt.Sprint("d", n))
		replies(t, s, want[n])
		settle(t, s, want[n], dispatch.Outcome{State: dispatch.Dead, Reason: "blocked"})
		replies(t, s, fmt.Sprint("w", n))
	}
	for _, k := range pages(t, "Outbox", 10, func(k dispatch.Kept) uint64 { return k.Seq },
		func(ctx context.Context, after uint64, limit int) ([]dispatch.Kept, error) {
			return s.Outbox(ctx, dispatch.Dead, after, limit)
		}) {
		got = append(got, k.Message.ID)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("deliveries in pages differ (-want +got):\n%s", diff)
	}
}

func inspectRelease(t *testing.T, s Inspecting) {
	replies(t, s, "h", "w", "u", "d", "w2")
	settle(t, s, "h", dispatch.Outcome{State: dispatch.Held, Reason: "quota"})
	settle(t, s, "u", dispatch.Outcome{State: dispatch.Unknown, Reason: "lost"})
	settle(t, s, "d", dispatch.Outcome{State: dispatch.Dead, Reason: "blocked"})
	for _, state := range []dispatch.State{dispatch.Held, dispatch.Unknown, dispatch.Dead} {
		must(t, "Release", s.Release(t.Context(), outbox(t, s, state)[0].Seq))
	}
	wantDue(t, s, time.Now(), "h", "w", "u", "d", "w2")
	wantStats(t, s, dispatch.Stats{Waiting: 5})
	for _, d := range due(t, s, time.Now()) {
		if want := d.Message.ID == "u"; d.Message.Uncertain != want {
			t.Errorf("delivery %s released uncertain = %t, want %t", d.Message.ID, d.Message.Uncertain, want)
		}
	}
	settle(t, s, "u", dispatch.Outcome{State: dispatch.Delivered})
	settle(t, s, "d", dispatch.Outcome{State: dispatch.Dead, Reason: "blocked again"})
	if list := outbox(t, s, dispatch.Dead); len(list) != 1 || list[0].Attempts != 2 || list[0].Reason != "blocked again" {
		t.Errorf("dead after a second attempt = %+v", list)
	}
}

func inspectReleaseRefuses(t *testing.T, s Inspecting) {
	ctx := t.Context()
	replies(t, s, "a")
	seq := outbox(t, s, dispatch.Waiting)[0].Seq
	wantErr(t, "Release of what waits", s.Release(ctx, seq), dispatch.ErrNotFound)
	wantErr(t, "Release of what never was", s.Release(ctx, seq+100), dispatch.ErrNotFound)
	settle(t, s, "a", dispatch.Outcome{State: dispatch.Dead, Reason: "blocked"})
	replies(t, s, "a")
	wantErr(t, "Release of one whose ID waits again", s.Release(ctx, seq), dispatch.ErrNotFound)
	settle(t, s, "a", dispatch.Outcome{State: dispatch.Delivered})
	must(t, "Release", s.Release(ctx, seq))
	wantDue(t, s, time.Now(), "a")
}

func inspectDeadLetters(t *testing.T, s Inspecting) {
	entries := put(t, s, "e1", "e2", "e3")
	must(t, "Fail", s.Fail(t.Context(), seqsOf(entries[:2]), "model is away"))
	for _, i := range []int{1, 0} {
		r := turn(fmt.Sprint("t", i), entries[i])
		r.Items, r.Dead = nil, "failed too often"
		commit(t, s, r)
	}
	letters, err := s.DeadLetters(t.Context(), 0, 10)
	must(t, "DeadLetters", err)
	if len(letters) != 2 {
		t.Fatalf("%d dead letters, want 2", len(letters))
	}
	for i, l := range letters {
		if l.Seq != entries[i].Seq || l.Attempts != 1 || l.DeadReason != "failed too often" || l.LastError != "model is away" || l.Dead.IsZero() {
			t.Errorf("dead letter %d = %+v", i, l)
		}
		if diff := cmp.Diff(entries[i].Routed, l.Routed); diff != "" {
			t.Errorf("event of dead letter %d differs (-want +got):\n%s", i, diff)
		}
	}
	rest, err := s.DeadLetters(t.Context(), letters[0].Seq, 10)
	must(t, "DeadLetters", err)
	first, err := s.DeadLetters(t.Context(), 0, 1)
	must(t, "DeadLetters", err)
	if len(rest) != 1 || len(first) != 1 || rest[0].Seq != letters[1].Seq || first[0].Seq != letters[0].Seq {
		t.Errorf("pages of dead letters: %v and %v", first, rest)
	}
}

func inspectRevive(t *testing.T, s Inspecting) {
	ctx := t.Context()
	entries := put(t, s, "e1", "e2")
	must(t, "Fail", s.Fail(ctx, seqsOf(entries[:1]), "model is away"))
	r := turn("t1", entries[0])
	r.Items, r.Dead = nil, "failed too often"
	commit(t, s, r)
	revived, err := s.Revive(ctx, entries[0].Seq)
	must(t, "Revive", err)
	if revived.Seq <= entries[1].Seq || revived.Attempts != 0 {
		t.Errorf("revived entry has Seq %d and %d attempts", revived.Seq, revived.Attempts)
	}
	if diff := cmp.Diff(entries[0].Routed, revived.Routed); diff != "" {
		t.Errorf("revived event differs (-want +got):\n%s", diff)
	}
	wantPending(t, s, "e2", "e1")
	_, err = s.Revive(ctx, entries[0].Seq)
	wantErr(t, "Revive a second time", err, dispatch.ErrNotFound)
	commit(t, s, turn("t2", revived))
	session{t, s, journalSession}.want(hello, world)
	wantStats(t, s, dispatch.Stats{Pending: 1, Waiting: 2})
}
