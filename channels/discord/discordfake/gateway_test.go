package discordfake_test

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"

	"botd/channels/discord/discordfake"
)

const usual = discordfake.Guilds | discordfake.GuildMessages | discordfake.DirectMessages

func TestGateway_CloseCodes(t *testing.T) {
	tests := map[string]struct {
		do   func(c *client) *socket
		want int
	}{
		"unknown opcode": {func(c *client) *socket { s := c.greeted(); s.send(map[string]any{"op": 77}); return s }, 4001},
		"no JSON": {func(c *client) *socket {
			s := c.greeted()
			_ = s.ws.WriteMessage(websocket.TextMessage, []byte("hello"))
			return s
		}, 4002},
		"too long": {func(c *client) *socket {
			s := c.greeted()
			s.send(map[string]any{"op": 1, "d": strings.Repeat("x", 5000)})
			return s
		}, 4002},
		"not identified": {func(c *client) *socket { s := c.greeted(); s.send(map[string]any{"op": 3}); return s }, 4003},
		"wrong token":    {func(c *client) *socket { s := c.greeted(); s.identify("wrong", usual); return s }, 4004},
		"identify twice": {func(c *client) *socket {
			s, _ := c.identified(usual)
			s.identify(discordfake.DefaultToken, usual)
			return s
		}, 4005},
		"wrong sequence": {func(c *client) *socket { _, id := c.identified(usual); s := c.greeted(); s.resume(id, 999); return s }, 4007},
		"wrong token to resume": {func(c *client) *socket {
			s := c.greeted()
			s.send(map[string]any{"op": 6, "d": map[string]any{"token": "wrong", "session_id": "x", "seq": 1}})
			return s
		}, 4004},
		"too many events": {func(c *client) *socket {
			s := c.greeted()
			for range 121 {
				s.send(map[string]any{"op": 1, "d": nil})
			}
			return s
		}, 4008},
		"no heartbeat": {func(c *client) *socket { s, _ := c.identified(usual); return s }, 4009},
		"wrong shard": {func(c *client) *socket {
			s := c.greeted()
			s.send(map[string]any{"op": 2, "d": map[string]any{"token": discordfake.DefaultToken, "intents": 1, "properties": map[string]any{}, "shard": []int{1, 1}}})
			return s
		}, 4010},
		"old version":    {func(c *client) *socket { return c.dial("v=6&encoding=json") }, 4012},
		"other encoding": {func(c *client) *socket { return c.dial("v=10&encoding=etf") }, 4012},
		"no intents": {func(c *client) *socket {
			s := c.greeted()
			s.send(map[string]any{"op": 2, "d": map[string]any{"token": discordfake.DefaultToken, "properties": map[string]any{}}})
			return s
		}, 4013},
		"unknown intents": {func(c *client) *socket { s := c.greeted(); s.identify(discordfake.DefaultToken, 1<<30); return s }, 4013},
		"disallowed intents": {func(c *client) *socket {
			s := c.greeted()
			s.identify(discordfake.DefaultToken, usual|discordfake.MessageContent)
			return s
		}, 4014},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				c := newClient(t, discordfake.Options{})
				if got := tt.do(c).closed(); got != tt.want {
					t.Errorf("closed with %d, want %d", got, tt.want)
				}
			})
		})
	}
}

func TestGateway_Heartbeat(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newClient(t, discordfake.Options{Heartbeat: 10 * time.Second})
		s := c.greeted()
		for range 3 {
			s.send(map[string]any{"op": 1, "d": nil})
			if f := s.read(); f.Op != 11 {
				t.Errorf("got %+v, want an acknowledgement", f)
			}
			time.Sleep(10 * time.Second)
		}
		if n := c.Gateway().Heartbeats; n != 3 {
			t.Errorf("%d heartbeats counted", n)
		}
	})
}

