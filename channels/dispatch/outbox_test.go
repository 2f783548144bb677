package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"botd/agent"
	"botd/channels"
	"botd/channels/dispatch"
)

// sends makes a platform fail as told, send after send, and accept when that is used up.
func sends(errs ...error) func(context.Context, channels.Outbound) error {
	var mu sync.Mutex
	return func(context.Context, channels.Outbound) error {
		mu.Lock()
		defer mu.Unlock()
		if len(errs) == 0 {
			return nil
		}
		err := errs[0]
		errs = errs[1:]
		return err
	}
}

func sendError(kind channels.ErrorKind) error {
	return &channels.Error{Kind: kind, Err: errors.New("as told")}
}

func withSends(send func(context.Context, channels.Outbound) error) func(*setup) {
	return func(s *setup) { s.world.platform.send = send }
}

func once(s *setup) { s.world.platform.once = true }

func TestOutbox_WhatBecomesOfADelivery(t *testing.T) {
	t.Parallel()
	idempotent := func(*setup) {}
	for _, tt := range []struct {
		name     string
		sends    func(*setup)
		err      error
		shown    bool // after all
		want     dispatch.Stats
		attempts int
	}{
		{name: "transient", err: sendError(channels.Transient), shown: true, attempts: 2},
		{name: "transient without key", sends: once, err: sendError(channels.Transient), shown: true, attempts: 2},
		{name: "rate limited", err: &channels.Error{Kind: channels.RateLimited, RetryAfter: 3 * time.Second, Err: errors.New("x")}, shown: true, attempts: 2},
		{name: "ambiguous", err: sendError(channels.Ambiguous), want: dispatch.Stats{Unknown: 1}, attempts: 1},
		{name: "ambiguous without key", sends: once, err: sendError(channels.Ambiguous), want: dispatch.Stats{Unknown: 1}, attempts: 1},
		{name: "permanent", err: sendError(channels.Permanent), want: dispatch.Stats{Dead: 1}, attempts: 1},
		{name: "gone", err: sendError(channels.Gone), want: dispatch.Stats{Dead: 1}, attempts: 1},
		{name: "quota", err: sendError(channels.QuotaExhausted), want: dispatch.Stats{Held: 1}, attempts: 1},
		{name: "unauthorized", err: sendError(channels.Unauthorized), shown: true, attempts: 2},
		{name: "of no known kind", err: errors.New("odd"), shown: true, attempts: 2},
		{name: "of no known kind without key", sends: once, err: errors.New("odd"), want: dispatch.Stats{Unknown: 1}, attempts: 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				if tt.sends == nil {
					tt.sends = idempotent
				}
				w := begin(t, tt.sends, withSends(sends(tt.err)))
				w.accept(direct("ann", "1", "hi"))
				w.shows()
				pass(time.Hour)
				if got := len(w.platform.texts()) == 1; got != tt.shown {
					t.Errorf("shown: %v, want %v", got, tt.shown)
				}
				if got := w.stats(); got != tt.want {
					t.Errorf("journal holds %+v, want %+v", got, tt.want)
				}
				if got := len(w.reports.sends); got != tt.attempts {
					t.Errorf("%d attempts, want %d", got, tt.attempts)
				}
				w.remembers("ch:user:ann", "u:hi", "a:re hi")
			})
		})
	}
}

func TestOutbox_RetryAfterIsRespected(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := begin(t, withSends(sends(&channels.Error{Kind: channels.RateLimited, RetryAfter: time.Minute, Err: errors.New("x")})))
		w.accept(direct("ann", "1", "hi"))
		pass(time.Minute - time.Millisecond)
		w.shows()
		pass(2 * time.Millisecond)
		w.shows("re hi")
	})
}

