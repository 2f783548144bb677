package discord

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"botd/channels"
)

func TestLiteral(t *testing.T) {
	t.Parallel()
	tests := []struct{ in, want string }{
		{"plain, with: signs; and 1. numbers", "plain, with: signs; and 1. numbers"},
		{"2 * 3_4 ~x~ `c` |s| [l](u)", `2 \* 3\_4 \~x\~ ` + "\\`c\\`" + ` \|s\| \[l\](u)`},
		{"# heading\n- list\n> quote\n-# small", `\# heading` + "\n" + `\- list` + "\n" + `\> quote` + "\n" + `\-# small`},
		{"a # b - c > d", "a # b - c > d"},
		{"  - indented\nx", `  \- indented` + "\nx"},
		{"<@1> <#2> <t:1:R> a<b", `\<@1> \<#2> \<t:1:R> a\<b`},
		{`back\slash`, `back\\slash`},
		{"see https://a.test/x_y*z#f and http://b.test/_", "see https://a.test/x_y*z#f and http://b.test/_"},
		{"_https://a.test/x_y_", `\_https://a.test/x_y_`},
		{"語_ไทย_👩‍👩‍👧", `語\_ไทย\_👩‍👩‍👧`},
		{"\xff_\xfe", "\xff\\_\xfe"},
		{"", ""},
	}
	for _, tt := range tests {
		if got := literal(tt.in); got != tt.want {
			t.Errorf("literal(%q) = %q, want %q", tt.in, got, tt.want)
		}
	}
}

func TestCompose(t *testing.T) {
	t.Parallel()
	a := unconnected(t)
	to := channels.Address{Channel: "discord", Kind: channels.Room, Room: "20", User: "2"}
	question := reply{Message: "5"}.encode()
	command := token{ID: "1", App: "2", Token: "t"}
	long := strings.Repeat("word ", 500)
	pieces := []string{strings.TrimSpace(long[:2000]), strings.TrimSpace(long[2000:])}
	send := func(text string, quote, once bool, r *reply) channels.Outbound {
		m := channels.Outbound{To: to, Parts: []channels.Part{{Type: channels.Text, Text: text}}, Quote: quote, Once: once}
		if r != nil {
			m.Reply = r.encode()
		}
		return m
	}
	tests := map[string]struct {
		m    channels.Outbound
		want []channels.Outbound
	}{
		"an answer": {
			channels.Outbound{To: to, Reply: question, Quote: true, Parts: []channels.Part{{Type: channels.Markdown, Text: "**hi**"}}},
			[]channels.Outbound{send("**hi**", true, false, &reply{Message: "5"})},
		},
		"nothing that is seen": {
			channels.Outbound{To: to, Reply: question, Quote: true, Parts: []channels.Part{
				{Type: channels.Markdown, Text: "\u200b"}, {Type: channels.Text, Text: "\ufeff \u3164"},
			}},
			[]channels.Outbound{},
		},
		"a long answer": {
			channels.Outbound{To: to, Reply: question, Quote: true, Parts: []channels.Part{{Type: channels.Markdown, Text: long}}},
			[]channels.Outbound{send(pieces[0], true, false, &reply{Message: "5"}), send(pieces[1], false, false, &reply{Message: "5", Part: 1})},
		},
		"a long answer to a command": {
			channels.Outbound{To: to, Reply: reply{Interaction: &command}.encode(), Quote: true, Parts: []channels.Part{{Type: channels.Text, Text: long}}},
			[]channels.Outbound{send(pieces[0], false, true, &reply{Interaction: &command}), send(pieces[1], false, true, &reply{Interaction: &command, Part: 1})},
		},
		"an answer to nothing": {
			channels.Outbound{To: to, Quote: true, Parts: []channels.Part{{Type: channels.Text, Text: "hi"}}},
			[]channels.Outbound{send("hi", false, false, nil)},
		},
		"an answer to something unreadable": {
			channels.Outbound{To: to, Reply: []byte("\xff"), Quote: true, Parts: []channels.Part{{Type: channels.Text, Text: "hi"}}},
			[]channels.Outbound{send("hi", false, false, nil)},
		},
		"several parts": {
			channels.Outbound{To: to, Parts: []channels.Part{
				{Type: channels.Text, Text: "a*"},
				{Type: channels.Markdown, Text: "*b*"},
				{Type: channels.Text},
				{Type: channels.Sticker, Text: "wave"},
				{Type: channels.File, Media: &channels.MediaRef{Name: "notes.txt"}},
			}},
			[]channels.Outbound{send("a\\*\n*b*\nwave\nnotes.txt", false, false, nil)},
		},
		"nothing": {channels.Outbound{To: to, Reply: question, Parts: []channels.Part{{Type: channels.Text, Text: " \n"}, {Type: channels.Markdown}}}, []channels.Outbound{}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, a.Compose(tt.m)); diff != "" {
				t.Errorf("sends (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNonce(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, id := range []string{"", "a", "turn/0", "turn/1", strings.Repeat("x", 1000)} {
		n := nonce(id)
		if len(n) == 0 || len(n) > 25 || n != nonce(id) || seen[n] {
			t.Errorf("nonce(%q) = %q", id, n)
		}
		seen[n] = true
	}
	if got := nonce("turn/0"); got != "TGYWCA7O6TDQWTYGLZDCWNEM" {
		t.Errorf("nonce of turn/0 is %q: messages under way at an update would be sent twice", got)
	}
}

// TestReply_Format: what is stored in journals stays readable.
func TestReply_Format(t *testing.T) {
	t.Parallel()
	for want, r := range map[string]reply{
		`{"m":"5"}`:                              {Message: "5"},
		`{"m":"5","n":2}`:                        {Message: "5", Part: 2},
		`{"i":{"id":"1","app":"2","token":"t"}}`: {Interaction: &token{ID: "1", App: "2", Token: "t"}},
	} {
		if got := string(r.encode()); got != want {
			t.Errorf("%+v is stored as %s, want %s", r, got, want)
		}
		if diff := cmp.Diff(r, decodeReply([]byte(want))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", want, diff)
		}
	}
}

func TestNew_Options(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		o    Options
		want string // of the error; empty for none
	}{
		"fine":             {Options{Channel: "d", Token: testToken}, ""},
		"with a prefix":    {Options{Channel: "d", Token: "Bot " + testToken}, ""},
		"another base":     {Options{Channel: "d", Token: testToken, APIBase: "https://proxy.test/discord/"}, ""},
		"no name":          {Options{Token: testToken}, "no name"},
		"no token":         {Options{Channel: "d"}, "token"},
		"token with space": {Options{Channel: "d", Token: "MARKER x"}, "token"},
		"token with line":  {Options{Channel: "d", Token: "MARKER\n"}, "token"},
		"odd base":         {Options{Channel: "d", Token: testToken, APIBase: "discord.com"}, "API base"},
		"odd scheme":       {Options{Channel: "d", Token: testToken, APIBase: "ftp://discord.com"}, "API base"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, err := New(tt.o)
			if tt.want == "" {
				if err != nil || a.token != testToken {
					t.Errorf("New: %v", err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "MARKER") {
				t.Errorf("New: %v, want an error about %q", err, tt.want)
			}
		})
	}
}
