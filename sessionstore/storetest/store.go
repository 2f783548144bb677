package storetest

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"botd/sessionstore"
)

// Store checks the contract of sessionstore.Store.
func Store(t *testing.T, open func(t *testing.T) sessionstore.Store) {
	runAll(t, open, []check[sessionstore.Store]{
		{"AppendItemsPop", appendItemsPop},
		{"NewestInOrder", newestInOrder},
		{"NothingForNoLimit", nothingForNoLimit},
		{"BytesAreKept", bytesAreKept},
		{"AnyObjectIsAnItem", anyObjectIsAnItem},
		{"OnlyObjectsAreItems", onlyObjectsAreItems},
		{"LargeItems", largeItems},
		{"Limits", limits},
		{"SessionsAreApart", sessionsAreApart},
		{"IDsAreOpaque", idsAreOpaque},
		{"InvalidIDs", invalidIDs},
		{"ItemsTellWhereTheyCameFrom", itemsTellWhereTheyCameFrom},
		{"SeqGrowsAndIsNotReused", seqGrows},
		{"EqualItems", equalItems},
		{"EmptyBatch", emptyBatch},
		{"TurnIsAppendedOnce", turnOnce},
		{"ManyTurnsAreRemembered", manyTurns},
		{"TurnsOfOthers", turnsOfOthers},
		{"BatchesWithoutTurn", batchesWithoutTurn},
		{"ClearForgets", clearForgets},
		{"ClearCounts", clearCounts},
		{"ClearWins", clearWins},
		{"StaleTurnAgain", staleTurnAgain},
		{"PopToTheEnd", popToTheEnd},
		{"ArgumentsAreCopied", argumentsAreCopied},
		{"ResultsAreCopies", resultsAreCopies},
		{"Cancelled", cancelled},
		{"Closed", closed},
		{"ConcurrentFirstWriters", concurrentFirstWriters},
		{"ConcurrentAppendsToOne", concurrentAppendsToOne},
		{"ConcurrentSameTurn", concurrentSameTurn},
		{"ConcurrentPops", concurrentPops},
		{"ConcurrentClear", concurrentClear},
		{"CancelDuringWrites", cancelDuringWrites},
	})
}

const (
	hello = `{"role":"user","content":"hello"}`
	world = `{"id":"msg_1","type":"message","role":"assistant","status":"completed","content":[{"type":"output_text","text":"world","annotations":[]}]}`
)

func appendItemsPop(t *testing.T, s sessionstore.Store) {
	ses := session{t, s, "line-shop:user:U1"}
	ses.wantEmpty()
	ses.append("t1", hello, world)
	ses.want(hello, world)
	if got := string(ses.pop().Raw); got != world {
		t.Errorf("first Pop = %s, want %s", got, world)
	}
	ses.want(hello)
	if got := string(ses.pop().Raw); got != hello {
		t.Errorf("second Pop = %s, want %s", got, hello)
	}
	ses.wantEmpty()
}

func newestInOrder(t *testing.T, s sessionstore.Store) {
	ses := session{t, s, "s"}
	var all []string
	for i := range 6 {
		all = append(all, numbered(i))
	}
	ses.append("t1", all[:2]...)
	ses.append("t2", all[2:5]...)
	ses.append("t3", all[5])
	for _, limit := range []int{1, 2, 3, 5, 6, 7, 10, 1 << 40, sessionstore.All} {
		want := all[max(0, 6-limit):]
		if diff := cmp.Diff(want, rawsOf(ses.items(limit))); diff != "" {
			t.Errorf("Items with limit %d differ (-want +got):\n%s", limit, diff)
		}
	}
}

func nothingForNoLimit(t *testing.T, s sessionstore.Store) {
	ses := session{t, s, "s"}
	ses.append("t1", hello)
	for _, limit := range []int{0, -1, -sessionstore.All} {
		if got := ses.items(limit); len(got) != 0 {
			t.Errorf("Items with limit %d gives %d items, want none", limit, len(got))
		}
	}
}

func bytesAreKept(t *testing.T, s sessionstore.Store) {
	raws := []string{
		`{"a":9007199254740993}`,
		`{"a":-0.0,"b":1E400,"c":1.10}`,
		`{ "b" : 1 ,	"a":[ ], "a":2 }`,
		" \r\n\t{\"padded\":true}\n ",
		`{"s":"\u3053\ud83d\ude00\/<>&\u2028"}`,
		`{"role":"user","content":"日本語 👩‍👩‍👧 שלום '; DROP TABLE items; -- \" \\ \n"}`,
		"{\"s\":\"\u2028\u2029\u0085\"}",
		`{}`,
	}
	ses := session{t, s, "s"}
	ses.append("t1", raws...)
	ses.want(raws...)
	for _, want := range slices.Backward(raws) {
		if got := string(ses.pop().Raw); got != want {
			t.Errorf("Pop = %q, want %q", got, want)
		}
	}
}

