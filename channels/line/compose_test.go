package line_test

import (
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"botd/channels"
	"botd/channels/line"
	"botd/channels/line/linefake"
	"botd/channels/render"
)

// Handles as an event's Reply holds them.
const (
	withToken = `{"token":"0123456789abcdef0123456789abcdef","deadline":"2026-12-01T06:00:00Z","quote":"q"}`
	quoteOnly = `{"quote":"q"}`
)

func md(s string) channels.Part   { return channels.Part{Type: channels.Markdown, Text: s} }
func text(s string) channels.Part { return channels.Part{Type: channels.Text, Text: s} }

func TestCompose(t *testing.T) {
	t.Parallel()
	a := newWorld(t).a
	to := channels.Address{Channel: "line-shop", Kind: channels.Group, Room: "C1", User: "U1"}
	long := func(units int) string { return strings.Repeat("a", units) }
	type send struct {
		bubbles      int
		reply, quote bool
		once         bool
	}
	for _, tt := range []struct {
		name  string
		reply string
		quote bool
		parts []channels.Part
		want  []send
	}{
		{"one reply", withToken, false, []channels.Part{md("hi")}, []send{{1, true, false, true}}},
		{"a reply that quotes", withToken, true, []channels.Part{md("hi")}, []send{{1, true, true, true}}},
		{"a push", "", true, []channels.Part{md("hi")}, []send{{1, false, false, false}}},
		{"a push that quotes", quoteOnly, true, []channels.Part{md("hi")}, []send{{1, true, true, false}}},
		{"a push that could quote", quoteOnly, false, []channels.Part{md("hi")}, []send{{1, false, false, false}}},
		{"a handle that is none", "?", true, []channels.Part{md("hi")}, []send{{1, false, false, false}}},
		{"nothing", withToken, true, nil, nil},
		{"nothing to show", withToken, true, []channels.Part{md(" \n "), text(""), {Type: channels.Image}}, nil},
		{"nothing that is seen", withToken, true, []channels.Part{md("\u200b"), text("\ufeff \u3164")}, nil},
		{"each part a bubble", withToken, false, []channels.Part{md("a"), text("b"), md("c")}, []send{{3, true, false, true}}},
		{"five bubbles fill one call", withToken, true, []channels.Part{md(long(25000))}, []send{{5, true, true, true}}},
		{"what does not fit is pushed", withToken, true, []channels.Part{md(long(25001))}, []send{{5, true, true, true}, {1, false, false, false}}},
		{"many pushes", "", false, []channels.Part{text(long(50001))}, []send{{5, false, false, false}, {5, false, false, false}, {1, false, false, false}}},
		{"many small parts share bubbles", withToken, false, []channels.Part{md("1"), md("2"), md("3"), md("4"), md("5"), md("6")}, []send{{1, true, false, true}}},
		{"easy to read while it is free", withToken, false, []channels.Part{md(strings.Repeat(long(99)+"\n\n", 40))}, []send{{3, true, false, true}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m := channels.Outbound{To: to, Quote: tt.quote, Parts: tt.parts}
			if tt.reply != "" {
				m.Reply = []byte(tt.reply)
			}
			got := a.Compose(m)
			var sends []send
			for _, s := range got {
				sends = append(sends, send{len(s.Parts), s.Reply != nil, s.Quote, s.Once})
				if s.To != to || s.Uncertain {
					t.Errorf("send %+v", s)
				}
			}
			if diff := cmp.Diff(tt.want, sends, cmp.AllowUnexported(send{})); diff != "" {
				t.Errorf("sends (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(got, a.Compose(m)); diff != "" {
				t.Errorf("composed again (-first +second):\n%s", diff)
			}
		})
	}
}

func TestComposeRendersMarkdownAndLeavesTextAlone(t *testing.T) {
	t.Parallel()
	a := newWorld(t).a
	sends := a.Compose(channels.Outbound{Parts: []channels.Part{md("**bold** and `code`"), text("**kept**"), text("broken \xff")}})
	want := []channels.Part{text("bold and code"), text("**kept**"), text("broken \uFFFD")}
	if diff := cmp.Diff(want, sends[0].Parts); diff != "" {
		t.Errorf("parts (-want +got):\n%s", diff)
	}
}

// TestComposedSendsAreAlwaysTaken: whatever the model writes, LINE's limits hold, and no letter is lost.
func TestComposedSendsAreAlwaysTaken(t *testing.T) {
	t.Parallel()
	a := newWorld(t).a
	letters := rapid.SampledFrom([]rune("ab 。\n　กข字🍎👨‍👩‍👧‍👦\u0301-*_`#|"))
	rapid.Check(t, func(t *rapid.T) {
		var parts []channels.Part
		for range rapid.IntRange(1, 7).Draw(t, "parts") {
			s := rapid.StringOfN(letters, 0, 40, -1).Draw(t, "text")
			s = strings.Repeat(s, rapid.SampledFrom([]int{1, 1, 50, 400}).Draw(t, "times"))
			parts = append(parts, channels.Part{Type: channels.Text, Text: s})
		}
		var in, out strings.Builder
		for _, p := range parts {
			if render.Visible(p.Text) {
				in.WriteString(p.Text)
			}
		}
		for i, s := range a.Compose(channels.Outbound{Reply: []byte(withToken), Parts: parts}) {
			if len(s.Parts) < 1 || len(s.Parts) > 5 || s.Once != (i == 0) {
				t.Fatalf("send %d: %d parts, once %v", i, len(s.Parts), s.Once)
			}
			for _, p := range s.Parts {
				if n := len(utf16.Encode([]rune(p.Text))); n > 5000 || strings.TrimSpace(p.Text) == "" {
					t.Fatalf("a bubble of %d units: %q", n, p.Text)
				}
				out.WriteString(p.Text)
			}
		}
		if strings.Join(strings.Fields(in.String()), "") != strings.Join(strings.Fields(out.String()), "") {
			t.Fatal("text was lost or made up")
		}
	})
}

// TestLongAnswerIsShownInOrder goes through the platform.
func TestLongAnswerIsShownInOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	in := w.say("tell me everything")
	answer := strings.Repeat(strings.Repeat("字", 99)+"\n\n", 400)
	for _, s := range w.answer(in, answer) {
		if _, err := w.a.Send(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	got := w.chat.Answers()
	if all := strings.Join(texts(got), ""); strings.Count(all, "字") != 99*400 {
		t.Errorf("%d letters shown, want %d", strings.Count(all, "字"), 99*400)
	}
	if v := vias(got); v[0] != linefake.Replied || v[4] != linefake.Replied || v[5] != linefake.Pushed {
		t.Errorf("bubbles came by %v, want five by reply and the rest by push", v)
	}
}

func BenchmarkCompose(b *testing.B) {
	a, err := line.New(line.Options{Channel: "c", Secret: "s", Token: "t"})
	if err != nil {
		b.Fatal(err)
	}
	for name, answer := range map[string]string{
		"short": "Hello, **Alice**! It is `12:30`.",
		"long":  strings.Repeat("## Heading\n\nSome *text* with [a link](https://example.com/x) and more.\n\n- one\n- two\n\n", 100),
	} {
		m := channels.Outbound{Reply: []byte(withToken), Parts: []channels.Part{md(answer)}}
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(answer)))
			b.ReportAllocs()
			for b.Loop() {
				a.Compose(m)
			}
		})
	}
}
