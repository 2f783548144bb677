package dispatch_test

import (
	"testing"
	"testing/synctest"
	"time"

	"botd/channels"
	"botd/channels/dispatch"
)

const noticeAdminsOnly = "Everybody here shares this memory, so only an admin can change it. The people who run this service decide who is one. An answer to your own message can be stopped with /stop."

// admins makes people admins of the channel.
func admins(ids ...string) func(*setup) { return func(s *setup) { s.Admins = ids } }

func TestRights(t *testing.T) {
	t.Parallel()
	inCharge := group("g", "ann", "2", "")
	inCharge.Speaker.Admin = true
	unnamed := group("g", "", "2", "")
	public := group("g", "ann", "2", "")
	public.Address.Kind = channels.Room
	thread := public
	thread.Address.Thread = "t"
	for _, tt := range []struct {
		name    string
		from    channels.Inbound
		change  func(*setup)
		refused bool
	}{
		{name: "direct chat", from: direct("ann", "2", ""), change: admins()},
		{name: "group, no admins", from: group("g", "ann", "2", ""), change: admins(), refused: true},
		{name: "group, admin", from: group("g", "ann", "2", ""), change: admins("bob", "ann")},
		{name: "group, somebody else", from: group("g", "ann", "2", ""), change: admins("bob", "ANN"), refused: true},
		{name: "group, by the platform's word", from: inCharge, change: admins()},
		{name: "group, somebody unnamed", from: unnamed, change: admins(""), refused: true},
		{name: "group, a memory each", from: group("g", "ann", "2", ""), change: func(s *setup) { s.Scope = dispatch.ScopeUserInRoom }},
		{name: "group, the person's one memory", from: group("g", "ann", "2", ""), change: func(s *setup) { s.Scope = dispatch.ScopeUser }},
		{name: "public room, a memory each", from: public, change: admins()},
		{name: "public room, shared by somebody unnamed", from: func() channels.Inbound { in := public; in.Address.User, in.Speaker.ID = "", ""; return in }(), change: admins(), refused: true},
		{name: "thread", from: thread, change: admins(), refused: true},
		{name: "thread, admin", from: thread, change: admins("ann")},
	} {
		for _, command := range []string{"/reset", "/new", "/restore", "/undo", "/retry"} {
			t.Run(tt.name+command, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					w := begin(t, tt.change)
					said, gives := tt.from, tt.from
					said.ID, said.Parts = "1", []channels.Part{{Type: channels.Text, Text: "hi"}}
					gives.Parts = []channels.Part{{Type: channels.Text, Text: command}}
					w.accept(said)
					w.accept(gives)
					texts := w.platform.texts()
					if got := texts[len(texts)-1] == noticeAdminsOnly; got != tt.refused {
						t.Errorf("refused: %v, want %v; platform shows %q", got, tt.refused, texts)
					}
					if tt.refused {
						w.remembers(dispatch.SessionID("", tt.from.Address), "u:hi", "a:re hi")
					}
					w.settled()
				})
			})
		}
	}
}

// TestRights_RefusalDisturbsNobody: neither the running turn nor what waits is touched.
func TestRights_RefusalDisturbsNobody(t *testing.T) {
	bothStores(t, func(t *testing.T, change func(*setup)) {
		w := begin(t, change, withEngine(slow(time.Minute)))
		w.accept(group("g", "bob", "1", "one"), group("g", "ann", "2", "two"))
		w.accept(group("g", "eve", "3", "/reset"), group("g", "ann", "4", "/undo"), group("g", "ann", "5", "/retry"))
		w.shows(noticeAdminsOnly, noticeAdminsOnly, noticeAdminsOnly)
		pass(time.Hour)
		w.shows(noticeAdminsOnly, noticeAdminsOnly, noticeAdminsOnly, "re one", "re two")
		if got := len(w.reports.ends()); got != 2 {
			t.Errorf("%d runs, want 2 that nobody disturbed", got)
		}
		w.settled()
	})
}

func TestRights_StopAndHelpAreForEverybody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := begin(t, withEngine(slow(time.Minute)))
		w.accept(group("g", "ann", "1", "one"))
		w.accept(group("g", "ann", "2", "/stop"))
		w.shows(noticeStopped)
		w.settled()
	})
}
