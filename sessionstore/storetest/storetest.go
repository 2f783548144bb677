package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"botd/channels/dispatch"
	"botd/sessionstore"
)

// Both is a store that keeps the sessions and the journal together.
type Both interface {
	sessionstore.Store
	dispatch.Journal
}

// check is one test of a suite.
type check[S any] struct {
	name string
	run  func(t *testing.T, s S)
}

// runAll runs each check of a suite on a store of its own.
func runAll[S io.Closer](t *testing.T, open func(t *testing.T) S, checks []check[S]) {
	for _, c := range checks {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			defer func() {
				if err := s.Close(); err != nil {
					t.Errorf("Close() = %v, want nil", err)
				}
			}()
			c.run(t, s)
		})
	}
}

// pages returns the whole of what a method lists a page at a time, each page after the last key before it.
func pages[T, K any](
	t *testing.T, call string, page int, keyOf func(T) K, list func(ctx context.Context, after K, limit int) ([]T, error),
) (all []T) {
	t.Helper()
	var after K
	for {
		some, err := list(t.Context(), after, page)
		must(t, call, err)
		if len(some) == 0 {
			return all
		}
		if len(some) > page {
			t.Fatalf("%s with limit %d gives %d", call, page, len(some))
		}
		all = append(all, some...)
		after = keyOf(all[len(all)-1])
	}
}

// session is one session of a store under test; its methods fail the test on an error.
type session struct {
	t  *testing.T
	s  sessionstore.Store
	id sessionstore.ID
}

func (s session) append(turn string, raws ...string) {
	s.t.Helper()
	if err := s.s.Append(s.t.Context(), s.id, batch(turn, s.generation(), raws...)); err != nil {
		s.t.Fatalf("Append(%q, turn %q) = %v, want nil", s.id, turn, err)
	}
}

func (s session) generation() uint64 {
	s.t.Helper()
	g, err := s.s.Generation(s.t.Context(), s.id)
	if err != nil {
		s.t.Fatalf("Generation(%q) = %v, want nil", s.id, err)
	}
	return g
}

func (s session) items(limit int) []sessionstore.Item {
	s.t.Helper()
	items, err := s.s.Items(s.t.Context(), s.id, limit)
	if err != nil {
		s.t.Fatalf("Items(%q, %d) = %v, want nil", s.id, limit, err)
	}
	return items
}

func (s session) clear() {
	s.t.Helper()
	if err := s.s.Clear(s.t.Context(), s.id); err != nil {
		s.t.Fatalf("Clear(%q) = %v, want nil", s.id, err)
	}
}

func (s session) pop() sessionstore.Item {
	s.t.Helper()
	it, err := s.s.Pop(s.t.Context(), s.id)
	if err != nil {
		s.t.Fatalf("Pop(%q) = %v, want nil", s.id, err)
	}
	return it
}

// want checks what the session holds, in order.
func (s session) want(raws ...string) {
	s.t.Helper()
	if diff := cmp.Diff(raws, rawsOf(s.items(sessionstore.All))); diff != "" {
		s.t.Fatalf("items of %q differ (-want +got):\n%s", s.id, diff)
	}
}

// wantEmpty checks that nothing is left to read or to pop.
func (s session) wantEmpty() {
	s.t.Helper()
	s.want()
	if _, err := s.s.Pop(s.t.Context(), s.id); !errors.Is(err, sessionstore.ErrEmpty) {
		s.t.Fatalf("Pop(%q) of an empty session = %v, want ErrEmpty", s.id, err)
	}
}

func rawsOf(items []sessionstore.Item) (raws []string) {
	for _, it := range items {
		raws = append(raws, string(it.Raw))
	}
	return raws
}

func batch(turn string, generation uint64, raws ...string) sessionstore.Batch {
	return sessionstore.Batch{Turn: turn, Generation: generation, Items: itemsOf(raws...)}
}

func itemsOf(raws ...string) (items []sessionstore.Item) {
	for _, raw := range raws {
		items = append(items, sessionstore.Item{Raw: json.RawMessage(raw)})
	}
	return items
}

// user and assistant make the items of a plain conversation.
func user(text string) string {
	b, err := json.Marshal(map[string]string{"role": "user", "content": text})
	if err != nil {
		panic(err)
	}
	return string(b)
}

func numbered(n int) string { return fmt.Sprintf(`{"n":%d}`, n) }

// wantErr checks that an error is, or wraps, the wanted one.
func wantErr(t *testing.T, call string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("%s = %v, want %v", call, err, want)
	}
}

// must fails the test when a preparation fails.
func must(t *testing.T, call string, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s = %v, want nil", call, err)
	}
}

// waitFor polls until ok, for what another goroutine does in its own time.
func waitFor(ctx context.Context, t *testing.T, what string, ok func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for !ok() {
		select {
		case <-ctx.Done():
			t.Fatalf("timed out waiting for %s", what)
		case <-time.After(time.Millisecond):
		}
	}
}
