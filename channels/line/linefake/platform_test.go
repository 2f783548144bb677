package linefake_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"botd/channels/line/linefake"
)

func TestProfilesAreForFriendsAndMembers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, linefake.Options{}, linefake.BotConfig{Name: "Shop"})
	alice := w.AddUser(linefake.UserConfig{Name: "Alice", Language: "ja", StatusMessage: "hi"})
	bob := w.AddUser(linefake.UserConfig{Name: "Bob"})
	group, room := w.bot.Group(alice), w.bot.Room(bob)
	chat := w.bot.Direct(alice)
	for path, want := range map[string]string{
		"/v2/bot/profile/" + alice.ID:                       `{"displayName":"Alice","userId":"` + alice.ID + `","statusMessage":"hi","language":"ja"}`,
		"/v2/bot/profile/" + bob.ID:                         `{"message":"Not found"}`,
		"/v2/bot/group/" + group.ID + "/member/" + alice.ID: `{"displayName":"Alice","userId":"` + alice.ID + `"}`,
		"/v2/bot/group/" + group.ID + "/member/" + bob.ID:   `{"message":"Not found"}`,
		"/v2/bot/room/" + room.ID + "/member/" + bob.ID:     `{"displayName":"Bob","userId":"` + bob.ID + `"}`,
		"/v2/bot/info":          `{"basicId":"@` + w.bot.ID[1:9] + `","chatMode":"bot","displayName":"Shop","markAsReadMode":"auto","userId":"` + w.bot.ID + `"}`,
		"/v2/bot/message/quota": `{"type":"none"}`,
		"/v2/bot/group/" + room.ID + "/member/" + bob.ID: `{"message":"The value for a parameter is invalid"}`,
	} {
		if got := w.call("GET", path, ""); string(got.body) != want {
			t.Errorf("%s:\n got %s\nwant %s", path, got.body, want)
		}
	}
	chat.Unfollow()
	w.expect(w.call("GET", "/v2/bot/profile/"+alice.ID, ""), 404, linefake.NotFound)
	chat.Follow()
	w.expect(w.call("GET", "/v2/bot/profile/"+alice.ID, ""), 200, "")
}

func TestContentIsPreparedServedAndGone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, linefake.Options{}, linefake.BotConfig{})
	alice := w.AddUser(linefake.UserConfig{})
	chat := w.bot.Direct(alice)
	path := func(m linefake.Media, rest string) string {
		return "/v2/bot/message/" + chat.Message(alice, m).MessageID + "/content" + rest
	}
	image := path(linefake.Media{Type: "image", Data: []byte("jpeg"), MIME: "image/jpeg", Preview: []byte("small")}, "")
	got := w.call("GET", image, "")
	if got.status != 200 || string(got.body) != "jpeg" || got.header.Get("Content-Type") != "image/jpeg" {
		t.Errorf("image: %+v", got)
	}
	if got := w.call("GET", image+"/preview", ""); string(got.body) != "small" {
		t.Errorf("preview: %+v", got)
	}
	w.expect(w.call("GET", image+"/transcoding", ""), 400, "")

	video := path(linefake.Media{Type: "video", Data: []byte("mp4"), Preparing: 2}, "")
	w.expect(w.call("GET", video, ""), 202, "")
	if got := w.call("GET", video+"/transcoding", ""); string(got.body) != `{"status":"processing"}` {
		t.Errorf("transcoding: %s", got.body)
	}
	if got := w.call("GET", video+"/transcoding", ""); string(got.body) != `{"status":"succeeded"}` {
		t.Errorf("transcoding: %s", got.body)
	}
	if got := w.call("GET", video, ""); got.status != 200 || string(got.body) != "mp4" {
		t.Errorf("video: %+v", got)
	}
	failed := path(linefake.Media{Type: "audio", Failed: true}, "")
	if got := w.call("GET", failed+"/transcoding", ""); string(got.body) != `{"status":"failed"}` {
		t.Errorf("failed transcoding: %s", got.body)
	}
	w.expect(w.call("GET", path(linefake.Media{Type: "image", Gone: true}, ""), ""), 410, "")
	w.expect(w.call("GET", "/v2/bot/message/1/content", ""), 404, "")
	other := w.AddBot(linefake.BotConfig{})
	w.expect(w.call("GET", image, "", header("Authorization", "Bearer "+other.Token)), 404, "")
}

