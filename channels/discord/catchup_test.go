package discord

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"botd/channels"
	"botd/channels/discord/discordfake"
)

// memory is a Cursor.
type memory struct {
	mu    sync.Mutex
	read  map[string]string
	saves int
	fail  error
}

func (m *memory) Load(context.Context) (map[string]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.read), m.fail
}

func (m *memory) Save(_ context.Context, read map[string]string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fail != nil {
		return m.fail
	}
	m.read = maps.Clone(read)
	m.saves++
	return nil
}

func (m *memory) set(fail error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fail = fail
}

func remembering(m *memory) change {
	return func(_ *discordfake.Options, o *Options) { o.Cursor = m }
}

// restart ends the adapter, lets something happen, and starts a new one with the same options.
func (s *scene) restart(meanwhile func(), changes ...change) {
	s.t.Helper()
	if err := s.end(); err != nil {
		s.t.Fatal(err)
	}
	s.a.rest.http.CloseIdleConnections()
	meanwhile()
	opts := s.opts
	for _, c := range changes {
		c(&discordfake.Options{}, &opts)
	}
	a, err := New(opts)
	if err != nil {
		s.t.Fatal(err)
	}
	s.a = a
	s.run()
}

// TestCatchUp_AfterARestart: what was said to the bot while it was down is heard when it is back, in order
// and before what is said then; what was not said to it is not.
func TestCatchUp_AfterARestart(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cursor := &memory{}
		s := started(t, remembering(cursor))
		other := s.srv.DM(s.bob.ID)
		mine := s.botSays("earlier words")
		s.hear(discordfake.Saying{From: s.ada.ID, Room: s.direct, Text: "before"})
		s.hear(discordfake.Saying{From: s.bob.ID, Room: other, Text: "before, too"})
		time.Sleep(time.Minute)
		heard := len(s.sink.all())

		s.restart(func() {
			time.Sleep(time.Hour)
			for _, m := range []discordfake.Saying{
				{From: s.ada.ID, Room: s.direct, Text: "one"},
				{From: s.ada.ID, Room: s.direct, Text: "two"},
				{From: s.bob.ID, Room: s.room, Text: "among ourselves"},
				{From: s.bob.ID, Room: s.room, Text: s.mention("three")},
				{From: s.bob.ID, Room: s.room, Text: "four", ReplyTo: mine.ID},
				{From: s.bob.ID, Room: s.thread, Text: s.mention("five")},
				{From: s.srv.OtherBot("Robot").ID, Room: s.room, Text: s.mention("beep")},
				{From: s.ada.ID, Room: s.room, Webhook: true, Text: s.mention("posted")},
			} {
				if _, err := s.srv.Say(m); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(time.Hour)
			s.srv.DelayDispatches(time.Second) // so that the next message comes while rooms are looked into
		})
		time.Sleep(1500 * time.Millisecond)
		if _, err := s.srv.Say(discordfake.Saying{From: s.ada.ID, Room: s.direct, Text: "six"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)

		want := []string{"one", "two", "three", "four\n[in reply to you: earlier words]", "five", "six"}
		all := s.sink.all()[heard:]
		var got []string
		for _, in := range all {
			got = append(got, in.PlainText())
			if !in.Mentioned || in.Speaker.Name == "" {
				t.Errorf("event %+v", in)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
		address := func(i int) channels.Address { return all[i].Address }
		if want := (channels.Address{Channel: "discord", Kind: channels.Direct, Room: s.direct, User: s.ada.ID}); address(0) != want {
			t.Errorf("address %+v, want %+v", address(0), want)
		}
		if want := (channels.Address{Channel: "discord", Kind: channels.Room, Room: s.room, Thread: s.thread, User: s.bob.ID}); address(4) != want {
			t.Errorf("address %+v, want %+v", address(4), want)
		}

		before := len(s.sink.all())
		s.restart(func() { time.Sleep(time.Hour) })
		time.Sleep(time.Minute)
		if again := s.sink.all()[before:]; len(again) != 0 {
			t.Errorf("after another restart: %+v", again)
		}
	})
}

func TestCatchUp_NotAtTheFirstStart(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newScene(t, remembering(&memory{}))
		if _, err := s.srv.Say(discordfake.Saying{From: s.ada.ID, Room: s.room, Text: s.mention("long ago")}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		s.run()
		time.Sleep(time.Minute)
		s.hear(discordfake.Saying{From: s.ada.ID, Room: s.direct, Text: "hello"})
		if diff := cmp.Diff([]string{"hello"}, s.sink.texts()); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	})
}

func TestCatchUp_Bounds(t *testing.T) {
	tests := map[string]struct {
		reach     time.Duration
		meanwhile func(s *scene)
		want      func(texts []string) error
	}{
		"not further back than asked for": {time.Hour, func(s *scene) {
			s.numbered("old", 3)
			time.Sleep(2 * time.Hour)
			s.numbered("new", 2)
		}, exactly("new 0", "new 1")},
		"not at all when told so": {-1, func(s *scene) { s.numbered("message", 3) }, exactly()},
		"not more than so many":   {time.Hour, func(s *scene) { s.numbered("message", catchEvents+50) }, several(catchEvents)},
		"over several pages":      {time.Hour, func(s *scene) { s.numbered("message", 250) }, several(250)},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				cursor := &memory{}
				s := started(t, remembering(cursor), func(_ *discordfake.Options, o *Options) { o.CatchUp = tt.reach })
				s.hear(discordfake.Saying{From: s.ada.ID, Room: s.direct, Text: "before"})
				s.restart(func() { tt.meanwhile(s) })
				time.Sleep(5 * time.Minute)
				if err := tt.want(s.sink.texts()[1:]); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func exactly(want ...string) func([]string) error {
	return func(got []string) error {
		if diff := cmp.Diff(want, slices.Clip(append([]string(nil), got...))); diff != "" {
			return fmt.Errorf("events (-want +got):\n%s", diff)
		}
		return nil
	}
}

func several(n int) func([]string) error {
	return func(got []string) error {
		for i, text := range got {
			if want := fmt.Sprintf("message %d", i); text != want {
				return fmt.Errorf("event %d is %q, want %q", i, text, want)
			}
		}
		if len(got) != n {
			return fmt.Errorf("%d events, want %d", len(got), n)
		}
		return nil
	}
}

// TestCatchUp_RoomsInTrouble: one room that cannot be read costs no other.
func TestCatchUp_RoomsInTrouble(t *testing.T) {
	tests := map[string]struct {
		prepare func(s *scene)
		want    []string
	}{
		"away for a moment": {func(s *scene) {
			f := discordfake.BadGateway()
			f.Path, f.Times = "/channels/*/messages", 2
			s.srv.Inject(f)
		}, []string{"direct", "room", "thread"}},
		"limited for a moment": {func(s *scene) {
			s.srv.Inject(discordfake.Fault{Path: "/channels/*/messages", Status: 429, Body: `{"message":"x","retry_after":2}`, Times: 10})
		}, []string{"direct", "room", "thread"}},
		"forbidden": {func(s *scene) {
			s.srv.Inject(discordfake.Fault{Path: "/channels/" + s.room + "/messages", Status: 403, Body: `{"message":"x","code":50001}`})
		}, []string{"direct", "thread"}},
		"away for good": {func(s *scene) {
			f := discordfake.BadGateway()
			f.Path, f.Times = "/channels/"+s.room+"/messages", -1
			s.srv.Inject(f)
		}, []string{"direct", "thread"}},
		"its history may not be read": {func(s *scene) { s.srv.Deny(s.direct, discordfake.ReadHistory) }, []string{"room", "thread"}},
		"the answer is no list": {func(s *scene) {
			s.srv.Inject(discordfake.Fault{Path: "/channels/" + s.direct + "/messages", Status: 200, Body: `{}`, Times: -1})
		}, []string{"room", "thread"}},
		"one message is odd": {func(s *scene) {
			s.srv.Inject(discordfake.Fault{Path: "/channels/" + s.direct + "/messages", Status: 200, Body: `[{"id":5},"x"]`})
		}, []string{"room", "thread"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := started(t, remembering(&memory{}))
				s.hear(discordfake.Saying{From: s.ada.ID, Room: s.direct, Text: "before"})
				s.restart(func() {
					time.Sleep(time.Hour)
					for text, room := range map[string]string{"direct": s.direct, "room": s.room, "thread": s.thread} {
						if _, err := s.srv.Say(discordfake.Saying{From: s.ada.ID, Room: room, Text: s.mention(text)}); err != nil {
							t.Fatal(err)
						}
					}
					tt.prepare(s)
				})
				time.Sleep(10 * time.Minute)
				got := s.sink.texts()[1:]
				slices.Sort(got)
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("events (-want +got):\n%s", diff)
				}
				s.hear(discordfake.Saying{From: s.ada.ID, Room: s.direct, Text: "after"})
			})
		})
	}
}

