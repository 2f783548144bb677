package dispatch_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"botd/agent"
	"botd/channels"
	"botd/channels/dispatch"
)

func TestLane_OneTurnAtATimeInOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := begin(t, withEngine(slow(time.Second)))
		w.accept(direct("ann", "1", "one"), direct("ann", "2", "two"), direct("ann", "3", "three"))
		w.shows()
		pass(time.Second + time.Millisecond)
		w.shows("re one")
		pass(2 * time.Second)
		w.shows("re one", "re two", "re three")
		w.remembers("ch:user:ann", "u:one", "a:re one", "u:two", "a:re two", "u:three", "a:re three")
		for i, m := range w.platform.messages() {
			if want := fmt.Sprint("token-", i+1); string(m.Reply) != want {
				t.Errorf("answer %d is on handle %q, want its own", i+1, m.Reply)
			}
		}
	})
}

func TestLane_SessionsRunSideBySide(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := begin(t, withEngine(slow(time.Second)))
		for i := range 20 {
			w.accept(direct(fmt.Sprint("u", i), fmt.Sprint(i), "hi"))
		}
		pass(time.Second + time.Millisecond)
		if got := len(w.platform.texts()); got != 20 {
			t.Errorf("%d answers after the time of one, want 20", got)
		}
	})
}

func TestLane_MaxConcurrent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		running, most := 0, 0
		w := begin(t, func(s *setup) { s.MaxConcurrent = 3 }, withEngine(func(ctx context.Context, turn agent.Turn) (string, error) {
			mu.Lock()
			running++
			most = max(most, running)
			mu.Unlock()
			defer func() {
				mu.Lock()
				running--
				mu.Unlock()
			}()
			return slow(time.Second)(ctx, turn)
		}))
		for i := range 10 {
			w.accept(direct(fmt.Sprint("u", i), fmt.Sprint(i), "hi"))
		}
		pass(4*time.Second + time.Millisecond)
		if got := len(w.platform.texts()); got != 10 || most != 3 {
			t.Errorf("%d answers with %d turns at once, want 10 with 3", got, most)
		}
	})
}

// TestLane_Fairness: one session with 1,000 messages does not hold up 99 others.
func TestLane_Fairness(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := begin(t, func(s *setup) { s.MaxConcurrent = 2 }, withEngine(slow(time.Second)))
		var flood []channels.Inbound
		for i := range 1000 {
			flood = append(flood, direct("flood", fmt.Sprint("f", i), "x"))
		}
		w.accept(flood...)
		for i := range 99 {
			w.accept(direct(fmt.Sprint("u", i), fmt.Sprint(i), "hi"))
		}
		// 99 turns on two slots, among which the flood had one at the beginning and gets one more.
		pass(52 * time.Second)
		others := 0
		for _, text := range w.platform.texts() {
			if text == "re hi" {
				others++
			}
		}
		if others != 99 {
			t.Errorf("%d of 99 others are answered after 52 s", others)
		}
		pass(2000 * time.Second)
		if got := len(w.platform.texts()); got != 1099 {
			t.Errorf("%d answers in all, want 1099", got)
		}
		w.settled()
	})
}

func withMergeWindow(window time.Duration) func(*setup) {
	return func(s *setup) { s.MergeWindow = window }
}

func TestMerge_PersonWhoGoesOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := begin(t, withMergeWindow(2*time.Second))
		w.accept(direct("ann", "1", "hello"))
		pass(1500 * time.Millisecond)
		w.accept(direct("ann", "2", "are you"))
		pass(1500 * time.Millisecond)
		w.accept(direct("ann", "3", "there?"))
		w.shows()
		pass(3 * time.Second)
		w.shows("re hello+are you+there?")
		if got := string(w.platform.messages()[0].Reply); got != "token-3" {
			t.Errorf("answered on handle %q, want the newest", got)
		}
		w.settled()
	})
}

func TestMerge_EndlessTalkerIsAnsweredAfterFiveWindows(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := begin(t, withMergeWindow(time.Second))
		for i := range 20 {
			w.accept(direct("ann", fmt.Sprint(i), "x"))
			pass(900 * time.Millisecond)
		}
		if got := w.platform.texts(); len(got) < 3 || got[0] != "re x+x+x+x+x+x" {
			t.Errorf("answers after 18 s of talk: %q", got)
		}
		pass(time.Minute)
		if got := strings.Count(strings.Join(w.platform.texts(), ""), "x"); got != 20 {
			t.Errorf("%d of 20 messages are answered", got)
		}
	})
}

func TestMerge_MessagesDuringARunJoinTheNext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := begin(t, withMergeWindow(time.Second), withEngine(slow(10*time.Second)))
		w.accept(direct("ann", "1", "one"))
		pass(2 * time.Second)
		w.accept(direct("ann", "2", "two"))
		pass(2 * time.Second)
		w.accept(direct("ann", "3", "three"))
		pass(time.Minute)
		w.shows("re one", "re two+three")
	})
}

func TestMerge_NeverAcrossPeople(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := begin(t, withMergeWindow(time.Hour))
		unnamed := func(id, text string) channels.Inbound {
			in := group("g", "", id, text)
			in.Speaker = channels.Speaker{}
			return in
		}
		w.accept(
			group("g", "ann", "1", "a1"), group("g", "ann", "2", "a2"), group("g", "bob", "3", "b1"),
			group("g", "ann", "4", "a3"), unnamed("5", "x1"), unnamed("6", "x2"),
		)
		pass(10 * time.Hour)
		w.shows("re a1+a2", "re b1", "re a3", "re x1", "re x2")
		for _, m := range w.platform.messages() {
			if !m.Quote {
				t.Errorf("%q does not quote whom it answers", m.PlainText())
			}
		}
	})
}

func TestMerge_NotAcrossPlaces(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := begin(t, withMergeWindow(time.Second), func(s *setup) { s.Scope = dispatch.ScopeUser })
		w.accept(group("g1", "ann", "1", "one"), group("g2", "ann", "2", "two"))
		pass(time.Minute)
		got := w.platform.texts()
		slices.Sort(got)
		if !slices.Equal(got, []string{"re one", "re two"}) {
			t.Errorf("answers %q, want one in each room", got)
		}
	})
}

func TestMerge_OffByDefault(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := begin(t, withEngine(slow(time.Second)))
		w.accept(direct("ann", "1", "one"), direct("ann", "2", "two"))
		pass(time.Minute)
		w.shows("re one", "re two")
	})
}
