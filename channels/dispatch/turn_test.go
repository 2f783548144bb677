package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
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

func TestTurn_InputOfTheEngine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var got []agent.Turn
		w := begin(t, func(s *setup) { s.Agent, s.MaxHistory = "concierge", 3 },
			withEngine(func(ctx context.Context, turn agent.Turn) (string, error) {
				got = append(got, turn)
				return echo(ctx, turn)
			}))
		w.accept(direct("ann", "1", "one"))
		w.accept(direct("ann", "2", "two"))
		w.accept(direct("ann", "3", "three"))
		w.accept(group("g", "bob", "4", "four"))
		if len(got) != 4 {
			t.Fatalf("%d runs, want 4", len(got))
		}
		third, inGroup := got[2], got[3]
		if third.Agent != "concierge" || third.Session != "ch:user:ann" || third.Place != "fake" || third.Group {
			t.Errorf("turn = %+v", third)
		}
		if len(third.History) != 3 || string(third.History[2].Raw) != `{"content":"re two","role":"assistant"}` {
			t.Errorf("history = %v, want the newest three items", third.History)
		}
		if s := third.Input[0].Speaker; s != (agent.Speaker{ID: "ann", Name: "ANN", Locale: "en"}) {
			t.Errorf("speaker = %+v", s)
		}
		if !inGroup.Group || inGroup.Session != "ch:group:g" {
			t.Errorf("turn in a group = %+v", inGroup)
		}
	})
}

func TestTurn_AnswerIsSplitAndNumbered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := begin(t, func(s *setup) { s.world.platform.limit = 4 })
		w.accept(direct("ann", "1", "abcdef"))
		w.shows("re a", "bcde", "f")
		first, _, _ := strings.Cut(w.platform.messages()[0].ID, "/")
		for i, m := range w.platform.messages() {
			if want := fmt.Sprintf("%s/%d", first, i); m.ID != want {
				t.Errorf("ID of send %d is %q, want %q", i, m.ID, want)
			}
		}
	})
}

func TestTurn_EmptyAnswerBecomesANotice(t *testing.T) {
	t.Parallel()
	for _, answer := range []string{"", " \n\t "} {
		t.Run(fmt.Sprintf("%q", answer), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := begin(t, withEngine(func(context.Context, agent.Turn) (string, error) { return answer, nil }))
				w.accept(direct("ann", "1", "hi"))
				if got := w.platform.texts(); len(got) != 1 || !strings.Contains(got[0], "no answer") {
					t.Errorf("platform shows %q, want a notice", got)
				}
				w.settled()
			})
		})
	}
}

func TestTurn_RetriesWhatMayPass(t *testing.T) {
	t.Parallel()
	for name, failure := range map[string]error{
		"transient":    engineError(agent.Transient),
		"rate limited": &agent.Error{Kind: agent.RateLimited, RetryAfter: 20 * time.Second, Err: errors.New("slow down")},
		"unknown":      errors.New("nobody knows"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := begin(t, withEngine(failing(failure)))
				w.accept(direct("ann", "1", "hi"), direct("ann", "2", "more"))
				w.shows()
				if e, ok := errors.AsType[*agent.Error](failure); ok && e.RetryAfter > 0 {
					pass(e.RetryAfter - time.Millisecond)
					w.shows()
				}
				pass(time.Minute)
				w.shows("re hi", "re more")
				want := []dispatch.TurnEnd{dispatch.Retried, dispatch.Answered, dispatch.Answered}
				if got := w.reports.ends(); !slices.Equal(got, want) {
					t.Errorf("runs ended %q, want %q", got, want)
				}
				w.settled()
			})
		})
	}
}

