package line_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"botd/channels"
	"botd/channels/line/linefake"
)

func TestMessagesBecomeParts(t *testing.T) {
	t.Parallel()
	text := func(s string) channels.Part { return channels.Part{Type: channels.Text, Text: s} }
	for _, tt := range []struct {
		name    string
		content linefake.Content
		want    channels.Part // Media.ID is the message's
	}{
		{"text", linefake.Text{Text: "hello 🍎\nworld"}, text("hello 🍎\nworld")},
		{"sticker", linefake.Sticker{Keywords: []string{"happy", "sun"}}, channels.Part{Type: channels.Sticker, Text: "happy, sun"}},
		{"sticker without keywords", linefake.Sticker{}, channels.Part{Type: channels.Sticker}},
		{"message sticker", linefake.Sticker{Text: "Good morning"}, channels.Part{Type: channels.Sticker, Text: "Good morning"}},
		{"message sticker with keywords", linefake.Sticker{Text: "Hi", Keywords: []string{"hand"}}, channels.Part{Type: channels.Sticker, Text: "Hi (hand)"}},
		{"image", linefake.Media{Type: "image"}, channels.Part{Type: channels.Image, Media: &channels.MediaRef{}}},
		{"image of a set", linefake.Media{Type: "image", Set: "7", Index: 2, Total: 3}, channels.Part{Type: channels.Image, Text: "2 of 3", Media: &channels.MediaRef{}}},
		{"image kept elsewhere", linefake.Media{Type: "image", URL: "https://example.com/a.jpg"}, channels.Part{Type: channels.Image, Media: &channels.MediaRef{URL: "https://example.com/a.jpg"}}},
		{"video", linefake.Media{Type: "video", Duration: 65 * time.Second}, channels.Part{Type: channels.Video, Text: "1m5s", Media: &channels.MediaRef{}}},
		{"short audio", linefake.Media{Type: "audio", Duration: 100 * time.Millisecond}, channels.Part{Type: channels.Audio, Text: "1s", Media: &channels.MediaRef{}}},
		{"audio without duration", linefake.Media{Type: "audio"}, channels.Part{Type: channels.Audio, Media: &channels.MediaRef{}}},
		{"file", linefake.Media{Type: "file", Name: "report.pdf", Size: 12}, channels.Part{Type: channels.File, Text: "report.pdf", Media: &channels.MediaRef{Name: "report.pdf", Size: 12}}},
		{"file of 3 GB", linefake.Media{Type: "file", Name: "film.mp4", Size: 3 << 30}, channels.Part{Type: channels.File, Text: "film.mp4", Media: &channels.MediaRef{Name: "film.mp4", Size: 3 << 30}}},
		{"location", linefake.Location{Title: "Office", Address: "1-3 Kioicho", Latitude: 35.67966, Longitude: 139.73669}, channels.Part{Type: channels.Location, Text: "Office, 1-3 Kioicho (35.67966, 139.73669)"}},
		{"location without title", linefake.Location{Address: "1-3 Kioicho", Latitude: -1, Longitude: 2}, channels.Part{Type: channels.Location, Text: "1-3 Kioicho (-1, 2)"}},
		{"bare location", linefake.Location{Latitude: 35.5, Longitude: 139}, channels.Part{Type: channels.Location, Text: "(35.5, 139)"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			in := w.post(w.chat, w.alice, tt.content)
			if tt.want.Media != nil {
				tt.want.Media.ID = in.MessageID
			}
			if diff := cmp.Diff([]channels.Part{tt.want}, in.Parts); diff != "" {
				t.Errorf("parts (-want +got):\n%s", diff)
			}
			if in.Kind != channels.Message || in.MessageID == "" {
				t.Errorf("kind %q, message ID %q", in.Kind, in.MessageID)
			}
		})
	}
}