func TestOutbox_BackoffGrows(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var at []time.Time
		w := begin(t, withSends(func(context.Context, channels.Outbound) error {
			at = append(at, time.Now())
			return sendError(channels.Transient)
		}))
		w.accept(direct("ann", "1", "hi"))
		pass(48 * time.Hour)
		for i := 1; i < 8; i++ {
			most := time.Second << (i - 1)
			if gap := at[i].Sub(at[i-1]); gap < most/2 || gap > most {
				t.Errorf("wait %d = %v, want %v to %v", i, gap, most/2, most)
			}
		}
		if st := w.stats(); st.Dead != 1 || st.Waiting != 0 {
			t.Errorf("journal holds %+v after two days, want a dead delivery", st)
		}
		if last := at[len(at)-1].Sub(at[0]); last < 24*time.Hour || last > 24*time.Hour+5*time.Minute {
			t.Errorf("given up after %v, want a day", last)
		}
	})
}

func TestOutbox_OrderWithinAPlaceSideBySideElsewhere(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		block := sends(sendError(channels.Transient), sendError(channels.Transient), sendError(channels.Transient))
		w := begin(t, withSends(func(ctx context.Context, m channels.Outbound) error {
			if m.To.Room == "ann" {
				return block(ctx, m)
			}
			return nil
		}))
		w.accept(direct("ann", "1", "one"))
		w.accept(direct("ann", "2", "two"), direct("bob", "3", "elsewhere"))
		w.shows("re elsewhere")
		pass(time.Minute)
		w.shows("re elsewhere", "re one", "re two")
	})
}

func TestOutbox_WhatIsSettledHoldsNothingBack(t *testing.T) {
	t.Parallel()
	for _, kind := range []channels.ErrorKind{channels.Ambiguous, channels.Permanent, channels.Gone, channels.QuotaExhausted} {
		t.Run(kind.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := begin(t, withSends(sends(sendError(kind))))
				w.accept(direct("ann", "1", "one"), direct("ann", "2", "two"))
				w.shows("re two")
			})
		})
	}
}

func TestOutbox_ConcurrencyIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		running, most := 0, 0
		w := begin(t, func(s *setup) { s.MaxSends = 3 }, withSends(func(context.Context, channels.Outbound) error {
			mu.Lock()
			running++
			most = max(most, running)
			mu.Unlock()
			time.Sleep(time.Second)
			mu.Lock()
			running--
			mu.Unlock()
			return nil
		}))
		for i := range 12 {
			w.accept(direct(fmt.Sprint("u", i), fmt.Sprint(i), "hi"))
		}
		pass(4*time.Second + time.Millisecond)
		if got := len(w.platform.texts()); got != 12 || most != 3 {
			t.Errorf("%d sends, %d at once, want 12 and 3", got, most)
		}
	})
}

func TestOutbox_OneStuckChannelDoesNotHoldUpAnother(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		stuck := &platform{name: "stuck", send: func(ctx context.Context, _ channels.Outbound) error {
			<-ctx.Done()
			return sendError(channels.Transient)
		}}
		w := begin(t, func(s *setup) {
			s.Channels = []dispatch.Channel{{Adapter: s.world.platform}, {Adapter: stuck}}
		})
		for i := range 50 {
			e := direct(fmt.Sprint("u", i), fmt.Sprint(i), "hi")
			e.Address.Channel = "stuck"
			w.accept(e)
		}
		w.accept(direct("ann", "1", "hi"))
		w.shows("re hi")
	})
}

func TestOutbox_RefusedChannelPauses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var refused atomic.Bool
		refused.Store(true)
		w := begin(t, withSends(func(context.Context, channels.Outbound) error {
			if refused.Load() {
				return sendError(channels.Unauthorized)
			}
			return nil
		}))
		for i := range 20 {
			w.accept(direct(fmt.Sprint("u", i), fmt.Sprint(i), "hi"))
		}
		pass(time.Hour)
		w.accept(direct("late", "l", "hi"))
		// One place tries on: at once, and then ever more slowly.
		if got := len(w.reports.sends); got > 15 {
			t.Errorf("%d attempts in an hour of a refused channel, want few", got)
		}
		if got := strings.Count(w.logs.String(), "channel paused"); got != 1 {
			t.Errorf("the pause is logged %d times, want once", got)
		}
		refused.Store(false)
		pass(time.Hour)
		if got := len(w.platform.texts()); got != 21 {
			t.Errorf("%d of 21 deliveries went out in the end", got)
		}
		if got := strings.Count(w.logs.String(), "channel goes on"); got != 1 {
			t.Errorf("the end of the pause is logged %d times, want once", got)
		}
		w.settled()
	})
}