func TestGateway_ReadyAndGuilds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newClient(t, discordfake.Options{})
		guild, role := c.Guild("Guild")
		room := c.Room(guild, "general")
		thread := c.Thread(room, "talk")
		hidden := c.Room(guild, "hidden")
		c.Deny(hidden, discordfake.View)
		left, _ := c.Guild("Left")
		c.Kick(left)
		s, _ := c.identified(usual)
		var g struct {
			ID       string
			Channels []struct{ ID string }
			Threads  []struct {
				ID       string
				ParentID string `json:"parent_id"`
			}
			Roles []struct {
				ID   string
				Tags struct {
					BotID string `json:"bot_id"`
				}
			}
		}
		if err := json.Unmarshal(s.read().Data, &g); err != nil {
			t.Fatal(err)
		}
		if g.ID != guild || len(g.Channels) != 1 || g.Channels[0].ID != room || len(g.Threads) != 1 || g.Threads[0].ID != thread || g.Threads[0].ParentID != room {
			t.Errorf("guild %+v", g)
		}
		if len(g.Roles) != 2 || g.Roles[1].ID != role || g.Roles[1].Tags.BotID != c.Bot().ID {
			t.Errorf("roles %+v", g.Roles)
		}
		c.Room(guild, "new")
		if f := s.read(); f.Type != "CHANNEL_CREATE" {
			t.Errorf("got %+v after one guild, want the new room", f)
		}
	})
}

func TestGateway_IdentifyLimits(t *testing.T) {
	t.Run("one in five seconds", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			c := newClient(t, discordfake.Options{})
			c.identified(usual)
			s := c.greeted()
			s.identify(discordfake.DefaultToken, usual)
			if f := s.read(); f.Op != 9 || string(f.Data) != "false" {
				t.Errorf("got %+v, want an invalid session", f)
			}
		})
	})
	t.Run("the last of the day resets the token", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			c := newClient(t, discordfake.Options{Identifies: 1})
			first, _ := c.identified(usual)
			time.Sleep(5 * time.Second)
			s := c.greeted()
			s.identify(discordfake.DefaultToken, usual)
			if a, b := s.closed(), first.closed(); a != 4004 || b != 4004 {
				t.Errorf("closed with %d and %d, want 4004", a, b)
			}
			if a := c.do("GET", "/gateway/bot", ""); a.status != 401 {
				t.Errorf("REST answers %d", a.status)
			}
		})
	})
}

func TestGateway_Resume(t *testing.T) {
	tests := map[string]struct {
		leave func(s *socket)
		pause time.Duration
		ok    bool
	}{
		"after a cut":            {func(s *socket) { _ = s.ws.Close() }, time.Minute, true},
		"after another code":     {func(s *socket) { s.goodbye(4900) }, time.Minute, true},
		"after going away":       {func(s *socket) { s.goodbye(1001) }, time.Second, false},
		"after a normal closure": {func(s *socket) { s.goodbye(1000) }, time.Second, false},
		"after too long":         {func(s *socket) { _ = s.ws.Close() }, 10 * time.Minute, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				c := newClient(t, discordfake.Options{})
				ada := c.Person("Ada")
				direct := c.DM(ada.ID)
				say := func(text string) {
					if _, err := c.Say(discordfake.Saying{From: ada.ID, Room: direct, Text: text}); err != nil {
						t.Fatal(err)
					}
				}
				s, id := c.identified(usual)
				say("one")
				seq := s.readType("MESSAGE_CREATE").Seq
				tt.leave(s)
				synctest.Wait()
				say("two")
				say("three")
				time.Sleep(tt.pause)
				s = c.greeted()
				s.resume(id, seq)
				if !tt.ok {
					if f := s.read(); f.Op != 9 || string(f.Data) != "false" {
						t.Errorf("got %+v, want an invalid session", f)
					}
					return
				}
				for _, want := range []string{"MESSAGE_CREATE", "MESSAGE_CREATE", "RESUMED"} {
					if f := s.read(); f.Type != want || f.Seq != seq+1 {
						t.Errorf("got %s %d, want %s %d", f.Type, f.Seq, want, seq+1)
					}
					seq++
				}
			})
		})
	}
}

func (s *socket) goodbye(code int) {
	_ = s.ws.WriteMessage(websocket.CloseMessage, websocket.FormatCloseMessage(code, ""))
	_ = s.ws.Close()
}

