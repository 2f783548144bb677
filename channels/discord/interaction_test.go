package discord

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"botd/channels"
	"botd/channels/discord/discordfake"
)

// command uses a slash command and returns the event that it became.
func (s *scene) command(user, room, name string, options ...string) (discordfake.Interaction, channels.Inbound) {
	s.t.Helper()
	n := len(s.sink.all())
	i, err := s.srv.Command(user, room, name, options...)
	if err != nil {
		s.t.Fatal(err)
	}
	s.wait()
	all := s.sink.all()
	if len(all) != n+1 {
		s.t.Fatalf("%d events came of one command", len(all)-n)
	}
	return s.srv.Interaction(i.Token), all[n]
}

func TestCommand_Event(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := started(t)
		s.srv.SetLocale(s.ada.ID, "zh-TW")
		s.srv.SetNick(s.bob.ID, "Bobby")
		tests := []struct {
			user, room, name string
			options          []string
			want             channels.Inbound
		}{
			{s.ada.ID, s.direct, "reset", nil, channels.Inbound{
				Address: channels.Address{Channel: "discord", Kind: channels.Direct, Room: s.direct, User: s.ada.ID},
				Speaker: channels.Speaker{ID: s.ada.ID, Name: "Ada", Locale: "zh-TW"},
				Parts:   []channels.Part{{Type: channels.Text, Text: "/reset"}},
			}},
			{s.bob.ID, s.thread, "ask", []string{"question", " why? "}, channels.Inbound{
				Address: channels.Address{Channel: "discord", Kind: channels.Room, Room: s.room, Thread: s.thread, User: s.bob.ID},
				Speaker: channels.Speaker{ID: s.bob.ID, Name: "Bobby", Locale: "en-US"},
				Parts:   []channels.Part{{Type: channels.Text, Text: "/ask why?"}},
			}},
		}
		for _, tt := range tests {
			i, in := s.command(tt.user, tt.room, tt.name, tt.options...)
			tt.want.ID, tt.want.Kind, tt.want.Mentioned = i.ID, channels.Message, true
			tt.want.Time, tt.want.Reply = in.Time, in.Reply
			if diff := cmp.Diff(tt.want, in); diff != "" {
				t.Errorf("event (-want +got):\n%s", diff)
			}
			if since := time.Since(in.Time); since < -time.Second || since > time.Second {
				t.Errorf("time %v", in.Time)
			}
			if !i.Acknowledged || !i.Ephemeral {
				t.Errorf("interaction %+v, want it acknowledged for the caller alone", i)
			}
		}
	})
}

// TestCommand_AcknowledgedAtOnce: while the sink is stuck with a hundred messages.
func TestCommand_AcknowledgedAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := started(t)
		s.sink.refuse(func([]channels.Inbound) error { return errSink })
		want := s.numbered("message", 100)
		i, err := s.srv.Command(s.ada.ID, s.room, "stop")
		if err != nil {
			t.Fatal(err)
		}
		want = append(append(want, "/stop"), s.numbered("later", 5)...)
		time.Sleep(2 * time.Second)
		if st := s.srv.Interaction(i.Token); !st.Acknowledged || st.After > time.Second {
			t.Errorf("interaction %+v, want it acknowledged", st)
		}
		s.sink.refuse(nil)
		time.Sleep(maxAcceptRetry)
		if diff := cmp.Diff(want, s.sink.texts()); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	})
}

func TestCommand_Answer(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := started(t)
		i, in := s.command(s.ada.ID, s.room, "help")
		m := answer(in, strings.Repeat("many words. ", 300))
		parts := s.a.Compose(m)
		if len(parts) != 2 || !parts[0].Once || !parts[1].Once {
			t.Fatalf("composed %d parts: %+v", len(parts), parts)
		}
		for n, part := range parts {
			part.ID = m.ID + string(rune('a'+n))
			if _, err := s.a.Send(t.Context(), part); err != nil {
				t.Fatal(err)
			}
		}
		st := s.srv.Interaction(i.Token)
		if st.Text != parts[0].PlainText() || len(st.Followups) != 1 || st.Followups[0].Content != parts[1].PlainText() {
			t.Errorf("interaction %+v", st)
		}
		for _, p := range s.srv.BotPosts(s.room) {
			if p.OnlyFor != s.ada.ID || len(p.Pings) > 0 {
				t.Errorf("post %+v is not for the caller alone", p)
			}
		}
	})
}

