package linefake_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"botd/channels/line/linefake"
)

const retryKey = "X-Line-Retry-Key"

func TestReplyTokenIsUsedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, linefake.Options{}, linefake.BotConfig{})
	alice := w.AddUser(linefake.UserConfig{})
	chat := w.bot.Direct(alice)
	ev, _ := chat.Say(t.Context(), alice, "hello")
	w.expect(w.reply(ev.ReplyToken), 200, "")
	w.expect(w.reply(ev.ReplyToken), 400, linefake.InvalidReplyToken)
	if got := chat.Replies(ev.ID); len(got) != 1 || got[0].Via != linefake.Replied {
		t.Errorf("replies %+v, want one", got)
	}
}

func TestReplyTokenAges(t *testing.T) {
	t.Parallel()
	const inTime, late = 59 * time.Second, 61 * time.Second
	for _, tt := range []struct {
		name       string
		redelivery time.Duration // when the event is redelivered, 0 for never
		age        time.Duration // of the last delivery
		want       int
	}{
		{"within a minute of the delivery", 0, inTime, 200},
		{"a minute after the delivery", 0, late, 400},
		{"within a minute of a redelivery", 19 * time.Minute, inTime, 200},
		{"a minute after a redelivery", 19 * time.Minute, late, 400},
		{"redelivered more than 20 minutes after the event", 21 * time.Minute, time.Second, 400},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, linefake.Options{}, linefake.BotConfig{})
				alice := w.AddUser(linefake.UserConfig{})
				ev, _ := w.bot.Direct(alice).Say(t.Context(), alice, "hello")
				if tt.redelivery > 0 {
					time.Sleep(tt.redelivery)
					w.bot.Redeliver(t.Context(), ev)
				}
				time.Sleep(tt.age)
				w.expect(w.reply(ev.ReplyToken), tt.want, "")
			})
		})
	}
}

func TestReplyTokenBelongsToItsBotAndDelivery(t *testing.T) {
	t.Parallel()
	w := newWorld(t, linefake.Options{}, linefake.BotConfig{})
	alice := w.AddUser(linefake.UserConfig{})
	ev := w.bot.Direct(alice).Message(alice, linefake.Text{Text: "hello"})
	w.expect(w.reply(ev.ReplyToken), 400, linefake.InvalidReplyToken)
	w.bot.Deliver(t.Context(), ev)
	other := w.AddBot(linefake.BotConfig{})
	w.expect(w.reply(ev.ReplyToken, header("Authorization", "Bearer "+other.Token)), 400, linefake.InvalidReplyToken)
	w.expect(w.reply(ev.ReplyToken), 200, "")
}

// TestRefusedReplyLeavesTheToken: on an error nothing is sent, and the token is not used up.
func TestRefusedReplyLeavesTheToken(t *testing.T) {
	t.Parallel()
	w := newWorld(t, linefake.Options{}, linefake.BotConfig{})
	alice := w.AddUser(linefake.UserConfig{})
	ev, _ := w.bot.Direct(alice).Say(t.Context(), alice, "hello")
	w.expect(w.reply(ev.ReplyToken, header(retryKey, "123e4567-e89b-12d3-a456-426614174000")), 400, "")
	w.expect(w.call("POST", "/v2/bot/message/reply", `{"replyToken":"`+ev.ReplyToken+`","messages":[{"type":"text","text":""}]}`), 400, "The request body has 1 error(s)")
	w.expect(w.reply(ev.ReplyToken), 200, "")
}

func TestPushRetryKey(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, linefake.Options{}, linefake.BotConfig{})
		alice := w.AddUser(linefake.UserConfig{})
		chat := w.bot.Direct(alice)
		key := header(retryKey, "123e4567-e89b-12d3-a456-426614174000")
		for _, bad := range []string{"", "k", "123e4567e89b12d3a456426614174000", "123e4567-e89b-12d3-a456-42661417400g"} {
			w.expect(w.push(alice.ID, "hi", header(retryKey, bad)), 400, "")
		}
		first := w.push(alice.ID, "hi", key)
		w.expect(first, 200, "")
		again := w.push(alice.ID, "hi", key)
		w.expect(again, 409, linefake.RetryKeyAccepted)
		if fmt.Sprint(again.sent()) != fmt.Sprint(first.sent()) || len(first.sent()) != 1 {
			t.Errorf("sentMessages %v, then %v", first.sent(), again.sent())
		}
		if got, want := again.header.Get("x-line-accepted-request-id"), first.header.Get("x-line-request-id"); got != want || got == "" {
			t.Errorf("accepted request %q, want %q", got, want)
		}
		w.expect(w.push(alice.ID, "other", key), 409, linefake.RetryKeyAccepted)
		calls := w.Calls(linefake.Push)
		if calls[len(calls)-2].Note != "" || calls[len(calls)-1].Note == "" {
			t.Errorf("only the different body is to be noted: %+v", calls)
		}
		if n := len(chat.Answers()); n != 1 {
			t.Errorf("%d bubbles, want 1", n)
		}
		time.Sleep(25 * time.Hour)
		w.expect(w.push(alice.ID, "hi", key), 200, "")
	})
}

func TestPushGoesToKnownPlacesOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t, linefake.Options{}, linefake.BotConfig{})
	alice, bob := w.AddUser(linefake.UserConfig{}), w.AddUser(linefake.UserConfig{})
	group, left := w.bot.Group(alice, bob), w.bot.Group(alice)
	left.Leave()
	other := w.AddBot(linefake.BotConfig{}).Group(alice)
	blocked := w.bot.Direct(alice)
	blocked.Unfollow()
	for _, tt := range []struct {
		name, to string
		status   int
		message  string
	}{
		{"a group", group.ID, 200, ""},
		{"somebody who is no friend", bob.ID, 200, ""},
		{"somebody who blocked the bot", alice.ID, 200, ""},
		{"a group of another bot", other.ID, 400, linefake.FailedToSend},
		{"a group that the bot left", left.ID, 400, linefake.FailedToSend},
		{"a person unknown to the provider", "U00000000000000000000000000000000", 400, "The property, 'to', in the request body is invalid (line: -, column: -)"},
		{"an ID in capitals", strings.ToUpper(group.ID), 400, ""},
		{"an ID in small letters", strings.ToLower(group.ID), 400, ""},
		{"an ID with a prefix", "line:group:" + group.ID, 400, ""},
		{"nobody", "", 400, ""},
	} {
		w.expect(w.push(tt.to, tt.name), tt.status, tt.message)
	}
	if n := len(group.Answers()); n != 1 {
		t.Errorf("%d bubbles in the group, want 1", n)
	}
	if len(blocked.Answers()) != 0 || !blocked.Bubbles()[0].Unseen {
		t.Errorf("a blocked push was seen: %+v", blocked.Bubbles())
	}
}

func TestQuotaCountsRecipientsAndReplyIsFree(t *testing.T) {
	t.Parallel()
	w := newWorld(t, linefake.Options{}, linefake.BotConfig{Quota: 4})
	alice, bob, eve := w.AddUser(linefake.UserConfig{}), w.AddUser(linefake.UserConfig{}), w.AddUser(linefake.UserConfig{})
	group, chat := w.bot.Group(alice, bob, eve), w.bot.Direct(alice)
	w.expect(w.push(group.ID, "costs three"), 200, "")
	w.expect(w.push(group.ID, "would cost three more"), 429, linefake.MonthlyLimit)
	w.expect(w.push(alice.ID, "costs one"), 200, "")
	ev, _ := chat.Say(t.Context(), alice, "hello")
	w.expect(w.reply(ev.ReplyToken), 200, "")
	if w.bot.Pushed() != 4 {
		t.Errorf("%d pushed, want 4", w.bot.Pushed())
	}
	w.bot.SetQuota(5)
	w.expect(w.push(alice.ID, "after the plan was changed"), 200, "")
	w.bot.SetQuota(4)
	for path, want := range map[string]string{
		"/v2/bot/message/quota":             `{"type":"limited","value":4}`,
		"/v2/bot/message/quota/consumption": `{"totalUsage":5}`,
	} {
		if got := w.call("GET", path, ""); string(got.body) != want {
			t.Errorf("%s: %s, want %s", path, got.body, want)
		}
	}
}

func TestQuoteTokensAreGoodInTheirChatOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t, linefake.Options{}, linefake.BotConfig{})
	alice := w.AddUser(linefake.UserConfig{})
	chat, group := w.bot.Direct(alice), w.bot.Group(alice)
	ev, _ := chat.Say(t.Context(), alice, "hello")
	token := ev.Body["message"].(map[string]any)["quoteToken"].(string)
	push := func(to, token string) response {
		return w.call("POST", "/v2/bot/message/push", fmt.Sprintf(`{"to":%q,"messages":[{"type":"text","text":"hi","quoteToken":%q}]}`, to, token))
	}
	w.expect(push(group.ID, token), 400, "Invalid quote token")
	w.expect(push(chat.ID, "made up"), 400, "Invalid quote token")
	w.expect(push(chat.ID, token), 200, "")
	w.expect(push(chat.ID, token), 200, "")
	if b := chat.Answers()[0]; b.Quotes != ev.MessageID {
		t.Errorf("quotes %q, want %q", b.Quotes, ev.MessageID)
	}
}

func TestRateLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, linefake.Options{RatePerSecond: 2}, linefake.BotConfig{})
		for i, want := range []int{200, 200, 429} {
			if got := w.call("GET", "/v2/bot/info", ""); got.status != want {
				t.Errorf("call %d: %d, want %d", i, got.status, want)
			}
		}
		w.expect(w.call("GET", "/v2/bot/message/quota", ""), 200, "")
		time.Sleep(time.Second)
		w.expect(w.call("GET", "/v2/bot/info", ""), 200, "")
	})
}
