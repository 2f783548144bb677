package dispatch_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"botd/channels"
	"botd/channels/dispatch"
)

// unsend takes a message back: it has an event ID of its own, as a message on LINE has.
func unsend(of channels.Inbound, id string) channels.Inbound {
	in := of
	in.ID, in.Kind, in.Refers, in.MessageID, in.Parts, in.Mentioned = id, channels.Unsend, "m"+of.ID, "", nil, false
	return in
}

// numbered gives a message an ID of its own beside that of the event.
func numbered(in channels.Inbound) channels.Inbound {
	in.MessageID = "m" + in.ID
	return in
}

func TestUnsend_WhileItWaitsOrRuns(t *testing.T) {
	bothStores(t, func(t *testing.T, change func(*setup)) {
		w := begin(t, change, withEngine(slow(time.Minute)))
		one, two, three := numbered(direct("ann", "1", "one")), numbered(direct("ann", "2", "two")), numbered(direct("ann", "3", "three"))
		w.accept(one, two, three)
		w.accept(unsend(two, "4"))
		pass(30 * time.Second)
		w.accept(unsend(one, "5"))
		pass(time.Hour)
		w.shows("re three")
		w.remembers("ch:user:ann", "u:three", "a:re three")
		if got, want := w.reports.ends(), []dispatch.TurnEnd{dispatch.Dropped, dispatch.Answered}; !slices.Equal(got, want) {
			t.Errorf("runs ended %v, want %v", got, want)
		}
		w.settled()
	})
}

func TestUnsend_OneOfSeveralAnsweredTogether(t *testing.T) {
	bothStores(t, func(t *testing.T, change func(*setup)) {
		w := begin(t, change, func(s *setup) { s.MergeWindow = time.Second }, withEngine(slow(time.Minute)))
		one, two := numbered(direct("ann", "1", "one")), numbered(direct("ann", "2", "two"))
		w.accept(one, two)
		pass(30 * time.Second)
		w.accept(unsend(one, "3"))
		pass(time.Hour)
		w.shows("re two")
		w.remembers("ch:user:ann", "u:two", "a:re two")
		w.settled()
	})
}

// TestUnsend_BeforeTheMessage: platforms deliver out of order and again.
func TestUnsend_BeforeTheMessage(t *testing.T) {
	bothStores(t, func(t *testing.T, change func(*setup)) {
		w := begin(t, change, func(s *setup) { s.MergeWindow = time.Second })
		one, two := numbered(direct("ann", "1", "one")), numbered(direct("ann", "2", "two"))
		w.accept(unsend(one, "3"), unsend(one, "3"))
		w.settled()
		w.stop()
		w = w.restart(change, func(s *setup) { s.MergeWindow = time.Second })
		w.run()
		w.accept(one, two)
		pass(time.Minute)
		w.accept(one)
		pass(time.Minute)
		w.shows("re two")
		w.remembers("ch:user:ann", "u:two", "a:re two")
		w.settled()
	})
}

func TestUnsend_OfWhatWasAnsweredSaysNothing(t *testing.T) {
	bothStores(t, func(t *testing.T, change func(*setup)) {
		w := begin(t, change)
		one := numbered(direct("ann", "1", "one"))
		w.accept(one)
		w.accept(unsend(one, "2"))
		w.accept(one)
		w.shows("re one")
		w.settled()
	})
}

func TestUnsend_DisturbsNobodyElse(t *testing.T) {
	bothStores(t, func(t *testing.T, change func(*setup)) {
		w := begin(t, change, withEngine(slow(time.Minute)))
		a, b := numbered(group("g", "ann", "1", "a")), numbered(group("g", "bob", "2", "b"))
		w.accept(a, b)
		w.accept(unsend(b, "3"))
		pass(time.Hour)
		w.shows("re a")
		if got := len(w.reports.ends()); got != 1 {
			t.Errorf("%d runs, want one that nobody disturbed", got)
		}
		w.settled()
	})
}

// TestUnsend_ByTheEventsOwnID: on a platform whose messages have no other ID than the event's.
func TestUnsend_ByTheEventsOwnID(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := begin(t, withEngine(slow(time.Minute)))
		one := direct("ann", "1", "one")
		back := unsend(one, "2")
		back.Refers = "1"
		w.accept(one)
		w.accept(back)
		pass(time.Hour)
		w.shows()
		w.settled()
	})
}

func TestUnsend_OfNothingIsLeftOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := begin(t)
		back := unsend(direct("ann", "1", ""), "2")
		back.Refers = ""
		w.accept(back)
		w.shows()
		if st := w.stats(); st.Pending > 0 {
			t.Errorf("journal holds %+v", st)
		}
	})
}
