package render

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/graphemes"
	"github.com/google/go-cmp/cmp"
)

func TestUnitLen(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text              string
		codePoints, utf16 int
	}{
		{"", 0, 0},
		{"abc", 3, 3},
		{"🍎", 1, 2},
		{"こんにちは", 5, 5},
		{"👨‍👩‍👧", 5, 8},
	} {
		if got := CodePoints.Len(c.text); got != c.codePoints {
			t.Errorf("CodePoints.Len(%q) = %d, want %d", c.text, got, c.codePoints)
		}
		if got := UTF16.Len(c.text); got != c.utf16 {
			t.Errorf("UTF16.Len(%q) = %d, want %d", c.text, got, c.utf16)
		}
	}
}

func TestSplit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		text string
		max  int
		unit Unit
		want []string
	}{
		{"nothing", "", 10, UTF16, nil},
		{"only blanks", " \n\t \u3000\n", 10, UTF16, nil},
		{"fits", "hello", 5, UTF16, []string{"hello"}},
		{"blank ends", "\n\nhello\n\n", 5, UTF16, []string{"hello"}},
		{"indentation stays", "\n  a\n  b", 100, UTF16, []string{"  a\n  b"}},
		{"paragraph before line", "one two\nthree\n\nfour five\nsix", 24, UTF16, []string{"one two\nthree", "four five\nsix"}},
		{"line before sentence", "One two. Three\nfour. Five six", 20, UTF16, []string{"One two. Three", "four. Five six"}},
		{"sentence before space", "One two three. Four five six seven", 24, UTF16, []string{"One two three.", "Four five six seven"}},
		{"closing quote stays", `He said "go now." Then he left it.`, 22, UTF16, []string{`He said "go now."`, "Then he left it."}},
		{"number of a list item", "1. apples are red and sweet", 12, UTF16, []string{"1. apples", "are red and", "sweet"}},
		{"space", "alpha beta gamma", 11, UTF16, []string{"alpha beta", "gamma"}},
		{"word longer than a piece", "abcdefghij", 4, UTF16, []string{"abcd", "efgh", "ij"}},
		{"indent after cut", "aaaa\n    bbbb", 9, UTF16, []string{"aaaa", "    bbbb"}},
		{"carriage returns", "aaaa\r\n\r\nbbbb", 5, UTF16, []string{"aaaa", "bbbb"}},

		{"Chinese sentence", "今天天氣很好。我們去公園散步吧，好不好", 13, UTF16, []string{"今天天氣很好。", "我們去公園散步吧，好不好"}},
		{"Japanese closing bracket", "彼は「行きます。」と言った", 10, UTF16, []string{"彼は「行きます。」", "と言った"}},
		{"no comma at the beginning", "一二三四五，六七", 5, UTF16, []string{"一二三四", "五，六七"}},
		{"no bracket at the end", "一二三四「五六」", 5, UTF16, []string{"一二三四", "「五六」"}},
		{"Thai space", "สวัสดีครับ ผมชื่อบอท ยินดีที่ได้รู้จัก", 22, UTF16, []string{"สวัสดีครับ ผมชื่อบอท", "ยินดีที่ได้รู้จัก"}},
		{"Thai cluster", "ที่ที่ที่", 4, UTF16, []string{"ที่", "ที่", "ที่"}},

		{"surrogate pairs", "🍎🍎🍎", 5, UTF16, []string{"🍎🍎", "🍎"}},
		{"code points", "🍎🍎🍎", 2, CodePoints, []string{"🍎🍎", "🍎"}},
		{"family", "a👨‍👩‍👧b", 8, UTF16, []string{"a", "👨‍👩‍👧", "b"}},
		{"flag", "🇹🇼🇯🇵", 6, UTF16, []string{"🇹🇼", "🇯🇵"}},
		{"cluster longer than a piece", "e" + strings.Repeat("\u0301", 5), 4, UTF16, []string{"e\u0301\u0301\u0301", "\u0301\u0301"}},

		{"address stays whole", "see https://example.com/a-b-c now", 25, UTF16, []string{"see", "https://example.com/a-b-c", "now"}},
		{"address longer than a piece", "https://example.com/abcdef", 20, UTF16, []string{"https://example.com/", "abcdef"}},
		{"address after Chinese", "請看這個網址https://example.com/a", 22, UTF16, []string{"請看這個網址", "https://example.com/a"}},
		{"invalid UTF-8", "ab\xffcd", 3, UTF16, []string{"ab\uFFFD", "cd"}},
		{"limit below what a code point takes", "🍎b", 0, UTF16, []string{"🍎", "b"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := Split(c.text, c.max, c.unit)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("Split(%q, %d) (-want +got):\n%s", c.text, c.max, diff)
			}
			checkPieces(t, c.text, got, max(c.max, minPiece), c.unit)
		})
	}
}

