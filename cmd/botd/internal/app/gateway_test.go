package app_test

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"botd/channels/discord/discordfake"
	"botd/channels/line/linefake"
	"botd/config"
)

// remembering lets the agent with the offline model answer, which shows what it remembers.
func remembering(cfg *config.Config) {
	for name, c := range cfg.Channels {
		c.Agent = "memory"
		cfg.Channels[name] = c
	}
}

func TestBothPlatformsAreAnsweredAndRememberedAcrossARestart(t *testing.T) {
	t.Parallel()
	w := newWorld(t, linefake.BotConfig{})
	g := w.start(t, remembering)

	alice := w.line.AddUser(linefake.UserConfig{Name: "Alice"})
	chat := w.bot.Direct(alice)
	say(t, chat, alice, "my name is Alice")
	if got := hear(t, chat, 1); !strings.Contains(got, "Alice") {
		t.Errorf("first answer on LINE: %q", got)
	}
	bob := w.discord.Person("bob")
	room := w.discord.DM(bob.ID)
	sayDiscord(t, w, bob, room, "my name is Bob")
	if got := w.hearDiscord(t, room, 1); !strings.Contains(got, "Bob") {
		t.Errorf("first answer on Discord: %q", got)
	}

	g.stop()
	w.start(t, remembering)

	say(t, chat, alice, "what is my name?")
	if got := hear(t, chat, 2); !strings.Contains(got, "Alice") {
		t.Errorf("LINE, after the restart: %q", got)
	}
	sayDiscord(t, w, bob, room, "what is my name?")
	if got := w.hearDiscord(t, room, 2); !strings.Contains(got, "Bob") {
		t.Errorf("Discord, after the restart: %q", got)
	}

	say(t, chat, alice, "/reset")
	hear(t, chat, 3)
	say(t, chat, alice, "what is my name?")
	if got := hear(t, chat, 4); strings.Contains(got, "Alice") {
		t.Errorf("LINE, after /reset: %q", got)
	}
	sayDiscord(t, w, bob, room, "what is my name?")
	if got := w.hearDiscord(t, room, 3); !strings.Contains(got, "Bob") {
		t.Errorf("Discord, after somebody else's /reset: %q", got)
	}
}

func sayDiscord(t *testing.T, w *world, from discordfake.User, room, text string) discordfake.Message {
	t.Helper()
	m, err := w.discord.Say(discordfake.Saying{From: from.ID, Room: room, Text: text})
	if err != nil {
		t.Fatalf("say on Discord: %v", err)
	}
	return m
}

// TestOneWebhookOfManyEvents posts ten messages of six people at once, and then again.
func TestOneWebhookOfManyEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(t, linefake.BotConfig{})
	w.start(t)
	var chats []*linefake.Chat
	var users []*linefake.User
	for i := range 6 {
		u := w.line.AddUser(linefake.UserConfig{Name: fmt.Sprintf("user %d", i)})
		users, chats = append(users, u), append(chats, w.bot.Direct(u))
	}
	var events []linefake.Event
	perChat := map[*linefake.Chat][]linefake.Event{}
	for i := range 10 {
		c := chats[i%6]
		e := c.Message(users[i%6], linefake.Text{Text: fmt.Sprintf("message #e%d#", i)})
		events, perChat[c] = append(events, e), append(perChat[c], e)
	}
	if r := w.bot.Deliver(t.Context(), events...); !r.OK() {
		t.Fatalf("webhook not acknowledged: %+v", r)
	}
	for c, own := range perChat {
		hear(t, c, len(own))
		for i, answer := range c.Answers() {
			if answer.Event != own[i].ID {
				t.Errorf("answer %d in chat %s is on the token of another event", i, c.ID)
			}
			if answer.Via != linefake.Replied {
				t.Errorf("answer %d in chat %s came by %s", i, c.ID, answer.Via)
			}
		}
	}
	for i, e := range events {
		if got, want := lineTexts(chats[i%6].Replies(e.ID)), fmt.Sprintf("answer to #e%d#", i); len(got) != 1 || got[0] != want {
			t.Errorf("event %d was answered with %q, want %q", i, got, want)
		}
	}

	if r := w.bot.Redeliver(t.Context(), events...); !r.OK() {
		t.Fatalf("redelivery not acknowledged: %+v", r)
	}
	// A further message shows that what came before it was dealt with.
	for i, c := range chats {
		say(t, c, users[i], "still there? #after#")
		hear(t, c, len(perChat[c])+1)
		if got := len(c.Answers()); got != len(perChat[c])+1 {
			t.Errorf("chat %d holds %d answers after the redelivery, want %d", i, got, len(perChat[c])+1)
		}
	}
}