func TestIssuedTokensExpire(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, linefake.Options{}, linefake.BotConfig{})
		form := url.Values{"grant_type": {"client_credentials"}, "client_id": {w.bot.ChannelID}, "client_secret": {w.bot.Secret}}
		issue := func(path string, form url.Values) (string, response) {
			got := w.call("POST", path, form.Encode(), header("Content-Type", "application/x-www-form-urlencoded"), header("Authorization", ""))
			var body struct {
				Token string `json:"access_token"`
			}
			_ = json.Unmarshal(got.body, &body)
			return body.Token, got
		}
		info := func(token string) int {
			return w.call("GET", "/v2/bot/info", "", header("Authorization", "Bearer "+token)).status
		}
		stateless, _ := issue("/oauth2/v3/token", form)
		short, _ := issue("/v2/oauth/accessToken", form)
		if a, b := info(stateless), info(short); a != 200 || b != 200 {
			t.Fatalf("new tokens: %d, %d", a, b)
		}
		time.Sleep(901 * time.Second)
		if a, b := info(stateless), info(short); a != 401 || b != 200 {
			t.Errorf("after 15 minutes: %d, %d; want 401, 200", a, b)
		}
		time.Sleep(time.Second)
		for range 30 {
			issue("/v2/oauth/accessToken", form)
		}
		if got := info(short); got != 401 {
			t.Errorf("the 31st short-lived token left the first valid: %d", got)
		}
		for name, bad := range map[string]url.Values{
			"wrong secret": {"grant_type": {"client_credentials"}, "client_id": {w.bot.ChannelID}, "client_secret": {"x"}},
			"no grant":     {"client_id": {w.bot.ChannelID}, "client_secret": {w.bot.Secret}},
		} {
			if _, got := issue("/oauth2/v3/token", bad); got.status != 400 {
				t.Errorf("%s: %d, want 400", name, got.status)
			}
		}
		w.bot.RevokeTokens()
		if got := info(w.bot.Token); got != 401 {
			t.Errorf("revoked token: %d, want 401", got)
		}
	})
}

func TestFaultsHappenInOrderAndThenStop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, linefake.Options{}, linefake.BotConfig{})
		alice := w.AddUser(linefake.UserConfig{})
		chat := w.bot.Direct(alice)
		w.Inject(linefake.Push,
			linefake.Fault{Status: 500},
			linefake.Fault{Status: 429, Message: linefake.MonthlyLimit, Header: http.Header{"Retry-After": {"7"}}},
			linefake.Fault{Lost: linefake.BeforeHandling},
			linefake.Fault{Lost: linefake.AfterHandling},
			linefake.Fault{Status: 500, Handled: true},
			linefake.Fault{Delay: time.Minute},
		)
		steps := []struct {
			status  int
			message string
			shown   int
		}{
			{500, linefake.InternalError, 0},
			{429, linefake.MonthlyLimit, 0},
			{0, "", 0},
			{0, "", 1},
			{500, linefake.InternalError, 2},
			{200, "", 3},
			{200, "", 4},
		}
		for i, st := range steps {
			got := w.push(alice.ID, "x")
			if got.status != st.status || got.message() != st.message || len(chat.Answers()) != st.shown {
				t.Errorf("step %d: got %d %q and %d bubbles, want %+v", i, got.status, got.message(), len(chat.Answers()), st)
			}
		}
		if n := len(w.Calls(linefake.Push)); n != len(steps) {
			t.Errorf("%d calls recorded, want %d", n, len(steps))
		}
	})
}

