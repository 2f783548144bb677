package line_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"botd/channels"
	"botd/channels/line"
	"botd/channels/line/linefake"
)

// stateless returns a world whose adapter issues its own tokens.
func stateless(t *testing.T) (*world, *line.StatelessTokens) {
	t.Helper()
	w := newWorld(t)
	tokens, err := line.NewStatelessTokens(line.StatelessOptions{
		ChannelID: w.bot.ChannelID, Secret: w.bot.Secret, APIBase: w.fake.URL(), HTTPClient: clientOf(w),
	})
	if err != nil {
		t.Fatal(err)
	}
	w.a = w.adapter(func(o *line.Options) { o.Token, o.Tokens = "", tokens })
	return w, tokens
}

func push(w *world, id string) channels.Outbound {
	return channels.Outbound{ID: id, To: channels.Address{Kind: channels.Direct, Room: w.alice.ID}, Parts: []channels.Part{text("hi")}}
}

func TestStatelessTokenIsKeptUntilAMinuteBeforeItsEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, tokens := stateless(t)
		get := func() string {
			t.Helper()
			token, err := tokens.Token(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return token
		}
		first := get()
		time.Sleep(13*time.Minute + 59*time.Second)
		if get() != first {
			t.Error("replaced too early")
		}
		time.Sleep(time.Second)
		if get() == first {
			t.Error("not replaced a minute before its end")
		}
		if n := len(w.fake.Calls(linefake.IssueToken)); n != 2 {
			t.Errorf("%d tokens issued, want 2", n)
		}
	})
}

func TestOneRequestServesAllWhoWaitForAToken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, tokens := stateless(t)
		w.fake.Inject(linefake.IssueToken, linefake.Fault{Delay: time.Second})
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				if _, err := tokens.Token(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			defer cancel()
			_, err := tokens.Token(ctx)
			expectKind(t, err, channels.Transient)
		})
		wg.Wait()
		// One more when the impatient one was first and gave up.
		if n := len(w.fake.Calls(linefake.IssueToken)); n > 2 {
			t.Errorf("%d tokens issued, want 1", n)
		}
	})
}

func TestTokenFailures(t *testing.T) {
	t.Parallel()
	t.Run("wrong secret", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		tokens, err := line.NewStatelessTokens(line.StatelessOptions{
			ChannelID: w.bot.ChannelID, Secret: "wrong", APIBase: w.fake.URL(), HTTPClient: clientOf(w),
		})
		if err != nil {
			t.Fatal(err)
		}
		_, err = tokens.Token(t.Context())
		expectKind(t, err, channels.Unauthorized)
		a := w.adapter(func(o *line.Options) { o.Token, o.Tokens = "", tokens })
		_, err = a.Send(t.Context(), push(w, "turn/0"))
		expectKind(t, err, channels.Unauthorized)
		expectKind(t, a.Run(t.Context(), w.sink), channels.Unauthorized)
	})
	for name, f := range map[string]linefake.Fault{
		"LINE is away": {Status: 503}, "connection lost": {Lost: linefake.BeforeHandling}, "answer lost": {Lost: linefake.AfterHandling},
		"no token in the answer": {Status: 200, Message: "?"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w, tokens := stateless(t)
				m := w.one(w.say("hello"), "answer")
				w.fake.Inject(linefake.IssueToken, f)
				// Nothing was sent, so the reply can be tried again.
				_, err := w.a.Send(t.Context(), m)
				expectKind(t, err, channels.Transient)
				if _, err := w.a.Send(t.Context(), m); err != nil {
					t.Fatal(err)
				}
				// A token that cannot be replaced yet is used to its end.
				time.Sleep(14*time.Minute + 30*time.Second)
				w.fake.Inject(linefake.IssueToken, f, f)
				if _, err := tokens.Token(t.Context()); err != nil {
					t.Errorf("before its end: %v", err)
				}
				time.Sleep(time.Minute)
				_, err = tokens.Token(t.Context())
				expectKind(t, err, channels.Transient)
			})
		})
	}
	t.Run("options", func(t *testing.T) {
		t.Parallel()
		for want, o := range map[string]line.StatelessOptions{
			"channel ID":     {Secret: "s"},
			"channel secret": {ChannelID: "1"},
			"https":          {ChannelID: "1", Secret: "s", APIBase: "http://api.line.me"},
		} {
			if _, err := line.NewStatelessTokens(o); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want an error about %q", err, want)
			}
		}
	})
}

// TestRefusedTokenIsReplacedOnce: a call answered 401 has done nothing, so it is made again with a new
// token, but not with the same.
func TestRefusedTokenIsReplacedOnce(t *testing.T) {
	t.Parallel()
	w, _ := stateless(t)
	if _, err := w.a.Send(t.Context(), push(w, "turn/0")); err != nil {
		t.Fatal(err)
	}
	w.bot.RevokeTokens()
	if _, err := w.a.Send(t.Context(), w.one(w.say("hello"), "answer")); err != nil {
		t.Errorf("after the token was revoked: %v", err)
	}
	if got := w.chat.Answers(); len(got) != 2 || got[1].Via != linefake.Replied {
		t.Errorf("bubbles %+v", got)
	}
	w.fake.Inject(linefake.Push, linefake.Fault{Status: 401}, linefake.Fault{Status: 401})
	_, err := w.a.Send(t.Context(), push(w, "turn/1"))
	expectKind(t, err, channels.Unauthorized)
	if n := len(w.fake.Calls(linefake.Push)); n != 3 {
		t.Errorf("%d pushes tried, want 3: one that went well, two that were refused", n)
	}
}
