package line_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"botd/channels"
	"botd/channels/line"
	"botd/channels/line/linefake"
)

// post calls the handler with a body signed by secret and returns the status.
func post(h http.Handler, secret, body string, edit ...func(*http.Request)) int {
	r := httptest.NewRequest("POST", "/line", strings.NewReader(body))
	r.Header.Set("X-Line-Signature", linefake.Sign(secret, []byte(body)))
	for _, e := range edit {
		e(r)
	}
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, r)
	return rec.Code
}

func TestWebhookAnswers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := w.a.Webhook(w.sink)
	empty := `{"destination":"` + w.bot.ID + `","events":[]}`
	sign := func(v string) func(*http.Request) {
		return func(r *http.Request) { r.Header["X-Line-Signature"] = []string{v} }
	}
	for _, tt := range []struct {
		name string
		body string
		edit func(*http.Request)
		want int
	}{
		{"verify call of the console", empty, nil, 200},
		{"no list of events", `{"destination":"` + w.bot.ID + `"}`, nil, 200},
		{"GET", "", func(r *http.Request) { r.Method = "GET" }, 405},
		{"no signature", empty, func(r *http.Request) { r.Header.Del("X-Line-Signature") }, 403},
		{"empty signature", empty, sign(""), 403},
		{"signature that is not base64", empty, sign("%%%"), 403},
		{"signature of another body", empty, sign(linefake.Sign(w.bot.Secret, []byte(empty+" "))), 403},
		{"signature by another secret", empty, sign(linefake.Sign("other", []byte(empty))), 403},
		{"signature by an empty secret", empty, sign(linefake.Sign("", []byte(empty))), 403},
		{"header name in small letters", empty, func(r *http.Request) {
			r.Header.Set("x-line-signature", r.Header.Get("X-Line-Signature"))
		}, 200},
		{"1 MiB", empty + strings.Repeat(" ", 1<<20-len(empty)), nil, 200},
		{"more than 1 MiB", empty + strings.Repeat(" ", 1<<20), nil, 413},
		{"not JSON", "hello", nil, 400},
		{"not an object", "[]", nil, 400},
		{"events that are no list", `{"destination":"` + w.bot.ID + `","events":{}}`, nil, 400},
		{"no destination", `{"events":[]}`, nil, 400},
		{"null", "null", nil, 400},
		{"another destination", `{"destination":"U00000000000000000000000000000000","events":[]}`, nil, 403},
	} {
		t.Run(tt.name, func(t *testing.T) {
			edit := tt.edit
			if edit == nil {
				edit = func(*http.Request) {}
			}
			if got := post(h, w.bot.Secret, tt.body, edit); got != tt.want {
				t.Errorf("status %d, want %d", got, tt.want)
			}
		})
	}
	if got := w.sink.got(); len(got) != 0 {
		t.Errorf("events were accepted: %+v", got)
	}
}

// TestBrokenUpload: a body that breaks off is not taken for a whole one.
func TestBrokenUpload(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	got := post(w.a.Webhook(w.sink), w.bot.Secret, "{}", func(r *http.Request) { r.Body = brokenBody{} })
	if got != 400 {
		t.Errorf("status %d, want 400", got)
	}
}

type brokenBody struct{}

func (brokenBody) Read([]byte) (int, error) { return 0, errors.New("connection reset") }
func (brokenBody) Close() error             { return nil }

// TestNothingIsAcknowledgedThatTheSinkRefused: the answer lets LINE deliver it again.
func TestNothingIsAcknowledgedThatTheSinkRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.sink.err = errors.New("journal is full")
	ev, res := w.chat.Say(t.Context(), w.alice, "hello")
	if res.Status != http.StatusServiceUnavailable {
		t.Errorf("status %d, want 503", res.Status)
	}
	w.sink.err = nil
	if res := w.bot.Redeliver(t.Context(), ev); !res.OK() {
		t.Errorf("redelivery: %+v", res)
	}
	if got := w.sink.got(); len(got) != 1 || got[0].ID != ev.ID {
		t.Errorf("accepted %+v, want the event under its ID %s", got, ev.ID)
	}
	want := line.Stats{Webhooks: 2, Refused: 1, Accepted: 1}
	if diff := cmp.Diff(want, w.a.Stats()); diff != "" {
		t.Errorf("stats (-want +got):\n%s", diff)
	}
}

// TestAcknowledgementComesAfterAcceptance: LINE hears nothing while the sink is at work, and a sink that
// is slower than LINE's patience is not cut off, for what it saves is not lost.
func TestAcknowledgementComesAfterAcceptance(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.sink.accept = func(ctx context.Context, _ []channels.Inbound) error {
			select {
			case <-time.After(3 * time.Second):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		_, res := w.chat.Say(t.Context(), w.alice, "hello")
		if res.Reason != linefake.RequestTimeout {
			t.Errorf("got %+v, want LINE to have given up", res)
		}
		time.Sleep(2 * time.Second)
		if len(w.sink.got()) != 1 {
			t.Error("the event was dropped when LINE hung up")
		}
	})
}