func TestTurn_SetAside(t *testing.T) {
	t.Parallel()
	four := func(kind agent.ErrorKind) []error {
		return slices.Repeat([]error{engineError(kind)}, 4)
	}
	for _, tt := range []struct {
		name     string
		failures []error
		runs     int
		notice   string
	}{
		{"transient for good", four(agent.Transient), 4, "could not reach"},
		{"rate limited for good", four(agent.RateLimited), 4, "could not reach"},
		{"rate limited for an hour", []error{&agent.Error{Kind: agent.RateLimited, RetryAfter: time.Hour, Err: errors.New("x")}}, 1, "could not reach"},
		{"quota", four(agent.QuotaExhausted), 1, "people who run this service"},
		{"key refused", four(agent.Unauthorized), 1, "people who run this service"},
		{"no such model", four(agent.ModelNotFound), 1, "people who run this service"},
		{"too long", four(agent.ContextOverflow), 1, "/reset"},
		{"filtered", four(agent.Filtered), 1, "refuses this message"},
		{"invalid", four(agent.InvalidRequest), 1, "went wrong"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				runs := 0
				fail := failing(tt.failures...)
				w := begin(t, withEngine(func(ctx context.Context, turn agent.Turn) (string, error) {
					if heard(turn) == "bad" {
						runs++
						return fail(ctx, turn)
					}
					return echo(ctx, turn)
				}))
				w.accept(direct("ann", "1", "bad"), direct("ann", "2", "good"))
				pass(time.Hour)
				got := w.platform.texts()
				if len(got) != 2 || !strings.Contains(got[0], tt.notice) || got[1] != "re good" {
					t.Errorf("platform shows %q, want a notice with %q, then the next answer", got, tt.notice)
				}
				if runs != tt.runs {
					t.Errorf("%d runs, want %d", runs, tt.runs)
				}
				if st := w.stats(); st.DeadEvents != 1 || st.Pending != 0 {
					t.Errorf("journal holds %+v, want one dead letter", st)
				}
				w.remembers("ch:user:ann", "u:good", "a:re good")
			})
		})
	}
}

func TestTurn_AttemptsSurviveRestart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		runs := 0
		fail := withEngine(func(context.Context, agent.Turn) (string, error) {
			runs++
			return "", engineError(agent.Transient)
		})
		w := begin(t, fail)
		w.accept(direct("ann", "1", "hi"))
		for range 5 {
			w.stop()
			w = w.restart(fail)
			w.run()
		}
		pass(time.Hour)
		if runs != 4 || len(w.platform.texts()) != 1 {
			t.Errorf("%d runs and %q, want 4 and one notice", runs, w.platform.texts())
		}
	})
}

func TestTurn_PanicIsThatTurnsFailure(t *testing.T) {
	t.Parallel()
	for name, value := range map[string]any{"text": "secret words of ann", "runtime": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := begin(t, withEngine(func(ctx context.Context, turn agent.Turn) (string, error) {
					if heard(turn) != "bad" {
						return echo(ctx, turn)
					}
					if value == nil {
						return fmt.Sprint([]int{}[len(turn.History)]), nil
					}
					panic(value)
				}))
				w.accept(direct("ann", "1", "bad"), direct("ann", "2", "good"))
				if got := w.platform.texts(); len(got) != 2 || !strings.Contains(got[0], "went wrong") || got[1] != "re good" {
					t.Errorf("platform shows %q", got)
				}
				if log := w.logs.String(); strings.Contains(log, "secret words") || !strings.Contains(log, "panic") {
					t.Errorf("log tells the wrong things of a panic:\n%s", log)
				}
			})
		})
	}
}

// brokenComposer panics when it composes a model's answer.
type brokenComposer struct{ *platform }

func (c brokenComposer) Compose(m channels.Outbound) []channels.Outbound {
	if m.Parts[0].Type == channels.Markdown {
		panic("bad table")
	}
	return c.platform.Compose(m)
}

func TestTurn_PanicInComposeIsThatTurnsFailure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := begin(t, func(s *setup) { s.Adapter = brokenComposer{s.world.platform} })
		w.accept(direct("ann", "1", "hi"))
		if got := w.platform.texts(); len(got) != 1 || !strings.Contains(got[0], "went wrong") {
			t.Errorf("platform shows %q, want a notice", got)
		}
		w.remembers("ch:user:ann")
	})
}

