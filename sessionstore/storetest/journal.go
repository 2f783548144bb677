package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"botd/agent"
	"botd/channels"
	"botd/channels/dispatch"
	"botd/sessionstore"
)

// Journal checks the contract of dispatch.Journal for a journal that keeps the sessions too.
func Journal(t *testing.T, open func(t *testing.T) Both) {
	for _, tt := range []struct {
		name string
		run  func(t *testing.T, s Both)
	}{
		{"PutAndPending", putAndPending},
		{"PutOnce", putOnce},
		{"PutRepeatsInOneBatch", putRepeats},
		{"PutChannelsAreApart", putChannels},
		{"PutRefusesBadEvents", putRefuses},
		{"PutKeepsAllOfAnEvent", putKeepsAll},
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
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			defer func() {
				if err := s.Close(); err != nil {
					t.Errorf("Close() = %v, want nil", err)
				}
			}()
			tt.run(t, s)
		})
	}
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

func putAndPending(t *testing.T, s Both) {
	wantPending(t, s)
	before := time.Now().Add(-2 * time.Second)
	fresh := put(t, s, "e1", "e2")
	fresh = append(fresh, put(t, s, "e3")...)
	for i, e := range fresh {
		if i > 0 && e.Seq <= fresh[i-1].Seq {
			t.Errorf("Seq %d follows %d, want it to grow", e.Seq, fresh[i-1].Seq)
		}
		if e.Received.Before(before) || e.Attempts != 0 {
			t.Errorf("fresh entry received at %v after %d attempts", e.Received, e.Attempts)
		}
	}
	if diff := cmp.Diff(fresh, pending(t, s)); diff != "" {
		t.Errorf("what Put returned and what is pending differ (-put +pending):\n%s", diff)
	}
}

func putOnce(t *testing.T, s Both) {
	first := put(t, s, "e1", "e2")
	if diff := cmp.Diff([]string{"e3"}, eventIDs(put(t, s, "e1", "e3", "e2"))); diff != "" {
		t.Errorf("fresh events differ (-want +got):\n%s", diff)
	}
	wantPending(t, s, "e1", "e2", "e3")
	commit(t, s, turn("t1", first...))
	if fresh := put(t, s, "e1", "e2", "e3"); len(fresh) != 0 {
		t.Errorf("events that were answered are fresh again: %v", eventIDs(fresh))
	}
	wantPending(t, s, "e3")
}

func putRepeats(t *testing.T, s Both) {
	if diff := cmp.Diff([]string{"e1", "e2"}, eventIDs(put(t, s, "e1", "e2", "e1", "e1", "e2"))); diff != "" {
		t.Errorf("fresh events differ (-want +got):\n%s", diff)
	}
	wantPending(t, s, "e1", "e2")
	if fresh, err := s.Put(t.Context(), nil); err != nil || len(fresh) != 0 {
		t.Errorf("Put of nothing = %v, %v, want nothing", fresh, err)
	}
}

func putChannels(t *testing.T, s Both) {
	var events []dispatch.Routed
	for _, key := range [][2]string{{"a", "bc"}, {"ab", "c"}, {"a", "bC"}, {"", "abc"}, {"a", strings.Repeat("x", 3000)}, {"ax", strings.Repeat("x", 2999)}} {
		r := routed(key[1])
		r.Event.Address.Channel = key[0]
		events = append(events, r)
	}
	for round, want := range []int{len(events), 0} {
		fresh, err := s.Put(t.Context(), events)
		must(t, "Put", err)
		if len(fresh) != want {
			t.Errorf("round %d: %d fresh events, want %d", round, len(fresh), want)
		}
	}
}

func putRefuses(t *testing.T, s Both) {
	noSession, noID := routed("e2"), routed("")
	noSession.Session = ""
	_, err := s.Put(t.Context(), []dispatch.Routed{routed("e1"), noSession})
	wantErr(t, "Put of an event without session", err, sessionstore.ErrInvalidID)
	if _, err := s.Put(t.Context(), []dispatch.Routed{routed("e1"), noID}); err == nil {
		t.Error("Put of an event without ID = nil, want an error")
	}
	wantPending(t, s)
	if fresh := put(t, s, "e1"); len(fresh) != 1 {
		t.Error("an event of a refused batch is known")
	}
}

