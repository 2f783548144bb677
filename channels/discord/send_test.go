package discord

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"botd/channels"
	"botd/channels/discord/discordfake"
)

// posts returns the requests that created messages.
func (s *scene) creations() []discordfake.Request {
	return slices.DeleteFunc(s.srv.Requests(), func(r discordfake.Request) bool {
		return r.Method != http.MethodPost || !strings.HasSuffix(r.Path, "/messages")
	})
}

func contents(posts []discordfake.Post) []string {
	var texts []string
	for _, p := range posts {
		texts = append(texts, p.Content)
	}
	return texts
}

func TestSend_Answer(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := started(t)
		in := s.hear(discordfake.Saying{From: s.ada.ID, Room: s.thread, Text: s.mention("hello")})
		receipts, err := s.send(answer(in, "# Hi\n\n| a | b |\n|---|---|\n| 1 | 2 |"))
		if err != nil {
			t.Fatal(err)
		}
		posts := s.srv.BotPosts(s.thread)
		if len(posts) != 1 || !strings.HasPrefix(posts[0].Content, "# Hi\n") {
			t.Fatalf("posts %+v", posts)
		}
		if posts[0].MessageReference == nil || posts[0].MessageReference.MessageID != in.ID {
			t.Error("the answer does not refer to the question")
		}
		if diff := cmp.Diff([]channels.Receipt{{MessageIDs: []string{posts[0].ID}}}, receipts); diff != "" {
			t.Errorf("receipts (-want +got):\n%s", diff)
		}
		if r := s.creations()[0]; !r.Authorized || r.Version != "v10" {
			t.Errorf("request %+v", r)
		}
	})
}

// TestSend_PingsNobody: whatever a model writes, and whomever it answers.
func TestSend_PingsNobody(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := started(t)
		in := s.hear(discordfake.Saying{From: s.ada.ID, Room: s.room, Text: s.mention("hello")})
		text := "@everyone @here <@" + s.ada.ID + "> <@!" + s.bob.ID + "> <@&" + s.role + ">"
		for _, kind := range []channels.PartType{channels.Markdown, channels.Text} {
			m := answer(in, "")
			m.ID += string(kind)
			m.Parts = []channels.Part{{Type: kind, Text: text}}
			if _, err := s.send(m); err != nil {
				t.Fatal(err)
			}
		}
		for _, p := range s.srv.BotPosts(s.room) {
			if len(p.Pings) > 0 {
				t.Errorf("%q pinged %v", p.Content, p.Pings)
			}
		}
		if n := len(s.srv.BotPosts(s.room)); n != 2 {
			t.Errorf("%d posts", n)
		}
	})
}

func TestSend_LongAnswerInOrder(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := started(t)
		in := s.hear(discordfake.Saying{From: s.ada.ID, Room: s.room, Text: s.mention("everything")})
		m := answer(in, strings.Repeat("👩‍👩‍👧 emoji count by code points. ", 100)+"\n\n```go\n"+strings.Repeat("fmt.Println(1)\n", 400)+"```\n")
		for i, part := range s.a.Compose(m) {
			part.ID = m.ID + "/" + string(rune('a'+i))
			for {
				_, err := s.a.Send(t.Context(), part)
				if err == nil {
					break
				}
				if channels.KindOf(err) != channels.RateLimited {
					t.Fatal(err)
				}
				time.Sleep(retryAfter(err))
			}
		}
		posts := s.srv.BotPosts(s.room)
		if len(posts) < 4 {
			t.Fatalf("%d posts", len(posts))
		}
		for i, p := range posts {
			if n := utf8.RuneCountInString(p.Content); n > maxContent {
				t.Errorf("post %d has %d code points", i, n)
			}
			if strings.Count(p.Content, "```")%2 != 0 {
				t.Errorf("post %d leaves a fence open", i)
			}
			if refers := p.MessageReference != nil; refers != (i == 0) {
				t.Errorf("post %d refers to the question: %v", i, refers)
			}
		}
		if n := s.srv.InvalidRequests(); n != 0 {
			t.Errorf("%d requests were refused: limits that Discord had told were not kept", n)
		}
	})
}