// TestUnsendNamesTheMessage: in a group too, where it speaks to nobody (Messaging API reference, Unsend
// event). There is no token to reply with.
func TestUnsendNamesTheMessage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bob := w.fake.AddUser(linefake.UserConfig{})
	for _, chat := range []*linefake.Chat{w.chat, w.bot.Group(w.alice, bob)} {
		said := chat.Message(w.alice, linefake.Text{Text: "hello"})
		back := chat.Unsend(w.alice, said.MessageID)
		before := len(w.sink.got())
		if res := w.bot.Deliver(t.Context(), said, back); !res.OK() {
			t.Fatalf("got %+v, want 200", res)
		}
		got := w.sink.got()[before:]
		if len(got) != 2 || got[1].Kind != channels.Unsend || got[1].Refers != got[0].MessageID ||
			got[1].Address != got[0].Address || got[1].ID == got[0].ID || len(got[1].Parts) > 0 || got[1].Reply != nil {
			t.Errorf("accepted %+v, want a message and that it was taken back", got)
		}
	}
	for name, odd := range map[string]any{"no message": map[string]any{}, "too long": map[string]any{"messageId": strings.Repeat("1", 200)}} {
		before := w.a.Stats()
		if res := w.bot.Deliver(t.Context(), w.chat.Event(w.alice, "unsend", false, map[string]any{"unsend": odd})); !res.OK() {
			t.Errorf("%s: got %+v, want 200", name, res)
		}
		if s := w.a.Stats(); s.Quarantined != before.Quarantined+1 {
			t.Errorf("%s: stats %+v, want one more event set aside than %+v", name, s, before)
		}
	}
}

// handle is the documented form of Inbound.Reply: it is stored, and may not change.
type handle struct {
	Token    string    `json:"token"`
	Deadline time.Time `json:"deadline"`
	Quote    string    `json:"quote"`
}

func decode(t *testing.T, in channels.Inbound) handle {
	t.Helper()
	var h handle
	if err := json.Unmarshal(in.Reply, &h); err != nil {
		t.Fatalf("reply %q: %v", in.Reply, err)
	}
	return h
}

func TestEventsBecomeInbound(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bob := w.fake.AddUser(linefake.UserConfig{})
	group, room := w.bot.Group(w.alice, bob), w.bot.Room(w.alice)
	direct := channels.Address{Channel: "line-shop", Kind: channels.Direct, Room: w.alice.ID, User: w.alice.ID}
	in := func(c *linefake.Chat, user string) channels.Address {
		return channels.Address{Channel: "line-shop", Kind: channels.Group, Room: c.ID, User: user}
	}
	message := func(c *linefake.Chat, from *linefake.User) linefake.Event {
		return c.Message(from, linefake.Text{Text: "hi"})
	}
	for _, tt := range []struct {
		name string
		ev   linefake.Event
		want channels.Inbound // without what every event has
	}{
		{"message in a direct chat", message(w.chat, w.alice), channels.Inbound{Kind: channels.Message, Address: direct, Mentioned: true}},
		{"message in a group", message(group, bob), channels.Inbound{Kind: channels.Message, Address: in(group, bob.ID)}},
		{"message in a room", message(room, w.alice), channels.Inbound{Kind: channels.Message, Address: in(room, w.alice.ID)}},
		{"message of somebody without consent", message(group, nil), channels.Inbound{Kind: channels.Message, Address: in(group, "")}},
		{"postback", w.chat.Postback(w.alice, "action=more", nil), channels.Inbound{
			Kind: channels.Postback, Address: direct, Mentioned: true, Parts: []channels.Part{{Type: channels.Text, Text: "action=more"}},
		}},
		{"postback in a group", group.Postback(bob, "x", map[string]string{"date": "2026-12-01"}), channels.Inbound{
			Kind: channels.Postback, Address: in(group, bob.ID), Mentioned: true, Parts: []channels.Part{{Type: channels.Text, Text: "x"}},
		}},
		{"postback with params that are no strings", linefake.RawEvent(`{"type":"postback","webhookEventId":"01H","timestamp":1,"replyToken":"t","source":{"type":"user","userId":"` + w.alice.ID + `"},"postback":{"data":"x","params":{"n":5}}}`), channels.Inbound{
			Kind: channels.Postback, Address: direct, Mentioned: true, Parts: []channels.Part{{Type: channels.Text, Text: "x"}},
		}},
		{"follow", w.chat.Follow(), channels.Inbound{Kind: channels.Follow, Address: direct, Mentioned: true}},
		{"join", group.Join(), channels.Inbound{Kind: channels.Join, Address: in(group, "")}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if res := w.bot.Deliver(t.Context(), tt.ev); !res.OK() {
				t.Fatalf("got %+v", res)
			}
			got := w.sink.last(t)
			if tt.ev.ID != "" {
				tt.want.ID, tt.want.MessageID = tt.ev.ID, tt.ev.MessageID
				tt.want.Time = time.UnixMilli(tt.ev.Body["timestamp"].(int64)).UTC()
			} else {
				tt.want.ID, tt.want.Time = "01H", time.UnixMilli(1).UTC()
			}
			tt.want.Speaker.ID = tt.want.Address.User
			if tt.want.Kind == channels.Message {
				tt.want.Parts = []channels.Part{{Type: channels.Text, Text: "hi"}}
			}
			if diff := cmp.Diff(tt.want, got, cmpopts.IgnoreFields(channels.Inbound{}, "Reply")); diff != "" {
				t.Errorf("inbound (-want +got):\n%s", diff)
			}
			if h := decode(t, got); h.Token == "" || h.Deadline.IsZero() {
				t.Errorf("no reply token in %+v", h)
			}
		})
	}
}