func TestSplitFenced(t *testing.T) {
	t.Parallel()
	const filler = "The quick brown fox jumps over the lazy dog again."
	for _, c := range []struct {
		name string
		text string
		want []string
	}{
		{
			"fence opened again with its language",
			"```go\n" + strings.Repeat("println(1)\n", 7) + "```",
			[]string{
				"```go\n" + strings.Repeat("println(1)\n", 5) + "```",
				"```go\n" + strings.Repeat("println(1)\n", 2) + "```",
			},
		},
		{
			"cut before a fence rather than in it",
			filler + "\n\n```\n" + strings.Repeat("x = 1\n", 3) + "```",
			[]string{filler, "```\n" + strings.Repeat("x = 1\n", 3) + "```"},
		},
		{
			"indentation in code survives",
			"```\n" + strings.Repeat("if a:\n    b()\n", 6) + "```",
			[]string{
				"```\n" + strings.Repeat("if a:\n    b()\n", 4) + "```",
				"```\n" + strings.Repeat("if a:\n    b()\n", 2) + "```",
			},
		},
		{
			"fence in a quote",
			"> ```sh\n" + strings.Repeat("> echo hello\n", 6) + "> ```",
			[]string{
				"> ```sh\n" + strings.Repeat("> echo hello\n", 3) + "> ```",
				"> ```sh\n" + strings.Repeat("> echo hello\n", 3) + "> ```",
			},
		},
		{
			"an open fence is closed",
			"```js\nlet a",
			[]string{"```js\nlet a\n```"},
		},
		{
			"text after a fence",
			"```\na\n```\n\n" + filler + " " + filler,
			[]string{"```\na\n```\n\n" + filler, filler},
		},
		{
			"bold text and code stay whole",
			"This line has some words, **then bold words that go on**, and `code that goes on` too.",
			[]string{"This line has some words, **then bold words that go on**, and", "`code that goes on` too."},
		},
		{
			"a link stays whole",
			"This line has some words before it and a [link with a label](https://example.com/abc) too.",
			[]string{"This line has some words before it and a", "[link with a label](https://example.com/abc) too."},
		},
		{
			"a code line longer than a piece",
			"```\n" + strings.Repeat("a", 70) + "\n```",
			[]string{"```\n" + strings.Repeat("a", 56) + "\n```", "```\n" + strings.Repeat("a", 14) + "\n```"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := SplitFenced(c.text, 64, CodePoints)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("SplitFenced (-want +got):\n%s", diff)
			}
			for _, piece := range got {
				if n := CodePoints.Len(piece); n > 64 {
					t.Errorf("piece of %d code points: %q", n, piece)
				}
			}
		})
	}
}

// checkPieces asserts what holds for every split.
func checkPieces(t *testing.T, text string, pieces []string, max int, unit Unit) {
	t.Helper()
	text = strings.ToValidUTF8(text, "\uFFFD")
	boundary := map[int]bool{len(text): true}
	long := false // some cluster does not fit a piece
	for it := graphemes.FromString(text); it.Next(); {
		boundary[it.Start()] = true
		long = long || unit.Len(it.Value()) > max
	}
	pos := 0
	for i, piece := range pieces {
		if strings.TrimSpace(piece) == "" {
			t.Fatalf("piece %d is blank: %q", i, piece)
		}
		if n := unit.Len(piece); n > max {
			t.Fatalf("piece %d has %d units, more than %d: %q", i, n, max, piece)
		}
		if !utf8.ValidString(piece) {
			t.Fatalf("piece %d is not valid UTF-8: %q", i, piece)
		}
		skipped := strings.Index(text[pos:], piece)
		if skipped < 0 {
			t.Fatalf("piece %d is not in the rest of the source: %q in %q", i, piece, text[pos:])
		}
		if lost := text[pos : pos+skipped]; strings.TrimSpace(lost) != "" {
			t.Fatalf("before piece %d text is lost: %q", i, lost)
		}
		pos += skipped
		if !long && !boundary[pos] {
			t.Fatalf("piece %d begins inside a cluster: %q", i, piece)
		}
		pos += len(piece)
		if !long && !boundary[pos] && !unicode.IsSpace(firstRune(text[pos:])) {
			t.Fatalf("piece %d ends inside a cluster: %q", i, piece)
		}
	}
	if rest := text[pos:]; strings.TrimSpace(rest) != "" {
		t.Fatalf("text is lost at the end: %q", rest)
	}
}

