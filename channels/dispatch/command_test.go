package dispatch_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"botd/agent"
	"botd/channels"
	"botd/channels/dispatch"
	"botd/sessionstore"
)

const (
	noticeReset     = "Done. I have forgotten this conversation; we start afresh."
	noticeResetTwo  = "Done. I have forgotten the 2 messages of this conversation; we start afresh.\nSend /restore within 30 days to bring it back."
	noticeOvertaken = "This conversation was reset before I could answer this message. Please send it again if you still need an answer."
	noticeStopped   = "Stopped."
	noticeNothing   = "There is nothing to stop right now."
)

// bothStores runs a test with the sessions in the journal and outside of it.
func bothStores(t *testing.T, test func(t *testing.T, change func(*setup))) {
	t.Helper()
	t.Parallel()
	for name, change := range map[string]func(*setup){"one file": func(*setup) {}, "foreign store": withForeignStore} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { test(t, change) })
		})
	}
}

func TestCommand_HelpAtOnceDuringATurn(t *testing.T) {
	bothStores(t, func(t *testing.T, change func(*setup)) {
		w := begin(t, change, withEngine(slow(time.Minute)))
		w.accept(direct("ann", "1", "hi"))
		w.accept(direct("ann", "2", "/help"))
		if got := w.platform.texts(); len(got) != 1 || !strings.Contains(got[0], "/reset") {
			t.Errorf("platform shows %q at once, want the help", got)
		}
		pass(2 * time.Minute)
		if got := w.platform.texts(); len(got) != 2 || got[1] != "re hi" {
			t.Errorf("platform shows %q, want the answer to follow", got)
		}
		w.remembers("ch:user:ann", "u:hi", "a:re hi")
		w.settled()
	})
}

func TestCommand_InThePersonsLanguage(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ locale, text, want string }{
		{"en", "/stop", noticeNothing},
		{"zh-TW", "/stop", "目前沒有需要停止的回覆。"},
		{"ja", "/stop", "いま停止するものはありません。"},
		{"th-TH", "/stop", "ตอนนี้ไม่มีอะไรให้หยุด"},
		{"", "/stop", "ตอนนี้ไม่มีอะไรให้หยุด"}, // as the platform's profile tells
	} {
		t.Run(tt.locale, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := begin(t, func(s *setup) { s.Adapter = &register{platform: s.world.platform} })
				in := direct("ann", "1", tt.text)
				in.Speaker.Locale = tt.locale
				w.accept(in)
				w.shows(tt.want)
			})
		})
	}
}

func TestCommand_UnknownGoesToTheModel(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := begin(t)
		w.accept(direct("ann", "1", "/dance"), direct("ann", "2", "/reset now"))
		w.shows("re /dance", "re /reset now")
	})
}

func TestCommand_InAGroupNeedsTheMention(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := begin(t, admins("ann"))
		aside := group("g", "ann", "1", "/reset")
		aside.Mentioned = false
		w.accept(aside)
		w.shows()
		w.accept(group("g", "ann", "2", "@shop /reset"))
		w.shows(noticeReset)
	})
}

func TestStop_CancelsTheTurnAndWhatThePersonHasSent(t *testing.T) {
	bothStores(t, func(t *testing.T, change func(*setup)) {
		cancelled := 0
		w := begin(t, change, withEngine(func(ctx context.Context, turn agent.Turn) (string, error) {
			text, err := slow(time.Minute)(ctx, turn)
			if err != nil {
				cancelled++
			}
			return text, err
		}))
		w.accept(direct("ann", "1", "one"), direct("ann", "2", "two"))
		w.accept(direct("ann", "3", "/stop"), direct("ann", "4", "four"))
		w.shows(noticeStopped)
		pass(time.Hour)
		w.shows(noticeStopped, "re four")
		w.remembers("ch:user:ann", "u:four", "a:re four")
		if cancelled != 1 {
			t.Errorf("%d runs were cancelled, want 1", cancelled)
		}
		w.settled()
	})
}

func TestStop_LeavesOthersMessagesInAGroup(t *testing.T) {
	bothStores(t, func(t *testing.T, change func(*setup)) {
		w := begin(t, change, withEngine(slow(time.Minute)))
		w.accept(group("g", "ann", "1", "a1"), group("g", "bob", "2", "b1"), group("g", "ann", "3", "a2"))
		w.accept(group("g", "ann", "4", "/stop"))
		pass(time.Hour)
		w.shows(noticeStopped, "re b1")
		w.settled()
	})
}

func TestStop_NothingRuns(t *testing.T) {
	bothStores(t, func(t *testing.T, change func(*setup)) {
		w := begin(t, change)
		w.accept(direct("ann", "1", "hi"))
		w.accept(direct("ann", "2", "/stop"))
		w.shows("re hi", noticeNothing)
		w.remembers("ch:user:ann", "u:hi", "a:re hi")
	})
}

