package storetest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"botd/channels/dispatch"
	"botd/sessionstore"
)

// Counting is a store with a journal that keeps counters.
type Counting interface {
	Both
	sessionstore.Tallier
}

// Tallier checks the contract of sessionstore.Tallier, and that a journal adds a turn's counters with it.
func Tallier(t *testing.T, open func(t *testing.T) Counting) {
	runAll(t, open, []check[Counting]{
		{"AddsUp", tallyAddsUp},
		{"AddsUpAmongMany", tallyAmongMany},
		{"ListedInOrderByPage", talliesListed},
		{"Dropped", talliesDropped},
		{"RefusesWhatIsInvalid", tallyInvalid},
		{"WithTheTurnOnce", tallyWithTurn},
		{"CancelledAndClosed", tallyClosed},
	})
}

// spent is a set of counts of which no two are equal, n times.
func spent(n int64) sessionstore.Counts {
	return sessionstore.Counts{
		Turns: n, Requests: 2 * n, InputTokens: 300 * n, CachedTokens: 40 * n, OutputTokens: 50 * n, ReasoningTokens: 6 * n,
		CostMicros: 7_000_000 * n, Estimated: 8 * n, Unpriced: 9 * n, Pushes: 10 * n,
	}
}

func addTallies(t *testing.T, s sessionstore.Tallier, add ...sessionstore.Tally) {
	t.Helper()
	must(t, "AddTallies", s.AddTallies(t.Context(), add...))
}

// wantTallies checks all counters with a prefix, read in pages of several sizes.
func wantTallies(t *testing.T, s sessionstore.Tallier, prefix string, want ...sessionstore.Tally) {
	t.Helper()
	for _, page := range []int{1, 3, sessionstore.All} {
		got := pages(t, "Tallies", page, func(t sessionstore.Tally) string { return t.Key },
			func(ctx context.Context, after string, limit int) ([]sessionstore.Tally, error) {
				return s.Tallies(ctx, prefix, after, limit)
			})
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("counters with the prefix %q in pages of %d differ (-want +got):\n%s", prefix, page, diff)
		}
	}
}

func tallyAddsUp(t *testing.T, s Counting) {
	wantTallies(t, s, "")
	addTallies(t, s)
	wantTallies(t, s, "")
	addTallies(t, s, sessionstore.Tally{Key: "a", Counts: spent(1)})
	addTallies(t, s, sessionstore.Tally{Key: "b", Counts: spent(5)}, sessionstore.Tally{Key: "a", Counts: spent(2)}, sessionstore.Tally{Key: "a", Counts: spent(3)})
	wantTallies(t, s, "", sessionstore.Tally{Key: "a", Counts: spent(6)}, sessionstore.Tally{Key: "b", Counts: spent(5)})
	if list, err := s.Tallies(t.Context(), "", "", 0); err != nil || len(list) != 0 {
		t.Errorf("Tallies with limit 0 = %v, %v, want none", list, err)
	}
}

func tallyAmongMany(t *testing.T, s Counting) {
	const callers, each = 8, 50
	var all sync.WaitGroup
	for c := range callers {
		all.Go(func() {
			for range each {
				add := []sessionstore.Tally{{Key: "total", Counts: spent(1)}, {Key: fmt.Sprint("caller/", c), Counts: spent(2)}}
				if err := s.AddTallies(t.Context(), add...); err != nil {
					t.Errorf("AddTallies() = %v, want nil", err)
				}
			}
		})
	}
	all.Wait()
	wantTallies(t, s, "total", sessionstore.Tally{Key: "total", Counts: spent(callers * each)})
	var want []sessionstore.Tally
	for c := range callers {
		want = append(want, sessionstore.Tally{Key: fmt.Sprint("caller/", c), Counts: spent(2 * each)})
	}
	wantTallies(t, s, "caller/", want...)
}