func TestTurn_Timeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := begin(t, func(s *setup) { s.TurnTimeout = time.Minute }, withEngine(slow(time.Hour)))
		w.accept(direct("ann", "1", "hi"))
		pass(time.Minute + time.Millisecond)
		if got := w.platform.texts(); len(got) != 1 || !strings.Contains(got[0], "too long") {
			t.Errorf("platform shows %q, want a notice", got)
		}
	})
}

func TestTurn_EngineWithoutAnswerFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := begin(t, func(s *setup) { s.Engine = silent{} })
		w.accept(direct("ann", "1", "hi"))
		pass(time.Hour)
		if got := w.platform.texts(); len(got) != 1 || len(w.reports.ends()) != 4 {
			t.Errorf("platform shows %q after %d runs, want a notice after 4", got, len(w.reports.ends()))
		}
	})
}

type silent struct{}

func (silent) Run(context.Context, agent.Turn) iter.Seq2[agent.Event, error] {
	return func(func(agent.Event, error) bool) {}
}

func TestTurn_InvalidItemsAreSetAside(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*setup){"one file": func(*setup) {}, "foreign store": withForeignStore} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := begin(t, change, func(s *setup) { s.Engine = badItems{} })
				w.accept(direct("ann", "1", "hi"))
				if got := w.platform.texts(); len(got) != 1 || !strings.Contains(got[0], "went wrong") {
					t.Errorf("platform shows %q, want a notice", got)
				}
				w.remembers("ch:user:ann")
				w.settled()
			})
		})
	}
}

type badItems struct{}

func (badItems) Run(context.Context, agent.Turn) iter.Seq2[agent.Event, error] {
	return func(yield func(agent.Event, error) bool) {
		yield(agent.Event{Final: &agent.Final{Text: "x", Items: []sessionstore.Item{{Raw: []byte("[]")}}}}, nil)
	}
}

func TestTurn_JournalDownAtCommitSaysNothingAndKeepsTrying(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*setup){"one file": func(*setup) {}, "foreign store": withForeignStore} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				runs := 0
				var sick *sickJournal
				w := begin(t, withSickJournal(&sick), change, withEngine(func(ctx context.Context, turn agent.Turn) (string, error) {
					runs++
					return echo(ctx, turn)
				}))
				sick.set(func(j *sickJournal) { j.commit = errors.New("disk full") })
				w.accept(direct("ann", "1", "hi"))
				pass(time.Hour)
				w.shows()
				sick.set(func(j *sickJournal) { j.commit = nil })
				pass(time.Minute)
				w.shows("re hi")
				w.remembers("ch:user:ann", "u:hi", "a:re hi")
				if runs != 1 {
					t.Errorf("%d runs, want 1: the answer is there already", runs)
				}
			})
		})
	}
}