// TestCatchUp_CutShort: an outage during the catch-up loses nothing: the next one begins where this one did.
func TestCatchUp_CutShort(t *testing.T) {
	tests := map[string]func(s *scene){
		"by the end of the process": func(s *scene) { s.restart(func() {}) },
		"by a lost session":         func(s *scene) { s.srv.Invalidate(false) },
	}
	for name, cut := range tests {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := started(t, remembering(&memory{}))
				s.hear(discordfake.Saying{From: s.ada.ID, Room: s.direct, Text: "before"})
				f := discordfake.BadGateway()
				f.Path, f.Times = "/channels/*/messages", 3
				s.restart(func() {
					time.Sleep(time.Minute)
					s.numbered("message", 3)
					s.srv.Inject(f)
				})
				s.wait()
				if n := len(s.sink.all()); n != 1 {
					t.Fatalf("%d events before the cut", n)
				}
				if _, err := s.srv.Say(discordfake.Saying{From: s.ada.ID, Room: s.direct, Text: "message 3"}); err != nil {
					t.Fatal(err)
				}
				cut(s)
				time.Sleep(5 * time.Minute)
				first := map[string]bool{}
				var order []string
				for _, in := range s.sink.all()[1:] {
					if !first[in.ID] {
						order = append(order, in.PlainText())
					}
					first[in.ID] = true
				}
				slices.Sort(order)
				if err := several(4)(order); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestCatchUp_WaitsForGuilds: a guild that Discord is slow to tell of is looked into, too.
func TestCatchUp_WaitsForGuilds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := started(t, remembering(&memory{}))
		s.hear(discordfake.Saying{From: s.ada.ID, Room: s.direct, Text: "before"})
		s.restart(func() {
			if _, err := s.srv.Say(discordfake.Saying{From: s.ada.ID, Room: s.room, Text: s.mention("missed")}); err != nil {
				t.Fatal(err)
			}
			s.srv.DelayDispatches(guildWait / 2)
		})
		time.Sleep(5 * time.Minute)
		if diff := cmp.Diff([]string{"before", "missed"}, s.sink.texts()); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	})
}

