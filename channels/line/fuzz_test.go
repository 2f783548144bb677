package line_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
	"unicode/utf8"

	"botd/channels"
	"botd/channels/line"
	"botd/channels/line/linefake"
)

const (
	fuzzSecret = "0123456789abcdef0123456789abcdef"
	fuzzBot    = "U0123456789abcdef0123456789abcdef"
	fuzzUser   = "U00000000000000000000000000000001"
)

// everyEvent makes one event of every type that LINE knows, and some that it does not.
func everyEvent() (map[string]linefake.Event, *linefake.Bot) {
	s := linefake.New(linefake.Options{})
	bot := s.AddBot(linefake.BotConfig{ID: fuzzBot, Secret: fuzzSecret})
	alice, bob := s.AddUser(linefake.UserConfig{}), s.AddUser(linefake.UserConfig{})
	one, group, room := bot.Direct(alice), bot.Group(alice, bob), bot.Room(bob)
	message := func(content linefake.Content) linefake.Event { return group.Message(bob, content) }
	other := func(typ string, token bool, properties map[string]any) linefake.Event {
		return one.Event(alice, typ, token, properties)
	}
	events := map[string]linefake.Event{
		"text":           message(linefake.Text{Text: "🍎 @Shop hi", Quotes: "1", Mentions: []linefake.Mention{{At: "@Shop", Self: true}}}),
		"text in a room": room.Message(nil, linefake.Text{Text: "@All", Mentions: []linefake.Mention{{At: "@All", All: true}}}),
		"sticker":        message(linefake.Sticker{Keywords: []string{"a"}, Text: "b"}),
		"image":          message(linefake.Media{Type: "image", Set: "1", Index: 1, Total: 2}),
		"external":       message(linefake.Media{Type: "image", URL: "https://example.com/"}),
		"video":          message(linefake.Media{Type: "video", Duration: time.Second}),
		"audio":          message(linefake.Media{Type: "audio", Duration: time.Hour}),
		"file":           message(linefake.Media{Type: "file", Name: "a.pdf", Size: 1 << 40}),
		"location":       message(linefake.Location{Title: "a", Address: "b", Latitude: 1, Longitude: -1}),
		"poll":           message(linefake.Other{Type: "poll"}),
		"postback":       one.Postback(alice, "data", map[string]string{"date": "2026-12-01"}),
		"follow":         one.Follow(), "unfollow": one.Unfollow(), "join": group.Join(), "leave": group.Leave(),
		"memberJoined": group.MemberJoined(alice), "memberLeft": group.MemberLeft(alice),
		"unsend": one.Unsend(alice, "1"), "messageEdited": group.Edit(alice, "1", "b"),
	}
	for typ, properties := range map[string]map[string]any{
		"videoPlayComplete": {"videoPlayComplete": map[string]any{"trackingId": "t"}},
		"beacon":            {"beacon": map[string]any{"hwid": "d4", "type": "enter"}},
		"accountLink":       {"link": map[string]any{"result": "failed", "nonce": "n"}},
		"membership":        {"membership": map[string]any{"type": "joined", "membershipId": 1}},
		"module":            {"module": map[string]any{"type": "attached", "botId": fuzzBot, "scopes": []string{}}},
		"activated":         {"chatControl": map[string]any{"expireAt": 1}},
		"deactivated":       {}, "botSuspended": {}, "botResumed": {},
		"delivery":  {"delivery": map[string]any{"data": "x"}},
		"things":    {"things": map[string]any{"deviceId": "t", "type": "link"}},
		"telepathy": {"thought": true},
	} {
		events[typ] = other(typ, true, properties)
	}
	return events, bot
}

