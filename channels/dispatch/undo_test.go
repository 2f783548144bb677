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
	noticeUndone         = "Done. I have forgotten the last message and my answer to it."
	noticeTakenBack      = "Done. I will not answer what you have just sent."
	noticeNothingToUndo  = "There is nothing to take back."
	noticeNothingToRetry = "There is no message that I could answer again."
	noticeLostQuestion   = "I was interrupted after I had forgotten the last message, and could not answer it again. Please send it once more."
)

func TestUndo_RemovesTheLastTurn(t *testing.T) {
	bothStores(t, func(t *testing.T, change func(*setup)) {
		w := begin(t, change)
		w.accept(direct("ann", "1", "one"))
		w.accept(direct("ann", "2", "two"))
		w.accept(direct("ann", "3", "/undo"))
		w.remembers("ch:user:ann", "u:one", "a:re one")
		w.accept(direct("ann", "4", "/undo"))
		w.remembers("ch:user:ann")
		w.accept(direct("ann", "5", "/undo"))
		w.shows("re one", "re two", noticeUndone, noticeUndone, noticeNothingToUndo)
		w.settled()
	})
}

func TestUndo_RemovesAllItemsOfATurn(t *testing.T) {
	bothStores(t, func(t *testing.T, change func(*setup)) {
		w := begin(t, change, func(s *setup) { s.MergeWindow = time.Second })
		w.accept(direct("ann", "1", "one"))
		pass(time.Minute)
		w.accept(direct("ann", "2", "two"), direct("ann", "3", "three"), direct("ann", "4", "four"))
		pass(time.Minute)
		w.remembers("ch:user:ann", "u:one", "a:re one", "u:two", "u:three", "u:four", "a:re two+three+four")
		w.accept(direct("ann", "5", "/undo"))
		w.remembers("ch:user:ann", "u:one", "a:re one")
	})
}

func TestUndo_TakesBackWhatIsNotAnsweredYet(t *testing.T) {
	bothStores(t, func(t *testing.T, change func(*setup)) {
		w := begin(t, change, withEngine(slow(time.Minute)))
		w.accept(direct("ann", "1", "old"))
		pass(time.Hour)
		w.accept(direct("ann", "2", "running"), direct("ann", "3", "waiting"))
		w.accept(direct("ann", "4", "/undo"), direct("ann", "5", "fresh"))
		w.shows("re old", noticeTakenBack)
		pass(time.Hour)
		w.shows("re old", noticeTakenBack, "re fresh")
		w.remembers("ch:user:ann", "u:old", "a:re old", "u:fresh", "a:re fresh")
		w.settled()
	})
}

func TestUndo_TurnBeingCommittedIsAnsweredThenRemoved(t *testing.T) {
	bothStores(t, func(t *testing.T, change func(*setup)) {
		var sick *sickJournal
		w := begin(t, withSickJournal(&sick), change)
		sick.set(func(j *sickJournal) { j.commitDelay = time.Second })
		w.accept(direct("ann", "1", "hi"))
		w.accept(direct("ann", "2", "/undo"))
		pass(time.Minute)
		w.shows("re hi", noticeUndone)
		w.remembers("ch:user:ann")
		w.settled()
	})
}

// TestUndo_RunsOthersMessagesAgain: a run that has seen what is taken back must not be remembered after
// it, and its asker is answered all the same.
func TestUndo_RunsOthersMessagesAgain(t *testing.T) {
	bothStores(t, func(t *testing.T, change func(*setup)) {
		var histories []int
		w := begin(t, change, admins("ann"), withEngine(func(ctx context.Context, turn agent.Turn) (string, error) {
			histories = append(histories, len(turn.History))
			return slow(time.Minute)(ctx, turn)
		}))
		w.accept(group("g", "ann", "1", "old"))
		pass(time.Hour)
		w.accept(group("g", "bob", "2", "running"))
		w.accept(group("g", "ann", "3", "/undo"))
		w.shows("re old", noticeUndone)
		w.remembers("ch:group:g")
		pass(time.Hour)
		w.shows("re old", noticeUndone, "re running")
		w.remembers("ch:group:g", "u:running", "a:re running")
		if want := []int{0, 2, 0}; !slices.Equal(histories, want) {
			t.Errorf("runs saw %d items, want %d", histories, want)
		}
		w.settled()
	})
}

