package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"botd/agent"
	"botd/channels"
	"botd/channels/dispatch"
)

func TestDrain_RunningTurnsFinishWithinTheGrace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := begin(t, withEngine(slow(10*time.Second)))
		w.accept(direct("ann", "1", "one"), direct("ann", "2", "two"))
		began := time.Now()
		w.stop()
		w.shows("re one")
		if took := time.Since(began); took != 10*time.Second {
			t.Errorf("drained after %v, want the 10 s of the running turn", took)
		}
		if st := w.stats(); st.Pending != 1 {
			t.Errorf("journal holds %+v, want the second message", st)
		}
		w = w.restart()
		w.run()
		w.shows("re one", "re two")
	})
}

func TestDrain_LongTurnsAreCutOffAndRunAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := begin(t, withEngine(slow(time.Minute)))
		w.accept(direct("ann", "1", "one"))
		began := time.Now()
		w.stop()
		if took := time.Since(began); took != 20*time.Second {
			t.Errorf("drained after %v, want the grace of 20 s", took)
		}
		w.shows()
		w = w.restart()
		w.run()
		w.shows("re one")
		w.remembers("ch:user:ann", "u:one", "a:re one")
	})
}

func TestDrain_NoGrace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := begin(t, func(s *setup) { s.Grace = -1 }, withEngine(slow(time.Minute)))
		w.accept(direct("ann", "1", "one"))
		began := time.Now()
		w.stop()
		if took := time.Since(began); took != 0 {
			t.Errorf("drained after %v, want at once", took)
		}
	})
}

func TestDrain_IdleEndsAtOnceWhateverWaitsForATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := begin(t, withMergeWindow(time.Hour), withEngine(failing(engineError(agent.Transient))),
			withSends(sends(&channels.Error{Kind: channels.RateLimited, RetryAfter: time.Hour, Err: errors.New("x")})))
		w.accept(direct("ann", "1", "/help"))
		w.accept(direct("bob", "2", "hi"))
		began := time.Now()
		w.stop()
		if took := time.Since(began); took != 0 {
			t.Errorf("drained after %v, want at once", took)
		}
		if st := w.stats(); st.Pending != 1 || st.Waiting != 1 {
			t.Errorf("journal holds %+v", st)
		}
	})
}

func TestDrain_DeliveriesInFlightAreSettled(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		takes time.Duration
		shown int
		want  dispatch.Stats
	}{
		"within the grace": {10 * time.Second, 1, dispatch.Stats{}},
		"cut off":          {50 * time.Second, 0, dispatch.Stats{Unknown: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := begin(t, once, withSends(func(ctx context.Context, _ channels.Outbound) error {
					select {
					case <-time.After(tt.takes):
						return nil
					case <-ctx.Done():
						return &channels.Error{Kind: channels.Ambiguous, Err: ctx.Err()}
					}
				}))
				w.accept(direct("ann", "1", "hi"))
				w.stop()
				if got := len(w.platform.texts()); got != tt.shown {
					t.Errorf("shown %d times, want %d", got, tt.shown)
				}
				if got := w.stats(); got != tt.want {
					t.Errorf("journal holds %+v, want %+v", got, tt.want)
				}
			})
		})
	}
}

func TestDrain_JournalDown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var sick *sickJournal
		w := begin(t, withSickJournal(&sick))
		sick.set(func(j *sickJournal) { j.commit = errors.New("disk full") })
		w.accept(direct("ann", "1", "one"), direct("bob", "2", "/reset"))
		began := time.Now()
		w.stop()
		if took := time.Since(began); took != 20*time.Second {
			t.Errorf("drained after %v, want the grace of 20 s", took)
		}
		w.shows()
		w = w.restart()
		w.run()
		if got := len(w.platform.texts()); got != 2 {
			t.Errorf("%d replies after the restart, want 2", got)
		}
	})
}

func TestRun_FailsWhenTheJournalCannotBeRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var sick *sickJournal
		w := prepare(t, withSickJournal(&sick))
		broken := errors.New("no such file")
		sick.pending = broken
		if err := w.Run(t.Context()); !errors.Is(err, broken) {
			t.Errorf("Run: %v, want the journal's error", err)
		}
		if err := w.Run(t.Context()); err == nil {
			t.Error("Run could be called twice")
		}
	})
}

// TestRun_LeavesNoGoroutines: the bubble fails when one is left, whatever the dispatcher was doing.
func TestRun_LeavesNoGoroutines(t *testing.T) {
	t.Parallel()
	for stopAfter := range 12 {
		t.Run(fmt.Sprint(stopAfter, " s"), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := begin(t, withMergeWindow(time.Second), withEngine(slow(3*time.Second)),
					func(s *setup) { s.Adapter, s.Grace = &typist{platform: s.world.platform}, 2*time.Second },
					withSends(sends(sendError(channels.Transient), sendError(channels.Unauthorized))))
				for i := range 5 {
					w.accept(direct(fmt.Sprint("u", i), fmt.Sprint(i), "hi"))
				}
				w.accept(direct("u1", "r", "/reset"), direct("u2", "s", "/stop"))
				pass(time.Duration(stopAfter) * time.Second)
				w.stop()
			})
		})
	}
}

func TestRun_ChannelTakenOutOfTheConfiguration(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		old := &platform{name: "old", send: sends(sendError(channels.Transient))}
		both := func(s *setup) { s.Channels = []dispatch.Channel{{Adapter: s.world.platform}, {Adapter: old}} }
		w := prepare(t, both)
		e := direct("ann", "1", "hi")
		e.Address.Channel = "old"
		later := direct("bob", "2", "later")
		later.Address.Channel = "old"
		w.run()
		w.accept(e)
		w.stop()
		w = w.restart(both)
		w.accept(later)
		w = w.restart()
		w.run()
		w.accept(direct("ann", "3", "hi"))
		w.shows("re hi")
		if st := w.stats(); st.Pending != 1 || st.Waiting != 1 {
			t.Errorf("journal holds %+v, want what belongs to the other channel", st)
		}
		if got := strings.Count(w.logs.String(), "not configured"); got != 2 {
			t.Errorf("%d warnings, want 2", got)
		}
		w.stop()
		w = w.restart(both)
		w.run()
		pass(time.Minute)
		if got := old.texts(); len(got) != 2 {
			t.Errorf("the channel shows %q once it is back, want two answers", got)
		}
		w.settled()
	})
}

func TestNew_NamesEveryFault(t *testing.T) {
	t.Parallel()
	_, err := dispatch.New(dispatch.Options{
		MaxConcurrent: -1,
		Channels: []dispatch.Channel{
			{Adapter: &platform{name: "a"}, Groups: "sometimes"},
			{Adapter: &platform{name: "a"}, Scope: "planet"},
			{Adapter: &platform{name: "b"}, MergeWindow: -1},
			{Adapter: &platform{name: "c"}},
			{Adapter: &platform{name: "c"}},
			{},
		},
	})
	if err == nil {
		t.Fatal("New took them all")
	}
	for _, want := range []string{
		"no engine", "no store", "no journal", "MaxConcurrent", "sometimes", "planet", "MergeWindow", `named "c"`, "no adapter",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error lacks %q: %v", want, err)
		}
	}
}