func putKeepsAll(t *testing.T, s Both) {
	r := dispatch.Routed{Session: "日本:group:C1", Event: channels.Inbound{
		ID: "01HX", Kind: channels.Postback,
		Address: channels.Address{Channel: "c", Kind: channels.Group, Room: "C1", Thread: "T1", User: "U1"},
		Time:    time.Date(2026, 1, 2, 3, 4, 5, 123456789, time.FixedZone("", 9*3600)),
		Speaker: channels.Speaker{ID: "U1", Name: "ゆき <b>&\u2028", Locale: "ja-JP", Bot: true}, Mentioned: true,
		Parts: []channels.Part{
			{Type: channels.Text, Text: "a\nb\x00\"\\"},
			{Type: channels.Image, Media: &channels.MediaRef{ID: "m", URL: "https://x/?a=1&b=2", Name: "f", MIME: "image/png", Size: 1 << 40}},
		},
		MessageID: "9007199254740993", Refers: "9007199254740995", Reply: []byte{0, 1, 0xff},
	}}
	fresh, err := s.Put(t.Context(), []dispatch.Routed{r})
	must(t, "Put", err)
	for where, entries := range map[string][]dispatch.Entry{"Put": fresh, "Pending": pending(t, s)} {
		if diff := cmp.Diff([]dispatch.Routed{r}, []dispatch.Routed{entries[0].Routed}); diff != "" {
			t.Errorf("event from %s differs (-want +got):\n%s", where, diff)
		}
	}
	fresh[0].Event.Reply[0] = 9
	fresh[0].Event.Parts[1].Media.ID = "other"
	if diff := cmp.Diff(r, pending(t, s)[0].Routed); diff != "" {
		t.Errorf("changing what Put returned changed the journal (-want +got):\n%s", diff)
	}
}

func manyIDs(n int) (ids []string) {
	for i := range n {
		ids = append(ids, fmt.Sprintf("e%04d", i))
	}
	return ids
}

func pendingPages(t *testing.T, s Both) {
	ids := manyIDs(700)
	put(t, s, ids...)
	wantPending(t, s, ids...)
}

// pendingWhileConsuming checks that a consumer may write while it iterates.
func pendingWhileConsuming(t *testing.T, s Both) {
	ids := manyIDs(300)
	put(t, s, ids...)
	var seen []string
	for e, err := range s.Pending(t.Context()) {
		must(t, "Pending", err)
		seen = append(seen, e.Event.ID)
		r := turn("t-"+e.Event.ID, e)
		r.Items = nil
		commit(t, s, r)
		put(t, s, "late-"+e.Event.ID)
	}
	if diff := cmp.Diff(ids, seen); diff != "" {
		t.Errorf("entries seen differ (-want +got):\n%s", diff)
	}
	if n := len(pending(t, s)); n != len(ids) {
		t.Errorf("%d entries are pending afterwards, want %d", n, len(ids))
	}
}

func pendingStops(t *testing.T, s Both) {
	put(t, s, "e1", "e2", "e3")
	for range s.Pending(t.Context()) {
		break
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	n := 0
	for _, err := range s.Pending(ctx) {
		wantErr(t, "Pending with an ended context", err, context.Canceled)
		n++
	}
	if n != 1 {
		t.Errorf("Pending with an ended context yields %d times, want once", n)
	}
}

func failCounts(t *testing.T, s Both) {
	entries := put(t, s, "e1", "e2")
	ctx := t.Context()
	must(t, "Fail", s.Fail(ctx, seqsOf(entries), "model is away"))
	must(t, "Fail", s.Fail(ctx, seqsOf(entries[1:]), "model is away"))
	must(t, "Fail of an entry that is not pending", s.Fail(ctx, []uint64{entries[1].Seq + 100}, "gone"))
	for i, e := range pending(t, s) {
		if e.Attempts != i+1 {
			t.Errorf("attempts of %s = %d, want %d", e.Event.ID, e.Attempts, i+1)
		}
		if diff := cmp.Diff(entries[i].Event, e.Event); diff != "" {
			t.Errorf("Fail changed the event (-want +got):\n%s", diff)
		}
	}
	session{t, s, journalSession}.wantEmpty()
}

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

// replies commits turns with one reply each, in order.
func replies(t *testing.T, s dispatch.Journal, ids ...string) {
	t.Helper()
	for _, id := range ids {
		commit(t, s, dispatch.TurnResult{Session: journalSession, Turn: id, Replies: []dispatch.Delivery{reply(id)}})
	}
}

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

func concurrentPuts(t *testing.T, s Both) {
	const senders, each = 16, 5
	var wg sync.WaitGroup
	for w := range senders {
		wg.Go(func() {
			for n := range each {
				fresh, err := s.Put(t.Context(), []dispatch.Routed{routed(fmt.Sprint(w, "/", n))})
				if err != nil || len(fresh) != 1 {
					t.Errorf("Put = %d fresh, %v, want 1, nil", len(fresh), err)
				}
			}
		})
	}
	wg.Wait()
	entries := pending(t, s)
	if len(entries) != senders*each {
		t.Errorf("%d entries are pending, want %d", len(entries), senders*each)
	}
	if !slices.IsSortedFunc(entries, func(a, b dispatch.Entry) int { return int(a.Seq) - int(b.Seq) }) {
		t.Error("pending entries are not in the order of Seq")
	}
}

// concurrentSameEvents checks that of many deliveries of one event exactly one is fresh.
func concurrentSameEvents(t *testing.T, s Both) {
	var mu sync.Mutex
	count := map[string]int{}
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			fresh, err := s.Put(t.Context(), []dispatch.Routed{routed("e1"), routed("e2")})
			if err != nil {
				t.Errorf("Put = %v, want nil", err)
			}
			mu.Lock()
			defer mu.Unlock()
			for _, e := range fresh {
				count[e.Event.ID]++
			}
		})
	}
	wg.Wait()
	if diff := cmp.Diff(map[string]int{"e1": 1, "e2": 1}, count); diff != "" {
		t.Errorf("times that an event was fresh differ (-want +got):\n%s", diff)
	}
}

