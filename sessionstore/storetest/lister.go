package storetest

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"botd/sessionstore"
)

// Listing is a store that can enumerate its sessions.
type Listing interface {
	sessionstore.Store
	sessionstore.Lister
}

// Lister checks the contract of sessionstore.Lister.
func Lister(t *testing.T, open func(t *testing.T) Listing) {
	runAll(t, open, []check[Listing]{
		{"InOrderByPage", listInOrder},
		{"ByPrefix", listByPrefix},
		{"WhatIsKnown", listInfo},
		{"NothingForNoLimit", listNothing},
		{"CancelledAndClosed", listClosed},
	})
}

// list returns every session with the prefix, read page by page.
func list(t *testing.T, s sessionstore.Lister, prefix string, page int) (ids []sessionstore.ID) {
	t.Helper()
	infos := pages(t, "Sessions", page, func(info sessionstore.Info) sessionstore.ID { return info.ID },
		func(ctx context.Context, after sessionstore.ID, limit int) ([]sessionstore.Info, error) {
			return s.Sessions(ctx, prefix, after, limit)
		})
	for _, info := range infos {
		ids = append(ids, info.ID)
	}
	return ids
}

func listInOrder(t *testing.T, s Listing) {
	var want []sessionstore.ID
	for i := range 300 {
		want = append(want, sessionstore.ID(fmt.Sprintf("s%03d", i)))
	}
	for i := range want {
		session{t, s, want[(i*7)%len(want)]}.append("t", hello)
	}
	for _, page := range []int{1, 7, 300, 1000, sessionstore.All} {
		if diff := cmp.Diff(want, list(t, s, "", page)); diff != "" {
			t.Errorf("sessions in pages of %d differ (-want +got):\n%s", page, diff)
		}
	}
}

func listByPrefix(t *testing.T, s Listing) {
	for _, id := range []sessionstore.ID{"a", "line:user:1", "line:user:2", "line:user:20", "line:users", "lineX", "z", "ライン"} {
		session{t, s, id}.append("t", hello)
	}
	for _, tt := range []struct {
		prefix string
		want   []sessionstore.ID
	}{
		{"line:user:", []sessionstore.ID{"line:user:1", "line:user:2", "line:user:20"}},
		{"line:user:2", []sessionstore.ID{"line:user:2", "line:user:20"}},
		{"line", []sessionstore.ID{"line:user:1", "line:user:2", "line:user:20", "line:users", "lineX"}},
		{"ライ", []sessionstore.ID{"ライン"}},
		{"none", nil},
		{"%", nil},
		{"line_", nil},
	} {
		if diff := cmp.Diff(tt.want, list(t, s, tt.prefix, 2)); diff != "" {
			t.Errorf("sessions with prefix %q differ (-want +got):\n%s", tt.prefix, diff)
		}
	}
	infos, err := s.Sessions(t.Context(), "line:", "a", 10)
	must(t, "Sessions", err)
	if len(infos) != 4 {
		t.Errorf("Sessions with a prefix behind after gives %d, want 4", len(infos))
	}
	infos, err = s.Sessions(t.Context(), "line:", "m", 10)
	must(t, "Sessions", err)
	if len(infos) != 0 {
		t.Errorf("Sessions with a prefix before after gives %d, want none", len(infos))
	}
}

func listInfo(t *testing.T, s Listing) {
	ses := session{t, s, "s"}
	ses.append("t1", hello)
	ses.clear()
	ses.append("t2", hello, world, hello)
	ses.pop()
	infos, err := s.Sessions(t.Context(), "", "", 10)
	must(t, "Sessions", err)
	if len(infos) != 1 {
		t.Fatalf("Sessions gives %d, want 1", len(infos))
	}
	got := infos[0]
	if got.ID != "s" || got.Items != 2 || got.Generation != 1 {
		t.Errorf("Sessions tells %s with %d items in generation %d, want s, 2, 1", got.ID, got.Items, got.Generation)
	}
	if got.Created.IsZero() || got.Updated.Before(got.Created) {
		t.Errorf("Sessions tells created %v, updated %v", got.Created, got.Updated)
	}
}

func listNothing(t *testing.T, s Listing) {
	session{t, s, "s"}.append("t", hello)
	for _, limit := range []int{0, -1} {
		infos, err := s.Sessions(t.Context(), "", "", limit)
		must(t, "Sessions", err)
		if len(infos) != 0 {
			t.Errorf("Sessions with limit %d gives %d, want none", limit, len(infos))
		}
	}
}

func listClosed(t *testing.T, s Listing) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.Sessions(ctx, "", "", 1)
	wantErr(t, "Sessions with an ended context", err, context.Canceled)
	must(t, "Close", s.Close())
	_, err = s.Sessions(t.Context(), "", "", 1)
	wantErr(t, "Sessions after Close", err, sessionstore.ErrClosed)
}