// TestEventWithoutUsableTimeHappenedOnArrival: whatever stands in the place of the time, the event can be
// stored, and so it does not take others with it that came in the same webhook.
func TestEventWithoutUsableTimeHappenedOnArrival(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name      string
		timestamp any // nil for none
	}{
		{"none", nil},
		{"zero", 0},
		{"negative", -1},
		{"the first millisecond of the year 10000", int64(253402300800000)},
		{"the largest number", int64(math.MaxInt64)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			ev := w.chat.Message(w.alice, linefake.Text{Text: "hi"})
			delete(ev.Body, "timestamp")
			if tt.timestamp != nil {
				ev.Body["timestamp"] = tt.timestamp
			}
			before := time.Now()
			w.bot.Deliver(t.Context(), ev)
			got := w.sink.last(t)
			if got.Time.Before(before) || got.Time.After(time.Now()) {
				t.Errorf("time %v, want now", got.Time)
			}
			if _, err := json.Marshal(got); err != nil {
				t.Errorf("not storable: %v", err)
			}
		})
	}
}

func TestReplyHandle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		ev, _ := w.chat.Say(t.Context(), w.alice, "hello")
		want := handle{Token: ev.ReplyToken, Deadline: time.Now().Add(time.Minute), Quote: quoteToken(ev)}
		if diff := cmp.Diff(want, decode(t, w.sink.last(t))); diff != "" {
			t.Errorf("first delivery (-want +got):\n%s", diff)
		}
		time.Sleep(19*time.Minute + 30*time.Second)
		w.bot.Redeliver(t.Context(), ev)
		// The token lives another minute, but not beyond 20 minutes after the event.
		want.Deadline = time.Now().Add(30 * time.Second)
		if diff := cmp.Diff(want, decode(t, w.sink.last(t))); diff != "" {
			t.Errorf("redelivery (-want +got):\n%s", diff)
		}
	})
}

func quoteToken(ev linefake.Event) string {
	return ev.Body["message"].(map[string]any)["quoteToken"].(string)
}

func TestEventWithoutAnyTokenHasNoHandle(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ev := w.chat.Message(w.alice, linefake.Location{Latitude: 1, Longitude: 2})
	delete(ev.Body, "replyToken")
	w.bot.Deliver(t.Context(), ev)
	if got := w.sink.last(t).Reply; got != nil {
		t.Errorf("reply %q, want none", got)
	}
}

func TestMentioned(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	group := w.bot.Group(w.alice)
	asked := w.post(group, w.alice, linefake.Text{Text: "@Shop hi", Mentions: []linefake.Mention{{At: "@Shop", Self: true}}})
	receipt, err := w.a.Send(t.Context(), w.one(asked, "hello"))
	if err != nil || len(receipt.MessageIDs) != 1 {
		t.Fatalf("got %+v, %v", receipt, err)
	}
	for _, tt := range []struct {
		name    string
		content linefake.Content
		want    bool
	}{
		{"nobody", linefake.Text{Text: "hi all"}, false},
		{"the bot", linefake.Text{Text: "@Shop hi", Mentions: []linefake.Mention{{At: "@Shop", Self: true}}}, true},
		{"somebody else", linefake.Text{Text: "@Bob hi", Mentions: []linefake.Mention{{At: "@Bob"}}}, false},
		{"everybody", linefake.Text{Text: "@All hi", Mentions: []linefake.Mention{{At: "@All", All: true}}}, false},
		{"the bot's name as plain text", linefake.Text{Text: "@Shop hi"}, false},
		{"a text that quotes the bot", linefake.Text{Text: "why?", Quotes: receipt.MessageIDs[0]}, true},
		{"a sticker that quotes the bot", linefake.Sticker{Quotes: receipt.MessageIDs[0]}, true},
		{"a text that quotes somebody else", linefake.Text{Text: "why?", Quotes: asked.MessageID}, false},
		{"a picture", linefake.Media{Type: "image"}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := w.post(group, w.alice, tt.content)
			if in.Mentioned != tt.want {
				t.Errorf("mentioned %v, want %v", in.Mentioned, tt.want)
			}
			if q, is := tt.content.(linefake.Text); is && in.Refers != q.Quotes {
				t.Errorf("refers to %q, want %q", in.Refers, q.Quotes)
			}
		})
	}
}

