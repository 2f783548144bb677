package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"botd/channels"
	"botd/channels/dispatch"
	"botd/sessionstore"
)

// Journal checks the contract of dispatch.Journal for a journal that keeps the sessions too.
func Journal(t *testing.T, open func(t *testing.T) Both) {
	runAll(t, open, []check[Both]{
		{"PutAndPending", putAndPending},
		{"PutOnce", putOnce},
		{"PutRepeatsInOneBatch", putRepeats},
		{"PutChannelsAreApart", putChannels},
		{"PutRefusesBadEvents", putRefuses},
		{"PutKeepsAllOfAnEvent", putKeepsAll},
		{"Known", known},
		{"PendingInManyPages", pendingPages},
		{"PendingWhileConsuming", pendingWhileConsuming},
		{"PendingStops", pendingStops},
		{"FailCounts", failCounts},
		{"CommitWhole", commitWhole},
		{"CommitConsumedTwice", commitConsumedTwice},
		{"CommitPartlyConsumed", commitPartlyConsumed},
		{"CommitZombie", commitZombie},
		{"CommitStaleWritesNothing", commitStale},
		{"CommitClears", commitClears},
		{"CommitAppendedTurn", commitAppendedTurn},
		{"CommitRefusesBadResults", commitRefuses},
		{"CommitRepliesTwice", commitRepliesTwice},
		{"CommitWithoutItems", commitWithoutItems},
		{"CommitDead", commitDead},
		{"CommitUndoes", commitUndoes},
		{"CommitUndoesAndAppends", commitUndoesAndAppends},
		{"CommitUndoesTheNewestOnly", commitUndoesNewestOnly},
		{"DueInOrderOfCommit", dueInOrder},
		{"DueAtItsTime", dueAtItsTime},
		{"DueInManyPages", duePages},
		{"DueWhileSettling", dueWhileSettling},
		{"DueKeepsPlaces", dueKeepsPlaces},
		{"DueStops", dueStops},
		{"NextIsTheEarliest", nextEarliest},
		{"BeginMakesUncertain", beginUncertain},
		{"SettleDelivered", settleDelivered},
		{"SettleAgain", settleAgain},
		{"SettleHeld", settleHeld},
		{"SettleForGood", settleForGood},
		{"SettleUnknownState", settleUnknownState},
		{"StatsCount", statsCount},
		{"Cancelled", journalCancelled},
		{"Closed", journalClosed},
		{"ConcurrentPuts", concurrentPuts},
		{"ConcurrentSameEvents", concurrentSameEvents},
		{"ConcurrentCommits", concurrentCommits},
		{"ConcurrentTraffic", concurrentTraffic},
	})
}

const journalSession sessionstore.ID = "line-shop:user:U1"

func routed(id string) dispatch.Routed {
	return dispatch.Routed{Session: journalSession, Event: channels.Inbound{
		ID: id, Kind: channels.Message,
		Address: channels.Address{Channel: "line-shop", Kind: channels.Direct, Room: "U1", User: "U1"},
		Time:    time.Date(2026, 1, 2, 3, 4, 5, 678e6, time.UTC),
		Parts:   []channels.Part{{Type: channels.Text, Text: "text of " + id}},
	}}
}

func reply(id string) dispatch.Delivery {
	return dispatch.Delivery{Message: channels.Outbound{
		ID:    id,
		To:    channels.Address{Channel: "line-shop", Kind: channels.Direct, Room: "U1", User: "U1"},
		Reply: []byte("token of " + id),
		Parts: []channels.Part{{Type: channels.Text, Text: "answer " + id}},
	}}
}

func put(t *testing.T, s dispatch.Journal, ids ...string) []dispatch.Entry {
	t.Helper()
	var events []dispatch.Routed
	for _, id := range ids {
		events = append(events, routed(id))
	}
	fresh, err := s.Put(t.Context(), events)
	must(t, "Put", err)
	return fresh
}

func pending(t *testing.T, s dispatch.Journal) (entries []dispatch.Entry) {
	t.Helper()
	for e, err := range s.Pending(t.Context()) {
		must(t, "Pending", err)
		entries = append(entries, e)
	}
	return entries
}

func eventIDs(entries []dispatch.Entry) (ids []string) {
	for _, e := range entries {
		ids = append(ids, e.Event.ID)
	}
	return ids
}

func seqsOf(entries []dispatch.Entry) (seqs []uint64) {
	for _, e := range entries {
		seqs = append(seqs, e.Seq)
	}
	return seqs
}

func wantPending(t *testing.T, s dispatch.Journal, ids ...string) {
	t.Helper()
	if diff := cmp.Diff(ids, eventIDs(pending(t, s))); diff != "" {
		t.Fatalf("pending events differ (-want +got):\n%s", diff)
	}
}

func due(t *testing.T, s dispatch.Journal, now time.Time) (list []dispatch.Delivery) {
	t.Helper()
	for d, err := range s.Due(t.Context(), now) {
		must(t, "Due", err)
		list = append(list, d)
	}
	return list
}