// TestCatchUp_HoldsBackOnlyForAWhile: new messages are heard although the catch-up is stuck.
func TestCatchUp_HoldsBackOnlyForAWhile(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := started(t, remembering(&memory{}))
		s.hear(discordfake.Saying{From: s.ada.ID, Room: s.direct, Text: "before"})
		s.restart(func() {
			time.Sleep(time.Minute)
			s.srv.Inject(discordfake.Fault{Path: "/channels/*/messages", Delay: time.Hour, Times: -1})
			s.numbered("missed", 1)
		})
		s.wait()
		if _, err := s.srv.Say(discordfake.Saying{From: s.ada.ID, Room: s.direct, Text: "new"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(holdWait + time.Second)
		if diff := cmp.Diff([]string{"before", "new"}, s.sink.texts()); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	})
}

func TestCursor_IsSavedSparingly(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cursor := &memory{}
		s := started(t, remembering(cursor))
		for range 60 {
			s.numbered("message", 20)
			time.Sleep(time.Second)
		}
		time.Sleep(time.Minute)
		cursor.mu.Lock()
		defer cursor.mu.Unlock()
		if cursor.saves < 10 || cursor.saves > 14 {
			t.Errorf("%d saves in a busy minute and a quiet one", cursor.saves)
		}
		posts := s.srv.Posts(s.direct)
		last := posts[len(posts)-1].ID
		if diff := cmp.Diff(map[string]string{everywhere: last, s.direct: last}, cursor.read); diff != "" {
			t.Errorf("saved (-want +got):\n%s", diff)
		}
	})
}