func TestOutbox_RefusedChannelGivesUpVisibly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := begin(t, func(s *setup) { s.MaxDeliveryAge = time.Hour }, withSends(func(context.Context, channels.Outbound) error {
			return sendError(channels.Unauthorized)
		}))
		for i := range 5 {
			w.accept(direct(fmt.Sprint("u", i), fmt.Sprint(i), "hi"))
		}
		pass(24 * time.Hour)
		if st := w.stats(); st.Dead != 5 || st.Waiting != 0 {
			t.Errorf("journal holds %+v, want 5 dead deliveries", st)
		}
		if got := strings.Count(w.logs.String(), "channel paused"); got != 1 {
			t.Errorf("the pause is logged %d times, want once", got)
		}
	})
}

func TestOutbox_SettleIsRetriedWithoutSendingAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var sick *sickJournal
		w := begin(t, withSickJournal(&sick), once)
		sick.set(func(j *sickJournal) { j.settle = errors.New("disk full") })
		w.accept(direct("ann", "1", "one"), direct("ann", "2", "two"))
		pass(time.Minute)
		w.shows("re one")
		sick.set(func(j *sickJournal) { j.settle = nil })
		pass(time.Minute)
		w.shows("re one", "re two")
		w.settled()
	})
}

func TestOutbox_BeginComesFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var sick *sickJournal
		w := begin(t, withSickJournal(&sick), once)
		sick.set(func(j *sickJournal) { j.begin = errors.New("disk full") })
		w.accept(direct("ann", "1", "one"))
		pass(time.Minute)
		if len(w.reports.sends) != 0 {
			t.Error("sent although the journal could not note it")
		}
		sick.set(func(j *sickJournal) { j.begin = nil })
		pass(time.Minute)
		w.shows("re one")
	})
}

// TestOutbox_UncertainAfterRestart: the process died between a send without key and its outcome.
func TestOutbox_UncertainAfterRestart(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change    func(*setup)
		uncertain bool
	}{"without key": {once, true}, "with key": {func(*setup) {}, false}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var sick *sickJournal
				w := begin(t, withSickJournal(&sick), tt.change)
				sick.set(func(j *sickJournal) { j.settle = errors.New("power fails") })
				w.accept(direct("ann", "1", "one"))
				w.stop()
				var got []bool
				w = w.restart(tt.change, withSends(func(_ context.Context, m channels.Outbound) error {
					got = append(got, m.Uncertain)
					if len(got) < 3 {
						return sendError(channels.Transient)
					}
					return nil
				}))
				w.run()
				w.stop() // between two attempts
				w = w.restart(tt.change)
				w.run()
				pass(time.Minute)
				w.stop()
				if len(got) != 3 {
					t.Fatalf("%d attempts after the restarts, want 3", len(got))
				}
				for i, u := range got {
					// A later attempt that surely failed says nothing of the first one.
					if u != tt.uncertain {
						t.Errorf("attempt %d: Uncertain = %v, want %v", i+1, u, tt.uncertain)
					}
				}
			})
		})
	}
}

func TestOutbox_CertainFailureIsTakenBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := begin(t, once, withSends(sends(sendError(channels.Transient), sendError(channels.Transient))))
		w.accept(direct("ann", "1", "one"))
		w.stop() // between two attempts
		w.shows()
		w = w.restart(once, withSends(nil))
		w.run()
		pass(time.Minute)
		w.shows("re one")
		if w.platform.messages()[0].Uncertain {
			t.Error("the delivery came back uncertain, but was surely not accepted before")
		}
	})
}

func TestOutbox_RestartKeepsTheOrderBehindAWaitingDelivery(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := begin(t, withSends(sends(&channels.Error{Kind: channels.RateLimited, RetryAfter: time.Hour, Err: errors.New("x")})))
		w.accept(direct("ann", "1", "one"), direct("ann", "2", "two"))
		w.stop()
		w = w.restart(withSends(nil))
		w.run()
		w.shows()
		pass(2 * time.Hour)
		w.shows("re one", "re two")
	})
}

