package discord_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"sync"
	"testing"
	"time"

	"botd/channels"
	"botd/channels/channeltest"
	"botd/channels/discord"
	"botd/channels/discord/discordfake"
)

// TestConformance runs the suite of all adapters over real sockets. Rate limits are tested in fake time
// elsewhere: here they would only be waited for.
func TestConformance(t *testing.T) {
	channeltest.Run(t, newRig)
}

func newRig(t *testing.T) *channeltest.Rig {
	const token = "secret.token-of.the-bot"
	srv, err := discordfake.New(discordfake.Options{Token: token, NoLimits: true, Privileged: discordfake.MessageContent})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
	})
	log := &buffer{}
	a, err := discord.New(discord.Options{
		Channel: "discord", Token: token, APIBase: srv.URL(), MessageContent: true,
		Logger: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	if err != nil {
		t.Fatal(err)
	}
	ada := srv.Person("Ada")
	guild, _ := srv.Guild("Guild")
	thread := srv.Thread(srv.Room(guild, "general"), "talk")
	room := srv.Room(guild, "random")
	direct := srv.DM(ada.ID)

	failure := func(name string, kind channels.ErrorKind, f discordfake.Fault) channeltest.Failure {
		f.Path = "/channels/" + direct + "/messages"
		f.Method = http.MethodPost
		return channeltest.Failure{Name: name, Kind: kind, Inject: func(*testing.T) { srv.Inject(f) }}
	}
	lost := failure("answer lost", channels.Transient, discordfake.Fault{Accept: true, Drop: true})
	lost.Accepted = true
	replaced := failure("accepted, then a bad gateway", channels.Transient, func() discordfake.Fault {
		f := discordfake.BadGateway()
		f.Accept = true
		return f
	}())
	replaced.Accepted = true
	lasting := func(name string, kind channels.ErrorKind, inject func()) channeltest.Failure {
		return channeltest.Failure{Name: name, Kind: kind, Lasting: true, Inject: func(*testing.T) { inject() }}
	}
	refused := func(status int, body string) discordfake.Fault {
		return discordfake.Fault{Status: status, Header: http.Header{"Content-Type": {"application/json"}}, Body: body, Times: -1}
	}
	say := func(how discordfake.Saying) func(*testing.T) {
		return func(t *testing.T) {
			if _, err := srv.Say(how); err != nil {
				t.Fatal(err)
			}
		}
	}
	alone := place(srv, ada, direct, channels.Address{Channel: "discord", Kind: channels.Direct, Room: direct, User: ada.ID})
	alone.Answers = nil // in a direct chat the dispatcher asks for no reference
	return &channeltest.Rig{
		Adapter: a,
		Ready: func(ctx context.Context) error {
			for a.Ready() != nil {
				select {
				case <-ctx.Done():
					return a.Ready()
				case <-time.After(2 * time.Millisecond):
				}
			}
			return nil
		},
		Direct: alone,
		Group:  place(srv, ada, room, channels.Address{Channel: "discord", Kind: channels.Room, Room: room, User: ada.ID}),
		Failures: []channeltest.Failure{
			lost,
			replaced,
			failure("connection cut", channels.Transient, discordfake.Fault{Drop: true}),
			failure("bad gateway", channels.Transient, discordfake.BadGateway()),
			failure("server error", channels.Transient, discordfake.Fault{Status: 500, Body: `{"message":"500: Internal Server Error","code":0}`}),
			failure("rate limit of the route", channels.RateLimited, discordfake.Fault{Status: 429, Body: `{"message":"You are being rate limited.","retry_after":0.3,"global":false}`}),
			failure("global rate limit", channels.RateLimited, discordfake.GlobalLimit(time.Second)),
			failure("ban by the proxy", channels.RateLimited, discordfake.CloudflareLimit(time.Second)),
			failure("bad form", channels.Permanent, discordfake.Fault{Status: 400, Body: `{"message":"Invalid Form Body","code":50035,"errors":{"content":{"_errors":[{"code":"X","message":"zebra-crossing"}]}}}`}),
			lasting("person refuses messages", channels.Gone, func() { srv.Shut(ada.ID) }),
			lasting("room deleted", channels.Gone, func() { srv.DeleteRoom(direct) }),
			lasting("no access", channels.Gone, func() { srv.Deny(direct, discordfake.View) }),
			lasting("may not send", channels.Permanent, func() { srv.Deny(direct, discordfake.Send) }),
			lasting("token revoked", channels.Unauthorized, func() { srv.Inject(refused(401, `{"message":"401: Unauthorized","code":0}`)) }),
		},
		Junk: []channeltest.Junk{
			{Name: "another bot", Send: say(discordfake.Saying{From: srv.OtherBot("Robot").ID, Room: direct, Text: "beep"})},
			{Name: "a webhook", Send: say(discordfake.Saying{From: ada.ID, Room: direct, Webhook: true, Text: "posted"})},
			{Name: "the bot itself", Send: say(discordfake.Saying{From: srv.Bot().ID, Room: direct, Text: "echo"})},
			{Name: "a system message", Send: say(discordfake.Saying{From: ada.ID, Room: room, Type: discordfake.TypeJoin})},
			{Name: "a thread's first message", Send: say(discordfake.Saying{From: ada.ID, Room: thread, Type: discordfake.TypeThreadStarter})},
			{Name: "a message without an author", Send: func(*testing.T) {
				srv.Dispatch("MESSAGE_CREATE", map[string]any{"id": "1", "channel_id": direct, "content": "x"})
			}},
			{Name: "a message that is a list", Send: func(*testing.T) { srv.Dispatch("MESSAGE_CREATE", []int{1}) }},
			{Name: "an interaction without a token", Send: func(*testing.T) { srv.Dispatch("INTERACTION_CREATE", map[string]any{"id": "1", "type": 2}) }},
			{Name: "an event of a new kind", Send: func(*testing.T) { srv.Dispatch("SOMETHING_NEW", map[string]any{"content": "x"}) }},
		},
		Secrets: []string{token},
		Logs:    log.String,
	}
}

func place(srv *discordfake.Server, who discordfake.User, room string, a channels.Address) channeltest.Place {
	return channeltest.Place{
		Address: a,
		Name:    *who.GlobalName,
		Say: func(_ context.Context, text string, how channeltest.Manner) (channeltest.Said, error) {
			if how.Mention {
				text = "<@" + srv.Bot().ID + "> " + text
			}
			m, err := srv.Say(discordfake.Saying{From: who.ID, Room: room, Text: text, ReplyTo: how.ReplyTo})
			return channeltest.Said{Ref: m}, err
		},
		Redeliver: func(_ context.Context, said channeltest.Said) error {
			srv.Redeliver(room, said.Ref.(discordfake.Message).ID)
			return nil
		},
		Shown: func() []string {
			var texts []string
			for _, p := range srv.BotPosts(room) {
				texts = append(texts, p.Content)
			}
			return texts
		},
		Answers: func(said channeltest.Said) []string {
			var texts []string
			for _, p := range srv.BotPosts(room) {
				if ref := p.MessageReference; ref != nil && ref.MessageID == said.Ref.(discordfake.Message).ID {
					texts = append(texts, p.Content)
				}
			}
			return texts
		},
		Typing: func() bool { return !srv.LastTyping(room).IsZero() },
	}
}

// buffer is a log that several goroutines write.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