func FuzzWebhook(f *testing.F) {
	events, bot := everyEvent()
	var all []linefake.Event
	for _, ev := range events {
		all = append(all, ev)
		body, err := bot.Encode(ev)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(body)
	}
	batch, err := bot.Encode(all...)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(batch)
	for _, body := range []string{
		"", "null", "[]", `{"destination":"` + fuzzBot + `"}`,
		`{"destination":"` + fuzzBot + `","events":[null,1,"a",[],{},{"type":1}]}`,
		`{"destination":"` + fuzzBot + `","events":[{"type":"postback","webhookEventId":"1","timestamp":9223372036854775807,"source":{"type":"user","userId":"` + fuzzUser + `"}}]}`,
		`{"destination":"` + fuzzBot + `","events":[{"type":"message","webhookEventId":"1","source":{"type":"user","userId":"` + fuzzUser + `"},"message":{"id":"1","type":"text","text":"\ud83d @a","mention":{"mentionees":[{"type":"user","isSelf":true,"index":2,"length":1e9}]}}}]}`,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		a, err := line.New(line.Options{Channel: "c", Secret: fuzzSecret, Token: "t"})
		if err != nil {
			t.Fatal(err)
		}
		s := &sink{}
		status := post(a.Webhook(s), fuzzSecret, string(body))
		if status != http.StatusOK && status != http.StatusBadRequest {
			t.Errorf("status %d", status)
		}
		if post(a.Webhook(refusing{}), fuzzSecret+"x", string(body)) != http.StatusForbidden {
			t.Error("a wrong signature was taken")
		}
		stats := a.Stats()
		if status == http.StatusOK {
			var b struct{ Events []json.RawMessage }
			if err := json.Unmarshal(body, &b); err != nil {
				t.Fatalf("accepted: %v", err)
			}
			if n := stats.Accepted + stats.Ignored + stats.Quarantined; n != uint64(len(b.Events)) {
				t.Errorf("%d of %d events are accounted for", n, len(b.Events))
			}
		}
		for _, in := range s.got() {
			check(t, a, in)
		}
	})
}

// check judges one event by what channels promises of events.
func check(t *testing.T, a *line.Adapter, in channels.Inbound) {
	t.Helper()
	switch {
	case in.ID == "" || in.Address.Channel != "c" || in.Address.Room == "" || in.Time.IsZero():
		t.Errorf("incomplete: %+v", in)
	case in.Address.Kind == channels.Direct && (in.Address.Room != in.Address.User || !in.Mentioned):
		t.Errorf("direct: %+v", in)
	case in.Kind == channels.Message && (in.MessageID == "" || len(in.Parts) != 1):
		t.Errorf("message: %+v", in)
	case !utf8.ValidString(in.PlainText()):
		t.Errorf("text %q", in.PlainText())
	case in.Reply != nil && !json.Valid(in.Reply):
		t.Errorf("reply %q", in.Reply)
	}
	if _, err := json.Marshal(in); err != nil {
		t.Errorf("not storable: %v", err)
	}
	a.Compose(channels.Outbound{To: in.Address, Reply: in.Reply, Quote: true, Parts: in.Parts})
}

// BenchmarkWebhook is the whole way of a webhook: signature, parsing, sink.
func BenchmarkWebhook(b *testing.B) {
	events, bot := everyEvent()
	var all []linefake.Event
	for _, ev := range events {
		all = append(all, ev)
	}
	for name, batch := range map[string][]linefake.Event{"one text": {events["text"]}, "every event": all} {
		body, err := bot.Encode(batch...)
		if err != nil {
			b.Fatal(err)
		}
		a, err := line.New(line.Options{Channel: "c", Secret: fuzzSecret, Token: "t"})
		if err != nil {
			b.Fatal(err)
		}
		h, signature := a.Webhook(discarding{}), linefake.Sign(fuzzSecret, body)
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				r := httptest.NewRequest("POST", "/line", bytes.NewReader(body))
				r.Header.Set("X-Line-Signature", signature)
				rec := httptest.NewRecorder()
				if h.ServeHTTP(rec, r); rec.Code != http.StatusOK {
					b.Fatal("refused")
				}
			}
		})
	}
}

type discarding struct{}

func (discarding) Accept(context.Context, ...channels.Inbound) error { return nil }