func TestThreeHundredMessagesAtOnce(t *testing.T) {
	t.Parallel()
	const people, each = 30, 10
	w := newWorld(t, linefake.BotConfig{})
	w.start(t)
	var chats []*linefake.Chat
	var posting sync.WaitGroup
	for i := range people {
		u := w.line.AddUser(linefake.UserConfig{Name: fmt.Sprintf("user %d", i)})
		c := w.bot.Direct(u)
		chats = append(chats, c)
		posting.Go(func() {
			for n := range each {
				if _, r := c.Say(t.Context(), u, fmt.Sprintf("message #u%d-m%d#", i, n)); !r.OK() {
					t.Errorf("webhook not acknowledged: %+v", r)
				}
			}
		})
	}
	posting.Wait()
	for i, c := range chats {
		hear(t, c, each)
		counts := tagsIn(lineTexts(c.Answers())...)
		for n := range each {
			if tag := fmt.Sprintf("#u%d-m%d#", i, n); counts[tag] != 1 {
				t.Errorf("message %s was answered %d times", tag, counts[tag])
			}
		}
	}
}

// TestRapidMessagesAreMerged has one person write twenty messages in a row; some answer covers each.
func TestRapidMessagesAreMerged(t *testing.T) {
	t.Parallel()
	const messages = 20
	w := newWorld(t, linefake.BotConfig{})
	w.start(t, func(cfg *config.Config) {
		for name, c := range cfg.Channels {
			c.MergeWindow = 50 * time.Millisecond
			cfg.Channels[name] = c
		}
	})
	u := w.line.AddUser(linefake.UserConfig{Name: "Quick"})
	c := w.bot.Direct(u)
	for n := range messages {
		say(t, c, u, fmt.Sprintf("message #m%d#", n))
	}
	await(t, "every message to be covered", func() bool { return len(tagsIn(lineTexts(c.Answers())...)) == messages })
	for tag, n := range tagsIn(lineTexts(c.Answers())...) {
		if n != 1 {
			t.Errorf("message %s was answered %d times", tag, n)
		}
	}
	if got := len(c.Answers()); got == messages {
		t.Errorf("%d messages in a row were answered one by one", got)
	}
}

func TestWhatIsNoGoodWebhookHarmsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, linefake.BotConfig{})
	g := w.start(t)
	url := "http://" + g.Addr() + "/webhook"
	u := w.line.AddUser(linefake.UserConfig{Name: "Alice"})
	c := w.bot.Direct(u)

	post := func(signature string, body []byte) int {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Line-Signature", signature)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			return 0 // cut off while still sending
		}
		defer res.Body.Close()
		return res.StatusCode
	}
	good, err := w.bot.Encode(c.Message(u, linefake.Text{Text: "forged #forged#"}))
	if err != nil {
		t.Fatal(err)
	}
	large := append(bytes.Clone(good), bytes.Repeat([]byte(" "), 2<<20)...)
	broken := []byte(`{"destination":"` + w.bot.ID + `","events":[`)
	for _, tt := range []struct {
		name, signature string
		body            []byte
	}{
		{"without a signature", "", good},
		{"with another's signature", linefake.Sign("another secret", good), good},
		{"with a signature that is no base64", "!", good},
		{"of two megabytes", linefake.Sign(w.bot.Secret, large), large},
		{"with broken JSON", linefake.Sign(w.bot.Secret, broken), broken},
	} {
		if code := post(tt.signature, tt.body); code == http.StatusOK {
			t.Errorf("a webhook %s was acknowledged", tt.name)
		}
	}
	if code, _ := request(t, http.MethodGet, url, nil); code != http.StatusMethodNotAllowed {
		t.Errorf("GET on the webhook: status %d", code)
	}
	if code, _ := request(t, http.MethodGet, "http://"+g.Addr()+"/nothing", nil); code != http.StatusNotFound {
		t.Errorf("GET on an unknown path: status %d", code)
	}

	// One unknown event among good ones does not cost them their answers.
	before := c.Message(u, linefake.Text{Text: "before #before#"})
	unknown := c.Event(u, "somethingNew", true, map[string]any{"what": []any{1, "two"}})
	odd := linefake.RawEvent(`{"source":null,"message":5}`)
	after := c.Message(u, linefake.Text{Text: "after #after#"})
	if r := w.bot.Deliver(t.Context(), before, unknown, odd, after); !r.OK() {
		t.Fatalf("webhook with an unknown event not acknowledged: %+v", r)
	}
	hear(t, c, 2)
	counts := tagsIn(lineTexts(c.Answers())...)
	if counts["#before#"] != 1 || counts["#after#"] != 1 || counts["#forged#"] != 0 {
		t.Errorf("answers cover %v", counts)
	}
	if r := w.bot.Verify(t.Context()); !r.OK() {
		t.Errorf("the console's Verify button: %+v", r)
	}
}