func TestUndo_LeavesOthersTurnsAlone(t *testing.T) {
	bothStores(t, func(t *testing.T, change func(*setup)) {
		runs := 0
		w := begin(t, change, admins("ann"), withEngine(func(ctx context.Context, turn agent.Turn) (string, error) {
			runs++
			return slow(time.Minute)(ctx, turn)
		}))
		w.accept(group("g", "bob", "1", "running"), group("g", "ann", "2", "waiting"), group("g", "ann", "3", "/undo"))
		pass(time.Hour)
		w.shows(noticeTakenBack, "re running")
		if runs != 1 {
			t.Errorf("%d runs, want one that nobody disturbed", runs)
		}
		w.settled()
	})
}

func TestUndo_WhatNoTurnHasSaid(t *testing.T) {
	bothStores(t, func(t *testing.T, change func(*setup)) {
		w := begin(t, change)
		err := w.memory.Append(t.Context(), "ch:user:ann", sessionstore.Batch{Items: []sessionstore.Item{item("user", "imported")}})
		if err != nil {
			t.Fatal(err)
		}
		w.accept(direct("ann", "1", "/undo"), direct("ann", "2", "/retry"))
		w.shows(noticeNothingToUndo, noticeNothingToRetry)
		w.remembers("ch:user:ann", "u:imported")
	})
}

// interrupted is a foreign store whose process ends before or after the n-th change of a session.
type interrupted struct {
	sessionstore.Store
	left int
}

var errPower = errors.New("power fails")

func (s *interrupted) Pop(ctx context.Context, id sessionstore.ID) (sessionstore.Item, error) {
	if s.left == 0 {
		return sessionstore.Item{}, errPower
	}
	s.left--
	return s.Store.Pop(ctx, id)
}

func (s *interrupted) Append(ctx context.Context, id sessionstore.ID, b sessionstore.Batch) error {
	if s.left == 0 {
		return errPower
	}
	s.left--
	return s.Store.Append(ctx, id, b)
}

// atEachStep ends the process at each step of what a command does to a foreign session that holds two
// turns, and checks what is said and remembered after the next start.
func atEachStep(t *testing.T, text string, steps int, check func(t *testing.T, step int, w *world)) {
	t.Helper()
	t.Parallel()
	for step := range steps {
		synctest.Test(t, func(t *testing.T) {
			w := begin(t, withForeignStore)
			w.accept(direct("ann", "1", "one"), direct("ann", "2", "two"))
			w.stop()
			memory := w.memory
			var sick *sickJournal
			w = w.restart(withSickJournal(&sick), func(s *setup) { s.Store, s.Grace = &interrupted{memory, step}, time.Second })
			sick.set(func(j *sickJournal) { j.commit = errPower })
			w.run()
			w.accept(direct("ann", "3", text))
			w.stop()
			w.shows("re one", "re two")
			w = w.restart(func(s *setup) { s.Store = memory })
			w.memory = memory
			w.run()
			check(t, step, w)
			w.settled()
		})
	}
}

func TestUndo_InterruptedRemovesNoOtherTurn(t *testing.T) {
	atEachStep(t, "/undo", 4, func(t *testing.T, _ int, w *world) {
		w.shows("re one", "re two", noticeUndone)
		w.remembers("ch:user:ann", "u:one", "a:re one")
	})
}

func TestRetry_InterruptedIsHonest(t *testing.T) {
	atEachStep(t, "/retry", 5, func(t *testing.T, step int, w *world) {
		if step == 2 { // both items are removed, the new ones not yet there
			w.shows("re one", "re two", noticeLostQuestion)
			w.remembers("ch:user:ann", "u:one", "a:re one")
			return
		}
		w.shows("re one", "re two", "re two")
		w.remembers("ch:user:ann", "u:one", "a:re one", "u:two", "a:re two")
	})
}

// elsewhere is a foreign store that another program writes to as well, at a bad moment.
type elsewhere struct {
	sessionstore.Store
	writes func()
}

