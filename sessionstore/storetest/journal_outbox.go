package storetest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"botd/channels"
	"botd/channels/dispatch"
)

func dueInOrder(t *testing.T, s Both) {
	replies(t, s, "z", "a", "m")
	r := turn("t")
	r.Replies = []dispatch.Delivery{reply("t/1"), reply("t/0"), reply("t/2")}
	commit(t, s, r)
	wantDue(t, s, time.Now(), "z", "a", "m", "t/1", "t/0", "t/2")
}

func dueAtItsTime(t *testing.T, s Both) {
	now := time.Now()
	later := reply("later")
	later.NextAt = now.Add(time.Hour)
	exact := reply("exact")
	exact.NextAt = now.Add(time.Minute)
	commit(t, s, dispatch.TurnResult{Session: journalSession, Turn: "t", Replies: []dispatch.Delivery{later, exact, reply("now")}})
	wantDue(t, s, now, "now")
	wantDue(t, s, exact.NextAt.Add(-1), "now")
	wantDue(t, s, exact.NextAt, "exact", "now")
	wantDue(t, s, now.Add(2*time.Hour), "later", "exact", "now")
	for _, d := range due(t, s, now.Add(2*time.Hour))[:1] {
		if !d.NextAt.Equal(later.NextAt) {
			t.Errorf("NextAt = %v, want %v", d.NextAt, later.NextAt)
		}
	}
}

func duePages(t *testing.T, s Both) {
	var ids []string
	for turn := range 7 {
		r := dispatch.TurnResult{Session: journalSession, Turn: fmt.Sprint(turn)}
		for n := range 100 {
			id := fmt.Sprintf("%d/%d", turn, n)
			ids = append(ids, id)
			r.Replies = append(r.Replies, reply(id))
		}
		commit(t, s, r)
	}
	wantDue(t, s, time.Now(), ids...)
	for _, id := range ids[:500] {
		settle(t, s, id, dispatch.Outcome{State: dispatch.Delivered})
	}
	wantDue(t, s, time.Now(), ids[500:]...)
}

// dueWhileSettling checks that a consumer may settle what it iterates over.
func dueWhileSettling(t *testing.T, s Both) {
	ids := manyIDs(300)
	r := dispatch.TurnResult{Session: journalSession, Turn: "t"}
	for _, id := range ids {
		r.Replies = append(r.Replies, reply(id))
	}
	commit(t, s, r)
	var seen []string
	for d, err := range s.Due(t.Context(), time.Now()) {
		must(t, "Due", err)
		seen = append(seen, d.Message.ID)
		settle(t, s, d.Message.ID, dispatch.Outcome{State: dispatch.Delivered})
		replies(t, s, "late-"+d.Message.ID)
	}
	if diff := cmp.Diff(ids, seen); diff != "" {
		t.Errorf("deliveries seen differ (-want +got):\n%s", diff)
	}
}

func dueKeepsPlaces(t *testing.T, s Both) {
	now := time.Now()
	replies(t, s, "first", "second", "third")
	settle(t, s, "first", dispatch.Outcome{State: dispatch.Waiting, NextAt: now.Add(time.Minute), Certain: true, Reason: "busy"})
	settle(t, s, "second", dispatch.Outcome{State: dispatch.Waiting, NextAt: now.Add(time.Second), Certain: true, Reason: "busy"})
	wantDue(t, s, now.Add(time.Hour), "first", "second", "third")
}

