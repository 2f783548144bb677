package line_test

import (
	"context"
	"log/slog"
	"net/http"
	"testing"

	"botd/channels"
	"botd/channels/channeltest"
	"botd/channels/line"
	"botd/channels/line/linefake"
)

func TestConformance(t *testing.T) {
	channeltest.Run(t, newRig)
}

func newRig(t *testing.T) *channeltest.Rig {
	hook, logs := &lateHandler{}, &lockedBuffer{}
	fake := linefake.New(linefake.Options{Transport: linefake.HandlerTransport(hook)})
	t.Cleanup(func() {
		if err := fake.Close(); err != nil {
			t.Error(err)
		}
	})
	bot := fake.AddBot(linefake.BotConfig{WebhookURL: "http://gateway.test/line"})
	alice := fake.AddUser(linefake.UserConfig{Name: "Alice"})
	bob := fake.AddUser(linefake.UserConfig{Name: "Bob"})
	adapter, err := line.New(line.Options{
		Channel: "line-shop", Secret: bot.Secret, Token: bot.Token, APIBase: fake.URL(), DataBase: fake.URL(),
		HTTPClient: &http.Client{Transport: fake.Transport()},
		Logger:     slog.New(slog.NewTextHandler(logs, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	if err != nil {
		t.Fatal(err)
	}
	direct, group := bot.Direct(alice), bot.Group(alice, bob)
	fail := func(name string, ep linefake.Endpoint, f linefake.Fault, want channels.ErrorKind) channeltest.Failure {
		return channeltest.Failure{
			Name: name, Kind: want, Reply: ep == linefake.Reply,
			Accepted: f.Handled || f.Lost == linefake.AfterHandling,
			Inject:   func(*testing.T) { fake.Inject(ep, f) },
		}
	}
	junk := func(name string, ev linefake.Event) channeltest.Junk {
		return channeltest.Junk{Name: name, Send: func(t *testing.T) {
			if res := bot.Deliver(t.Context(), ev); !res.OK() {
				t.Errorf("%s: %+v", name, res)
			}
		}}
	}
	standby := direct.Message(alice, linefake.Text{Text: "for another channel"})
	standby.Body["mode"] = "standby"
	return &channeltest.Rig{
		Adapter: adapter,
		Attach:  func(h http.Handler) { hook.Handler = h },
		Direct: place(direct, alice, channels.Direct, func(ev linefake.Event) []linefake.Bubble {
			return direct.Replies(ev.ID)
		}),
		Group: place(group, bob, channels.Group, func(ev linefake.Event) (out []linefake.Bubble) {
			for _, b := range group.Answers() {
				if b.Quotes == ev.MessageID {
					out = append(out, b)
				}
			}
			return out
		}),
		Failures: []channeltest.Failure{
			fail("push refused with 500", linefake.Push, linefake.Fault{Status: 500}, channels.Transient),
			fail("push accepted with 500", linefake.Push, linefake.Fault{Status: 500, Handled: true}, channels.Transient),
			fail("push lost", linefake.Push, linefake.Fault{Lost: linefake.BeforeHandling}, channels.Transient),
			fail("answer to push lost", linefake.Push, linefake.Fault{Lost: linefake.AfterHandling}, channels.Transient),
			fail("push limited", linefake.Push, linefake.Fault{Status: 429}, channels.RateLimited),
			fail("quota used up", linefake.Push, linefake.Fault{Status: 429, Message: linefake.MonthlyLimit}, channels.QuotaExhausted),
			fail("token refused", linefake.Push, linefake.Fault{Status: 401}, channels.Unauthorized),
			fail("push forbidden", linefake.Push, linefake.Fault{Status: 403}, channels.Permanent),
			fail("removed from the group", linefake.Push, linefake.Fault{Status: 400, Message: linefake.FailedToSend}, channels.Gone),
			fail("reply limited", linefake.Reply, linefake.Fault{Status: 429}, channels.RateLimited),
			fail("reply forbidden", linefake.Reply, linefake.Fault{Status: 403}, channels.Permanent),
			fail("reply accepted with 500", linefake.Reply, linefake.Fault{Status: 500, Handled: true}, channels.Ambiguous),
			fail("answer to reply lost", linefake.Reply, linefake.Fault{Lost: linefake.AfterHandling}, channels.Ambiguous),
		},
		Junk: []channeltest.Junk{
			junk("an event not known yet", direct.Event(alice, "telepathy", true, map[string]any{"thought": "?"})),
			junk("an odd event", linefake.RawEvent(`{"type":"message","source":null}`)),
			junk("an event for a channel in standby", standby),
			junk("a message changed", group.Edit(bob, "1", "b")),
		},
		Secrets: []string{bot.Secret, bot.Token},
		Logs:    logs.String,
	}
}

// place is a chat with one person who speaks.
func place(c *linefake.Chat, u *linefake.User, kind channels.RoomKind, answers func(linefake.Event) []linefake.Bubble) channeltest.Place {
	return channeltest.Place{
		Address: channels.Address{Channel: "line-shop", Kind: kind, Room: c.ID, User: u.ID},
		Name:    u.Name,
		Say: func(ctx context.Context, text string, how channeltest.Manner) (channeltest.Said, error) {
			content := linefake.Text{Text: text, Quotes: how.ReplyTo}
			if how.Mention {
				content.Text, content.Mentions = "@Shop "+text, []linefake.Mention{{At: "@Shop", Self: true}}
			}
			ev, res := c.Post(ctx, u, content)
			return channeltest.Said{Refused: !res.OK(), Ref: ev}, nil
		},
		Redeliver: func(ctx context.Context, said channeltest.Said) error {
			return c.Bot.Redeliver(ctx, said.Ref.(linefake.Event)).Err
		},
		Shown:   func() []string { return texts(c.Answers()) },
		Answers: func(said channeltest.Said) []string { return texts(answers(said.Ref.(linefake.Event))) },
		Typing:  func() bool { return !c.Loading().IsZero() },
	}
}
