package linefake_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"botd/channels/line/internal/spectest"
	"botd/channels/line/linefake"
)

// everyEvent makes one event of every kind that this platform knows.
func everyEvent(s *linefake.Server, bot *linefake.Bot) map[string]linefake.Event {
	alice := s.AddUser(linefake.UserConfig{Name: "Alice"})
	bob := s.AddUser(linefake.UserConfig{Name: "Bob"})
	one, group, room := bot.Direct(alice), bot.Group(alice, bob), bot.Room(alice, bob)
	text := one.Message(alice, linefake.Text{Text: "hello"})
	return map[string]linefake.Event{
		"text": text,
		"text in a group with mentions": group.Message(bob, linefake.Text{
			Text: "🍎 @Bot and @Alice and @All look", Quotes: text.MessageID,
			Mentions: []linefake.Mention{{At: "@Bot", Self: true}, {At: "@Alice", User: alice}, {At: "@All", All: true}},
		}),
		"text without consent": room.Message(nil, linefake.Text{Text: "who am I"}),
		"sticker":              one.Message(alice, linefake.Sticker{Keywords: []string{"Hi", "Hello"}}),
		"message sticker":      one.Message(alice, linefake.Sticker{Text: "Good morning"}),
		"image":                one.Message(alice, linefake.Media{Type: "image", Data: []byte("jpeg"), Set: "42", Index: 1, Total: 2}),
		"external image":       one.Message(alice, linefake.Media{Type: "image", URL: "https://example.com/a.jpg"}),
		"video":                one.Message(alice, linefake.Media{Type: "video", Duration: 3 * time.Second}),
		"audio":                one.Message(alice, linefake.Media{Type: "audio", Duration: 1500 * time.Millisecond}),
		"file":                 one.Message(alice, linefake.Media{Type: "file", Name: "report.pdf", Size: 3_000_000_000}),
		"location":             one.Message(alice, linefake.Location{Title: "Home", Address: "1-2-3 Shibuya", Latitude: 35.6, Longitude: 139.7}),
		"bare location":        one.Message(alice, linefake.Location{Latitude: 35.6, Longitude: 139.7}),
		"unsend":               one.Unsend(alice, text.MessageID),
		"postback":             one.Postback(alice, "action=reset", nil),
		"postback with params": one.Postback(alice, "when", map[string]string{"date": "2026-12-01"}),
		"follow":               one.Follow(),
		"unfollow":             bot.Direct(bob).Unfollow(),
		"join":                 group.Join(),
		"leave":                room.Leave(),
		"memberJoined":         group.MemberJoined(bob),
		"memberLeft":           group.MemberLeft(bob),
		"beacon":               one.Event(alice, "beacon", true, map[string]any{"beacon": map[string]any{"hwid": "d41d8cd98f", "type": "enter"}}),
		"accountLink":          one.Event(alice, "accountLink", true, map[string]any{"link": map[string]any{"result": "ok", "nonce": "n"}}),
		"videoPlayComplete":    one.Event(alice, "videoPlayComplete", true, map[string]any{"videoPlayComplete": map[string]any{"trackingId": "t"}}),
	}
}

// TestEveryWebhookIsValidByLINEsDocument checks each event by LINE's own description of webhooks.
func TestEveryWebhookIsValidByLINEsDocument(t *testing.T) {
	t.Parallel()
	doc := spectest.Load(t, "webhook.yml")
	w := newWorld(t, linefake.Options{}, linefake.BotConfig{})
	for name, ev := range everyEvent(w.Server, w.bot) {
		t.Run(name, func(t *testing.T) {
			body, err := w.bot.Encode(ev)
			if err != nil {
				t.Fatal(err)
			}
			if err := spectest.Check(doc, "CallbackRequest", body); err != nil {
				t.Errorf("%v\n%s", err, body)
			}
		})
	}
}

func TestWebhookIsSignedOverTheRawBody(t *testing.T) {
	t.Parallel()
	w := newWorld(t, linefake.Options{}, linefake.BotConfig{Secret: "0123456789abcdef0123456789abcdef"})
	alice := w.AddUser(linefake.UserConfig{})
	_, res := w.bot.Direct(alice).Say(t.Context(), alice, "hello")
	if !res.OK() || res.Status != 200 {
		t.Fatalf("got %+v", res)
	}
	if got, want := w.hook.header.Get("X-Line-Signature"), linefake.Sign(w.bot.Secret, w.hook.got()[0]); got != want {
		t.Errorf("signature %q, want %q", got, want)
	}
}

func TestVerifyPostsNoEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(t, linefake.Options{}, linefake.BotConfig{})
	if res := w.bot.Verify(t.Context()); !res.OK() {
		t.Fatalf("got %+v", res)
	}
	if got, want := string(w.hook.got()[0]), `{"destination":"`+w.bot.ID+`","events":[]}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestWebhookMustBeAcknowledgedWithinTwoSeconds(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		answer func(n int, w http.ResponseWriter, r *http.Request)
		want   linefake.Reason
	}{
		{"at once", nil, ""},
		{"just in time", func(_ int, _ http.ResponseWriter, r *http.Request) { pause(r.Context(), 1900*time.Millisecond) }, ""},
		{"too late", func(_ int, _ http.ResponseWriter, r *http.Request) { pause(r.Context(), 2100*time.Millisecond) }, linefake.RequestTimeout},
		{"refused", func(_ int, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) }, linefake.ErrorStatusCode},
		{"broken off", func(int, http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, linefake.CouldNotConnect},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, linefake.Options{}, linefake.BotConfig{})
				w.hook.answer = tt.answer
				alice := w.AddUser(linefake.UserConfig{})
				_, res := w.bot.Direct(alice).Say(t.Context(), alice, "hello")
				if res.Reason != tt.want {
					t.Errorf("got %+v, want %q", res, tt.want)
				}
			})
		})
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

func TestRedeliveryRepeatsTheEventUntilAcknowledged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, linefake.Options{}, linefake.BotConfig{Redeliver: []time.Duration{time.Minute, time.Hour, time.Hour}})
		w.hook.answer = func(n int, rw http.ResponseWriter, _ *http.Request) {
			if n < 3 {
				rw.WriteHeader(503)
			}
		}
		alice := w.AddUser(linefake.UserConfig{})
		ev, res := w.bot.Direct(alice).Say(t.Context(), alice, "hello")
		if res.OK() {
			t.Fatal("the first delivery was acknowledged")
		}
		time.Sleep(5 * time.Hour)
		var got []string
		for _, body := range w.hook.got() {
			var b struct {
				Events []struct {
					WebhookEventID  string
					DeliveryContext struct{ IsRedelivery bool }
				}
			}
			if err := json.Unmarshal(body, &b); err != nil {
				t.Fatal(err)
			}
			got = append(got, fmt.Sprint(b.Events[0].WebhookEventID, b.Events[0].DeliveryContext.IsRedelivery))
		}
		if diff := cmp.Diff([]string{ev.ID + "false", ev.ID + "true", ev.ID + "true"}, got); diff != "" {
			t.Errorf("deliveries (-want +got):\n%s", diff)
		}
	})
}

func TestRedeliveryIsOffByDefault(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, linefake.Options{}, linefake.BotConfig{})
		w.hook.answer = func(_ int, rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(500) }
		alice := w.AddUser(linefake.UserConfig{})
		w.bot.Direct(alice).Say(t.Context(), alice, "hello")
		time.Sleep(24 * time.Hour)
		if n := len(w.hook.got()); n != 1 {
			t.Errorf("%d deliveries, want 1", n)
		}
	})
}

func TestMentionOffsetsCountUTF16Units(t *testing.T) {
	t.Parallel()
	w := newWorld(t, linefake.Options{}, linefake.BotConfig{})
	alice := w.AddUser(linefake.UserConfig{})
	ev := w.bot.Group(alice).Message(alice, linefake.Text{Text: "🍎 @Bot", Mentions: []linefake.Mention{{At: "@Bot", Self: true}}})
	m := ev.Body["message"].(map[string]any)["mention"].(map[string]any)["mentionees"].([]any)[0].(map[string]any)
	if m["index"] != 3 || m["length"] != 4 {
		t.Errorf("index %v, length %v; want 3, 4: an apple is two units", m["index"], m["length"])
	}
}

// TestListenServesLoopbackOnly also goes through real sockets once.
func TestListenServesLoopbackOnly(t *testing.T) {
	t.Parallel()
	s := linefake.New(linefake.Options{})
	defer s.Close()
	for _, addr := range []string{"0.0.0.0:0", ":0", "192.0.2.1:0", "nonsense"} {
		if err := s.Listen(addr); err == nil {
			t.Errorf("Listen(%q) was taken", addr)
		}
	}
	if err := s.Listen("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	bot := s.AddBot(linefake.BotConfig{})
	req, _ := http.NewRequestWithContext(t.Context(), "GET", s.URL()+"/v2/bot/info", nil)
	req.Header.Set("Authorization", "Bearer "+bot.Token)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != 200 {
		t.Errorf("status %d", res.StatusCode)
	}
}
