package discord

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"botd/channels"
	"botd/channels/discord/discordfake"
)

// heartbeat is the interval that the fake asks for, Discord's own.
const heartbeat = 41250 * time.Millisecond

func TestGateway_StaysConnected(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := started(t)
		time.Sleep(time.Hour)
		s.hear(discordfake.Saying{From: s.ada.ID, Room: s.direct, Text: "still there?"})
		st := s.srv.Gateway()
		if st.Connections != 1 || st.Identifies != 1 || st.Resumes != 0 {
			t.Errorf("one hour took %+v, want one connection and one login", st)
		}
		if want := int(time.Hour/heartbeat) + 1; st.Heartbeats < want || st.Heartbeats > want+1 {
			t.Errorf("%d heartbeats in an hour, want %d", st.Heartbeats, want)
		}
	})
}

func TestGateway_SaysGoodbye(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := started(t)
		began := time.Now()
		if err := s.end(); err != nil {
			t.Errorf("Run: %v", err)
		}
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("Run took %v to end", took)
		}
		if diff := cmp.Diff([]int{1000}, s.srv.Gateway().Closes); diff != "" {
			t.Errorf("close codes (-want +got):\n%s", diff)
		}
		if s.a.Ready() == nil {
			t.Error("Ready after the end")
		}
	})
}

func TestGateway_EndsWhereOnlyTheOperatorCanHelp(t *testing.T) {
	tests := []struct {
		code    int
		content bool
		want    error
		says    string
	}{
		{code: 4004, want: ErrToken, says: "Reset Token"},
		{code: 4010, want: ErrSharding, says: "guilds"},
		{code: 4011, want: ErrSharding, says: "guilds"},
		{code: 4012, want: ErrProtocol, says: "update"},
		{code: 4013, want: ErrIntent, says: "no privileged intent"},
		{code: 4014, want: ErrIntent, says: "no privileged intent"},
		{code: 4014, content: true, want: ErrIntent, says: "Message Content Intent"},
	}
	for _, tt := range tests {
		content := func(fake *discordfake.Options, o *Options) {
			o.MessageContent, fake.Privileged = tt.content, discordfake.MessageContent
		}
		check := func(t *testing.T, s *scene) {
			t.Helper()
			err := <-s.ended
			s.ended <- err
			if !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("Run: %v, want %v that says %q", err, tt.want, tt.says)
			}
			if got := channels.KindOf(err) == channels.Unauthorized; got != errors.Is(tt.want, ErrToken) {
				t.Errorf("Run: kind %v", channels.KindOf(err))
			}
		}
		t.Run(fmt.Sprintf("%d content=%v at login", tt.code, tt.content), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := newScene(t, content)
				s.srv.OnIdentify(discordfake.Reaction{Close: tt.code})
				s.run()
				check(t, s)
				if n := s.srv.Gateway().Connections; n != 1 {
					t.Errorf("%d connections", n)
				}
			})
		})
		t.Run(fmt.Sprintf("%d content=%v while running", tt.code, tt.content), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := started(t, content)
				time.Sleep(time.Minute)
				s.srv.CloseGateway(tt.code)
				check(t, s)
			})
		})
	}
}

func TestGateway_FindsOutBeforeTheFirstLogin(t *testing.T) {
	tests := map[string]struct {
		change change
		want   error
	}{
		"wrong token":            {func(f *discordfake.Options, _ *Options) { f.Token = "another" }, ErrToken},
		"intent not switched on": {func(_ *discordfake.Options, o *Options) { o.MessageContent = true }, ErrIntent},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := newScene(t, tt.change)
				s.run()
				err := <-s.ended
				s.ended <- err
				if !errors.Is(err, tt.want) {
					t.Errorf("Run: %v, want %v", err, tt.want)
				}
				if n := s.srv.Gateway().Connections; n != 0 {
					t.Errorf("%d gateway connections", n)
				}
				if n := len(s.srv.Requests()); n != 1 {
					t.Errorf("%d requests, want to stop at the first refusal", n)
				}
			})
		})
	}
}