// TestCallerWhoLeavesDuringADelayHasSentNothing, and one who leaves while the answer is held has.
func TestCallerWhoLeavesDuringADelayHasSentNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, linefake.Options{}, linefake.BotConfig{})
		alice := w.AddUser(linefake.UserConfig{})
		chat := w.bot.Direct(alice)
		w.Inject(linefake.Push, linefake.Fault{Delay: time.Minute}, linefake.Fault{Hold: time.Minute})
		for _, want := range []int{0, 1} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			got := w.push(alice.ID, "x", func(r *http.Request) { *r = *r.WithContext(ctx) })
			cancel()
			synctest.Wait()
			if !errors.Is(got.err, context.DeadlineExceeded) || len(chat.Answers()) != want {
				t.Errorf("got %v and %d bubbles, want a timeout and %d", got.err, len(chat.Answers()), want)
			}
		}
	})
}

func TestRandomPlanIsRepeatable(t *testing.T) {
	t.Parallel()
	odds := linefake.Odds{Refused: 0.2, Accepted: 0.2, Limited: 0.2, Dropped: 0.2, AnswerLost: 0.1, Slow: 0.5, MaxDelay: time.Second}
	a, b := linefake.RandomPlan(7, odds, linefake.Push), linefake.RandomPlan(7, odds, linefake.Push)
	kinds := map[string]bool{}
	for range 200 {
		f, g := a(linefake.Call{Endpoint: linefake.Push}), b(linefake.Call{Endpoint: linefake.Push})
		if diff := cmp.Diff(f, g); diff != "" {
			t.Fatal(diff)
		}
		kinds[http.StatusText(f.Status)+string(rune('0'+f.Lost))] = true
		if f := a(linefake.Call{Endpoint: linefake.Reply}); f.Status != 0 || f.Lost != 0 || f.Delay != 0 {
			t.Fatalf("a fault at an endpoint that was not named: %+v", f)
		}
	}
	if len(kinds) != 5 {
		t.Errorf("kinds of faults: %v", kinds)
	}
}

func TestSubscribersSeeChatsLive(t *testing.T) {
	t.Parallel()
	w := newWorld(t, linefake.Options{}, linefake.BotConfig{})
	alice := w.AddUser(linefake.UserConfig{})
	chat := w.bot.Direct(alice)
	updates, cancel := w.Subscribe(16)
	lazy, _ := w.Subscribe(0)
	ev, _ := chat.Say(t.Context(), alice, "hello")
	w.call("POST", "/v2/bot/chat/loading/start", `{"chatId":"`+alice.ID+`"}`)
	loading := chat.Loading()
	w.reply(ev.ReplyToken)
	w.call("POST", "/v2/bot/chat/markAsRead", `{"markAsReadToken":"`+ev.Body["message"].(map[string]any)["markAsReadToken"].(string)+`"}`)
	chat.Unsend(alice, ev.MessageID)
	cancel()
	cancel()
	var got []string
	for u := range updates {
		switch {
		case u.Bubble != nil && u.Bubble.Unsent:
			got = append(got, "unsent")
		case u.Bubble != nil:
			got = append(got, string(u.Bubble.Via)+" "+u.Bubble.Text)
		case u.Read == ev.MessageID:
			got = append(got, "read")
		case u.Loading.Equal(loading):
			got = append(got, "loading")
		}
	}
	if diff := cmp.Diff([]string{"said hello", "loading", "reply hi", "read", "unsent"}, got); diff != "" {
		t.Errorf("updates (-want +got):\n%s", diff)
	}
	if !chat.Loading().IsZero() {
		t.Error("the loading animation outlives the answer")
	}
	if _, open := <-lazy; open {
		t.Error("a subscriber that fell behind is still served")
	}
}

func TestAwaitTellsWhatIsMissing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, linefake.Options{Keep: 2}, linefake.BotConfig{})
		alice := w.AddUser(linefake.UserConfig{})
		chat := w.bot.Direct(alice)
		go func() {
			for range 3 {
				time.Sleep(time.Second)
				w.push(alice.ID, "x")
			}
		}()
		if got, err := chat.Await(t.Context(), 3); err != nil || len(got) != 2 {
			t.Errorf("got %d kept bubbles, %v; want 2", len(got), err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := chat.Await(ctx, 4); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want a deadline", err)
		}
	})
}
