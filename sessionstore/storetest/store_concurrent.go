package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"botd/sessionstore"
)

func concurrentFirstWriters(t *testing.T, s sessionstore.Store) {
	const writers = 16
	ses := session{t, s, "s"}
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			if err := s.Append(t.Context(), ses.id, batch(fmt.Sprint("t", w), 0, numbered(w), numbered(w))); err != nil {
				t.Errorf("Append by writer %d = %v, want nil", w, err)
			}
		})
	}
	wg.Wait()
	items := ses.items(sessionstore.All)
	if len(items) != 2*writers {
		t.Fatalf("%d items, want %d", len(items), 2*writers)
	}
	for i := 0; i < len(items); i += 2 {
		if string(items[i].Raw) != string(items[i+1].Raw) {
			t.Errorf("a batch was torn apart: %s beside %s", items[i].Raw, items[i+1].Raw)
		}
	}
}

func concurrentAppendsToOne(t *testing.T, s sessionstore.Store) {
	const writers, turns = 4, 10
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for n := range turns {
				raw := fmt.Sprintf(`{"w":%d,"n":%d}`, w, n)
				if err := s.Append(t.Context(), "s", batch(fmt.Sprint(w, "/", n), 0, raw)); err != nil {
					t.Errorf("Append = %v, want nil", err)
				}
			}
		})
	}
	wg.Wait()
	next := make([]int, writers)
	for _, it := range (session{t, s, "s"}).items(sessionstore.All) {
		var v struct{ W, N int }
		must(t, "Unmarshal", json.Unmarshal(it.Raw, &v))
		if v.N != next[v.W] {
			t.Errorf("writer %d: item %d where %d was due", v.W, v.N, next[v.W])
		}
		next[v.W]++
	}
	if diff := cmp.Diff(slices.Repeat([]int{turns}, writers), next); diff != "" {
		t.Errorf("items by writer differ (-want +got):\n%s", diff)
	}
}

func concurrentSameTurn(t *testing.T, s sessionstore.Store) {
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if err := s.Append(t.Context(), "s", batch("t1", 0, hello, world)); err != nil {
				t.Errorf("Append = %v, want nil", err)
			}
		})
	}
	wg.Wait()
	session{t, s, "s"}.want(hello, world)
}

func concurrentPops(t *testing.T, s sessionstore.Store) {
	ses := session{t, s, "s"}
	const n = 20
	for i := range n {
		ses.append("", numbered(i))
	}
	var mu sync.Mutex
	seen := map[string]int{}
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			it, err := s.Pop(t.Context(), ses.id)
			if err != nil {
				t.Errorf("Pop = %v, want nil", err)
			}
			mu.Lock()
			defer mu.Unlock()
			seen[string(it.Raw)]++
		})
	}
	wg.Wait()
	ses.wantEmpty()
	if len(seen) != n {
		t.Errorf("%d different items were popped, want %d", len(seen), n)
	}
}

// concurrentClear checks that a turn is either whole and before the clear, or refused.
func concurrentClear(t *testing.T, s sessionstore.Store) {
	var wg sync.WaitGroup
	for n := range 20 {
		wg.Go(func() {
			err := s.Append(t.Context(), "s", batch(fmt.Sprint("t", n), 0, numbered(n), numbered(n)))
			if err != nil && !errors.Is(err, sessionstore.ErrStale) {
				t.Errorf("Append = %v, want nil or ErrStale", err)
			}
		})
		if n == 10 {
			wg.Go(func() {
				if err := s.Clear(t.Context(), "s"); err != nil {
					t.Errorf("Clear = %v, want nil", err)
				}
			})
		}
	}
	wg.Wait()
	ses := session{t, s, "s"}
	ses.wantEmpty()
	if g := ses.generation(); g != 1 {
		t.Errorf("generation = %d, want 1", g)
	}
}

// cancelDuringWrites checks that callers who give up are told the truth.
func cancelDuringWrites(t *testing.T, s sessionstore.Store) {
	const writers = 32
	written := make([]bool, writers)
	var wg sync.WaitGroup
	for w := range writers {
		ctx, cancel := context.WithCancel(t.Context())
		wg.Go(func() {
			err := s.Append(ctx, sessionstore.ID(fmt.Sprint("s", w)), batch("t", 0, hello, world))
			if err != nil && !errors.Is(err, context.Canceled) {
				t.Errorf("Append = %v, want nil or context.Canceled", err)
			}
			written[w] = err == nil
		})
		wg.Go(cancel)
	}
	wg.Wait()
	for w, ok := range written {
		ses := session{t, s, sessionstore.ID(fmt.Sprint("s", w))}
		if ok {
			ses.want(hello, world)
		} else {
			ses.wantEmpty()
		}
	}
}
