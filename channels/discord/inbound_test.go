package discord

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"botd/channels"
	"botd/channels/discord/discordfake"
)

func withContent(f *discordfake.Options, o *Options) {
	f.Privileged, o.MessageContent = discordfake.MessageContent, true
}

func TestInbound_Address(t *testing.T) {
	tests := map[string]struct {
		say  func(s *scene) discordfake.Saying
		want func(s *scene) channels.Address
	}{
		"direct": {
			func(s *scene) discordfake.Saying {
				return discordfake.Saying{From: s.ada.ID, Room: s.direct, Text: "x"}
			},
			func(s *scene) channels.Address {
				return channels.Address{Kind: channels.Direct, Room: s.direct, User: s.ada.ID}
			},
		},
		"room": {
			func(s *scene) discordfake.Saying {
				return discordfake.Saying{From: s.bob.ID, Room: s.room, Text: s.mention("x")}
			},
			func(s *scene) channels.Address {
				return channels.Address{Kind: channels.Room, Room: s.room, User: s.bob.ID}
			},
		},
		"thread": {
			func(s *scene) discordfake.Saying {
				return discordfake.Saying{From: s.bob.ID, Room: s.thread, Text: s.mention("x")}
			},
			func(s *scene) channels.Address {
				return channels.Address{Kind: channels.Room, Room: s.room, Thread: s.thread, User: s.bob.ID}
			},
		},
		"thread, by an event without channel_type": {
			func(s *scene) discordfake.Saying {
				return discordfake.Saying{From: s.bob.ID, Room: s.thread, Text: s.mention("x"), Extra: map[string]any{"channel_type": nil}}
			},
			func(s *scene) channels.Address {
				return channels.Address{Kind: channels.Room, Room: s.room, Thread: s.thread, User: s.bob.ID}
			},
		},
		"room, by an event without channel_type": {
			func(s *scene) discordfake.Saying {
				return discordfake.Saying{From: s.bob.ID, Room: s.room, Text: s.mention("x"), Extra: map[string]any{"channel_type": "odd"}}
			},
			func(s *scene) channels.Address {
				return channels.Address{Kind: channels.Room, Room: s.room, User: s.bob.ID}
			},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := started(t)
				want := tt.want(s)
				want.Channel = "discord"
				if diff := cmp.Diff(want, s.hear(tt.say(s)).Address); diff != "" {
					t.Errorf("address (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestInbound_UnknownThread: a thread that no event has told of is looked up, once.
func TestInbound_UnknownThread(t *testing.T) {
	ask := func(s *scene) int {
		return len(slices.DeleteFunc(s.srv.Requests(), func(r discordfake.Request) bool { return r.Path != "/channels/"+s.thread }))
	}
	forget := func(s *scene) {
		s.a.dir.mu.Lock()
		defer s.a.dir.mu.Unlock()
		s.a.dir.rooms = newLRU[room](knownRooms)
	}
	t.Run("is asked for once", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			s := started(t)
			forget(s)
			for range 3 {
				in := s.hear(discordfake.Saying{From: s.ada.ID, Room: s.thread, Text: s.mention("x")})
				if in.Address.Room != s.room || in.Address.Thread != s.thread {
					t.Errorf("address %+v", in.Address)
				}
			}
			if n := ask(s); n != 1 {
				t.Errorf("asked %d times", n)
			}
		})
	})
	t.Run("is asked for again after a passing failure", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			s := started(t)
			forget(s)
			s.srv.Inject(discordfake.Fault{Path: "/channels/*", Drop: true})
			s.say(discordfake.Saying{From: s.ada.ID, Room: s.thread, Text: s.mention("x")})
			time.Sleep(2 * roomWait)
			if all := s.sink.all(); len(all) != 1 || all[0].Address.Room != s.room {
				t.Errorf("events %+v", all)
			}
		})
	})
	t.Run("stands for itself when Discord does not tell", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			s := started(t)
			forget(s)
			s.srv.Inject(discordfake.Fault{Path: "/channels/*", Drop: true, Times: -1})
			s.say(discordfake.Saying{From: s.ada.ID, Room: s.thread, Text: s.mention("x")})
			time.Sleep(2 * roomWait)
			if all := s.sink.all(); len(all) != 1 || all[0].Address.Room != s.thread || all[0].Address.Thread != s.thread {
				t.Errorf("events %+v", all)
			}
		})
	})
}