// TestCommand_SameAnswerOnce repeats the sends of an answer after everything that leaves an outcome open.
func TestCommand_SameAnswerOnce(t *testing.T) {
	lost := discordfake.Fault{Accept: true, Drop: true}
	cut := discordfake.Fault{Drop: true}
	tests := map[string]struct {
		part      int
		fault     discordfake.Fault
		pause     time.Duration // between the attempts
		uncertain bool          // as after a crash
		first     channels.ErrorKind
		second    channels.ErrorKind // Transient stands for success
		shown     int                // how many of the bot's posts hold the text in the end
	}{
		"first part, answer lost":                {0, lost, 0, false, channels.Transient, channels.Transient, 1},
		"first part, not accepted":               {0, cut, 0, false, channels.Transient, channels.Transient, 1},
		"first part, after a crash":              {0, lost, time.Minute, true, channels.Transient, channels.Transient, 1},
		"first part, too late after a crash":     {0, lost, time.Hour, true, channels.Transient, channels.Ambiguous, 1},
		"first part, too late":                   {0, cut, time.Hour, false, channels.Transient, channels.Transient, 1},
		"further part, answer lost":              {1, lost, 0, false, channels.Ambiguous, channels.Transient, 0},
		"further part, not accepted perhaps":     {1, cut, 0, false, channels.Ambiguous, channels.Transient, 0},
		"further part, server error":             {1, discordfake.BadGateway(), 0, false, channels.Ambiguous, channels.Transient, 0},
		"further part, limited":                  {1, discordfake.Fault{Status: 429, Body: `{"message":"x","retry_after":1}`}, 2 * time.Second, false, channels.RateLimited, channels.Transient, 1},
		"further part, after a crash":            {1, lost, time.Minute, true, channels.Ambiguous, channels.Ambiguous, 1},
		"further part, too late after a crash":   {1, lost, time.Hour, true, channels.Ambiguous, channels.Ambiguous, 1},
		"further part, too late, surely not yet": {1, discordfake.Fault{Status: 429, Body: `{"message":"x","retry_after":1}`}, time.Hour, false, channels.RateLimited, channels.Transient, 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := started(t)
				_, in := s.command(s.ada.ID, s.room, "help")
				parts := s.a.Compose(answer(in, strings.Repeat("first part. ", 160)+"\n\n"+strings.Repeat("second part. ", 20)))
				for n := range parts {
					parts[n].ID = "turn/" + string(rune('0'+n))
				}
				if tt.part == 1 {
					if _, err := s.a.Send(t.Context(), parts[0]); err != nil {
						t.Fatal(err)
					}
				}
				m := parts[tt.part]
				tt.fault.Path = "/webhooks/*/*"
				if tt.part == 0 {
					tt.fault.Path += "/messages/@original"
				}
				s.srv.Inject(tt.fault)
				if _, err := s.a.Send(t.Context(), m); err == nil || channels.KindOf(err) != tt.first {
					t.Errorf("first attempt: %v, want kind %v", err, tt.first)
				}
				if tt.first == channels.Ambiguous && !tt.uncertain {
					return // never sent again
				}
				time.Sleep(tt.pause)
				m.Uncertain = tt.uncertain
				if _, err := s.a.Send(t.Context(), m); channels.KindOf(err) != tt.second || (err == nil) != (tt.second == channels.Transient) {
					t.Errorf("second attempt: %v, want kind %v", err, tt.second)
				}
				n := 0
				for _, p := range s.srv.BotPosts(s.room) {
					if p.Content == m.PlainText() {
						n++
					}
				}
				if n != tt.shown {
					t.Errorf("shown %d times, want %d", n, tt.shown)
				}
			})
		})
	}
}

// TestCommand_AcknowledgementFails: the command is obeyed all the same.
func TestCommand_AcknowledgementFails(t *testing.T) {
	ack := func(f discordfake.Fault) func(*scene) {
		return func(s *scene) {
			f.Path = "/interactions/*/*/callback"
			s.srv.Inject(f)
		}
	}
	unknown := discordfake.Fault{Status: 404, Body: `{"message":"Unknown interaction","code":10062}`}
	away := discordfake.BadGateway()
	away.Times = -1
	tests := map[string]struct {
		prepare func(*scene)
		private bool // the answer still goes to the caller alone
		tries   int
	}{
		"answer lost":         {ack(discordfake.Fault{Accept: true, Drop: true}), true, 2},
		"cut twice":           {ack(discordfake.Fault{Drop: true, Times: 2}), true, 3},
		"too late":            {ack(unknown), false, 1},
		"Discord is away":     {ack(away), false, ackTries},
		"slow":                {ack(discordfake.Fault{Delay: 2 * time.Second}), true, 1},
		"slower than allowed": {ack(discordfake.Fault{Delay: time.Minute}), false, 1},
		"dispatched twice":    {func(s *scene) { s.srv.DuplicateDispatches(1) }, true, 2},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := started(t)
				tt.prepare(s)
				i, err := s.srv.Command(s.ada.ID, s.room, "reset")
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(5 * time.Second)
				all := s.sink.all()
				if len(all) == 0 || all[0].PlainText() != "/reset" || slices.ContainsFunc(all, func(in channels.Inbound) bool { return in.ID != i.ID }) {
					t.Fatalf("events %+v", all)
				}
				if _, err := s.send(answer(all[0], "done")); err != nil {
					t.Fatal(err)
				}
				posts := s.srv.BotPosts(s.room)
				last := posts[len(posts)-1]
				if last.Content != "done" || (last.OnlyFor != "") != tt.private {
					t.Errorf("answer %+v, want it private: %v", last, tt.private)
				}
				tries := slices.DeleteFunc(s.srv.Requests(), func(r discordfake.Request) bool { return !strings.HasSuffix(r.Path, "/callback") })
				if len(tries) != tt.tries {
					t.Errorf("%d attempts to acknowledge, want %d", len(tries), tt.tries)
				}
				if slices.ContainsFunc(tries, func(r discordfake.Request) bool { return r.Authorized }) {
					t.Error("the bot token was sent where it is not needed")
				}
			})
		})
	}
}