func TestLogsHoldNeitherSecretsNorMessages(t *testing.T) {
	t.Parallel()
	w := newWorld(t, linefake.BotConfig{})
	g := w.start(t)
	u := w.line.AddUser(linefake.UserConfig{Name: "Planted Name"})
	c := w.bot.Direct(u)
	event := say(t, c, u, "planted text #planted-tag#")
	hear(t, c, 1)
	bob := w.discord.Person("bob")
	room := w.discord.DM(bob.ID)
	sayDiscord(t, w, bob, room, "planted text #planted-tag#")
	w.hearDiscord(t, room, 1)

	w.line.Inject(linefake.Reply, linefake.Fault{Status: http.StatusBadRequest, Message: "planted text in an error"})
	refused := say(t, c, u, "planted text #planted-tag-2#")
	bad := []byte(`{"events":[{"text":"planted text"`)
	w.bot.DeliverRaw(t.Context(), bad)
	say(t, c, u, "planted text #last#")
	await(t, "the last answer", func() bool { return tagsIn(lineTexts(c.Answers())...)["#last#"] == 1 })
	g.stop()

	log := g.log.String()
	for _, planted := range []string{
		w.bot.Secret, w.bot.Token, plantedDiscordToken, "planted text", "planted-tag", "answer to",
		event.ReplyToken, refused.ReplyToken, "Planted Name",
	} {
		if strings.Contains(log, planted) {
			for line := range strings.Lines(log) {
				if strings.Contains(line, planted) {
					t.Errorf("the log holds %q: %s", planted, line)
				}
			}
		}
	}
	if !strings.Contains(log, `"msg":"ready"`) || !strings.Contains(log, `"msg":"stopped"`) {
		t.Errorf("the log does not tell of start and stop:\n%s", log)
	}
}

// TestOneFailedChannelLeavesTheOthers starts with a Discord token that is refused.
func TestOneFailedChannelLeavesTheOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, linefake.BotConfig{})
	g := w.startUntil(t, "degraded", func(cfg *config.Config) {
		cfg.Channels["discord"].Discord.Token = config.NewSecret("refused-token")
	})
	await(t, "Discord to have failed", func() bool { return g.readiness(t).Checks["channel/discord"].Status == "failed" })
	if code, _ := request(t, http.MethodGet, "http://"+g.Addr()+"/readyz", nil); code != http.StatusOK {
		t.Errorf("readyz with one channel failed: status %d", code)
	}
	u := w.line.AddUser(linefake.UserConfig{Name: "Alice"})
	c := w.bot.Direct(u)
	say(t, c, u, "hello #hello#")
	if got := hear(t, c, 1); !strings.Contains(got, "#hello#") {
		t.Errorf("answer on LINE: %q", got)
	}
}

// TestTwoAccountsOnOnePath has two LINE accounts share a webhook path; each answers its own people.
func TestTwoAccountsOnOnePath(t *testing.T) {
	t.Parallel()
	w := newWorld(t, linefake.BotConfig{})
	second := w.line.AddBot(linefake.BotConfig{})
	g := w.start(t, func(cfg *config.Config) {
		c := cfg.Channels["line"]
		account := *c.LINE
		account.ChannelSecret, account.ChannelAccessToken = config.NewSecret(second.Secret), config.NewSecret(second.Token)
		c.LINE = &account
		cfg.Channels["line-second"] = c
	})
	second.SetWebhook("http://" + g.Addr() + "/webhook")
	u := w.line.AddUser(linefake.UserConfig{Name: "Alice"})
	for i, bot := range []*linefake.Bot{w.bot, second} {
		chat := bot.Direct(u)
		say(t, chat, u, fmt.Sprintf("message #bot-%d#", i))
		if got, want := hear(t, chat, 1), fmt.Sprintf("answer to #bot-%d#", i); got != want {
			t.Errorf("account %d answered %q, want %q", i, got, want)
		}
	}
}
