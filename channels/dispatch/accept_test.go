package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"botd/channels"
	"botd/channels/dispatch"
)

func TestAccept_AnswersAndRemembers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := begin(t)
		w.accept(direct("ann", "1", "hello"))
		w.shows("re hello")
		w.remembers("ch:user:ann", "u:hello", "a:re hello")
		w.settled()
		if got := string(w.platform.messages()[0].Reply); got != "token-1" {
			t.Errorf("answered on handle %q, want the event's own", got)
		}
	})
}

func TestAccept_Admission(t *testing.T) {
	t.Parallel()
	bot := direct("robot", "1", "hi")
	bot.Speaker.Bot = true
	follow := direct("ann", "1", "")
	follow.Kind = channels.Follow
	aside := group("g", "ann", "1", "hi all")
	aside.Mentioned = false
	press := aside
	press.Kind = channels.Postback
	for _, tt := range []struct {
		name     string
		event    channels.Inbound
		rule     dispatch.GroupRule
		answered bool
	}{
		{name: "direct message", event: direct("ann", "1", "hi"), answered: true},
		{name: "direct message where groups are ignored", event: direct("ann", "1", "hi"), rule: dispatch.Ignore, answered: true},
		{name: "bot", event: bot},
		{name: "follow", event: follow},
		{name: "group with mention", event: group("g", "ann", "1", "hi"), answered: true},
		{name: "group without mention", event: aside},
		{name: "group without mention, named rule", event: aside, rule: dispatch.Mention},
		{name: "group without mention, all", event: aside, rule: dispatch.All, answered: true},
		{name: "group with mention, ignored", event: group("g", "ann", "1", "hi"), rule: dispatch.Ignore},
		{name: "button in a group", event: press, answered: true},
		{name: "button in an ignored group", event: press, rule: dispatch.Ignore},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := begin(t, func(s *setup) { s.Groups = tt.rule })
				w.accept(tt.event)
				if got := len(w.platform.texts()) == 1; got != tt.answered {
					t.Errorf("answered: %v, want %v", got, tt.answered)
				}
				w.settled()
			})
		})
	}
}

func TestAccept_RefusesWholeBatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := begin(t)
		stray := direct("ann", "2", "hi")
		stray.Address.Channel = "elsewhere"
		err := w.Accept(t.Context(), direct("ann", "1", "hi"), stray)
		if !errors.Is(err, dispatch.ErrUnknownChannel) {
			t.Errorf("Accept of an unknown channel: %v, want ErrUnknownChannel", err)
		}
		if err := w.Accept(t.Context(), direct("ann", "", "hi")); err == nil {
			t.Error("Accept took an event without ID")
		}
		synctest.Wait()
		w.shows()
		w.settled()
	})
}

func TestAccept_JournalFailureAcknowledgesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("disk full")
		var sick *sickJournal
		w := begin(t, func(s *setup) {
			sick = &sickJournal{Store: s.world.store, put: broken}
			s.Store, s.Journal = sick, sick
		})
		if err := w.Accept(t.Context(), direct("ann", "1", "hi")); !errors.Is(err, broken) {
			t.Fatalf("Accept: %v, want the journal's error", err)
		}
		sick.set(func(j *sickJournal) { j.put = nil })
		w.accept(direct("ann", "1", "hi"))
		w.shows("re hi")
	})
}

func TestAccept_DuplicatesAreAnsweredOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := begin(t)
		e := direct("ann", "1", "hi")
		w.accept(e, e)
		w.accept(e)
		w.stop()
		w = w.restart()
		w.run()
		w.accept(e)
		w.shows("re hi")
	})
}

func TestAccept_BeforeRunIsDurableAndRunsOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := prepare(t)
		if err := w.Ready(); !errors.Is(err, dispatch.ErrNotReady) {
			t.Errorf("Ready before Run: %v, want ErrNotReady", err)
		}
		w.accept(direct("ann", "1", "one"), direct("ann", "2", "two"))
		w.shows()
		w.run()
		w.shows("re one", "re two")
		w.accept(direct("ann", "3", "three"))
		w.shows("re one", "re two", "re three")
		w.settled()
	})
}

func TestAccept_DuringReplayRunsOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var sick *sickJournal
		w := prepare(t, func(s *setup) {
			sick = &sickJournal{Store: s.world.store, pendingDelay: time.Second, putDelay: time.Second}
			s.Store, s.Journal = sick, sick
		})
		var accepts sync.WaitGroup
		for i := range 30 {
			accepts.Go(func() {
				time.Sleep(time.Duration(i) * 100 * time.Millisecond)
				if err := w.Accept(context.Background(), direct(fmt.Sprint("u", i), fmt.Sprint(i), "hi")); err != nil {
					t.Error(err)
				}
			})
		}
		pass(1500 * time.Millisecond)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- w.Run(ctx) }()
		accepts.Wait()
		pass(time.Minute)
		if got := len(w.platform.texts()); got != 30 {
			t.Errorf("%d answers to 30 messages", got)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		w.settled()
	})
}

func TestAccept_ConcurrentlyWithRunEachOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := begin(t, withEngine(slow(time.Second)))
		var accepts sync.WaitGroup
		for i := range 200 {
			accepts.Go(func() {
				e := direct(fmt.Sprint("u", i%20), fmt.Sprint(i), fmt.Sprint(i))
				for range 3 {
					if err := w.Accept(context.Background(), e); err != nil {
						t.Error(err)
					}
				}
			})
		}
		accepts.Wait()
		pass(time.Hour)
		if got := len(w.platform.texts()); got != 200 {
			t.Errorf("%d answers to 200 messages", got)
		}
		w.settled()
	})
}

func TestAccept_DoesNotWaitForTheModel(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := begin(t, withEngine(slow(time.Minute)))
		began := time.Now()
		for i := range 100 {
			w.accept(direct(fmt.Sprint("u", i), fmt.Sprint(i), "hi"))
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("Accept took %v", took)
		}
		pass(time.Hour)
	})
}

func TestAccept_RefusesOnceDraining(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := begin(t)
		w.stop()
		if err := w.Accept(t.Context(), direct("ann", "1", "hi")); !errors.Is(err, dispatch.ErrDraining) {
			t.Errorf("Accept: %v, want ErrDraining", err)
		}
		if err := w.Ready(); !errors.Is(err, dispatch.ErrDraining) {
			t.Errorf("Ready: %v, want ErrDraining", err)
		}
		w.settled()
	})
}

// TestAccept_InFlightWhenDrainingIsFoundByTheNextRun: what is put while Run returns must not be missed by
// a dispatcher that takes over in the same process.
func TestAccept_InFlightWhenDrainingIsFoundByTheNextRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var sick *sickJournal
		w := begin(t, withSickJournal(&sick))
		sick.set(func(j *sickJournal) { j.putFirst = time.Second })
		accepted := make(chan error, 1)
		go func() { accepted <- w.Accept(context.Background(), direct("ann", "1", "hi")) }()
		synctest.Wait()
		w.stop()
		w = w.restart()
		w.run()
		if err := <-accepted; err != nil {
			t.Fatal(err)
		}
		pass(time.Minute)
		w.shows("re hi")
	})
}