func TestCommand_ManyAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := started(t)
		s.srv.Inject(discordfake.Fault{Path: "/interactions/*/*/callback", Delay: 2 * time.Second, Times: -1})
		for range ackLimit + 10 {
			if _, err := s.srv.Command(s.ada.ID, s.room, "help"); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(10 * time.Second)
		if n := len(s.sink.all()); n != ackLimit+10 {
			t.Errorf("%d events", n)
		}
		tries := slices.DeleteFunc(s.srv.Requests(), func(r discordfake.Request) bool { return !strings.HasSuffix(r.Path, "/callback") })
		if len(tries) != ackLimit {
			t.Errorf("%d acknowledgements under way at once, want at most %d", len(tries), ackLimit)
		}
	})
}

func TestCommand_OtherInteractionsAreLeftAlone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := started(t)
		for _, kind := range []int{1, 3, 4, 5, 99} {
			s.srv.Dispatch("INTERACTION_CREATE", map[string]any{
				"id": "1", "application_id": "2", "type": kind, "token": "t", "channel_id": s.room, "user": s.ada,
				"data": map[string]any{"custom_id": "x", "components": []any{map[string]any{"type": 18}}},
			})
		}
		s.srv.Dispatch("INTERACTION_CREATE", map[string]any{
			"id": "1", "application_id": "2", "type": 2, "token": "t", "channel_id": s.room, "user": s.ada,
			"data": map[string]any{"name": "Translate", "type": 3},
		})
		s.wait()
		if n := len(s.sink.all()); n != 0 {
			t.Errorf("%d events", n)
		}
	})
}

func TestCommands_RegisteredOnceOnly(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := started(t)
		check := func(when string, want int) {
			t.Helper()
			s.wait()
			names, overwrites := s.srv.Commands()
			if diff := cmp.Diff([]string{"help", "reset", "restore", "undo", "retry", "stop"}, names); diff != "" || overwrites != want {
				t.Errorf("%s: %d overwrites, want %d; names (-want +got):\n%s", when, overwrites, want, diff)
			}
		}
		check("at the first start", 1)
		s.srv.Invalidate(false)
		time.Sleep(time.Minute)
		check("after a lost session", 1)

		again := func(commands []Command) {
			t.Helper()
			if err := s.end(); err != nil {
				t.Fatal(err)
			}
			a, err := New(Options{Channel: "discord", Token: testToken, APIBase: "http://discord.test", Dial: s.net.Dial, Commands: commands})
			if err != nil {
				t.Fatal(err)
			}
			s.a = a
			s.run()
			time.Sleep(10 * time.Second)
		}
		again(nil)
		check("after a restart", 1)
		changed := DefaultCommands()
		changed[1].Localized = map[string]string{"de": "Von vorn"}
		again(changed)
		check("after a change", 2)
		again([]Command{})
		check("when they are not ours to register", 2)
	})
}

func TestCommands_RegistrationFails(t *testing.T) {
	for name, f := range map[string]struct {
		fault discordfake.Fault
		want  int
	}{
		"for a while": {discordfake.Fault{Status: 500, Times: 3}, 1},
		"for good":    {discordfake.Fault{Status: 400, Body: `{"message":"x","code":30034}`, Times: -1}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := newScene(t)
				f.fault.Path = "/applications/*/commands"
				s.srv.Inject(f.fault)
				s.run()
				time.Sleep(time.Hour)
				if _, n := s.srv.Commands(); n != f.want {
					t.Errorf("%d overwrites, want %d", n, f.want)
				}
				if n := len(s.srv.Requests()); n > 12 {
					t.Errorf("%d requests in an hour", n)
				}
				s.hear(discordfake.Saying{From: s.ada.ID, Room: s.direct, Text: "hello all the same"})
			})
		})
	}
}