// TestSend_SameMessageOnce repeats a send after everything that leaves its outcome open.
func TestSend_SameMessageOnce(t *testing.T) {
	gateway := discordfake.BadGateway()
	gateway.Accept = true
	tests := map[string]discordfake.Fault{
		"lost answer":                   {Accept: true, Drop: true},
		"accepted, then a 502":          gateway,
		"accepted, then a 500":          {Accept: true, Status: 500},
		"accepted, then too slow":       {Accept: true, Delay: time.Minute},
		"accepted, answer unreadable":   {Accept: true, Status: 200, Body: "<html>"},
		"not accepted, a 502":           discordfake.BadGateway(),
		"not accepted, connection cut":  {Drop: true},
		"not accepted, a 503":           {Status: 503},
		"not accepted, proxy forbids":   {Status: 403, Body: "<html>error code: 1020"},
		"not accepted, proxy not found": {Status: 404, Body: "<html>"},
		"not accepted, redirected":      {Status: 302, Header: http.Header{"Location": {"http://elsewhere.test/"}}},
	}
	for name, fault := range tests {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := started(t)
				in := s.hear(discordfake.Saying{From: s.ada.ID, Room: s.room, Text: s.mention("hello")})
				m := s.a.Compose(answer(in, "hi"))[0]
				m.ID = "turn/0"
				if m.Once {
					t.Fatal("a send with a nonce is marked Once")
				}
				fault.Path = "/channels/*/messages"
				s.srv.Inject(fault)
				if _, err := s.a.Send(t.Context(), m); channels.KindOf(err) != channels.Transient || err == nil {
					t.Fatalf("first send: %v, want a transient error", err)
				}
				s.wait()
				if n := len(s.creations()); n != 1 {
					t.Errorf("the adapter sent %d times by itself", n)
				}
				first, err := s.a.Send(t.Context(), m)
				if err != nil {
					t.Fatal(err)
				}
				again, err := s.a.Send(t.Context(), m)
				if err != nil {
					t.Fatal(err)
				}
				posts := s.srv.BotPosts(s.room)
				if len(posts) != 1 {
					t.Fatalf("shown %d times", len(posts))
				}
				want := channels.Receipt{MessageIDs: []string{posts[0].ID}}
				if diff := cmp.Diff([]channels.Receipt{want, want}, []channels.Receipt{first, again}); diff != "" {
					t.Errorf("receipts (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestSend_AfterDiscordForgotTheNonce: the daemon was down for longer than Discord remembers a nonce.
func TestSend_AfterDiscordForgotTheNonce(t *testing.T) {
	accepted := discordfake.Fault{Path: "/channels/*/messages", Accept: true, Drop: true}
	lost := discordfake.Fault{Path: "/channels/*/messages", Drop: true}
	tests := map[string]struct {
		first     discordfake.Fault
		uncertain bool
		change    change
		// meanwhile happens in the hour between.
		meanwhile func(s *scene, question channels.Inbound)
		shown     int
		kind      channels.ErrorKind // Transient stands for success
	}{
		"accepted":                        {first: accepted, shown: 1},
		"accepted, known to be uncertain": {first: accepted, uncertain: true, shown: 1},
		"accepted, nonces can be read":    {first: accepted, change: func(f *discordfake.Options, _ *Options) { f.HistoryNonce = true }, shown: 1},
		"accepted, much said since": {first: accepted, shown: 1, meanwhile: func(s *scene, _ channels.Inbound) {
			for range 450 {
				s.say(discordfake.Saying{From: s.bob.ID, Room: s.direct, Text: "x"})
			}
		}},
		"not accepted":                        {first: lost, shown: 1},
		"not accepted, known to be uncertain": {first: lost, uncertain: true, shown: 1},
		"not accepted, nonces can be read, same words as before": {
			first: lost, shown: 2, change: func(f *discordfake.Options, _ *Options) { f.HistoryNonce = true },
			meanwhile: func(s *scene, question channels.Inbound) {
				m := answer(question, "hi")
				m.ID = "another"
				if _, err := s.send(m); err != nil {
					s.t.Fatal(err)
				}
			},
		},
		"too much said since to be sure": {first: lost, uncertain: true, shown: 0, kind: channels.Ambiguous, meanwhile: func(s *scene, _ channels.Inbound) {
			for range 600 {
				s.say(discordfake.Saying{From: s.bob.ID, Room: s.direct, Text: "x"})
			}
		}},
		"history hidden":                {first: lost, shown: 1, meanwhile: func(s *scene, _ channels.Inbound) { s.srv.Deny(s.direct, discordfake.ReadHistory) }},
		"history hidden, and uncertain": {first: accepted, uncertain: true, shown: 1, kind: channels.Ambiguous, meanwhile: func(s *scene, _ channels.Inbound) { s.srv.Deny(s.direct, discordfake.ReadHistory) }},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := started(t, func(f *discordfake.Options, o *Options) {
					if tt.change != nil {
						tt.change(f, o)
					}
				})
				in := s.hear(discordfake.Saying{From: s.ada.ID, Room: s.direct, Text: "hello"})
				m := s.a.Compose(answer(in, "hi"))[0]
				m.ID = "turn/0"
				s.srv.Inject(tt.first)
				if _, err := s.a.Send(t.Context(), m); err == nil {
					t.Fatal("first send: no error")
				}
				time.Sleep(time.Hour)
				if tt.meanwhile != nil {
					tt.meanwhile(s, in)
				}
				m.Uncertain = tt.uncertain
				_, err := s.a.Send(t.Context(), m)
				if channels.KindOf(err) != tt.kind || (err == nil) != (tt.kind == channels.Transient) {
					t.Errorf("second send: %v, want kind %v", err, tt.kind)
				}
				if got := contents(s.srv.BotPosts(s.direct)); len(got) != tt.shown {
					t.Errorf("shown %q, want %d times", got, tt.shown)
				}
			})
		})
	}
	t.Run("an answer to nothing, and uncertain", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			s := started(t)
			m := channels.Outbound{ID: "x", To: channels.Address{Room: s.direct}, Parts: []channels.Part{{Type: channels.Text, Text: "hi"}}, Uncertain: true}
			if _, err := s.a.Send(t.Context(), m); channels.KindOf(err) != channels.Ambiguous {
				t.Errorf("send: %v, want an ambiguous error", err)
			}
		})
	})
}