func TestInbound_Mention(t *testing.T) {
	mine := func(s *scene) discordfake.Message { return s.botSays("earlier words") }
	tests := map[string]struct {
		content bool // MESSAGE_CONTENT
		say     func(s *scene) discordfake.Saying
		// want is what is heard: "" nothing, else the text; mentioned says whether it is for the bot.
		want      string
		mentioned bool
	}{
		"named": {false, func(s *scene) discordfake.Saying { return discordfake.Saying{Text: s.mention("hello")} }, "hello", true},
		"named, old form": {false, func(s *scene) discordfake.Saying {
			return discordfake.Saying{Text: "<@!" + s.srv.Bot().ID + ">, hello"}
		}, "hello", true},
		"named at the end": {false, func(s *scene) discordfake.Saying { return discordfake.Saying{Text: "hello <@" + s.srv.Bot().ID + ">"} }, "hello", true},
		"named amid": {false, func(s *scene) discordfake.Saying {
			return discordfake.Saying{Text: "I asked <@" + s.srv.Bot().ID + "> that"}
		}, "I asked @botd that", true},
		"named and no more":                 {false, func(s *scene) discordfake.Saying { return discordfake.Saying{Text: s.mention("")} }, "@botd", true},
		"its role":                          {true, func(s *scene) discordfake.Saying { return discordfake.Saying{Text: "<@&" + s.role + "> hello"} }, "hello", true},
		"another role":                      {true, func(s *scene) discordfake.Saying { return discordfake.Saying{Text: "<@&" + s.guild + "> hello"} }, "@@everyone hello", false},
		"everyone":                          {true, func(s *scene) discordfake.Saying { return discordfake.Saying{Text: "@everyone hello"} }, "@everyone hello", false},
		"somebody else":                     {true, func(s *scene) discordfake.Saying { return discordfake.Saying{Text: "<@" + s.bob.ID + "> hello"} }, "@Bob hello", false},
		"nobody":                            {true, func(*scene) discordfake.Saying { return discordfake.Saying{Text: "hello"} }, "hello", false},
		"nobody, and the content is hidden": {false, func(*scene) discordfake.Saying { return discordfake.Saying{Text: "hello"} }, "", false},
		"answered":                          {false, func(s *scene) discordfake.Saying { return discordfake.Saying{Text: "go on", ReplyTo: mine(s).ID} }, "go on\n[in reply to you: earlier words]", true},
		"answered without a ping": {true, func(s *scene) discordfake.Saying {
			return discordfake.Saying{Text: "go on", ReplyTo: mine(s).ID, Silent: true}
		}, "go on\n[in reply to you: earlier words]", true},
		"answered without a ping, and the content is hidden": {false, func(s *scene) discordfake.Saying {
			return discordfake.Saying{Text: "go on", ReplyTo: mine(s).ID, Silent: true}
		}, "", false},
		"another person answered": {true, func(s *scene) discordfake.Saying {
			return discordfake.Saying{Text: "indeed", ReplyTo: s.say(discordfake.Saying{From: s.bob.ID, Room: s.room, Text: "quite"}).ID}
		}, "indeed\n[in reply to Bob: quite]", false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := started(t, func(f *discordfake.Options, o *Options) {
					if tt.content {
						withContent(f, o)
					}
				})
				m := tt.say(s)
				m.From, m.Room = s.ada.ID, s.room
				before := len(s.sink.all())
				sent := s.say(m)
				all := s.sink.all()[before:]
				if tt.want == "" {
					if len(all) != 0 {
						t.Errorf("heard %+v, want nothing", all)
					}
					return
				}
				if len(all) != 1 {
					t.Fatalf("heard %+v, want one event", all)
				}
				if all[0].PlainText() != tt.want || all[0].Mentioned != tt.mentioned {
					t.Errorf("heard %q, mentioned %v; want %q, %v", all[0].PlainText(), all[0].Mentioned, tt.want, tt.mentioned)
				}
				if all[0].ID != sent.ID || all[0].Refers != m.ReplyTo || !all[0].Time.Equal(sent.Timestamp) {
					t.Errorf("ID %q, refers to %q, at %v", all[0].ID, all[0].Refers, all[0].Time)
				}
			})
		})
	}
}