func TestStop_DuringBackoff(t *testing.T) {
	bothStores(t, func(t *testing.T, change func(*setup)) {
		w := begin(t, change, withEngine(failing(&agent.Error{Kind: agent.RateLimited, RetryAfter: time.Minute, Err: errors.New("x")})))
		w.accept(direct("ann", "1", "hi"))
		w.accept(direct("ann", "2", "/stop"))
		pass(time.Hour)
		w.shows(noticeStopped)
		w.settled()
	})
}

func TestStop_TurnBeingCommittedIsAnswered(t *testing.T) {
	bothStores(t, func(t *testing.T, change func(*setup)) {
		var sick *sickJournal
		w := begin(t, withSickJournal(&sick), change)
		sick.set(func(j *sickJournal) { j.commitDelay = time.Second })
		w.accept(direct("ann", "1", "hi"))
		w.accept(direct("ann", "2", "/stop"))
		pass(time.Minute)
		w.shows("re hi", noticeNothing)
		w.remembers("ch:user:ann", "u:hi", "a:re hi")
		w.settled()
	})
}

// TestStop_FreesTheLaneFromADeafEngine: an engine that does not hear the end of its context holds up
// nobody but itself.
func TestStop_FreesTheLaneFromADeafEngine(t *testing.T) {
	bothStores(t, func(t *testing.T, change func(*setup)) {
		w := begin(t, change, withEngine(func(ctx context.Context, turn agent.Turn) (string, error) {
			if heard(turn) == "deaf" {
				time.Sleep(time.Hour)
			}
			return echo(ctx, turn)
		}))
		w.accept(direct("ann", "1", "deaf"))
		w.accept(direct("ann", "2", "/stop"))
		w.accept(direct("ann", "3", "hi"))
		w.shows(noticeStopped, "re hi")
		pass(2 * time.Hour)
		w.shows(noticeStopped, "re hi")
		w.remembers("ch:user:ann", "u:hi", "a:re hi")
		w.settled()
	})
}

func TestReset_ForgetsAndCoversWhatCameBefore(t *testing.T) {
	bothStores(t, func(t *testing.T, change func(*setup)) {
		var histories []int
		w := begin(t, change, withEngine(func(ctx context.Context, turn agent.Turn) (string, error) {
			histories = append(histories, len(turn.History))
			return slow(time.Minute)(ctx, turn)
		}))
		w.accept(direct("ann", "1", "old"))
		pass(2 * time.Minute)
		w.accept(direct("ann", "2", "running"), direct("ann", "3", "waiting"))
		w.accept(direct("ann", "4", "/new"), direct("ann", "5", "fresh"))
		w.shows("re old", noticeResetTwo)
		w.remembers("ch:user:ann")
		pass(time.Hour)
		w.shows("re old", noticeResetTwo, "re fresh")
		w.remembers("ch:user:ann", "u:fresh", "a:re fresh")
		if want := []int{0, 2, 0}; !slices.Equal(histories, want) {
			t.Errorf("runs saw %d items, want %d", histories, want)
		}
		w.settled()
	})
}

func TestReset_TellsEachOtherAskerInAGroup(t *testing.T) {
	bothStores(t, func(t *testing.T, change func(*setup)) {
		w := begin(t, change, admins("cat"), withEngine(slow(time.Minute)))
		w.accept(group("g", "ann", "1", "a"), group("g", "bob", "2", "b"), group("g", "cat", "3", "c"), group("g", "bob", "4", "b2"))
		w.accept(group("g", "cat", "5", "/reset"))
		pass(time.Hour)
		w.shows(noticeReset, noticeOvertaken, noticeOvertaken)
		var handles []string
		for _, m := range w.platform.messages() {
			handles = append(handles, string(m.Reply))
			if !m.Quote {
				t.Errorf("%q quotes nobody", m.PlainText())
			}
		}
		if want := []string{"token-5", "token-1", "token-4"}; !slices.Equal(handles, want) {
			t.Errorf("said on %q, want %q", handles, want)
		}
		w.settled()
	})
}

func TestReset_TurnBeingCommittedIsAnsweredThenForgotten(t *testing.T) {
	bothStores(t, func(t *testing.T, change func(*setup)) {
		var sick *sickJournal
		w := begin(t, withSickJournal(&sick), change)
		sick.set(func(j *sickJournal) { j.commitDelay = time.Second })
		w.accept(direct("ann", "1", "hi"))
		w.accept(direct("ann", "2", "/reset"))
		pass(time.Minute)
		w.shows("re hi", noticeResetTwo)
		w.remembers("ch:user:ann")
		w.settled()
	})
}

// TestReset_RunBegunBeforeWritesNothing: an engine that is deaf to its context ends long after the
// reset; nothing of it is said or remembered.
func TestReset_RunBegunBeforeWritesNothing(t *testing.T) {
	bothStores(t, func(t *testing.T, change func(*setup)) {
		w := begin(t, change, withEngine(func(ctx context.Context, turn agent.Turn) (string, error) {
			time.Sleep(time.Hour)
			return echo(ctx, turn)
		}))
		w.accept(direct("ann", "1", "hi"))
		w.accept(direct("ann", "2", "/reset"))
		pass(2 * time.Hour)
		w.shows(noticeReset)
		w.remembers("ch:user:ann")
		w.settled()
	})
}