func anyObjectIsAnItem(t *testing.T, s sessionstore.Store) {
	raws := []string{
		`{"type":"function_call","call_id":"call_0","name":"f","arguments":"{\"x\":1}","id":"fc_1","status":"completed"}`,
		`{"type":"function_call_output","call_id":"call_0","output":[{"type":"input_text","text":"1"}]}`,
		`{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"gAAAA=="}`,
		`{"type":"a_type_of_tomorrow","deep":{"er":[[[{"n":null}]]]}}`,
		`{"unknown":true}`,
	}
	ses := session{t, s, "s"}
	ses.append("t1", raws...)
	ses.want(raws...)
}

func onlyObjectsAreItems(t *testing.T, s sessionstore.Store) {
	ses := session{t, s, "s"}
	ses.append("t1", hello)
	for _, raw := range []string{``, ` `, `null`, `1`, `"x"`, `[1]`, `true`, `{`, `{"a":}`, `{"a":1}{"b":2}`, `{"a":1} x`, "{\"a\":\"\xff\x00\"}"} {
		err := s.Append(t.Context(), ses.id, batch("t2", 0, world, raw, world))
		wantErr(t, fmt.Sprintf("Append of %q", raw), err, sessionstore.ErrInvalidItem)
	}
	ses.want(hello)
	ses.append("t2", world)
	ses.want(hello, world)
}

func largeItems(t *testing.T, s sessionstore.Store) {
	ses := session{t, s, "s"}
	var raws []string
	for _, size := range []int{100, 4090, 4096, 5000, 70_000, 1_000_000} {
		raws = append(raws, user(strings.Repeat("x", size)))
	}
	ses.append("t1", raws...)
	ses.want(raws...)
}

func limits(t *testing.T, s sessionstore.Store) {
	ses := session{t, s, "s"}
	big := `{"a":"` + strings.Repeat("x", sessionstore.MaxItemLen) + `"}`
	wantErr(t, "Append of an item over the limit",
		s.Append(t.Context(), ses.id, batch("t1", 0, hello, big)), sessionstore.ErrTooLarge)
	wantErr(t, "Append of a turn ID over the limit",
		s.Append(t.Context(), ses.id, batch(strings.Repeat("t", sessionstore.MaxTurnLen+1), 0, hello)), sessionstore.ErrTooLarge)
	ses.wantEmpty()
	turn := strings.Repeat("t", sessionstore.MaxTurnLen)
	ses.append(turn, hello)
	ses.append(turn, hello)
	ses.want(hello)
}

func sessionsAreApart(t *testing.T, s sessionstore.Store) {
	a, b, c := session{t, s, "a"}, session{t, s, "ab"}, session{t, s, "a\x00"}
	a.append("t", numbered(1))
	b.append("t", numbered(2))
	c.append("t", numbered(3))
	a.append("u", numbered(4))
	b.pop()
	b.wantEmpty()
	a.want(numbered(1), numbered(4))
	a.clear()
	a.wantEmpty()
	c.want(numbered(3))
	if g := c.generation(); g != 0 {
		t.Errorf("generation of a session not cleared = %d, want 0", g)
	}
}

func idsAreOpaque(t *testing.T, s sessionstore.Store) {
	ids := []sessionstore.ID{
		"x", "X", " x", "x ", "line-shop:group:C9", "日本語", "a/../b", "%", "_", "'; DROP TABLE items; --", "\u00e9", "e\u0301",
		sessionstore.ID(strings.Repeat("k", sessionstore.MaxIDLen)), sessionstore.ID(strings.Repeat("k", sessionstore.MaxIDLen-1)),
	}
	for i, id := range ids {
		session{t, s, id}.append("t", numbered(i))
	}
	for i, id := range ids {
		session{t, s, id}.want(numbered(i))
	}
}

func invalidIDs(t *testing.T, s sessionstore.Store) {
	ctx := t.Context()
	for _, id := range []sessionstore.ID{"", sessionstore.ID(strings.Repeat("k", sessionstore.MaxIDLen+1))} {
		_, err := s.Items(ctx, id, 1)
		wantErr(t, "Items", err, sessionstore.ErrInvalidID)
		_, err = s.Generation(ctx, id)
		wantErr(t, "Generation", err, sessionstore.ErrInvalidID)
		wantErr(t, "Append", s.Append(ctx, id, batch("t", 0, hello)), sessionstore.ErrInvalidID)
		_, err = s.Pop(ctx, id)
		wantErr(t, "Pop", err, sessionstore.ErrInvalidID)
		wantErr(t, "Clear", s.Clear(ctx, id), sessionstore.ErrInvalidID)
	}
}

func itemsTellWhereTheyCameFrom(t *testing.T, s sessionstore.Store) {
	ses := session{t, s, "s"}
	before := time.Now().Add(-2 * time.Second)
	ses.append("turn-1", hello, world)
	ses.append("turn-2", hello)
	after := time.Now().Add(2 * time.Second)
	var turns []string
	for _, it := range ses.items(sessionstore.All) {
		turns = append(turns, it.Turn)
		if it.At.Before(before) || it.At.After(after) {
			t.Errorf("item %d says it was appended at %v, want between %v and %v", it.Seq, it.At, before, after)
		}
	}
	if diff := cmp.Diff([]string{"turn-1", "turn-1", "turn-2"}, turns); diff != "" {
		t.Errorf("turns differ (-want +got):\n%s", diff)
	}
	if it := ses.pop(); it.Turn != "turn-2" || it.At.Before(before) {
		t.Errorf("Pop tells turn %q at %v, want turn-2, now", it.Turn, it.At)
	}
}