// TestGateway_Recovers breaks the connection in every way that does not need the operator. A message said
// meanwhile arrives once the connection is back: by a resume, or by the catch-up where Discord has not
// kept the session.
func TestGateway_Recovers(t *testing.T) {
	type reactions = []discordfake.Reaction
	refuse := func(r reactions) func(*scene) {
		return func(s *scene) {
			s.srv.OnResume(r...)
			s.srv.DropGateway()
		}
	}
	closeBy := func(code int) func(*scene) { return func(s *scene) { s.srv.CloseGateway(code) } }
	tests := map[string]struct {
		fail func(*scene)
		// identifies is how many logins the whole takes; within is how long it may.
		identifies int
		within     time.Duration
	}{
		"close 4000": {closeBy(4000), 1, 5 * time.Second},
		"close 4001": {closeBy(4001), 1, 5 * time.Second},
		"close 4002": {closeBy(4002), 1, 5 * time.Second},
		"close 4008": {closeBy(4008), 1, 5 * time.Second},
		"close 1011": {closeBy(1011), 1, 5 * time.Second},
		"close 1000": {closeBy(1000), 2, 15 * time.Second},
		"close 4003": {closeBy(4003), 2, 15 * time.Second},
		"close 4005": {closeBy(4005), 2, 15 * time.Second},
		"close 4007": {closeBy(4007), 2, 15 * time.Second},
		"close 4009": {closeBy(4009), 2, 15 * time.Second},

		"connection cut":             {func(s *scene) { s.srv.DropGateway() }, 1, 5 * time.Second},
		"asked to reconnect":         {func(s *scene) { s.srv.AskReconnect() }, 1, 5 * time.Second},
		"session invalid, resumable": {func(s *scene) { s.srv.Invalidate(true) }, 1, 10 * time.Second},
		"session invalid":            {func(s *scene) { s.srv.Invalidate(false) }, 2, 15 * time.Second},
		"session forgotten":          {func(s *scene) { s.srv.ForgetSessions(); s.srv.DropGateway() }, 2, 15 * time.Second},

		// discordgo v0.29.0 deadlocks for ever on this one.
		"asked to reconnect instead of resumed": {refuse(reactions{{Op: 7}}), 1, 10 * time.Second},
		"resume refused":                        {refuse(reactions{{Op: 9}}), 2, 20 * time.Second},
		"resume refused for now":                {refuse(reactions{{Op: 9, Resumable: true}}), 1, 15 * time.Second},
		"resume cut off":                        {refuse(reactions{{Drop: true}}), 1, 10 * time.Second},
		"resume not answered":                   {refuse(reactions{{Silent: true}}), 1, time.Minute},
		"resume fails again and again":          {refuse(reactions{{Drop: true}, {Close: 4000}, {Op: 7}}), 2, time.Minute},

		"no hello": {func(s *scene) { s.srv.WithholdHello(1); s.srv.DropGateway() }, 1, helloWait + 10*time.Second},
		"no acknowledgements": {func(s *scene) {
			s.srv.Mute(true)
			time.Sleep(2 * heartbeat)
			s.srv.Mute(false)
		}, 1, 10 * time.Second},
		"no acknowledgements, but events": {func(s *scene) {
			s.srv.Mute(true)
			for range 2 * heartbeat / time.Second {
				s.srv.Dispatch("TYPING_START", map[string]any{"channel_id": s.room})
				time.Sleep(time.Second)
			}
			s.srv.Mute(false)
		}, 1, 10 * time.Second},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := started(t)
				time.Sleep(time.Minute)
				s.hear(discordfake.Saying{From: s.ada.ID, Room: s.direct, Text: "before"})
				tt.fail(s)
				s.wait()
				s.say(discordfake.Saying{From: s.ada.ID, Room: s.direct, Text: "meanwhile"})
				began := time.Now()
				for s.a.Ready() != nil || s.srv.Gateway().Live == 0 {
					if time.Since(began) > 10*time.Minute {
						t.Fatalf("not back after %v: %v", time.Since(began), s.a.Ready())
					}
					time.Sleep(100 * time.Millisecond)
				}
				if took := time.Since(began); took > tt.within {
					t.Errorf("back after %v, want within %v", took, tt.within)
				}
				s.hear(discordfake.Saying{From: s.ada.ID, Room: s.direct, Text: "after"})
				want := []string{"before", "meanwhile", "after"}
				if diff := cmp.Diff(want, s.sink.texts()); diff != "" {
					t.Errorf("events (-want +got):\n%s", diff)
				}
				st := s.srv.Gateway()
				if st.Identifies != tt.identifies {
					t.Errorf("%d logins, want %d: %+v", st.Identifies, tt.identifies, st)
				}
				if slices.Contains(st.Closes, 1000) || slices.Contains(st.Closes, 1001) {
					t.Errorf("the adapter ended the session: close codes %v", st.Closes)
				}
			})
		})
	}
}