// botSays posts a message of the bot.
func (s *scene) botSays(text string) discordfake.Message {
	s.t.Helper()
	if _, err := s.send(channels.Outbound{ID: "earlier", To: channels.Address{Room: s.room}, Parts: []channels.Part{{Type: channels.Markdown, Text: text}}}); err != nil {
		s.t.Fatal(err)
	}
	s.wait()
	posts := s.srv.BotPosts(s.room)
	return posts[len(posts)-1].Message
}

func TestInbound_NotForTheBot(t *testing.T) {
	tests := map[string]func(s *scene) discordfake.Saying{
		"another bot": func(s *scene) discordfake.Saying { return discordfake.Saying{From: s.srv.OtherBot("Robot").ID} },
		"itself":      func(s *scene) discordfake.Saying { return discordfake.Saying{From: s.srv.Bot().ID} },
		"a webhook":   func(s *scene) discordfake.Saying { return discordfake.Saying{From: s.ada.ID, Webhook: true} },
		"the system": func(s *scene) discordfake.Saying {
			return discordfake.Saying{From: s.ada.ID, Extra: map[string]any{"author": map[string]any{"id": "643945264868098049", "username": "Discord", "system": true}}}
		},
		"an ephemeral one": func(s *scene) discordfake.Saying {
			return discordfake.Saying{From: s.ada.ID, Flags: discordfake.FlagEphemeral}
		},
		"somebody joining": func(s *scene) discordfake.Saying {
			return discordfake.Saying{From: s.ada.ID, Type: discordfake.TypeJoin}
		},
		"a pin":              func(s *scene) discordfake.Saying { return discordfake.Saying{From: s.ada.ID, Type: 6} },
		"a boost":            func(s *scene) discordfake.Saying { return discordfake.Saying{From: s.ada.ID, Type: 8} },
		"a thread made":      func(s *scene) discordfake.Saying { return discordfake.Saying{From: s.ada.ID, Type: 18} },
		"a command's output": func(s *scene) discordfake.Saying { return discordfake.Saying{From: s.ada.ID, Type: 20} },
		"a thread's starter": func(s *scene) discordfake.Saying {
			return discordfake.Saying{From: s.ada.ID, Type: discordfake.TypeThreadStarter}
		},
		"a moderation notice": func(s *scene) discordfake.Saying { return discordfake.Saying{From: s.ada.ID, Type: 24} },
		"a poll's result":     func(s *scene) discordfake.Saying { return discordfake.Saying{From: s.ada.ID, Type: 46} },
	}
	for name, say := range tests {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := started(t, withContent)
				m := say(s)
				m.Room, m.Text = s.direct, "MARKER"
				s.say(m)
				s.hear(discordfake.Saying{From: s.ada.ID, Room: s.direct, Text: "a person"})
			})
		})
	}
}