func TestSend_MessageDeletedSince(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := started(t)
		m := channels.Outbound{ID: "turn/0", To: channels.Address{Room: s.room}, Parts: []channels.Part{{Type: channels.Text, Text: "hi"}}}
		r, err := s.a.Send(t.Context(), m)
		if err != nil {
			t.Fatal(err)
		}
		s.srv.Delete(s.room, r.MessageIDs[0])
		if _, err := s.a.Send(t.Context(), m); err != nil {
			t.Errorf("send again: %v; the message was said, whatever became of it", err)
		}
		if n := len(s.srv.BotPosts(s.room)); n != 0 {
			t.Errorf("%d posts after the deletion", n)
		}
	})
}

// TestSend_ReferenceRefused: an answer does not fail for what it refers to.
func TestSend_ReferenceRefused(t *testing.T) {
	tests := map[string]func(s *scene, in channels.Inbound){
		"deleted":        func(s *scene, in channels.Inbound) { s.srv.Delete(s.room, in.ID) },
		"history hidden": func(s *scene, _ channels.Inbound) { s.srv.Deny(s.room, discordfake.ReadHistory) },
		"system message": func(s *scene, _ channels.Inbound) {
			s.srv.Inject(discordfake.Fault{Path: "/channels/*/messages", Status: 400, Body: `{"message":"Invalid Form Body","code":50035,"errors":{"message_reference":{"_errors":[{"code":"REPLIES_CANNOT_REPLY_TO_SYSTEM_MESSAGE","message":"MARKER"}]}}}`})
		},
	}
	for name, prepare := range tests {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := started(t)
				in := s.hear(discordfake.Saying{From: s.ada.ID, Room: s.room, Text: s.mention("hello")})
				prepare(s, in)
				if _, err := s.send(answer(in, "hi")); err != nil {
					t.Errorf("send: %v", err)
				}
				posts := s.srv.BotPosts(s.room)
				if len(posts) != 1 || posts[0].MessageReference != nil {
					t.Errorf("posts %+v, want one without a reference", posts)
				}
			})
		})
	}
}