func deliveryIDs(list []dispatch.Delivery) (ids []string) {
	for _, d := range list {
		ids = append(ids, d.Message.ID)
	}
	return ids
}

func wantDue(t *testing.T, s dispatch.Journal, now time.Time, ids ...string) {
	t.Helper()
	if diff := cmp.Diff(ids, deliveryIDs(due(t, s, now))); diff != "" {
		t.Fatalf("due deliveries differ (-want +got):\n%s", diff)
	}
}

func wantStats(t *testing.T, s dispatch.Journal, want dispatch.Stats) {
	t.Helper()
	got, err := s.Stats(t.Context())
	must(t, "Stats", err)
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(dispatch.Stats{}, "Oldest")); diff != "" {
		t.Fatalf("statistics differ (-want +got):\n%s", diff)
	}
	if got.Oldest.IsZero() != (got.Pending == 0) {
		t.Fatalf("oldest of %d pending entries = %v", got.Pending, got.Oldest)
	}
}

// turn is a result that answers the entries with one reply.
func turn(id string, entries ...dispatch.Entry) dispatch.TurnResult {
	return dispatch.TurnResult{
		Session: journalSession, Turn: id, Items: itemsOf(hello, world),
		Consumed: seqsOf(entries), Replies: []dispatch.Delivery{reply(id + "/0")},
	}
}

func commit(t *testing.T, s dispatch.Journal, r dispatch.TurnResult) {
	t.Helper()
	must(t, "Commit", s.Commit(t.Context(), r))
}

func settle(t *testing.T, s dispatch.Journal, id string, o dispatch.Outcome) {
	t.Helper()
	must(t, "Settle", s.Settle(t.Context(), id, o))
}

// replies commits turns with one reply each, in order.
func replies(t *testing.T, s dispatch.Journal, ids ...string) {
	t.Helper()
	for _, id := range ids {
		commit(t, s, dispatch.TurnResult{Session: journalSession, Turn: id, Replies: []dispatch.Delivery{reply(id)}})
	}
}

func statsCount(t *testing.T, s Both) {
	wantStats(t, s, dispatch.Stats{})
	entries := put(t, s, "e1", "e2", "e3")
	wantStats(t, s, dispatch.Stats{Pending: 3})
	st, err := s.Stats(t.Context())
	must(t, "Stats", err)
	if !st.Oldest.Equal(entries[0].Received) {
		t.Errorf("oldest = %v, want %v", st.Oldest, entries[0].Received)
	}
	commit(t, s, turn("t1", entries[0]))
	wantStats(t, s, dispatch.Stats{Pending: 2, Waiting: 1})
}

func journalCancelled(t *testing.T, s Both) {
	entries := put(t, s, "e1")
	replies(t, s, "a")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.Put(ctx, []dispatch.Routed{routed("e2")})
	wantErr(t, "Put with an ended context", err, context.Canceled)
	wantErr(t, "Fail with an ended context", s.Fail(ctx, seqsOf(entries), "x"), context.Canceled)
	wantErr(t, "Commit with an ended context", s.Commit(ctx, turn("t1", entries...)), context.Canceled)
	wantErr(t, "Begin with an ended context", s.Begin(ctx, "a"), context.Canceled)
	wantErr(t, "Settle with an ended context", s.Settle(ctx, "a", dispatch.Outcome{State: dispatch.Delivered}), context.Canceled)
	_, err = s.Next(ctx)
	wantErr(t, "Next with an ended context", err, context.Canceled)
	_, err = s.Stats(ctx)
	wantErr(t, "Stats with an ended context", err, context.Canceled)
	wantStats(t, s, dispatch.Stats{Pending: 1, Waiting: 1})
	if e := pending(t, s)[0]; e.Attempts != 0 {
		t.Errorf("attempts = %d, want 0", e.Attempts)
	}
}

func journalClosed(t *testing.T, s Both) {
	entries := put(t, s, "e1")
	must(t, "Close", s.Close())
	ctx := t.Context()
	_, err := s.Put(ctx, []dispatch.Routed{routed("e2")})
	wantErr(t, "Put after Close", err, sessionstore.ErrClosed)
	wantErr(t, "Fail after Close", s.Fail(ctx, seqsOf(entries), "x"), sessionstore.ErrClosed)
	wantErr(t, "Commit after Close", s.Commit(ctx, turn("t1", entries...)), sessionstore.ErrClosed)
	wantErr(t, "Begin after Close", s.Begin(ctx, "a"), sessionstore.ErrClosed)
	wantErr(t, "Settle after Close", s.Settle(ctx, "a", dispatch.Outcome{State: dispatch.Delivered}), sessionstore.ErrClosed)
	_, err = s.Next(ctx)
	wantErr(t, "Next after Close", err, sessionstore.ErrClosed)
	_, err = s.Stats(ctx)
	wantErr(t, "Stats after Close", err, sessionstore.ErrClosed)
	for _, err := range s.Pending(ctx) {
		wantErr(t, "Pending after Close", err, sessionstore.ErrClosed)
	}
	for _, err := range s.Due(ctx, time.Now()) {
		wantErr(t, "Due after Close", err, sessionstore.ErrClosed)
	}
}
