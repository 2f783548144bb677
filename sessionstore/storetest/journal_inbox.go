package storetest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"botd/channels"
	"botd/channels/dispatch"
	"botd/sessionstore"
)

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
		if e.Attempts != i+1 || e.Reason != "model is away" {
			t.Errorf("%s: %d attempts, reason %q, want %d attempts with the reason given", e.Event.ID, e.Attempts, e.Reason, i+1)
		}
		if diff := cmp.Diff(entries[i].Event, e.Event); diff != "" {
			t.Errorf("Fail changed the event (-want +got):\n%s", diff)
		}
	}
	session{t, s, journalSession}.wantEmpty()
}

func known(t *testing.T, s Both) {
	k, ok := s.(dispatch.Knower)
	if !ok {
		t.Skip("the journal does not tell which events it knows")
	}
	want := func(channel, id string, want bool) {
		t.Helper()
		got, err := k.Known(t.Context(), channel, id)
		must(t, "Known", err)
		if got != want {
			t.Errorf("Known(%q, %q) = %v, want %v", channel, id, got, want)
		}
	}
	want("line-shop", "e1", false)
	entries := put(t, s, "e1")
	want("line-shop", "e1", true)
	want("line-shop", "e2", false)
	want("another", "e1", false)
	commit(t, s, turn("t1", entries...))
	want("line-shop", "e1", true)
	must(t, "Close", s.Close())
	_, err := k.Known(t.Context(), "line-shop", "e1")
	wantErr(t, "Known after Close", err, sessionstore.ErrClosed)
}