// TestOneOddEventDoesNotLoseItsBatch puts each odd event between two good ones.
func TestOneOddEventDoesNotLoseItsBatch(t *testing.T) {
	t.Parallel()
	const (
		user = "U00000000000000000000000000000001"
		good = `"mode":"active","timestamp":1,"webhookEventId":"01H","source":{"type":"user","userId":"` + user + `"}`
	)
	const text = `"message":{"id":"1","type":"text","text":"a"}`
	for name, odd := range map[string]string{
		"no type":                      `{}`,
		"null":                         `null`,
		"a string":                     `"text"`,
		"a number":                     `1`,
		"a list":                       `[]`,
		"empty type":                   `{"type":""}`,
		"type that is a number":        `{"type":1}`,
		"no source":                    `{"type":"message","webhookEventId":"01H","message":{"id":"1","type":"text","text":"a"}}`,
		"null source":                  `{"type":"message","webhookEventId":"01H","source":null,"message":{"id":"1","type":"text","text":"a"}}`,
		"unknown source":               `{"type":"message","webhookEventId":"01H","source":{"type":"square","squareId":"1"},"message":{"id":"1","type":"text","text":"a"}}`,
		"person without ID":            `{"type":"message","webhookEventId":"01H","source":{"type":"user"},"message":{"id":"1","type":"text","text":"a"}}`,
		"group without ID":             `{"type":"message","webhookEventId":"01H","source":{"type":"group","userId":"` + user + `"},"message":{"id":"1","type":"text","text":"a"}}`,
		"endless ID":                   `{"type":"message","webhookEventId":"01H","source":{"type":"user","userId":"` + strings.Repeat("U", 300) + `"},"message":{"id":"1","type":"text","text":"a"}}`,
		"person whose ID is a path":    `{"type":"message","webhookEventId":"01H","source":{"type":"user","userId":"../../../bot/info"},` + text + `}`,
		"person with a group's ID":     `{"type":"message","webhookEventId":"01H","source":{"type":"user","userId":"C` + user[1:] + `"},` + text + `}`,
		"group with a person's ID":     `{"type":"message","webhookEventId":"01H","source":{"type":"group","groupId":"` + user + `"},` + text + `}`,
		"room with a line break":       `{"type":"message","webhookEventId":"01H","source":{"type":"room","roomId":"R` + user[1:32] + `\n"},` + text + `}`,
		"no event ID":                  `{"type":"message","source":{"type":"user","userId":"` + user + `"},"message":{"id":"1","type":"text","text":"a"}}`,
		"no message":                   `{"type":"message",` + good + `}`,
		"message that is a string":     `{"type":"message",` + good + `,"message":"a"}`,
		"message without ID":           `{"type":"message",` + good + `,"message":{"type":"text","text":"a"}}`,
		"text that is a number":        `{"type":"message",` + good + `,"message":{"id":"1","type":"text","text":5}}`,
		"timestamp that is a string":   `{"type":"message",` + good + `,"timestamp":"x","message":{"id":"1","type":"text","text":"a"}}`,
		"postback that is a string":    `{"type":"postback",` + good + `,"postback":"x"}`,
		"reply token that is a number": `{"type":"follow",` + good + `,"replyToken":7}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			before := w.chat.Message(w.alice, linefake.Text{Text: "before"})
			after := w.chat.Message(w.alice, linefake.Text{Text: "after"})
			if res := w.bot.Deliver(t.Context(), before, linefake.RawEvent(odd), after); !res.OK() {
				t.Errorf("got %+v, want 200", res)
			}
			got := w.sink.got()
			if len(got) != 2 || got[0].ID != before.ID || got[1].ID != after.ID {
				t.Errorf("accepted %+v, want the two good ones in order", got)
			}
			if s := w.a.Stats(); s.Quarantined != 1 || s.Ignored != 0 {
				t.Errorf("stats %+v, want one event set aside", s)
			}
		})
	}
}

func TestEventsThatMeanNothingAreLeftOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bob := w.fake.AddUser(linefake.UserConfig{})
	group := w.bot.Group(w.alice, bob)
	text := group.Message(w.alice, linefake.Text{Text: "hello"})
	standby := w.chat.Message(w.alice, linefake.Text{Text: "somebody else serves this chat"})
	standby.Body["mode"] = "standby"
	dummy := func(char string) linefake.Event {
		ev := w.chat.Message(w.alice, linefake.Text{Text: "Hello, world"})
		ev.Body["replyToken"] = strings.Repeat(char, 32)
		return ev
	}
	events := map[string]linefake.Event{
		"messageEdited":     group.Edit(w.alice, text.MessageID, "hi"),
		"unfollow":          w.bot.Direct(bob).Unfollow(),
		"leave":             group.Leave(),
		"memberJoined":      group.MemberJoined(bob),
		"memberLeft":        group.MemberLeft(bob),
		"videoPlayComplete": w.chat.Event(w.alice, "videoPlayComplete", true, map[string]any{"videoPlayComplete": map[string]any{"trackingId": "t"}}),
		"beacon":            w.chat.Event(w.alice, "beacon", true, map[string]any{"beacon": map[string]any{"hwid": "d4", "type": "enter"}}),
		"accountLink":       linefake.RawEvent(`{"type":"accountLink","webhookEventId":"01H","link":{"result":"failed","nonce":"n"}}`),
		"not known yet":     w.chat.Event(w.alice, "telepathy", true, map[string]any{"thought": []int{1}}),
		"of odd form":       linefake.RawEvent(`{"type":"telepathy","source":5,"message":[],"timestamp":"soon"}`),
		"message of a type not known yet": w.chat.Message(w.alice, linefake.Other{
			Type: "poll", Properties: map[string]any{"question": "?"},
		}),
		"standby":                  standby,
		"dummy of the old console": dummy("0"),
		"the other dummy":          dummy("f"),
	}
	for name, ev := range events {
		t.Run(name, func(t *testing.T) {
			before := w.a.Stats()
			if res := w.bot.Deliver(t.Context(), ev); !res.OK() {
				t.Errorf("got %+v, want 200", res)
			}
			if s := w.a.Stats(); s.Ignored != before.Ignored+1 || s.Quarantined != 0 {
				t.Errorf("stats %+v, want one more event left out than %+v", s, before)
			}
		})
	}
	if got := w.sink.got(); len(got) != 0 {
		t.Errorf("accepted %+v", got)
	}
}

// TestSeveralBotsOnOnePath: each webhook is verified with the secret of the bot that it is addressed to.
func TestSeveralBotsOnOnePath(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	other := w.fake.AddBot(linefake.BotConfig{})
	stranger := w.fake.AddBot(linefake.BotConfig{})
	body := func(b *linefake.Bot) string {
		text, err := b.Encode(b.Direct(w.alice).Message(w.alice, linefake.Text{Text: "hello"}))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for _, tt := range []struct {
		name         string
		destinations bool // known from the start
		to           *linefake.Bot
		secret       string
		want         int
		channel      string
	}{
		{"the first, known", true, w.bot, w.bot.Secret, 200, "line-shop"},
		{"the second, known", true, other, other.Secret, 200, "line-help"},
		{"the first, not known yet", false, w.bot, w.bot.Secret, 200, "line-shop"},
		{"the second, not known yet", false, other, other.Secret, 200, "line-help"},
		{"the first with the secret of the second", true, w.bot, other.Secret, 403, ""},
		{"a bot that is not ours", true, stranger, stranger.Secret, 403, ""},
		{"a bot that is not ours with the secret of one that is", true, stranger, other.Secret, 403, ""},
		{"a bot that is not ours, none known yet", false, stranger, stranger.Secret, 403, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			known := func(b *linefake.Bot) string {
				if tt.destinations {
					return b.ID
				}
				return ""
			}
			s := &sink{}
			h := line.Handler(s,
				w.adapter(func(o *line.Options) { o.Destination = known(w.bot) }),
				w.adapter(func(o *line.Options) {
					o.Channel, o.Secret, o.Token, o.Destination = "line-help", other.Secret, other.Token, known(other)
				}))
			if got := post(h, tt.secret, body(tt.to)); got != tt.want {
				t.Errorf("status %d, want %d", got, tt.want)
			}
			got := s.got()
			if tt.channel == "" && len(got) != 0 || tt.channel != "" && (len(got) != 1 || got[0].Address.Channel != tt.channel) {
				t.Errorf("accepted %+v, want one of channel %q", got, tt.channel)
			}
		})
	}
}

// TestDestinationIsLearntOnce: after the first verified webhook, another destination is refused even
// when it is signed with the same secret.
func TestDestinationIsLearntOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := w.a.Webhook(w.sink)
	body := func(id string) string { return `{"destination":"` + id + `","events":[]}` }
	for _, tt := range []struct {
		id   string
		want int
	}{
		{w.bot.ID, 200}, {w.alice.ID, 403}, {w.bot.ID, 200},
	} {
		if got := post(h, w.bot.Secret, body(tt.id)); got != tt.want {
			t.Errorf("destination %s: status %d, want %d", tt.id, got, tt.want)
		}
	}
}
