package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"botd/channels"
	"botd/channels/dispatch"
)

func (w *world) reconfigure(s dispatch.Setup) {
	w.t.Helper()
	if err := w.Reconfigure(s); err != nil {
		w.t.Fatalf("Reconfigure: %v", err)
	}
	synctest.Wait()
}

func TestReconfigure_ATurnThatRunsEndsAsItBegan(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := begin(t, withEngine(slow(10*time.Second)))
		w.accept(direct("ann", "1", "hi"))
		fresh := &platform{name: "ch"}
		w.reconfigure(dispatch.Setup{Channels: []dispatch.Channel{{Adapter: fresh}}, Engine: engine(echo)})
		w.accept(direct("bob", "2", "new"))
		pass(time.Minute)
		if got := fmt.Sprint(fresh.texts()); got != "[re new re hi]" {
			t.Errorf("the new adapter shows %s", got)
		}
		w.shows()
		w.settled()
	})
}

func TestReconfigure_RefusedCredentialsAreTriedAtOnceWithTheNewAdapter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		refuse := func(context.Context, channels.Outbound) error { return sendError(channels.Unauthorized) }
		w := begin(t, withSends(refuse))
		for i, user := range []string{"ann", "bob", "cid"} {
			w.accept(direct(user, fmt.Sprint(i), "hi "+user))
		}
		pass(time.Hour)
		w.shows()
		fresh := &platform{name: "ch"}
		w.reconfigure(dispatch.Setup{Channels: []dispatch.Channel{{Adapter: fresh}}, Engine: engine(echo)})
		if got := len(fresh.texts()); got != 3 {
			t.Errorf("%d of 3 deliveries went out at once", got)
		}
		w.settled()
	})
}

func TestReconfigure_ARetiredChannelStillAnswersWhatItHasTaken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := begin(t, withEngine(slow(10*time.Second)))
		w.accept(direct("ann", "1", "one"))
		w.accept(direct("ann", "2", "two"))
		w.reconfigure(dispatch.Setup{Channels: []dispatch.Channel{{Adapter: &platform{name: "other"}}}, Engine: engine(echo)})
		if err := w.Accept(t.Context(), direct("ann", "3", "late")); !errors.Is(err, dispatch.ErrUnknownChannel) {
			t.Errorf("Accept for a retired channel: %v", err)
		}
		pass(time.Minute)
		w.shows("re one", "re two")
		w.settled()

		w.reconfigure(dispatch.Setup{Channels: []dispatch.Channel{{Adapter: w.platform}}, Engine: engine(echo)})
		w.accept(direct("ann", "3", "back"))
		w.shows("re one", "re two", "re back")
	})
}

func TestReconfigure_LimitsHoldFromThenOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		one := func(s *setup) { s.MaxConcurrent = 1 }
		w := begin(t, withEngine(slow(10*time.Second)), one)
		setup := dispatch.Setup{Channels: []dispatch.Channel{{Adapter: w.platform}}, Engine: slow(10 * time.Second)}
		for i := range 4 {
			w.accept(direct(fmt.Sprint("user", i), fmt.Sprint(i), "hi"))
		}
		setup.Limits.MaxConcurrent = 3
		w.reconfigure(setup)
		pass(10 * time.Second)
		if got := len(w.platform.texts()); got != 3 {
			t.Errorf("%d answers after ten seconds, want 3", got)
		}
		setup.Limits.MaxConcurrent = 1
		w.reconfigure(setup)
		for i := 4; i < 6; i++ {
			w.accept(direct(fmt.Sprint("user", i), fmt.Sprint(i), "hi"))
		}
		pass(10 * time.Second)
		if got := len(w.platform.texts()); got != 4 {
			t.Errorf("%d answers after twenty seconds, want 4", got)
		}
		pass(time.Minute)
		w.settled()
	})
}

func TestReconfigure_AnErrorChangesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := begin(t)
		for name, s := range map[string]dispatch.Setup{
			"no engine":    {Channels: []dispatch.Channel{{Adapter: w.platform}}},
			"a name twice": {Channels: []dispatch.Channel{{Adapter: w.platform}, {Adapter: w.platform}}, Engine: engine(echo)},
			"no adapter":   {Channels: []dispatch.Channel{{}}, Engine: engine(echo)},
		} {
			if err := w.Reconfigure(s); err == nil {
				t.Errorf("%s: no error", name)
			}
		}
		w.accept(direct("ann", "1", "hi"))
		w.shows("re hi")
		w.stop()
		if err := w.Reconfigure(dispatch.Setup{Channels: []dispatch.Channel{{Adapter: w.platform}}, Engine: engine(echo)}); !errors.Is(err, dispatch.ErrDraining) {
			t.Errorf("Reconfigure after the drain: %v", err)
		}
	})
}