func TestGateway_RecoversAtTheFirstLogin(t *testing.T) {
	tests := map[string]struct {
		fail       func(*scene)
		identifies int
	}{
		"no hello":              {func(s *scene) { s.srv.WithholdHello(2) }, 1},
		"asked to reconnect":    {func(s *scene) { s.srv.OnIdentify(discordfake.Reaction{Op: 7}) }, 2},
		"invalid session":       {func(s *scene) { s.srv.OnIdentify(discordfake.Reaction{Op: 9}) }, 2},
		"invalid but resumable": {func(s *scene) { s.srv.OnIdentify(discordfake.Reaction{Op: 9, Resumable: true}) }, 2},
		"no answer":             {func(s *scene) { s.srv.OnIdentify(discordfake.Reaction{Silent: true}) }, 2},
		"cut":                   {func(s *scene) { s.srv.OnIdentify(discordfake.Reaction{Drop: true}) }, 2},
		"closed with 4000":      {func(s *scene) { s.srv.OnIdentify(discordfake.Reaction{Close: 4000}) }, 2},
		"gateway not named":     {func(s *scene) { s.srv.Inject(discordfake.Fault{Path: "/gateway/bot", Drop: true, Times: 3}) }, 1},
		"Discord behind a 502":  {func(s *scene) { f := discordfake.BadGateway(); f.Times = 3; s.srv.Inject(f) }, 1},
		"globally rate limited": {func(s *scene) { s.srv.Inject(discordfake.GlobalLimit(30 * time.Second)) }, 1},
		"address banned":        {func(s *scene) { s.srv.Inject(discordfake.CloudflareLimit(0)) }, 1},
		"application not found": {func(s *scene) {
			s.srv.Inject(discordfake.Fault{Path: "/applications/@me", Status: http.StatusNotFound, Body: "<html>"})
		}, 1},
		"no application at first": {func(s *scene) {
			s.srv.Inject(discordfake.Fault{Path: "/applications/@me", Status: http.StatusOK, Body: "{}"})
		}, 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := newScene(t)
				tt.fail(s)
				s.run()
				time.Sleep(3 * time.Minute)
				s.hear(discordfake.Saying{From: s.ada.ID, Room: s.direct, Text: "hello"})
				if st := s.srv.Gateway(); st.Identifies != tt.identifies {
					t.Errorf("%d logins, want %d", st.Identifies, tt.identifies)
				}
			})
		})
	}
}