// TestTurn_FoundInTheSession: the process died between session and journal; what the session holds is
// what is said, and only the messages that were answered by it are consumed.
func TestTurn_FoundInTheSession(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		merge   time.Duration
		first   []channels.Inbound
		then    []channels.Inbound
		want    []string
		stopped bool
	}{
		{name: "single", first: []channels.Inbound{direct("ann", "1", "one")}, want: []string{"run 1 one"}},
		{
			name: "followed by more", first: []channels.Inbound{direct("ann", "1", "one")},
			then: []channels.Inbound{direct("ann", "2", "two")}, want: []string{"run 1 one", "run 2 two"},
		},
		{
			name: "merged, more of the same person since", merge: time.Second,
			first: []channels.Inbound{direct("ann", "1", "one"), direct("ann", "2", "two")},
			then:  []channels.Inbound{direct("ann", "3", "three")}, want: []string{"run 1 one+two", "run 2 three"},
		},
		{
			name: "stop comes too late", first: []channels.Inbound{direct("ann", "1", "one")},
			then: []channels.Inbound{direct("ann", "2", "/stop")}, want: []string{"run 1 one", "There is nothing to stop right now."}, stopped: true,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				runs := 0
				numbered := withEngine(func(_ context.Context, turn agent.Turn) (string, error) {
					runs++
					return fmt.Sprint("run ", runs, " ", heard(turn)), nil
				})
				var sick *sickJournal
				w := begin(t, withSickJournal(&sick), withForeignStore, withMergeWindow(tt.merge), numbered)
				sick.set(func(j *sickJournal) { j.commit = errors.New("power fails") })
				w.accept(tt.first...)
				pass(10 * time.Second)
				w.stop()
				w.shows()
				w = w.restart(withForeignStore, withMergeWindow(tt.merge), numbered)
				w.accept(tt.then...)
				w.run()
				pass(time.Minute)
				got := w.platform.texts()
				want := slices.Clone(tt.want)
				if tt.stopped { // the stop's notice may overtake the answer
					slices.Sort(got)
					slices.Sort(want)
				}
				if !slices.Equal(got, want) {
					t.Errorf("platform shows %q, want %q", got, want)
				}
				var answers []string
				for _, c := range contents(t, w.memory, "ch:user:ann") {
					if text, ok := strings.CutPrefix(c, "a:"); ok {
						answers = append(answers, text)
					}
				}
				said := slices.DeleteFunc(slices.Clone(tt.want), func(s string) bool { return !strings.HasPrefix(s, "run") })
				if !slices.Equal(answers, said) {
					t.Errorf("session holds %q, said was %q", answers, said)
				}
				w.settled()
			})
		})
	}
}

func TestTurn_ClearedByOthersRunsAgain(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*setup){"one file": func(*setup) {}, "foreign store": withForeignStore} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var histories []int
				w := begin(t, change, withEngine(func(ctx context.Context, turn agent.Turn) (string, error) {
					histories = append(histories, len(turn.History))
					return slow(time.Second)(ctx, turn)
				}))
				w.accept(direct("ann", "1", "one"))
				pass(2 * time.Second)
				w.accept(direct("ann", "2", "two"))
				if err := w.memory.Clear(t.Context(), "ch:user:ann"); err != nil {
					t.Fatal(err)
				}
				pass(time.Minute)
				w.shows("re one", "re two")
				w.remembers("ch:user:ann", "u:two", "a:re two")
				if want := []int{0, 2, 0}; !slices.Equal(histories, want) {
					t.Errorf("runs saw %d items, want %d", histories, want)
				}
			})
		})
	}
}

func TestTurn_ConsumedByOthersIsDropped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := begin(t, withMergeWindow(time.Second), withEngine(slow(time.Second)))
		w.accept(direct("ann", "1", "one"), direct("ann", "2", "two"))
		pass(1500 * time.Millisecond) // both run as one turn
		if err := w.store.Commit(t.Context(), dispatch.TurnResult{Session: "ch:user:ann", Turn: "other", Consumed: []uint64{1}}); err != nil {
			t.Fatal(err)
		}
		pass(time.Minute)
		w.shows("re two")
		w.settled()
	})
}

func TestTurn_LogTellsOfTurnsAndNotOfWords(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := begin(t, withEngine(slow(2*time.Second)))
		w.accept(direct("ann", "ev-1", "confidential"))
		pass(time.Minute)
		log := w.logs.String()
		for _, want := range []string{"turn ended", "channel=ch", "session=ch:user:ann", "event_id=ev-1", "turn=", "attempt=1", "ran=2s", "events=1", "replies=1"} {
			if !strings.Contains(log, want) {
				t.Errorf("log lacks %q:\n%s", want, log)
			}
		}
		if strings.Contains(log, "confidential") || strings.Contains(log, "token-") {
			t.Errorf("log holds message text or a reply handle:\n%s", log)
		}
		r := w.reports.turns[0]
		if r.Channel != "ch" || r.End != dispatch.Answered || r.Events != 1 || r.Replies != 1 || r.Ran != 2*time.Second || r.Usage.OutputTokens != 5 {
			t.Errorf("report = %+v", r)
		}
	})
}
