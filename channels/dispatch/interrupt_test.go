package dispatch_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"botd/agent"
	"botd/channels"
	"botd/channels/dispatch"
)

func interrupting(s *setup) { s.MidRun = dispatch.Interrupt }

func TestInterrupt_BothAreAnsweredTogether(t *testing.T) {
	bothStores(t, func(t *testing.T, change func(*setup)) {
		w := begin(t, change, interrupting, withEngine(slow(time.Minute)))
		w.accept(direct("ann", "1", "one"))
		pass(40 * time.Second)
		w.accept(direct("ann", "2", "two"))
		pass(40 * time.Second)
		w.shows()
		pass(20 * time.Second)
		w.shows("re one+two")
		w.remembers("ch:user:ann", "u:one", "u:two", "a:re one+two")
		if got := string(w.platform.messages()[0].Reply); got != "token-2" {
			t.Errorf("answered on %q, want the newer handle", got)
		}
		if got, want := w.reports.ends(), []dispatch.TurnEnd{dispatch.Dropped, dispatch.Answered}; !slices.Equal(got, want) {
			t.Errorf("runs ended %v, want %v", got, want)
		}
		w.settled()
	})
}

func TestInterrupt_NotByDefault(t *testing.T) {
	bothStores(t, func(t *testing.T, change func(*setup)) {
		w := begin(t, change, withEngine(slow(time.Minute)))
		w.accept(direct("ann", "1", "one"))
		w.accept(direct("ann", "2", "two"))
		pass(time.Hour)
		w.shows("re one", "re two")
	})
}

func TestInterrupt_NobodyElsesTurn(t *testing.T) {
	bothStores(t, func(t *testing.T, change func(*setup)) {
		w := begin(t, change, interrupting, withEngine(slow(time.Minute)))
		w.accept(group("g", "ann", "1", "a1"))
		w.accept(group("g", "bob", "2", "b1"))
		w.accept(group("g", "ann", "3", "a2"))
		w.accept(group("g", "ann", "4", "a3"))
		pass(time.Hour)
		w.shows("re a1", "re b1", "re a2+a3")
		if got := len(w.reports.ends()); got != 3 {
			t.Errorf("%d runs, want 3 that nobody disturbed", got)
		}
		w.settled()
	})
}

// TestInterrupt_APersonWhoNeverPauses is answered all the same.
func TestInterrupt_APersonWhoNeverPauses(t *testing.T) {
	bothStores(t, func(t *testing.T, change func(*setup)) {
		w := begin(t, change, interrupting, withEngine(slow(time.Minute)))
		for i := range 12 {
			w.accept(direct("ann", fmt.Sprint(i), fmt.Sprint(i)))
			pass(30 * time.Second)
		}
		pass(time.Hour)
		w.shows("re 0+1+2+3+4+5", "re 6+7+8+9+10+11")
		w.settled()
	})
}

func TestInterrupt_TurnBeingCommittedIsLeft(t *testing.T) {
	bothStores(t, func(t *testing.T, change func(*setup)) {
		var sick *sickJournal
		w := begin(t, withSickJournal(&sick), change, interrupting)
		sick.set(func(j *sickJournal) { j.commitDelay = time.Second })
		w.accept(direct("ann", "1", "one"))
		w.accept(direct("ann", "2", "two"))
		pass(time.Minute)
		w.shows("re one", "re two")
		w.settled()
	})
}

// TestInterrupt_DeafEngine: what a run says after it was interrupted is neither shown nor remembered.
func TestInterrupt_DeafEngine(t *testing.T) {
	bothStores(t, func(t *testing.T, change func(*setup)) {
		w := begin(t, change, interrupting, withEngine(func(ctx context.Context, turn agent.Turn) (string, error) {
			if len(turn.Input) == 1 {
				time.Sleep(time.Hour)
			}
			return echo(ctx, turn)
		}))
		w.accept(direct("ann", "1", "one"))
		w.accept(direct("ann", "2", "two"))
		w.shows("re one+two")
		pass(2 * time.Hour)
		w.shows("re one+two")
		w.remembers("ch:user:ann", "u:one", "u:two", "a:re one+two")
		w.settled()
	})
}

func TestInterrupt_SurvivesARestart(t *testing.T) {
	bothStores(t, func(t *testing.T, change func(*setup)) {
		noGrace := func(s *setup) { s.Grace = -1 }
		w := begin(t, change, interrupting, noGrace, withEngine(slow(time.Minute)))
		w.accept(direct("ann", "1", "one"))
		w.accept(direct("ann", "2", "two"))
		w.stop()
		w = w.restart(change, interrupting)
		w.run()
		w.shows("re one+two")
		w.accept([]channels.Inbound{direct("ann", "1", "one"), direct("ann", "2", "two")}...)
		w.shows("re one+two")
		w.settled()
	})
}
