package discord

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"botd/channels"
	"botd/channels/discord/discordfake"
)

// unconnected is an adapter that never runs; what it would ask Discord fails at once.
func unconnected(tb testing.TB) *Adapter {
	tb.Helper()
	net := discordfake.NewMemory()
	_ = net.Close()
	a, err := New(Options{Channel: "discord", Token: testToken, APIBase: "http://discord.test", Dial: net.Dial})
	if err != nil {
		tb.Fatal(err)
	}
	a.dir.setSelf("1")
	return a
}

const sampleMessage = `{"id":"1521847841587200015","channel_id":"20","guild_id":"30","channel_type":0,"type":19,"content":"<@1> what of <@2>, <#7> and <t:1700000000:R>?",
"author":{"id":"2","username":"ada","global_name":"Ada","avatar":null,"discriminator":"0"},"member":{"nick":"Countess","roles":["5"],"joined_at":"2020-01-01T00:00:00Z"},
"timestamp":"2026-07-01T12:00:00.000000+00:00","edited_timestamp":null,"tts":false,"mention_everyone":false,"mentions":[{"id":"1","username":"botd","bot":true},{"id":"2","username":"ada"}],
"mention_roles":["51"],"attachments":[{"id":"9","filename":"a.png","content_type":"image/png","size":5,"url":"https://cdn.discordapp.com/a.png?ex=1"}],"embeds":[{"type":"rich","title":"T","description":"D"}],
"components":[{"type":20}],"sticker_items":[{"id":"3","name":"wave","format_type":1}],"pinned":false,"flags":0,"nonce":"5",
"message_reference":{"type":0,"message_id":"8","channel_id":"20"},"referenced_message":{"id":"8","content":"quoted words","author":{"id":"1","username":"botd"}},
"message_snapshots":[{"message":{"content":"forwarded","attachments":[]}}],"poll":{"question":{"text":"Tea?"},"answers":[{"poll_media":{"text":"yes"}}]}}`

const sampleInteraction = `{"id":"1521847841587200016","application_id":"1","type":2,"token":"tok","version":1,"channel_id":"20","guild_id":"30","locale":"zh-TW",
"channel":{"id":"20","type":11,"parent_id":"21","name":"talk"},"member":{"nick":null,"user":{"id":"2","username":"ada"}},"data":{"id":"4","name":"ask","type":1,"options":[{"name":"q","type":3,"value":"why?"},{"name":"n","type":4,"value":3}]}}`

// FuzzEvent feeds events as the gateway sends them. Whatever they hold: no panic, and what becomes an
// event is fit for the journal and answers to its source.
func FuzzEvent(f *testing.F) {
	f.Add("MESSAGE_CREATE", sampleMessage)
	f.Add("INTERACTION_CREATE", sampleInteraction)
	f.Add("MESSAGE_CREATE", `{"id":"1","channel_id":"2","author":{"id":"3"}}`)
	f.Add("MESSAGE_CREATE", `{"id":"1","channel_id":"2","author":{"id":"3"},"content":"<@1><@1","mentions":[{"id":"1"}],"channel_type":1}`)
	f.Add("MESSAGE_CREATE", `{"id":"1","channel_id":"2","author":null}`)
	f.Add("GUILD_CREATE", `{"id":"30","channels":[{"id":"7","type":0,"name":"general"}],"roles":[{"id":"51","tags":{"bot_id":"1"}}],"threads":[null]}`)
	f.Add("THREAD_CREATE", `{"id":"8","type":11,"parent_id":"7"}`)
	f.Add("READY", `{"user":{"id":"1"},"session_id":"s"}`)
	f.Fuzz(func(t *testing.T, event, raw string) {
		a := unconnected(t)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if !json.Valid([]byte(raw)) {
			return // the gateway's frames were decoded before
		}
		a.dir.addRoom(room{ID: "20", Type: typePublicThread, ParentID: lenient[string]{"21"}})
		var in channels.Inbound
		var ok bool
		var err error
		switch event {
		case "MESSAGE_CREATE":
			var m *message
			if m, err = decodeMessage([]byte(raw)); err == nil {
				in, ok = a.inbound(ctx, m)
			}
		case "INTERACTION_CREATE":
			in, err = a.commandInbound(ctx, json.RawMessage(raw), true)
			ok = err == nil
		case "GUILD_CREATE":
			var g guild
			if json.Unmarshal([]byte(raw), &g) == nil {
				a.dir.join(g)
			}
			return
		default:
			_ = a.dir.observe(event, json.RawMessage(raw))
			return
		}
		if !ok {
			return
		}
		if err != nil {
			t.Fatalf("an event and an error: %v", err)
		}
		if in.ID == "" || in.Kind != channels.Message || in.Address.Channel != "discord" || in.Address.Room == "" || in.Address.User != in.Speaker.ID || in.Speaker.ID == "" || in.Speaker.Bot {
			t.Errorf("event %+v", in)
		}
		for _, p := range in.Parts {
			if p.Text == "" && p.Media == nil || !utf8.ValidString(p.Text) {
				t.Errorf("part %+v", p)
			}
		}
		stored, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		var back channels.Inbound
		if err := json.Unmarshal(stored, &back); err != nil || back.PlainText() != in.PlainText() {
			t.Errorf("the journal gives back another event: %v", err)
		}
		for _, out := range a.Compose(channels.Outbound{ID: "x", To: in.Address, Reply: in.Reply, Quote: true, Parts: in.Parts}) {
			if n := utf8.RuneCountInString(out.PlainText()); n == 0 || n > maxContent {
				t.Errorf("composed a message of %d code points", n)
			}
		}
	})
}

// FuzzCompose: whatever is answered, each message fits, and no literal text turns into markup that pings.
func FuzzCompose(f *testing.F) {
	f.Add("**bold** text", "markdown")
	f.Add("2 * 3 * 4 <@1> # not a heading\n- no list\n> no quote", "text")
	f.Add("https://a.test/x_y_z and `code`", "text")
	f.Add("```go\n"+strings.Repeat("x\n", 1500)+"```", "markdown")
	f.Fuzz(func(t *testing.T, text, kind string) {
		if kind != string(channels.Markdown) {
			kind = string(channels.Text)
		}
		a := unconnected(t)
		for _, out := range a.Compose(channels.Outbound{ID: "x", Parts: []channels.Part{{Type: channels.PartType(kind), Text: text}}}) {
			s := out.PlainText()
			if n := utf8.RuneCountInString(s); n == 0 || n > maxContent || !utf8.ValidString(s) || strings.TrimSpace(s) == "" {
				t.Errorf("composed %d code points: %q", n, s)
			}
		}
	})
}

func FuzzReply(f *testing.F) {
	f.Add([]byte(`{"m":"123"}`))
	f.Add([]byte(`{"i":{"id":"1","app":"2","token":"t"},"n":1}`))
	f.Add([]byte(`{"m":"../x"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := decodeReply(b)
		if r.Message != "" && !isSnowflake(r.Message) || r.Interaction != nil && !isSnowflake(r.Interaction.App) {
			t.Errorf("kept %+v", r)
		}
		before(r)
		r.asked()
	})
}