func TestSend_ToAPersonWithoutARoom(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := started(t)
		to := channels.Address{Channel: "discord", Kind: channels.Direct, User: s.bob.ID}
		m := channels.Outbound{ID: "x", To: to, Parts: []channels.Part{{Type: channels.Text, Text: "hi"}}}
		for range 2 {
			if _, err := s.a.Send(t.Context(), m); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff([]string{"hi"}, contents(s.srv.BotPosts(s.srv.DM(s.bob.ID)))); diff != "" {
			t.Errorf("posts (-want +got):\n%s", diff)
		}
		m.To.User = ""
		if _, err := s.a.Send(t.Context(), m); channels.KindOf(err) != channels.Permanent {
			t.Errorf("send to nowhere: %v", err)
		}
	})
}

func TestSend_BeforeTheGatewayIsUp(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newScene(t)
		m, err := s.srv.Say(discordfake.Saying{From: s.ada.ID, Room: s.direct, Text: "hello"})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour) // long enough for the look at the room, which needs the bot's own ID
		in := channels.Inbound{ID: m.ID, Address: channels.Address{Room: s.direct}, Reply: reply{Message: m.ID}.encode()}
		if _, err := s.send(answer(in, "hi")); err != nil {
			t.Fatal(err)
		}
		if n := len(s.srv.BotPosts(s.direct)); n != 1 {
			t.Errorf("%d posts", n)
		}
	})
}

func TestTyping(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := started(t)
		if every := s.a.Info().TypingEvery; every <= 0 || every >= 10*time.Second {
			t.Errorf("TypingEvery is %v; Discord shows the sign for ten seconds", every)
		}
		if err := s.a.Typing(t.Context(), channels.Address{Room: s.room, Thread: s.thread}); err != nil {
			t.Fatal(err)
		}
		if s.srv.LastTyping(s.thread).IsZero() || !s.srv.LastTyping(s.room).IsZero() {
			t.Error("typing is not shown in the thread alone")
		}
		s.srv.DeleteRoom(s.thread)
		if err := s.a.Typing(t.Context(), channels.Address{Room: s.room, Thread: s.thread}); channels.KindOf(err) != channels.Gone {
			t.Errorf("typing in a deleted room: %v", err)
		}
	})
}

