package dbtest

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"botd/sessionstore"
)

// Listing is a store that can enumerate its sessions.
type Listing interface {
	sessionstore.Store
	sessionstore.Lister
}

// Contract checks what a store over another's tables can get wrong beside what all stores can: origins
// and turns with any bytes in them, and sessions that come into being by looking at them. The store is empty.
func Contract(t *testing.T, s Listing) {
	t.Helper()
	ctx := t.Context()
	if err := s.Append(ctx, "looked-at", sessionstore.Batch{Turn: "t"}); err != nil {
		t.Fatal(err)
	}
	WantStale(t, s, "looked-at", sessionstore.Batch{Turn: "t", Generation: 3, Items: Items(`{}`)})
	if _, err := s.Pop(ctx, "looked-at"); !errors.Is(err, sessionstore.ErrEmpty) {
		t.Errorf("pop of nothing: %v", err)
	}
	Raws(t, s, "looked-at", 5)
	if infos, err := s.Sessions(ctx, "", "", 10); err != nil || len(infos) != 0 {
		t.Errorf("looking at a session made it: %v, %v", infos, err)
	}

	long := strings.Repeat("t", sessionstore.MaxTurnLen)
	for _, turn := range []string{"t", "T", "t ", "\x00", "\xff\x00'\"\\", "日本", long, long[1:]} {
		b := sessionstore.Batch{Turn: turn, Items: []sessionstore.Item{
			{Raw: []byte(`{"role":"user","content":"1"}`)},
			{Raw: []byte(`{"role":"user","content":"2"}`), Origin: "clerk@openai/" + turn},
		}}
		for range 2 {
			if err := s.Append(ctx, "s", b); err != nil {
				t.Fatalf("turn %q: %v", turn, err)
			}
		}
		items, err := s.Items(ctx, "s", 2)
		if err != nil {
			t.Fatal(err)
		}
		got := [][2]string{{items[0].Turn, items[0].Origin}, {items[1].Turn, items[1].Origin}}
		if diff := cmp.Diff([][2]string{{turn, ""}, {turn, "clerk@openai/" + turn}}, got); diff != "" {
			t.Errorf("turn and origin (-want +got):\n%s", diff)
		}
	}
	if got := len(Raws(t, s, "s", sessionstore.All)); got != 16 {
		t.Errorf("got %d items of 8 turns, want 16", got)
	}
}
