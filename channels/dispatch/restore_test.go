package dispatch_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"botd/agent"
	"botd/sessionstore"
)

const (
	noticeRestoredTwo      = "Done. I remember our earlier conversation again (2 messages)."
	noticeSetAside         = "What we have said since then is set aside; /restore brings it back in turn."
	noticeNothingToRestore = "There is no forgotten conversation that I could bring back."
)

func TestRestore_BringsBackWhatAResetForgot(t *testing.T) {
	bothStores(t, func(t *testing.T, change func(*setup)) {
		w := begin(t, change)
		w.accept(direct("ann", "1", "old"))
		w.accept(direct("ann", "2", "/reset"))
		w.accept(direct("ann", "3", "/restore"))
		w.remembers("ch:user:ann", "u:old", "a:re old")
		w.accept(direct("ann", "4", "/restore"))
		w.shows("re old", noticeResetTwo, noticeRestoredTwo, noticeNothingToRestore)
		w.settled()
	})
}

func TestRestore_SwapsWithWhatWasSaidSince(t *testing.T) {
	bothStores(t, func(t *testing.T, change func(*setup)) {
		w := begin(t, change)
		w.accept(direct("ann", "1", "old"))
		w.accept(direct("ann", "2", "/reset"))
		w.accept(direct("ann", "3", "new"))
		w.accept(direct("ann", "4", "/restore"))
		w.remembers("ch:user:ann", "u:old", "a:re old")
		w.accept(direct("ann", "5", "/restore"))
		w.remembers("ch:user:ann", "u:new", "a:re new")
		texts := w.platform.texts()
		if got, want := texts[len(texts)-2:], slices.Repeat([]string{noticeRestoredTwo + "\n" + noticeSetAside}, 2); !slices.Equal(got, want) {
			t.Errorf("platform shows %q, want %q", got, want)
		}
		w.settled()
	})
}

// TestRestore_RunsBegunBefore answer by what the session holds then.
func TestRestore_RunsBegunBefore(t *testing.T) {
	bothStores(t, func(t *testing.T, change func(*setup)) {
		var histories []int
		w := begin(t, change, withEngine(func(ctx context.Context, turn agent.Turn) (string, error) {
			histories = append(histories, len(turn.History))
			return slow(time.Minute)(ctx, turn)
		}))
		w.accept(direct("ann", "1", "old"))
		pass(time.Hour)
		w.accept(direct("ann", "2", "/reset"))
		w.accept(direct("ann", "3", "new"))
		w.accept(direct("ann", "4", "/restore"))
		w.shows("re old", noticeResetTwo, noticeRestoredTwo)
		pass(time.Hour)
		w.shows("re old", noticeResetTwo, noticeRestoredTwo, "re new")
		w.remembers("ch:user:ann", "u:old", "a:re old", "u:new", "a:re new")
		if want := []int{0, 0, 2}; !slices.Equal(histories, want) {
			t.Errorf("runs saw %d items, want %d", histories, want)
		}
		w.settled()
	})
}

func TestRestore_OnlyAsLongAsTheArchiveLasts(t *testing.T) {
	bothStores(t, func(t *testing.T, change func(*setup)) {
		w := begin(t, change)
		w.accept(direct("ann", "1", "old"))
		w.accept(direct("ann", "2", "/reset"))
		pass(30 * 24 * time.Hour)
		w.accept(direct("ann", "3", "/restore"))
		w.shows("re old", noticeResetTwo, noticeNothingToRestore)
		w.remembers("ch:user:ann")
	})
}

// storeOnly hides what a store can do beside what every store can.
type storeOnly struct{ sessionstore.Store }

func TestReset_OffersARestoreOnlyWhereThereIsOne(t *testing.T) {
	t.Parallel()
	const plain = "Done. I have forgotten the 2 messages of this conversation; we start afresh."
	for _, tt := range []struct {
		name   string
		change func(*setup)
		reset  string
		help   bool
	}{
		{"archives for a month", func(*setup) {}, plain + "\nSend /restore within 30 days to bring it back.", true},
		{"archives for a day", func(s *setup) { s.world.store.ArchiveFor = 24 * time.Hour }, plain + "\nSend /restore soon to bring it back.", true},
		{"no archives", func(s *setup) { s.world.store.ArchiveFor = -1 }, plain, false},
		{"another store", func(s *setup) { s.Store = storeOnly{s.world.memory} }, plain, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := begin(t, tt.change)
				w.accept(direct("ann", "1", "old"))
				w.accept(direct("ann", "2", "/reset"))
				w.accept(direct("ann", "3", "/help"))
				texts := w.platform.texts()
				if texts[1] != tt.reset {
					t.Errorf("the reset says %q, want %q", texts[1], tt.reset)
				}
				if got := strings.Contains(texts[2], "/restore"); got != tt.help {
					t.Errorf("help names /restore: %v, want %v", got, tt.help)
				}
				if !tt.help {
					w.accept(direct("ann", "4", "/restore"))
					if got := w.platform.texts()[3]; got != noticeNothingToRestore {
						t.Errorf("a restore says %q", got)
					}
				}
			})
		})
	}
}

// TestRestore_InterruptedIsNotSwappedBack ends the process after the session was restored and before the
// journal knows.
func TestRestore_InterruptedIsNotSwappedBack(t *testing.T) {
	bothStores(t, func(t *testing.T, change func(*setup)) {
		w := begin(t, change)
		w.accept(direct("ann", "1", "old"))
		w.accept(direct("ann", "2", "/reset"))
		w.accept(direct("ann", "3", "new"))
		w.stop()
		w.platform.sent = nil
		var sick *sickJournal
		foreign := w.memory != w.store
		w = w.restart(withSickJournal(&sick), change)
		sick.set(func(j *sickJournal) { j.commit = errPower })
		w.run()
		w.accept(direct("ann", "4", "/restore"))
		w.stop()
		w.shows()
		if foreign {
			w.remembers("ch:user:ann", "u:old", "a:re old")
		}
		w = w.restart(change)
		w.run()
		w.shows(noticeRestoredTwo + "\n" + noticeSetAside)
		w.remembers("ch:user:ann", "u:old", "a:re old")
		w.settled()
	})
}