func TestOutbox_PanicInSend(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(*setup)
		shown  int
	}{"with key": {func(*setup) {}, 1}, "without key": {once, 0}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				calls := 0
				w := begin(t, tt.change, withSends(func(context.Context, channels.Outbound) error {
					if calls++; calls == 1 {
						panic("nil map")
					}
					return nil
				}))
				w.accept(direct("ann", "1", "hi"))
				pass(time.Minute)
				if got := len(w.platform.texts()); got != tt.shown {
					t.Errorf("shown %d times, want %d", got, tt.shown)
				}
				w.settled()
			})
		})
	}
}

func TestOutbox_StuckSendIsCutOff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		w := begin(t, withSends(func(ctx context.Context, _ channels.Outbound) error {
			if calls++; calls == 1 {
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		}))
		w.accept(direct("ann", "1", "hi"))
		pass(59 * time.Second)
		w.shows()
		pass(10 * time.Second)
		w.shows("re hi")
	})
}

func TestWake_TakesInWhatOthersChanged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := prepare(t, withSends(sends(sendError(channels.QuotaExhausted))), withEngine(slow(time.Second)))
		if err := w.Wake(t.Context()); !errors.Is(err, dispatch.ErrNotReady) {
			t.Errorf("Wake before Run: %v, want ErrNotReady", err)
		}
		w.run()
		w.accept(direct("ann", "1", "one"))
		pass(2 * time.Second)
		w.shows()
		var turn string
		for _, r := range w.reports.turns {
			turn = r.Turn
		}
		if err := w.store.Settle(t.Context(), turn+"/0", dispatch.Outcome{State: dispatch.Waiting}); err != nil {
			t.Fatal(err)
		}
		e := direct("bob", "2", "two")
		if _, err := w.store.Put(t.Context(), []dispatch.Routed{{Session: "ch:user:bob", Event: e}}); err != nil {
			t.Fatal(err)
		}
		w.accept(direct("cat", "3", "three")) // in hand already
		for range 3 {
			if err := w.Wake(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		pass(time.Minute)
		if got := w.platform.texts(); len(got) != 3 || got[0] != "re one" {
			t.Errorf("platform shows %q, want three answers", got)
		}
		w.settled()
	})
}

func TestWake_WhileACommitIsOnItsWay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var sick *sickJournal
		w := begin(t, withSickJournal(&sick))
		sick.set(func(j *sickJournal) {
			j.committed = func() {
				if err := w.Wake(context.Background()); err != nil {
					t.Error(err)
				}
				time.Sleep(time.Second)
			}
		})
		w.accept(direct("ann", "1", "hi"))
		pass(time.Minute)
		w.shows("re hi")
	})
}

func TestWake_WhatEndsWhileTheJournalIsReadIsNotTakenInAgain(t *testing.T) {
	t.Parallel()
	// The turn runs for 2 s, and its answer's send takes 2 s more.
	for name, tt := range map[string]struct {
		slow func(*sickJournal)
		at   time.Duration
	}{
		"inbox":  {func(j *sickJournal) { j.pendingDelay = 10 * time.Second }, time.Second},
		"outbox": {func(j *sickJournal) { j.dueDelay = 10 * time.Second }, 3 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var sick *sickJournal
				runs := 0
				w := begin(t, withSickJournal(&sick), withEngine(func(ctx context.Context, turn agent.Turn) (string, error) {
					runs++
					time.Sleep(2 * time.Second)
					return echo(ctx, turn)
				}), withSends(func(context.Context, channels.Outbound) error {
					time.Sleep(2 * time.Second)
					return nil
				}))
				sick.set(tt.slow)
				w.accept(direct("ann", "1", "hi"))
				pass(tt.at)
				if err := w.Wake(context.Background()); err != nil {
					t.Error(err)
				}
				pass(time.Hour)
				w.shows("re hi")
				if got := w.reports.ends(); runs != 1 || len(got) != 1 {
					t.Errorf("%d runs of one message, which ended %q", runs, got)
				}
			})
		})
	}
}