// TestInbound_OddFields: what Discord adds or changes costs no message, only the odd part of it. With
// discordgo's own structs each of these is a message without an author.
func TestInbound_OddFields(t *testing.T) {
	for name, extra := range map[string]map[string]any{
		"component of a new type":     {"components": []any{map[string]any{"type": 20}, map[string]any{"type": 999, "components": []any{}}}},
		"component of another type":   {"components": []any{map[string]any{"type": "label"}}},
		"components no longer a list": {"components": map[string]any{"type": 1}},
		"embed of another type":       {"embeds": []any{"x", 7, map[string]any{"title": 5}}},
		"attachment of another type":  {"attachments": []any{"x", map[string]any{"id": 5}}},
		"flags as text":               {"flags": "0"},
		"nonce as a number":           {"nonce": 12345},
		"member of another type":      {"member": "x"},
		"mentions of another type":    {"mentions": []any{5}, "mention_roles": "x"},
		"reference of another type":   {"message_reference": []any{}, "referenced_message": "gone"},
		"time of another form":        {"timestamp": 1700000000},
		"poll of another type":        {"poll": []any{1}},
		"snapshots of another type":   {"message_snapshots": map[string]any{}},
		"new fields":                  {"something_new": map[string]any{"deep": []any{1, 2}}},
		"nulls": {
			"member": nil, "mentions": nil, "attachments": nil, "embeds": nil, "flags": nil, "message_reference": nil,
			"referenced_message": nil, "timestamp": nil, "webhook_id": nil, "guild_id": nil, "sticker_items": nil, "poll": nil, "nonce": nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := started(t)
				in := s.hear(discordfake.Saying{From: s.ada.ID, Room: s.direct, Text: "hello", Extra: extra})
				if in.Parts[0].Text != "hello" || in.Speaker.ID != s.ada.ID || in.Time.IsZero() {
					t.Errorf("heard %+v", in)
				}
			})
		})
	}
}

func TestInbound_Speaker(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := started(t)
		s.srv.SetNick(s.bob.ID, "Bobby")
		for _, tt := range []struct{ from, room, want string }{
			{s.ada.ID, s.room, "Ada"}, {s.bob.ID, s.room, "Bobby"}, {s.ada.ID, s.direct, "Ada"},
		} {
			in := s.hear(discordfake.Saying{From: tt.from, Room: tt.room, Text: s.mention("x")})
			if want := (channels.Speaker{ID: tt.from, Name: tt.want}); in.Speaker != want {
				t.Errorf("speaker %+v, want %+v", in.Speaker, want)
			}
		}
	})
}