func (s *elsewhere) Pop(ctx context.Context, id sessionstore.ID) (sessionstore.Item, error) {
	if s.writes != nil {
		s.writes()
		s.writes = nil
	}
	return s.Store.Pop(ctx, id)
}

func TestUndo_PutsBackWhatAnotherProgramHasSaid(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := begin(t, withForeignStore)
		w.accept(direct("ann", "1", "one"))
		w.stop()
		memory := w.memory
		w = w.restart(func(s *setup) {
			s.Store = &elsewhere{Store: memory, writes: func() {
				err := memory.Append(t.Context(), "ch:user:ann", sessionstore.Batch{Turn: "theirs", Items: []sessionstore.Item{item("user", "news")}})
				if err != nil {
					t.Error(err)
				}
			}}
		})
		w.memory = memory
		w.run()
		w.accept(direct("ann", "2", "/undo"))
		w.shows("re one", noticeNothingToUndo)
		w.remembers("ch:user:ann", "u:one", "a:re one", "u:news")
		w.settled()
	})
}

func TestUndo_SurvivesARestart(t *testing.T) {
	bothStores(t, func(t *testing.T, change func(*setup)) {
		w := begin(t, change)
		w.accept(direct("ann", "1", "old"))
		w.stop()
		w = w.restart(change)
		w.accept(direct("ann", "2", "waiting"), direct("ann", "3", "/undo"), direct("ann", "4", "/undo"), direct("ann", "5", "fresh"))
		w.run()
		w.shows("re old", noticeTakenBack, noticeUndone, "re fresh")
		w.remembers("ch:user:ann", "u:fresh", "a:re fresh")
	})
}

// counting answers each time with another number.
func counting() engine {
	n := 0
	return func(_ context.Context, t agent.Turn) (string, error) {
		n++
		return strings.Repeat("I", n) + " " + heard(t), nil
	}
}

func TestRetry_ReplacesTheLastAnswer(t *testing.T) {
	bothStores(t, func(t *testing.T, change func(*setup)) {
		var histories []int
		answer := counting()
		w := begin(t, change, withEngine(func(ctx context.Context, turn agent.Turn) (string, error) {
			histories = append(histories, len(turn.History))
			if got := turn.Input[0].Speaker.ID; got != "ann" {
				t.Errorf("asked by %q, want ann", got)
			}
			return answer(ctx, turn)
		}))
		w.accept(direct("ann", "1", "one"), direct("ann", "2", "two"))
		w.accept(direct("ann", "3", "/retry"))
		w.shows("I one", "II two", "III two")
		w.remembers("ch:user:ann", "u:one", "a:I one", "u:two", "a:III two")
		w.accept(direct("ann", "4", "/retry"))
		w.remembers("ch:user:ann", "u:one", "a:I one", "u:two", "a:IIII two")
		if got := string(w.platform.messages()[3].Reply); got != "token-4" {
			t.Errorf("answered on %q, want the command's own handle", got)
		}
		if want := []int{0, 2, 2, 2}; !slices.Equal(histories, want) {
			t.Errorf("runs saw %d items, want %d", histories, want)
		}
		w.accept(direct("ann", "5", "/undo"))
		w.remembers("ch:user:ann", "u:one", "a:I one")
		w.settled()
	})
}

func TestRetry_NothingToRetry(t *testing.T) {
	bothStores(t, func(t *testing.T, change func(*setup)) {
		w := begin(t, change)
		w.accept(direct("ann", "1", "/retry"))
		w.shows(noticeNothingToRetry)
		w.remembers("ch:user:ann")
		w.settled()
	})
}