// TestGateway_Content: who may read what without MESSAGE_CONTENT.
func TestGateway_Content(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newClient(t, discordfake.Options{Privileged: discordfake.MessageContent})
		ada := c.Person("Ada")
		guild, _ := c.Guild("Guild")
		room, direct := c.Room(guild, "general"), c.DM(ada.ID)
		own := c.do("POST", "/channels/"+room+"/messages", `{"content":"mine"}`)
		tests := map[string]struct {
			say     discordfake.Saying
			limited bool // readable without the intent
		}{
			"in a room":                   {discordfake.Saying{Room: room, Text: "x"}, false},
			"in a direct chat":            {discordfake.Saying{Room: direct, Text: "x"}, true},
			"naming the bot":              {discordfake.Saying{Room: room, Text: "<@" + c.Bot().ID + "> x"}, true},
			"naming another":              {discordfake.Saying{Room: room, Text: "<@" + ada.ID + "> x"}, false},
			"answering the bot":           {discordfake.Saying{Room: room, Text: "x", ReplyTo: own.ID}, true},
			"answering the bot, silently": {discordfake.Saying{Room: room, Text: "x", ReplyTo: own.ID, Silent: true}, false},
		}
		limited, _ := c.identified(usual)
		full, _ := c.identified(usual | discordfake.MessageContent)
		for name, tt := range tests {
			tt.say.From = ada.ID
			tt.say.Attachments = []discordfake.Attachment{{ID: "1", Filename: "f"}}
			tt.say.Extra = map[string]any{"components": []any{map[string]any{"type": 20}}}
			if _, err := c.Say(tt.say); err != nil {
				t.Fatal(err)
			}
			for s, readable := range map[*socket]bool{limited: tt.limited, full: true} {
				var m struct {
					Content     string
					Attachments []any
					Components  []any
					Author      struct{ ID string }
				}
				if err := json.Unmarshal(s.readType("MESSAGE_CREATE").Data, &m); err != nil {
					t.Fatal(err)
				}
				if (m.Content != "") != readable || (len(m.Attachments) == 1) != readable || (len(m.Components) == 1) != readable || m.Author.ID != ada.ID {
					t.Errorf("%s: got %+v, want readable: %v", name, m, readable)
				}
			}
		}
	})
}

func TestGateway_Intents(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newClient(t, discordfake.Options{})
		ada := c.Person("Ada")
		guild, _ := c.Guild("Guild")
		room, direct := c.Room(guild, "general"), c.DM(ada.ID)
		s, _ := c.identified(discordfake.DirectMessages)
		for _, r := range []string{room, direct} {
			if _, err := c.Say(discordfake.Saying{From: ada.ID, Room: r, Text: "x"}); err != nil {
				t.Fatal(err)
			}
		}
		if f := s.read(); f.Type != "MESSAGE_CREATE" || !strings.Contains(string(f.Data), direct) {
			t.Errorf("got %s %s, want the direct message alone", f.Type, f.Data)
		}
		c.Edit(direct, c.Posts(direct)[0].ID, "y")
		c.Delete(direct, c.Posts(direct)[0].ID)
		for _, want := range []string{"MESSAGE_UPDATE", "MESSAGE_DELETE"} {
			if f := s.read(); f.Type != want {
				t.Errorf("got %s, want %s", f.Type, want)
			}
		}
	})
}

func TestGateway_Faults(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newClient(t, discordfake.Options{})
		ada := c.Person("Ada")
		direct := c.DM(ada.ID)
		say := func() {
			if _, err := c.Say(discordfake.Saying{From: ada.ID, Room: direct, Text: "x"}); err != nil {
				t.Fatal(err)
			}
		}
		s, _ := c.identified(usual)
		c.LoseDispatches(1)
		say()
		c.DuplicateDispatches(1)
		say()
		a, b := s.read(), s.read()
		if a.Seq != b.Seq || a.Seq != 3 {
			t.Errorf("got events %d and %d, want the third twice", a.Seq, b.Seq)
		}
		c.DelayDispatches(7 * time.Second)
		began := time.Now()
		say()
		s.read()
		if took := time.Since(began); took != 7*time.Second {
			t.Errorf("event after %v", took)
		}
		c.Mute(true)
		s.send(map[string]any{"op": 1, "d": nil})
		c.AskHeartbeat()
		if f := s.read(); f.Op != 1 {
			t.Errorf("got %+v, want a request for a heartbeat and no acknowledgement before it", f)
		}
		c.AskReconnect()
		if f := s.read(); f.Op != 7 {
			t.Errorf("got %+v", f)
		}
		c.Invalidate(true)
		if f := s.read(); f.Op != 9 || string(f.Data) != "true" {
			t.Errorf("got %+v", f)
		}
		c.CloseGateway(4000)
		if code := s.closed(); code != 4000 {
			t.Errorf("closed with %d", code)
		}
		c.WithholdHello(1)
		silent := c.dial("v=9&encoding=json")
		synctest.Wait()
		c.DropGateway()
		if code := silent.closed(); code != 1006 {
			t.Errorf("closed with %d, want no close frame, and no HELLO before it", code)
		}
	})
}