func FuzzSplit(f *testing.F) {
	for _, s := range []string{
		"", "hello world", "今天天氣很好。我們去「公園」。", "สวัสดีครับ ผมชื่อบอท", "👨‍👩‍👧🇹🇼e\u0301",
		"see https://example.com/a?b=c#d, ok", "a \u0301b", "\u0600a", "\u0600 ", "บบบบบบ ำบบบบบ", "\xff\xfe", "a\r\n\r\nb", "1. a\n2. b",
	} {
		f.Add(s, 7, true)
		f.Add(s, 3, false)
	}
	f.Fuzz(func(t *testing.T, text string, limit int, utf16 bool) {
		unit := CodePoints
		if utf16 {
			unit = UTF16
		}
		limit = min(max(limit, minPiece), 5000)
		pieces := Split(text, limit, unit)
		checkPieces(t, text, pieces, limit, unit)
		checkAddresses(t, text, pieces, limit, unit)
	})
}

// checkAddresses asserts that every address that fits a piece is whole in one.
func checkAddresses(t *testing.T, text string, pieces []string, limit int, unit Unit) {
	t.Helper()
	for field := range strings.FieldsSeq(strings.ToValidUTF8(text, "\uFFFD")) {
		n := 0
		for n < len(field) && isURLByte(field[n]) {
			n++
		}
		if schemeLen(field) == 0 || unit.Len(field[:n]) > limit || (n < len(field) && unicode.In(firstRune(field[n:]), unicode.M, unicode.Cf)) {
			continue
		}
		if !strings.Contains(strings.Join(pieces, "\n"), field[:n]) {
			t.Fatalf("address %q is cut: %q", field[:n], pieces)
		}
	}
}

func firstRune(s string) rune {
	r, _ := utf8.DecodeRuneInString(s)
	return r
}

func FuzzSplitFenced(f *testing.F) {
	for _, s := range []string{
		"```go\na\nb\n```", "> ```\n> a\n> ```", "a **b** `c` [d](https://e.f)", "```\n```\n```", "``` `x` ```", "```" + strings.Repeat("x", 100),
		strings.Repeat("```go\nfmt.Println(\"hi\")\n```\ntext\n", 5),
	} {
		f.Add(s, 64)
		f.Add(s, 100)
	}
	f.Fuzz(func(t *testing.T, text string, limit int) {
		limit = min(max(limit, minPiece), 5000)
		var got strings.Builder
		for i, piece := range SplitFenced(text, limit, CodePoints) {
			if n := CodePoints.Len(piece); n > limit {
				t.Fatalf("piece %d has %d code points, more than %d: %q", i, n, limit, piece)
			}
			if strings.TrimSpace(piece) == "" || !utf8.ValidString(piece) {
				t.Fatalf("piece %d is blank or not valid UTF-8: %q", i, piece)
			}
			got.WriteString(piece)
		}
		// Closed and opened fences add lines but take nothing away.
		if !isSubsequence(letters(strings.ToValidUTF8(text, "\uFFFD")), letters(got.String())) {
			t.Fatalf("text is lost: %q became %q", text, got.String())
		}
	})
}

func letters(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return -1
		}
		return r
	}, s)
}

func isSubsequence(sub, s string) bool {
	rest := []rune(s)
	for _, r := range sub {
		for len(rest) > 0 && rest[0] != r {
			rest = rest[1:]
		}
		if len(rest) == 0 {
			return false
		}
		rest = rest[1:]
	}
	return true
}

// TestSplitIsLinear asserts that the bytes looked at grow no faster than the text.
func TestSplitIsLinear(t *testing.T) {
	t.Parallel()
	for name, unit := range map[string]string{
		"no spaces":         "a",
		"Chinese":           "字",
		"one cluster":       "\u0301",
		"spaces":            " ",
		"newlines":          "\n",
		"addresses":         "https://a/",
		"one address":       "https",
		"brackets":          "[a](http",
		"words and address": "a https://example.com/" + strings.Repeat("a", 1900) + " ",
		"backticks":         "`",
		"fences":            "```\n",
		"quotes":            "> ",
		"bold":              "**a ",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, fenced := range []bool{false, true} {
				small := strings.Repeat(unit, 1+20_000/len(unit))
				large := strings.Repeat(small, 8)
				_, few := split(small, 2000, CodePoints, fenced)
				_, many := split(large, 2000, CodePoints, fenced)
				if bound := 40*len(large) + 50_000; many > bound || many > 12*few+50_000 {
					t.Errorf("fenced %v: looked at %d bytes of %d, at %d of %d", fenced, few, len(small), many, len(large))
				}
			}
		})
	}
}

func BenchmarkSplit(b *testing.B) {
	for name, text := range map[string]string{
		"english": strings.Repeat("The quick brown fox jumps over the lazy dog. ", 450),
		"chinese": strings.Repeat("今天天氣很好，我們去公園散步。", 1300),
		"hostile": strings.Repeat("a", 1<<20),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				Split(text, 5000, UTF16)
			}
		})
	}
}