// mentionee is one entry of mention.mentionees as LINE writes it.
func mentionee(index, length int, self bool) map[string]any {
	return map[string]any{"type": "user", "index": index, "length": length, "isSelf": self}
}

func TestMentionOfTheBotIsTakenOutOfTheText(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	group := w.bot.Group(w.alice)
	for _, tt := range []struct {
		name, text string
		mentionees []map[string]any
		want       string
	}{
		{"in front", "@Shop /reset", []map[string]any{mentionee(0, 5, true)}, "/reset"},
		{"in front, line break", "@Shop\nhello", []map[string]any{mentionee(0, 5, true)}, "hello"},
		{"in the middle", "hey @Shop what time", []map[string]any{mentionee(4, 5, true)}, "hey what time"},
		{"at the end", "what time @Shop", []map[string]any{mentionee(10, 5, true)}, "what time"},
		{"name of two words", "@Shop Bot hello", []map[string]any{mentionee(0, 9, true)}, "hello"},
		{"ideographic space", "@Shop　こんにちは", []map[string]any{mentionee(0, 5, true)}, "こんにちは"},
		{"no space", "@Shop今何時", []map[string]any{mentionee(0, 5, true)}, "今何時"},
		{"full-width sign", "＠Shop hello", []map[string]any{mentionee(0, 5, true)}, "hello"},
		{"twice", "@Shop @Shop hello", []map[string]any{mentionee(0, 5, true), mentionee(6, 5, true)}, "hello"},
		{"in any order", "@Shop hi @Shop", []map[string]any{mentionee(9, 5, true), mentionee(0, 5, true)}, "hi"},
		{"the same place twice", "@Shop hello", []map[string]any{mentionee(0, 5, true), mentionee(0, 5, true)}, "hello"},
		{"others stay", "@Shop ask @Bob", []map[string]any{mentionee(0, 5, true), mentionee(10, 4, false)}, "ask @Bob"},
		{"alone", "@Shop", []map[string]any{mentionee(0, 5, true)}, "@Shop"},
		{"after an emoji, in UTF-16 units", "🍎🍎 @Shop hi", []map[string]any{mentionee(5, 5, true)}, "🍎🍎 hi"},
		{"after an emoji, in code points", "🍎🍎 @Shop hi", []map[string]any{mentionee(3, 5, true)}, "🍎🍎 hi"},
		{"within an emoji", "🍎 @Shop hi", []map[string]any{mentionee(1, 5, true)}, "🍎 @Shop hi"},
		{"not at a sign", "hello @Shop", []map[string]any{mentionee(0, 5, true)}, "hello @Shop"},
		{"beyond the end", "@Shop", []map[string]any{mentionee(0, 500, true)}, "@Shop"},
		{"negative", "@Shop hi", []map[string]any{mentionee(-1, 5, true)}, "@Shop hi"},
		{"of no length", "@Shop hi", []map[string]any{mentionee(0, 0, true)}, "@Shop hi"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ev := group.Message(w.alice, linefake.Text{Text: tt.text})
			ev.Body["message"].(map[string]any)["mention"] = map[string]any{"mentionees": tt.mentionees}
			if res := w.bot.Deliver(t.Context(), ev); !res.OK() {
				t.Fatalf("got %+v", res)
			}
			in := w.sink.last(t)
			if got := in.PlainText(); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			if !in.Mentioned {
				t.Error("not mentioned: where the mention stands must not matter")
			}
		})
	}
}