func TestSend_Errors(t *testing.T) {
	text := channels.Part{Type: channels.Text, Text: "MARKER words"}
	body := func(code string) string {
		return `{"message":"MARKER","code":` + code + `,"errors":{"content":{"_errors":[{"code":"TOO_ODD","message":"MARKER"}]}}}`
	}
	tests := map[string]struct {
		fault discordfake.Fault
		want  channels.ErrorKind
		after time.Duration
		says  string
	}{
		"unauthorized":            {discordfake.Fault{Status: 401, Body: body("0")}, channels.Unauthorized, 0, "401"},
		"account not verified":    {discordfake.Fault{Status: 403, Body: body("40001")}, channels.Unauthorized, 0, "40001"},
		"missing access":          {discordfake.Fault{Status: 403, Body: body("50001")}, channels.Gone, 0, "cannot see this channel"},
		"missing permissions":     {discordfake.Fault{Status: 403, Body: body("50013")}, channels.Permanent, 0, "missing permissions"},
		"direct messages refused": {discordfake.Fault{Status: 403, Body: body("50007")}, channels.Gone, 0, "this user"},
		"no mutual guild":         {discordfake.Fault{Status: 403, Body: body("50278")}, channels.Gone, 0, "no mutual guild"},
		"unknown channel":         {discordfake.Fault{Status: 404, Body: body("10003")}, channels.Gone, 0, "unknown channel"},
		"unknown route":           {discordfake.Fault{Status: 404, Body: body("0")}, channels.Permanent, 0, "404 Not Found"},
		"bad form":                {discordfake.Fault{Status: 400, Body: body("50035")}, channels.Permanent, 0, "content: TOO_ODD"},
		"too large":               {discordfake.Fault{Status: 413, Body: body("40005")}, channels.Permanent, 0, "413"},
		"locked thread":           {discordfake.Fault{Status: 400, Body: body("50083")}, channels.Permanent, 0, "archived"},
		"limit of the route":      {discordfake.Fault{Status: 429, Body: `{"message":"MARKER","retry_after":1.5,"global":false}`}, channels.RateLimited, 1500 * time.Millisecond, "429"},
		"limit without a time":    {discordfake.Fault{Status: 429, Body: `{"message":"MARKER"}`}, channels.RateLimited, unnamedPause, "429"},
		"limit, time in header":   {discordfake.Fault{Status: 429, Header: http.Header{"Retry-After": {"7"}}, Body: `{"message":"MARKER"}`}, channels.RateLimited, 7 * time.Second, "429"},
		"global limit":            {discordfake.GlobalLimit(2 * time.Second), channels.RateLimited, 2 * time.Second, "429"},
		"ban by the proxy":        {discordfake.CloudflareLimit(0), channels.RateLimited, bannedPause, "proxy"},
		"ban by the proxy, timed": {discordfake.CloudflareLimit(90 * time.Second), channels.RateLimited, 90 * time.Second, "proxy"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := started(t)
				tt.fault.Path = "/channels/*/messages"
				s.srv.Inject(tt.fault)
				_, err := s.a.Send(t.Context(), channels.Outbound{ID: "x", To: channels.Address{Room: s.room}, Parts: []channels.Part{text}})
				if err == nil || channels.KindOf(err) != tt.want || retryAfter(err) != tt.after {
					t.Errorf("send: %v after %v, want kind %v after %v", err, retryAfter(err), tt.want, tt.after)
				}
				if err != nil && (!strings.Contains(err.Error(), tt.says) || strings.Contains(err.Error(), "MARKER")) {
					t.Errorf("error %q, want one that says %q and repeats nothing", err, tt.says)
				}
			})
		})
	}
}

func TestSend_ErrorsHoldNoSecrets(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := started(t)
		in, err := s.srv.Command(s.ada.ID, s.room, "help")
		if err != nil {
			t.Fatal(err)
		}
		s.wait()
		event := s.sink.all()[0]
		part := s.a.Compose(answer(event, "MARKER"))[0]
		for _, f := range []discordfake.Fault{
			{Drop: true},
			{Status: 500, Body: "MARKER"},
			{Status: 404, Body: `{"message":"MARKER","code":5}`},
			{Delay: time.Hour},
			{Status: 302, Header: http.Header{"Location": {"http://MARKER.test/"}}},
		} {
			s.srv.Inject(f)
			_, err := s.a.Send(t.Context(), part)
			if err == nil {
				t.Fatalf("%+v: no error", f)
			}
			if strings.Contains(err.Error(), "MARKER") || strings.Contains(err.Error(), in.Token) {
				t.Errorf("error %q holds a token or text", err)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := s.a.Send(ctx, part); err == nil || strings.Contains(err.Error(), in.Token) {
			t.Errorf("error %v of a send whose context had ended", err)
		}
		if all := s.logs.String(); strings.Contains(all, in.Token) {
			t.Errorf("the interaction's token was logged:\n%s", all)
		}
	})
}