func TestReset_SurvivesARestart(t *testing.T) {
	bothStores(t, func(t *testing.T, change func(*setup)) {
		w := begin(t, change)
		w.accept(direct("ann", "1", "old"))
		w.stop()
		w = w.restart(change)
		w.accept(direct("ann", "2", "waiting"), direct("ann", "3", "/reset"), direct("ann", "4", "fresh"))
		w.run()
		w.shows("re old", noticeResetTwo, "re fresh")
		w.remembers("ch:user:ann", "u:fresh", "a:re fresh")
	})
}

func TestReset_ByAnAdmin(t *testing.T) {
	bothStores(t, func(t *testing.T, change func(*setup)) {
		w := prepare(t, change, withEngine(slow(time.Minute)))
		if err := w.Reset(t.Context(), "ch:user:ann"); !errors.Is(err, dispatch.ErrNotReady) {
			t.Errorf("Reset before Run: %v, want ErrNotReady", err)
		}
		w.run()
		w.accept(direct("ann", "1", "old"))
		pass(2 * time.Minute)
		w.accept(direct("ann", "2", "running"), direct("ann", "3", "waiting"))
		if err := w.Reset(t.Context(), "ch:user:ann"); err != nil {
			t.Fatal(err)
		}
		w.remembers("ch:user:ann")
		if err := w.Reset(t.Context(), "ch:user:nobody"); err != nil {
			t.Errorf("Reset of a session that never was: %v", err)
		}
		if err := w.Reset(t.Context(), ""); !errors.Is(err, sessionstore.ErrInvalidID) {
			t.Errorf("Reset of no session: %v, want ErrInvalidID", err)
		}
		pass(time.Hour)
		w.shows("re old", noticeOvertaken)
		if got := string(w.platform.messages()[1].Reply); got != "token-3" {
			t.Errorf("told on handle %q, want the newest message's", got)
		}
		w.settled()
		w.stop()
		if err := w.Reset(context.Background(), "ch:user:ann"); !errors.Is(err, dispatch.ErrDraining) {
			t.Errorf("Reset after Run: %v, want ErrDraining", err)
		}
	})
}

func TestReset_AdminWhoGoesAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var sick *sickJournal
		w := begin(t, withSickJournal(&sick))
		sick.set(func(j *sickJournal) { j.commit = errors.New("disk full") })
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := w.Reset(ctx, "ch:user:ann"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Reset: %v, want the context's error", err)
		}
	})
}

func TestCommand_ConsumedByOthersIsDropped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var sick *sickJournal
		w := begin(t, withSickJournal(&sick), withEngine(slow(time.Hour)))
		w.accept(direct("ann", "1", "one"))
		sick.set(func(j *sickJournal) { j.commitDelay = time.Second })
		w.accept(direct("ann", "2", "/stop"))
		if err := w.store.Commit(t.Context(), dispatch.TurnResult{Session: "ch:user:ann", Turn: "other", Consumed: []uint64{1}}); err != nil {
			t.Fatal(err)
		}
		pass(time.Minute)
		w.shows(noticeNothing)
		w.settled()
	})
}

func TestCommands_InARow(t *testing.T) {
	bothStores(t, func(t *testing.T, change func(*setup)) {
		w := begin(t, change, withEngine(slow(time.Minute)))
		var events []channels.Inbound
		for i, text := range []string{"one", "/stop", "two", "/reset", "/stop", "three", "/reset"} {
			events = append(events, direct("ann", string(rune('a'+i)), text))
		}
		w.accept(events...)
		pass(time.Hour)
		w.shows(noticeStopped, noticeReset, noticeNothing, noticeReset)
		w.remembers("ch:user:ann")
		w.settled()
	})
}

// slowReader is a session store that takes a time to read, less with each read.
type slowReader struct {
	sessionstore.Store
	takes chan time.Duration
}

func (r slowReader) Items(ctx context.Context, id sessionstore.ID, limit int) ([]sessionstore.Item, error) {
	select {
	case wait := <-r.takes:
		time.Sleep(wait)
	default:
	}
	return r.Store.Items(ctx, id, limit)
}

// TestStop_TurnThatIsAboutToFindItsAnswer: the answer is in the session already, left by a process that
// died; a stop that overtakes the turn on its way to it must not leave it unsaid.
func TestStop_TurnThatIsAboutToFindItsAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var sick *sickJournal
		w := begin(t, withSickJournal(&sick), withForeignStore)
		sick.set(func(j *sickJournal) { j.commit = errors.New("power fails") })
		w.accept(direct("ann", "1", "hi"))
		w.stop()
		memory := w.memory
		w = w.restart(func(s *setup) {
			r := slowReader{Store: memory, takes: make(chan time.Duration, 1)}
			r.takes <- time.Second
			s.Store = r
		})
		w.run()
		w.accept(direct("ann", "2", "/stop"))
		pass(time.Minute)
		w.shows("re hi", noticeNothing)
		if got := contents(t, memory, "ch:user:ann"); !slices.Equal(got, []string{"u:hi", "a:re hi"}) {
			t.Errorf("session holds %q", got)
		}
	})
}