func seqGrows(t *testing.T, s sessionstore.Store) {
	ses := session{t, s, "s"}
	ses.append("t1", hello, world, hello)
	items := ses.items(sessionstore.All)
	for i := 1; i < len(items); i++ {
		if items[i].Seq <= items[i-1].Seq {
			t.Errorf("Seq %d follows %d, want it to grow", items[i].Seq, items[i-1].Seq)
		}
	}
	popped := ses.pop()
	if popped.Seq != items[2].Seq {
		t.Errorf("Pop tells Seq %d, Items told %d", popped.Seq, items[2].Seq)
	}
	ses.append("t2", world)
	if got := ses.items(1)[0].Seq; got <= popped.Seq {
		t.Errorf("Seq after a pop = %d, want more than the popped item's %d", got, popped.Seq)
	}
}

func equalItems(t *testing.T, s sessionstore.Store) {
	ses := session{t, s, "s"}
	ses.append("t1", hello, hello)
	ses.append("t2", hello)
	ses.want(hello, hello, hello)
	ses.pop()
	ses.want(hello, hello)
}

func popToTheEnd(t *testing.T, s sessionstore.Store) {
	ses := session{t, s, "s"}
	for i := range 25 {
		ses.append(fmt.Sprint("t", i), numbered(2*i), numbered(2*i+1))
	}
	for i := 49; i >= 0; i-- {
		if got, want := string(ses.pop().Raw), numbered(i); got != want {
			t.Fatalf("Pop = %s, want %s", got, want)
		}
	}
	ses.wantEmpty()
	ses.append("t", hello)
	ses.want(hello)
}

func argumentsAreCopied(t *testing.T, s sessionstore.Store) {
	ses := session{t, s, "s"}
	raw := []byte(hello)
	b := sessionstore.Batch{Turn: "t1", Items: []sessionstore.Item{{Raw: raw}}}
	must(t, "Append", s.Append(t.Context(), ses.id, b))
	for i := range raw {
		raw[i] = 'x'
	}
	b.Items[0].Raw = nil
	ses.want(hello)
}

func resultsAreCopies(t *testing.T, s sessionstore.Store) {
	ses := session{t, s, "s"}
	ses.append("t1", hello, world)
	items := ses.items(sessionstore.All)
	for i := range items {
		for j := range items[i].Raw {
			items[i].Raw[j] = 'x'
		}
		_ = append(items[i].Raw, "beyond"...)
	}
	ses.want(hello, world)
	again := ses.items(sessionstore.All)
	_ = append(again[0].Raw, bytes.Repeat([]byte("y"), 200)...)
	if string(again[1].Raw) != world {
		t.Errorf("appending to one item changed the next: %s", again[1].Raw)
	}
}

func cancelled(t *testing.T, s sessionstore.Store) {
	ses := session{t, s, "s"}
	ses.append("t1", hello)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.Items(ctx, ses.id, 1)
	wantErr(t, "Items with an ended context", err, context.Canceled)
	_, err = s.Generation(ctx, ses.id)
	wantErr(t, "Generation with an ended context", err, context.Canceled)
	wantErr(t, "Append with an ended context", s.Append(ctx, ses.id, batch("t2", 0, world)), context.Canceled)
	_, err = s.Pop(ctx, ses.id)
	wantErr(t, "Pop with an ended context", err, context.Canceled)
	wantErr(t, "Clear with an ended context", s.Clear(ctx, ses.id), context.Canceled)
	ses.want(hello)
	if g := ses.generation(); g != 0 {
		t.Errorf("generation after a cancelled Clear = %d, want 0", g)
	}
}

func closed(t *testing.T, s sessionstore.Store) {
	ses := session{t, s, "s"}
	ses.append("t1", hello)
	for range 2 {
		must(t, "Close", s.Close())
	}
	ctx := t.Context()
	_, err := s.Items(ctx, ses.id, 1)
	wantErr(t, "Items after Close", err, sessionstore.ErrClosed)
	_, err = s.Generation(ctx, ses.id)
	wantErr(t, "Generation after Close", err, sessionstore.ErrClosed)
	wantErr(t, "Append after Close", s.Append(ctx, ses.id, batch("t2", 0, world)), sessionstore.ErrClosed)
	wantErr(t, "Append of nothing after Close", s.Append(ctx, ses.id, sessionstore.Batch{}), sessionstore.ErrClosed)
	_, err = s.Pop(ctx, ses.id)
	wantErr(t, "Pop after Close", err, sessionstore.ErrClosed)
	wantErr(t, "Clear after Close", s.Clear(ctx, ses.id), sessionstore.ErrClosed)
}