// concurrentCommits checks that of many turns that answer one entry exactly one is committed.
func concurrentCommits(t *testing.T, s Both) {
	entries := put(t, s, "e1")
	var mu sync.Mutex
	committed := 0
	var wg sync.WaitGroup
	for w := range 16 {
		wg.Go(func() {
			err := s.Commit(t.Context(), turn(fmt.Sprint("t", w), entries...))
			if err != nil && !errors.Is(err, dispatch.ErrConsumed) {
				t.Errorf("Commit = %v, want nil or ErrConsumed", err)
			}
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				committed++
			}
		})
	}
	wg.Wait()
	if committed != 1 {
		t.Errorf("%d turns were committed, want 1", committed)
	}
	session{t, s, journalSession}.want(hello, world)
	if n := len(due(t, s, time.Now())); n != 1 {
		t.Errorf("%d deliveries are due, want 1", n)
	}
}

// concurrentTraffic carries messages of several people through all stages at once.
func concurrentTraffic(t *testing.T, s Both) {
	const people, messages = 8, 6
	ctx := t.Context()
	var wg sync.WaitGroup
	for p := range people {
		id := sessionstore.ID(fmt.Sprint("person-", p))
		wg.Go(func() {
			for n := range messages {
				r := routed(fmt.Sprint(p, "/", n))
				r.Session = id
				entries, err := s.Put(ctx, []dispatch.Routed{r})
				if err != nil || len(entries) != 1 {
					t.Errorf("Put = %v, %v", entries, err)
					return
				}
				res := turn(fmt.Sprint(p, "-", n), entries...)
				res.Session, res.Items = id, itemsOf(numbered(2*n), numbered(2*n+1))
				err = errors.Join(s.Commit(ctx, res), s.Begin(ctx, res.Replies[0].Message.ID),
					s.Settle(ctx, res.Replies[0].Message.ID, dispatch.Outcome{State: dispatch.Delivered}))
				if err != nil {
					t.Errorf("turn of %s: %v", id, err)
					return
				}
			}
		})
	}
	done := make(chan struct{})
	wg.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			for _, err := range s.Due(ctx, time.Now()) {
				if err != nil {
					t.Errorf("Due = %v", err)
				}
			}
			if _, err := s.Stats(ctx); err != nil {
				t.Errorf("Stats = %v", err)
			}
		}
	})
	waitFor(ctx, t, "all messages to be carried", func() bool {
		for p := range people {
			items, err := s.Items(ctx, sessionstore.ID(fmt.Sprint("person-", p)), sessionstore.All)
			if err != nil || len(items) < 2*messages {
				return t.Failed()
			}
		}
		st, err := s.Stats(ctx)
		return err == nil && st.Pending == 0 && st.Waiting == 0
	})
	close(done)
	wg.Wait()
	var want []string
	for n := range 2 * messages {
		want = append(want, numbered(n))
	}
	for p := range people {
		session{t, s, sessionstore.ID(fmt.Sprint("person-", p))}.want(want...)
	}
	wantStats(t, s, dispatch.Stats{})
}