// TestGateway_LogsInSparingly: a gateway that refuses every login must not use up the daily budget, at whose
// end Discord resets the token. discordgo alone sends some 15 000 logins a second here.
func TestGateway_LogsInSparingly(t *testing.T) {
	for name, r := range map[string]discordfake.Reaction{
		"Op 9": {Op: 9}, "Op 7": {Op: 7}, "closed": {Close: 4000}, "cut": {Drop: true}, "silent": {Silent: true},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := newScene(t)
				s.srv.OnIdentify(slices.Repeat([]discordfake.Reaction{r}, 5000)...)
				s.run()
				time.Sleep(24 * time.Hour)
				if n := s.srv.Gateway().Identifies; n < 100 || n > 600 {
					t.Errorf("%d logins in a day", n)
				}
			})
		})
	}
}

func TestGateway_LeavesTheLastLoginsUnused(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newScene(t, func(f *discordfake.Options, _ *Options) { f.Identifies = identifyReserve - 1 })
		s.run()
		time.Sleep(23 * time.Hour)
		if st := s.srv.Gateway(); st.Connections != 0 {
			t.Errorf("%d connections with %d logins left", st.Connections, st.IdentifiesLeft)
		}
		if err := s.a.Ready(); err == nil || !strings.Contains(err.Error(), "49 of 1000") {
			t.Errorf("Ready: %v, want to hear of the budget", err)
		}
		time.Sleep(2 * time.Hour)
		s.hear(discordfake.Saying{From: s.ada.ID, Room: s.direct, Text: "a new day"})
	})
}

// TestGateway_UnstableConnection: each connection breaks after a while, with the session lost.
func TestGateway_UnstableConnection(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := started(t)
		for range 100 {
			s.srv.CloseGateway(4009)
			time.Sleep(3 * time.Minute)
		}
		st := s.srv.Gateway()
		if st.Live != 1 || st.IdentifiesLeft < identifyReserve-1 {
			t.Errorf("after 100 lost sessions: %+v", st)
		}
	})
}

func TestGateway_AnswersAHeartbeatRequest(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := started(t)
		time.Sleep(time.Second)
		before := s.srv.Gateway().Heartbeats
		s.srv.AskHeartbeat()
		s.wait()
		if n := s.srv.Gateway().Heartbeats - before; n != 1 {
			t.Errorf("%d heartbeats after Op 1, want 1", n)
		}
		time.Sleep(5 * heartbeat)
		if st := s.srv.Gateway(); st.Connections != 1 {
			t.Errorf("%d connections: the extra heartbeat broke the count", st.Connections)
		}
	})
}

func TestGateway_UnreachableIsAskedSeldom(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := started(t)
		s.srv.Inject(discordfake.Fault{Path: "/gateway/bot", Status: http.StatusServiceUnavailable, Times: -1})
		before := len(s.srv.Requests())
		s.srv.Invalidate(false)
		time.Sleep(24 * time.Hour)
		if n := len(s.srv.Requests()) - before; n < 100 || n > 600 {
			t.Errorf("%d requests in a day of outage", n)
		}
		if s.a.Ready() == nil {
			t.Error("Ready although the gateway is away")
		}
	})
}

func TestGateway_CancelledWhileBusy(t *testing.T) {
	tests := map[string]func(*scene){
		"waiting for hello":     func(s *scene) { s.srv.WithholdHello(1) },
		"waiting for ready":     func(s *scene) { s.srv.OnIdentify(discordfake.Reaction{Silent: true}) },
		"waiting for the API":   func(s *scene) { s.srv.Inject(discordfake.Fault{Delay: time.Hour}) },
		"waiting to try again":  func(s *scene) { s.srv.Inject(discordfake.Fault{Drop: true, Times: -1}) },
		"waiting for the limit": func(s *scene) { s.srv.Inject(discordfake.GlobalLimit(time.Hour)) },
	}
	for name, prepare := range tests {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := newScene(t)
				prepare(s)
				s.run()
				time.Sleep(5 * time.Second)
				began := time.Now()
				if err := s.end(); err != nil {
					t.Errorf("Run: %v", err)
				}
				if took := time.Since(began); took > 2*time.Second {
					t.Errorf("Run took %v to end", took)
				}
			})
		})
	}
}