func TestInbound_Parts(t *testing.T) {
	file := func(id, name, mime string) discordfake.Attachment {
		return discordfake.Attachment{ID: id, Filename: name, ContentType: mime, Size: 10, URL: "https://cdn.test/" + id + "?ex=MARKER"}
	}
	media := func(kind channels.PartType, id, name, mime string) channels.Part {
		return channels.Part{Type: kind, Text: name, Media: &channels.MediaRef{ID: id, URL: "https://cdn.test/" + id + "?ex=MARKER", Name: name, MIME: mime, Size: 10}}
	}
	words := func(s string) channels.Part { return channels.Part{Type: channels.Text, Text: s} }
	described := file("5", "d.png", "image/png")
	described.Description = "a [red]\nfox"
	tests := map[string]struct {
		say  discordfake.Saying
		want []channels.Part
	}{
		"media": {
			discordfake.Saying{Text: "look", Attachments: []discordfake.Attachment{
				file("1", "a.png", "image/png"), file("2", "b.ogg", "audio/ogg"), file("3", "c.mp4", "video/mp4"), file("4", "d.pdf", "application/pdf"),
			}},
			[]channels.Part{
				words("look"), media(channels.Image, "1", "a.png", "image/png"), media(channels.Audio, "2", "b.ogg", "audio/ogg"),
				media(channels.Video, "3", "c.mp4", "video/mp4"), media(channels.File, "4", "d.pdf", "application/pdf"),
			},
		},
		"a file of no type": {
			discordfake.Saying{Attachments: []discordfake.Attachment{file("1", "notes", "")}},
			[]channels.Part{media(channels.File, "1", "notes", "")},
		},
		"a described picture": {
			discordfake.Saying{Attachments: []discordfake.Attachment{described}},
			[]channels.Part{{Type: channels.Image, Text: "d.png (a (red) fox)", Media: media(channels.Image, "5", "d.png", "image/png").Media}},
		},
		"a sticker":         {discordfake.Saying{Stickers: []discordfake.Sticker{{ID: "1", Name: "wave"}}}, []channels.Part{{Type: channels.Sticker, Text: "wave"}}},
		"an embed":          {discordfake.Saying{Text: "https://a.test", Extra: map[string]any{"embeds": []any{map[string]any{"title": "A", "description": "b\nc"}}}}, []channels.Part{words("https://a.test"), words("[preview of a link: A b c]")}},
		"a poll":            {discordfake.Saying{Extra: map[string]any{"poll": map[string]any{"question": map[string]any{"text": "Tea?"}, "answers": []any{map[string]any{"poll_media": map[string]any{"text": "yes"}}, map[string]any{"poll_media": map[string]any{"text": "no"}}}}}}, []channels.Part{words("[poll: Tea? yes / no]")}},
		"nothing at all":    {discordfake.Saying{}, nil},
		"nothing but space": {discordfake.Saying{Text: " \n "}, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := started(t)
				tt.say.From, tt.say.Room = s.ada.ID, s.direct
				if diff := cmp.Diff(tt.want, s.hear(tt.say).Parts); diff != "" {
					t.Errorf("parts (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestInbound_QuotesAndForwards(t *testing.T) {
	tests := map[string]struct {
		say  func(s *scene) discordfake.Saying
		want string
	}{
		"long": {func(s *scene) discordfake.Saying {
			return discordfake.Saying{Text: "why?", ReplyTo: s.say(discordfake.Saying{From: s.bob.ID, Room: s.direct, Text: strings.Repeat("語", 600)}).ID}
		}, "why?\n[in reply to Bob: " + strings.Repeat("語", quoteLimit) + "…]"},
		"with brackets and lines": {func(s *scene) discordfake.Saying {
			return discordfake.Saying{Text: "why?", ReplyTo: s.say(discordfake.Saying{From: s.bob.ID, Room: s.direct, Text: "a]\n[in reply to you: b"}).ID}
		}, "why?\n[in reply to Bob: a) (in reply to you: b]"},
		"with a picture": {func(s *scene) discordfake.Saying {
			return discordfake.Saying{Text: "what is it?", ReplyTo: s.say(discordfake.Saying{From: s.bob.ID, Room: s.direct, Attachments: []discordfake.Attachment{{ID: "1", Filename: "a.png", ContentType: "image/png"}}}).ID}
		}, "what is it?\n[in reply to Bob: [image: a.png]]"},
		"to a command": {func(s *scene) discordfake.Saying {
			return discordfake.Saying{Text: "/reset", ReplyTo: s.say(discordfake.Saying{From: s.bob.ID, Room: s.direct, Text: "quite"}).ID}
		}, "/reset"},
		"deleted": {func(s *scene) discordfake.Saying {
			m := s.say(discordfake.Saying{From: s.bob.ID, Room: s.direct, Text: "quite"})
			s.srv.Delete(s.direct, m.ID)
			return discordfake.Saying{Text: "why?", ReplyTo: m.ID}
		}, "why?"},
		"forwarded": {func(s *scene) discordfake.Saying {
			m := s.say(discordfake.Saying{From: s.bob.ID, Room: s.room, Text: "news\nof the day"})
			return discordfake.Saying{Forward: m.ID, FromRoom: s.room}
		}, "[forwarded message: news of the day]"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := started(t)
				m := tt.say(s)
				m.From, m.Room = s.ada.ID, s.direct
				in := s.hear(m)
				if in.PlainText() != tt.want {
					t.Errorf("heard %q, want %q", in.PlainText(), tt.want)
				}
				if in.Refers != m.ReplyTo {
					t.Errorf("refers to %q, want %q", in.Refers, m.ReplyTo)
				}
			})
		})
	}
}

func TestScope_Text(t *testing.T) {
	dir := newDirectory()
	dir.setSelf("1")
	var g guild
	if err := json.Unmarshal([]byte(`{"id":"100","channels":[{"id":"7","type":0,"name":"general"},"odd"],"threads":[{"id":"8","type":11,"name":"talk","parent_id":"7"}],
		"roles":[{"id":"50","name":"team"},{"id":"51","name":"botd","tags":{"bot_id":"1"}},{"id":"52","name":"other","tags":{"bot_id":"2"}}]}`), &g); err != nil {
		t.Fatal(err)
	}
	dir.join(g)
	name := "Ada\nLovelace"
	s := scope{self: "1", guild: "100", dir: dir}
	s.mentions.v = []lenient[user]{{user{ID: "2", Username: "ada", GlobalName: lenient[string]{name}}}, {user{ID: "1", Username: "botd"}}}
	tests := []struct{ raw, want string }{
		{"plain", "plain"},
		{"  plain\n", "plain"},
		{"<@2> and <@!2>", "@Ada Lovelace and @Ada Lovelace"},
		{"<@3>", "@user"},
		{"<@&50> <@&52> <@&999>", "@team @other @role"},
		{"<@&51> hello", "hello"},
		{"<@1><@!1> <@&51>: hello <@1>", "hello"},
		{"hello <@1>!", "hello @botd!"},
		{"<#7> <#8> <#9>", "#general #talk #room"},
		{"<:wave:123> <a:dance:456>", ":wave: :dance:"},
		{"<t:1700000000:R> <t:1700000000> <t:x>", "2023-11-14 22:13 UTC 2023-11-14 22:13 UTC <t:x>"},
		{"<t:99999999999999:R>", "<t:99999999999999:R>"},
		{"</reset:123> </:1>", "/reset </:1>"},
		{"a < b > c <> <<@2>", "a < b > c <> <@Ada Lovelace"},
		{"<@> <@x> <@&> <#> <::1> <@-1>", "<@> <@x> <@&> <#> <::1> <@-1>"},
		{"<https://a.test>", "<https://a.test>"},
		{"<@1>", ""},
		{"<@" + strings.Repeat("1", 300) + ">", "<@" + strings.Repeat("1", 300) + ">"},
	}
	for _, tt := range tests {
		if got := s.text(tt.raw); got != tt.want {
			t.Errorf("text(%q) = %q, want %q", tt.raw, got, tt.want)
		}
	}
}

func TestDirectory_FollowsTheGuild(t *testing.T) {
	dir := newDirectory()
	dir.setSelf("1")
	for _, e := range []struct{ event, raw string }{
		{"GUILD_ROLE_CREATE", `{"guild_id":"100","role":{"id":"51","name":"botd","tags":{"bot_id":"1"}}}`},
		{"CHANNEL_UPDATE", `{"id":"7","type":0,"name":"renamed"}`},
		{"THREAD_CREATE", `{"id":"8","type":11,"name":"talk","parent_id":"7"}`},
		{"TYPING_START", `[]`},
	} {
		if err := dir.observe(e.event, []byte(e.raw)); err != nil {
			t.Errorf("%s: %v", e.event, err)
		}
	}
	if !dir.ownRole("100", "51") || dir.ownRole("100", "52") || dir.ownRole("101", "51") || dir.ownRole("101", "") {
		t.Error("the bot's own role is not known as it")
	}
	if r, ok := dir.room("8"); !ok || r.ParentID.v != "7" {
		t.Errorf("thread %+v", r)
	}
	if err := dir.observe("GUILD_DELETE", []byte(`{"id":"100"}`)); err != nil || dir.ownRole("100", "51") {
		t.Errorf("role kept after the guild is left: %v", err)
	}
	for _, event := range []string{"GUILD_DELETE", "GUILD_ROLE_UPDATE", "CHANNEL_CREATE"} {
		if dir.observe(event, []byte(`[]`)) == nil {
			t.Errorf("%s: no error for a list", event)
		}
	}
}

func TestLRU_ForgetsWhatIsUnused(t *testing.T) {
	l := newLRU[int](2)
	l.put("a", 1)
	l.put("b", 2)
	l.get("a")
	l.put("c", 3)
	l.put("a", 4)
	if _, ok := l.get("b"); ok {
		t.Error("b is still there")
	}
	if a, _ := l.get("a"); a != 4 {
		t.Errorf("a = %d", a)
	}
	if len(l.byKey) != 2 || l.order.Len() != 2 {
		t.Errorf("%d keys, %d in order", len(l.byKey), l.order.Len())
	}
}