func talliesListed(t *testing.T, s Counting) {
	keys := []string{"day/1/a", "day/1/b", "day/1/ライン", "day/10/a", "day/2/a", "month/1/a"}
	for round := range 40 {
		for i := range keys {
			addTallies(t, s, sessionstore.Tally{Key: keys[(i*5+round)%len(keys)], Counts: spent(1)})
		}
	}
	for prefix, of := range map[string][]string{"": keys, "day/": keys[:5], "day/1": keys[:4], "day/1/": keys[:3], "x": nil, "day/2/a": keys[4:5], "day/2/aa": nil} {
		var want []sessionstore.Tally
		for _, key := range of {
			want = append(want, sessionstore.Tally{Key: key, Counts: spent(40)})
		}
		wantTallies(t, s, prefix, want...)
	}
}

func talliesDropped(t *testing.T, s Counting) {
	for i := range 200 {
		addTallies(t, s, sessionstore.Tally{Key: fmt.Sprintf("day/1/%03d", i), Counts: spent(1)}, sessionstore.Tally{Key: "day/2", Counts: spent(1)})
	}
	must(t, "DropTallies", s.DropTallies(t.Context(), "day/1/"))
	wantTallies(t, s, "", sessionstore.Tally{Key: "day/2", Counts: spent(200)})
	must(t, "DropTallies of nothing", s.DropTallies(t.Context(), "day/1/"))
	addTallies(t, s, sessionstore.Tally{Key: "day/1/000", Counts: spent(3)})
	wantTallies(t, s, "day/1/", sessionstore.Tally{Key: "day/1/000", Counts: spent(3)})
	must(t, "DropTallies of all", s.DropTallies(t.Context(), ""))
	wantTallies(t, s, "")
}

func tallyInvalid(t *testing.T, s Counting) {
	long := strings.Repeat("k", sessionstore.MaxRecordKeyLen)
	for _, key := range []string{"", "a\x00", long + "k"} {
		err := s.AddTallies(t.Context(), sessionstore.Tally{Key: "good", Counts: spent(1)}, sessionstore.Tally{Key: key, Counts: spent(1)})
		wantErr(t, fmt.Sprintf("AddTallies with a key of %d bytes", len(key)), err, sessionstore.ErrInvalidRecord)
	}
	wantTallies(t, s, "")
	addTallies(t, s, sessionstore.Tally{Key: long, Counts: spent(1)})
	wantTallies(t, s, "", sessionstore.Tally{Key: long, Counts: spent(1)})
}

// tallyWithTurn checks that what a turn used is counted exactly when the turn is committed.
func tallyWithTurn(t *testing.T, s Counting) {
	used := []sessionstore.Tally{{Key: "session/x", Counts: spent(1)}, {Key: "total", Counts: spent(1)}}
	entries := put(t, s, "e1", "e2")
	r := turn("t1", entries[0])
	r.Tallies = used
	commit(t, s, r)
	wantTallies(t, s, "", used...)
	wantErr(t, "Commit of the same turn again", s.Commit(t.Context(), r), dispatch.ErrConsumed)
	wantTallies(t, s, "", used...)
	session{t, s, journalSession}.clear()
	stale := turn("t2", entries[1])
	stale.Tallies = used
	wantErr(t, "Commit of a turn that began before the clear", s.Commit(t.Context(), stale), sessionstore.ErrStale)
	wantTallies(t, s, "", used...)
	stale.Generation = 1
	commit(t, s, stale)
	wantTallies(t, s, "", sessionstore.Tally{Key: "session/x", Counts: spent(2)}, sessionstore.Tally{Key: "total", Counts: spent(2)})
}

func tallyClosed(t *testing.T, s Counting) {
	one := sessionstore.Tally{Key: "a", Counts: spent(1)}
	addTallies(t, s, one)
	calls := map[string]func(ctx context.Context) error{
		"AddTallies":  func(ctx context.Context) error { return s.AddTallies(ctx, one) },
		"Tallies":     func(ctx context.Context) error { _, err := s.Tallies(ctx, "", "", 1); return err },
		"DropTallies": func(ctx context.Context) error { return s.DropTallies(ctx, "") },
	}
	ended, end := context.WithCancel(t.Context())
	end()
	for name, call := range calls {
		wantErr(t, name+" with an ended context", call(ended), context.Canceled)
	}
	wantTallies(t, s, "", one)
	must(t, "Close", s.Close())
	for name, call := range calls {
		wantErr(t, name+" after Close", call(t.Context()), sessionstore.ErrClosed)
	}
}