func dueStops(t *testing.T, s Both) {
	replies(t, s, "a", "b")
	for range s.Due(t.Context(), time.Now()) {
		break
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	n := 0
	for _, err := range s.Due(ctx, time.Now()) {
		wantErr(t, "Due with an ended context", err, context.Canceled)
		n++
	}
	if n != 1 {
		t.Errorf("Due with an ended context yields %d times, want once", n)
	}
}

func nextEarliest(t *testing.T, s Both) {
	next := func() time.Time {
		t.Helper()
		at, err := s.Next(t.Context())
		must(t, "Next", err)
		return at
	}
	if at := next(); !at.IsZero() {
		t.Errorf("Next of an empty outbox = %v, want zero", at)
	}
	replies(t, s, "a", "b")
	if at := next(); at.IsZero() || at.After(time.Now()) {
		t.Errorf("Next with a delivery due at once = %v", at)
	}
	minute, hour := time.Now().Add(time.Minute), time.Now().Add(time.Hour)
	settle(t, s, "a", dispatch.Outcome{State: dispatch.Waiting, NextAt: hour})
	settle(t, s, "b", dispatch.Outcome{State: dispatch.Waiting, NextAt: minute})
	if at := next(); !at.Equal(minute) {
		t.Errorf("Next = %v, want %v", at, minute)
	}
	settle(t, s, "b", dispatch.Outcome{State: dispatch.Held, Reason: "quota"})
	if at := next(); !at.Equal(hour) {
		t.Errorf("Next with the earlier delivery held = %v, want %v", at, hour)
	}
	settle(t, s, "a", dispatch.Outcome{State: dispatch.Dead, Reason: "blocked"})
	if at := next(); !at.IsZero() {
		t.Errorf("Next with nothing waiting = %v, want zero", at)
	}
}

func beginUncertain(t *testing.T, s Both) {
	now := time.Now()
	uncertain := func() bool {
		t.Helper()
		list := due(t, s, now.Add(time.Hour))
		if len(list) != 1 {
			t.Fatalf("%d deliveries are due, want 1", len(list))
		}
		return list[0].Message.Uncertain
	}
	replies(t, s, "a")
	if uncertain() {
		t.Error("uncertain before Begin")
	}
	for range 2 {
		must(t, "Begin", s.Begin(t.Context(), "a"))
		if !uncertain() {
			t.Error("certain after Begin")
		}
	}
	settle(t, s, "a", dispatch.Outcome{State: dispatch.Waiting, NextAt: now, Reason: "timeout"})
	if !uncertain() {
		t.Error("certain after an attempt that may have been accepted")
	}
	settle(t, s, "a", dispatch.Outcome{State: dispatch.Waiting, NextAt: now, Certain: true, Reason: "refused"})
	if uncertain() {
		t.Error("uncertain after an attempt that was surely not accepted")
	}
	settle(t, s, "a", dispatch.Outcome{State: dispatch.Delivered})
	wantErr(t, "Begin of what was delivered", s.Begin(t.Context(), "a"), dispatch.ErrNotFound)
	wantErr(t, "Begin of what never was", s.Begin(t.Context(), "b"), dispatch.ErrNotFound)
}

func settleDelivered(t *testing.T, s Both) {
	replies(t, s, "a", "b")
	settle(t, s, "a", dispatch.Outcome{State: dispatch.Delivered, Receipt: channels.Receipt{MessageIDs: []string{"1"}}})
	wantDue(t, s, time.Now(), "b")
	wantErr(t, "Settle of what was delivered", s.Settle(t.Context(), "a", dispatch.Outcome{State: dispatch.Waiting}), dispatch.ErrNotFound)
	wantErr(t, "Settle of what never was", s.Settle(t.Context(), "c", dispatch.Outcome{State: dispatch.Delivered}), dispatch.ErrNotFound)
	wantStats(t, s, dispatch.Stats{Waiting: 1})
}

func settleAgain(t *testing.T, s Both) {
	now := time.Now()
	replies(t, s, "a")
	for n := range 3 {
		at := now.Add(time.Duration(n) * time.Minute)
		settle(t, s, "a", dispatch.Outcome{State: dispatch.Waiting, NextAt: at, Certain: true, Reason: fmt.Sprint("reason ", n)})
		got := due(t, s, at)
		if len(got) != 1 || got[0].Attempts != n+1 || got[0].Reason != fmt.Sprint("reason ", n) || !got[0].NextAt.Equal(at) {
			t.Errorf("after attempt %d due = %+v", n+1, got)
		}
		wantDue(t, s, at.Add(-1))
	}
}

func settleHeld(t *testing.T, s Both) {
	replies(t, s, "a", "b")
	settle(t, s, "a", dispatch.Outcome{State: dispatch.Held, Reason: "quota"})
	wantDue(t, s, time.Now().Add(1000*time.Hour), "b")
	wantStats(t, s, dispatch.Stats{Waiting: 1, Held: 1})
	settle(t, s, "a", dispatch.Outcome{State: dispatch.Waiting})
	got := due(t, s, time.Now())
	if diff := cmp.Diff([]string{"a", "b"}, deliveryIDs(got)); diff != "" {
		t.Fatalf("due after release differ (-want +got):\n%s", diff)
	}
	if got[0].Attempts != 1 {
		t.Errorf("attempts after hold and release = %d, want 1", got[0].Attempts)
	}
}

func settleForGood(t *testing.T, s Both) {
	replies(t, s, "a", "b", "c")
	settle(t, s, "a", dispatch.Outcome{State: dispatch.Unknown, Reason: "connection lost"})
	settle(t, s, "b", dispatch.Outcome{State: dispatch.Dead, Reason: "blocked"})
	wantDue(t, s, time.Now().Add(1000*time.Hour), "c")
	wantStats(t, s, dispatch.Stats{Waiting: 1, Unknown: 1, Dead: 1})
	for _, id := range []string{"a", "b"} {
		wantErr(t, "Settle of "+id, s.Settle(t.Context(), id, dispatch.Outcome{State: dispatch.Waiting}), dispatch.ErrNotFound)
		wantErr(t, "Begin of "+id, s.Begin(t.Context(), id), dispatch.ErrNotFound)
	}
}

func settleUnknownState(t *testing.T, s Both) {
	replies(t, s, "a")
	for _, state := range []dispatch.State{"", "sent"} {
		if err := s.Settle(t.Context(), "a", dispatch.Outcome{State: state}); err == nil || errors.Is(err, dispatch.ErrNotFound) {
			t.Errorf("Settle with state %q = %v, want an error of its own", state, err)
		}
	}
	wantDue(t, s, time.Now(), "a")
}