// TestRetry_OfTheMessageBeingAnswered: the run is begun afresh and answers on the newer handle.
func TestRetry_OfTheMessageBeingAnswered(t *testing.T) {
	bothStores(t, func(t *testing.T, change func(*setup)) {
		w := begin(t, change, withEngine(slow(time.Minute)))
		w.accept(direct("ann", "1", "hi"))
		pass(30 * time.Second)
		w.accept(direct("ann", "2", "/retry"))
		pass(45 * time.Second)
		w.shows()
		pass(time.Hour)
		w.shows("re hi")
		w.remembers("ch:user:ann", "u:hi", "a:re hi")
		if got := string(w.platform.messages()[0].Reply); got != "token-2" {
			t.Errorf("answered on %q, want the retry's handle", got)
		}
		if got, want := w.reports.ends(), []dispatch.TurnEnd{dispatch.Dropped, dispatch.Answered}; !slices.Equal(got, want) {
			t.Errorf("runs ended %v, want %v", got, want)
		}
		w.settled()
	})
}

func TestRetry_CancelsNobodyElsesTurn(t *testing.T) {
	bothStores(t, func(t *testing.T, change func(*setup)) {
		w := begin(t, change, admins("ann"), withEngine(slow(time.Minute)))
		w.accept(group("g", "bob", "1", "hi"))
		w.accept(group("g", "ann", "2", "/retry"))
		pass(time.Hour)
		w.shows("re hi", "re hi")
		w.remembers("ch:group:g", "u:hi", "a:re hi")
		if got := len(w.reports.ends()); got != 2 {
			t.Errorf("%d runs, want 2", got)
		}
	})
}

func TestRetry_ThatFailsLosesNothing(t *testing.T) {
	bothStores(t, func(t *testing.T, change func(*setup)) {
		w := begin(t, change)
		w.accept(direct("ann", "1", "hi"))
		w.stop()
		w = w.restart(change, withEngine(failing(engineError(agent.Filtered))))
		w.run()
		w.accept(direct("ann", "2", "/retry"))
		w.remembers("ch:user:ann", "u:hi", "a:re hi")
		if got := w.platform.texts(); len(got) != 2 || !strings.Contains(got[1], "refuses") {
			t.Errorf("platform shows %q, want the failure to be told", got)
		}
		w.accept(direct("ann", "3", "/retry"))
		w.remembers("ch:user:ann", "u:hi", "a:re hi")
		w.settled()
	})
}

// TestRetry_InAGroupKeepsWhoSpoke: the engine reads the question without its header, under the speaker's
// name, and memory keeps the header as it was.
func TestRetry_InAGroupKeepsWhoSpoke(t *testing.T) {
	bothStores(t, func(t *testing.T, change func(*setup)) {
		w := begin(t, change, admins("ann"), withEngine(func(_ context.Context, turn agent.Turn) (string, error) {
			if got, want := turn.Input[0].Speaker, (agent.Speaker{Name: "Bob"}); got != want {
				t.Errorf("asked by %+v, want %+v", got, want)
			}
			return "again " + heard(turn), nil
		}))
		asked := `{"role":"user","content":[{"type":"input_text","text":"[from \"Bob\" id=abc]"},{"type":"input_text","text":"hi"}]}`
		err := w.memory.Append(t.Context(), "ch:group:g", sessionstore.Batch{Turn: "old", Items: []sessionstore.Item{
			{Raw: []byte(asked)}, item("assistant", "hello"),
		}})
		if err != nil {
			t.Fatal(err)
		}
		w.accept(group("g", "ann", "1", "/retry"))
		w.shows("again hi")
		items, err := w.memory.Items(t.Context(), "ch:group:g", sessionstore.All)
		if err != nil {
			t.Fatal(err)
		}
		if len(items) != 2 || string(items[0].Raw) != asked {
			t.Errorf("session holds %d items, want the question as it was", len(items))
		}
	})
}

func TestRetry_BehindSeveralMessages(t *testing.T) {
	bothStores(t, func(t *testing.T, change func(*setup)) {
		w := begin(t, change, withEngine(slow(time.Minute)))
		var events []channels.Inbound
		for i, text := range []string{"one", "two", "/retry", "three", "/retry", "/retry"} {
			events = append(events, direct("ann", string(rune('a'+i)), text))
		}
		w.accept(events...)
		pass(time.Hour)
		w.shows("re one", "re two", "re three", "re three")
		w.remembers("ch:user:ann", "u:one", "a:re one", "u:two", "a:re two", "u:three", "a:re three")
		w.settled()
	})
}