func TestCursor_StandsStillWhileTheSinkRefuses(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cursor := &memory{}
		s := started(t, remembering(cursor))
		first := s.hear(discordfake.Saying{From: s.ada.ID, Room: s.direct, Text: "taken"})
		s.sink.refuse(func([]channels.Inbound) error { return errSink })
		want := s.numbered("refused", 3)
		time.Sleep(time.Minute)
		cursor.mu.Lock()
		if cursor.read[s.direct] != first.ID {
			t.Errorf("saved %v, want to stand at what was taken", cursor.read)
		}
		cursor.mu.Unlock()
		s.restart(func() { s.sink.refuse(nil) })
		time.Sleep(time.Minute)
		if diff := cmp.Diff(append([]string{"taken"}, want...), s.sink.texts()); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	})
}

func TestCursor_Fails(t *testing.T) {
	t.Run("to load, for a while", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			cursor := &memory{fail: errors.New("disk away")}
			s := newScene(t, remembering(cursor))
			s.run()
			time.Sleep(time.Minute)
			if n := s.srv.Gateway().Connections; n != 0 {
				t.Errorf("%d connections before it is known where to go on", n)
			}
			cursor.set(nil)
			time.Sleep(3 * time.Minute)
			s.hear(discordfake.Saying{From: s.ada.ID, Room: s.direct, Text: "hello"})
		})
	})
	t.Run("to load, until the end", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			s := newScene(t, remembering(&memory{fail: errors.New("disk away")}))
			s.run()
			time.Sleep(time.Minute)
			if err := s.end(); err != nil {
				t.Errorf("Run: %v", err)
			}
		})
	})
	t.Run("to save, for a while", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			cursor := &memory{}
			s := started(t, remembering(cursor))
			cursor.set(errors.New("disk away"))
			in := s.hear(discordfake.Saying{From: s.ada.ID, Room: s.direct, Text: "hello"})
			time.Sleep(time.Minute)
			cursor.set(nil)
			time.Sleep(saveEvery)
			s.wait()
			cursor.mu.Lock()
			defer cursor.mu.Unlock()
			if cursor.read[s.direct] != in.ID {
				t.Errorf("saved %v", cursor.read)
			}
		})
	})
	t.Run("by holding nonsense", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			s := started(t, remembering(&memory{read: map[string]string{everywhere: "x", "../etc": "5", "7": "-1"}}))
			s.hear(discordfake.Saying{From: s.ada.ID, Room: s.direct, Text: "hello"})
		})
	})
}

func TestPositions_KeepTheNewestChats(t *testing.T) {
	t.Parallel()
	p := newPositions()
	p.advance(everywhere, "9999")
	for i := range 5 * knownChats {
		p.advance(fmt.Sprint(10000+i), fmt.Sprint(20000+i))
	}
	if n := len(p.read); n > 2*knownChats+1 {
		t.Errorf("%d positions in memory", n)
	}
	saved := p.changed()
	if len(saved) != knownChats+1 || saved[everywhere] != "9999" {
		t.Errorf("%d positions saved, the general one is %q", len(saved), saved[everywhere])
	}
	for i := range knownChats {
		if key := fmt.Sprint(10000 + 5*knownChats - 1 - i); saved[key] == "" {
			t.Errorf("a chat among the newest is forgotten: %s", key)
		}
	}
	if p.changed() != nil {
		t.Error("changed twice")
	}
	p.advance(everywhere, "9998")
	if p.changed() != nil {
		t.Error("moved backwards")
	}
}

func TestSnowflakes(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	if got := snowflakeTime(snowflakeAt(at)); !got.Equal(at) {
		t.Errorf("there and back: %v", got)
	}
	if got := snowflakeTime(earlier(snowflakeAt(at))); !got.Equal(at.Add(-overlap)) {
		t.Errorf("earlier: %v", got)
	}
	for _, odd := range []string{"", "x", "-5", "5", strings.Repeat("9", 30)} {
		if !snowflakeTime(odd).IsZero() || earlier(odd) != "" {
			t.Errorf("%q is taken for an ID", odd)
		}
	}
	if snowflakeAt(time.Unix(0, 0)) != "0" || later("9", "10") != "10" || later("", "1") != "1" || compareSnowflakes("5", "5") != 0 {
		t.Error("order of IDs")
	}
}
