package line_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"botd/channels"
	"botd/channels/line"
	"botd/channels/line/linefake"
)

func TestNewRefusesBadOptions(t *testing.T) {
	t.Parallel()
	good := line.Options{Channel: "line-shop", Secret: "s", Token: "t"}
	if _, err := line.New(good); err != nil {
		t.Fatalf("good options: %v", err)
	}
	for _, tt := range []struct {
		name string
		edit func(*line.Options)
		want string
	}{
		{"no channel name", func(o *line.Options) { o.Channel = "" }, "set Channel"},
		{"an empty secret, with which anybody could sign", func(o *line.Options) { o.Secret = "" }, "no channel secret"},
		{"no token", func(o *line.Options) { o.Token = "" }, "no channel access token"},
		{"token and source", func(o *line.Options) {
			o.Tokens, _ = line.NewStatelessTokens(line.StatelessOptions{ChannelID: "1", Secret: "s"})
		}, "set one of them"},
		{"a destination that is none", func(o *line.Options) { o.Destination = "U123" }, "destination"},
		{"an API base without scheme", func(o *line.Options) { o.APIBase = "api.line.me" }, "API base"},
		{"a base to which the token would go in the clear", func(o *line.Options) { o.APIBase = "http://api.line.me" }, "must be https"},
		{"a base with a password", func(o *line.Options) { o.DataBase = "https://a:b@api.line.me" }, "data base"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o := good
			tt.edit(&o)
			if _, err := line.New(o); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want an error about %q", err, tt.want)
			}
		})
	}
	for _, base := range []string{"http://127.0.0.1:8080", "http://[::1]:1", "http://localhost:1", "https://line.example.com/proxy"} {
		o := good
		o.APIBase, o.DataBase = base, base
		if _, err := line.New(o); err != nil {
			t.Errorf("base %s: %v", base, err)
		}
	}
}

func TestInfoNamesTheChannel(t *testing.T) {
	t.Parallel()
	want := channels.Info{Channel: "line-shop", Platform: "line", TypingEvery: 50 * time.Second}
	if got := newWorld(t).a.Info(); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// run starts Run and returns how to end it and get its error.
func run(t *testing.T, a *line.Adapter, s channels.Sink) (end func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx, s) }()
	return func() error { cancel(); return <-done }
}

func TestRunWaitsForItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		end := run(t, w.a, w.sink)
		time.Sleep(time.Hour)
		if n := len(w.fake.Calls(linefake.BotInfo)); n != 1 {
			t.Errorf("%d calls for the bot info, want 1", n)
		}
		if err := end(); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}

func TestRunGoesOnWhileLINEIsAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.fake.SetPlan(func(linefake.Call) linefake.Fault { return linefake.Fault{Status: 503} })
		end := run(t, w.a, w.sink)
		time.Sleep(time.Minute)
		w.fake.SetPlan(nil)
		w.say("the webhook works meanwhile")
		time.Sleep(10 * time.Minute)
		calls := w.fake.Calls(linefake.BotInfo)
		if len(calls) < 3 || len(calls) > 6 || calls[len(calls)-1].Status != 200 {
			t.Errorf("calls for the bot info: %+v; want some that failed, ever more rarely, and a last that worked", calls)
		}
		if err := end(); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}

func TestRunEndsWithoutTheBotInfo(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]linefake.Fault{"during the call": {Delay: time.Hour}, "between calls": {Status: 500}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.fake.Inject(linefake.BotInfo, f)
				end := run(t, w.a, w.sink)
				time.Sleep(time.Second)
				if err := end(); err != nil {
					t.Errorf("Run: %v", err)
				}
			})
		})
	}
}

func TestRunFailsWhenOnlyTheOperatorCanHelp(t *testing.T) {
	t.Parallel()
	t.Run("revoked token", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.bot.RevokeTokens()
		err := w.a.Run(t.Context(), w.sink)
		expectKind(t, err, channels.Unauthorized)
	})
	t.Run("token and secret of different bots", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		other := w.fake.AddBot(linefake.BotConfig{})
		w.say("the webhook tells whose secret it is")
		mixed := w.adapter(func(o *line.Options) { o.Token, o.Destination = other.Token, w.bot.ID })
		err := mixed.Run(t.Context(), w.sink)
		expectKind(t, err, channels.Unauthorized)
		if err == nil || !strings.Contains(err.Error(), "different bots") {
			t.Errorf("got %v, want it to say that the bots differ", err)
		}
	})
}

// TestCallsHaveATimeout: also with a client that has none.
func TestCallsHaveATimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.fake.Inject(linefake.Push, linefake.Fault{Delay: time.Hour})
		start := time.Now()
		_, err := w.a.Send(t.Context(), channels.Outbound{
			ID: "t/0", To: channels.Address{Room: w.alice.ID, Kind: channels.Direct},
			Parts: []channels.Part{{Type: channels.Text, Text: "hi"}},
		})
		expectKind(t, err, channels.Transient)
		if took := time.Since(start); took != 10*time.Second {
			t.Errorf("took %v, want 10s", took)
		}
	})
}

// TestRedirectsAreNotFollowed: neither the token nor the message goes to another host.
func TestRedirectsAreNotFollowed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fake.Inject(linefake.Push, linefake.Fault{Status: http.StatusTemporaryRedirect, Header: http.Header{"Location": {"https://elsewhere.test/"}}})
	_, err := w.a.Send(t.Context(), channels.Outbound{
		ID: "t/0", To: channels.Address{Room: w.alice.ID, Kind: channels.Direct},
		Parts: []channels.Part{{Type: channels.Text, Text: "hi"}},
	})
	expectKind(t, err, channels.Transient)
	if n := len(w.fake.Calls()); n != 1 {
		t.Errorf("%d calls, want 1", n)
	}
}
