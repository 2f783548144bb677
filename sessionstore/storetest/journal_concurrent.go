package storetest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"botd/channels/dispatch"
	"botd/sessionstore"
)

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
