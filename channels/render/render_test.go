package render

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"
)

// hostileUnits are repeated to documents on which parsers of Markdown are known to take long.
var hostileUnits = map[string]string{
	"quotes":           ">",
	"quoted lists":     "> - ",
	"lists":            "- a\n ",
	"ordered lists":    "1. ",
	"brackets":         "[",
	"bracket pairs":    "[a](",
	"images":           "![",
	"link in brackets": "[a](<b",
	"emphasis":         "*a_ ",
	"strong":           "a**b",
	"strikethrough":    "~~a ",
	"backticks":        "`a``b",
	"tags":             "<a ",
	"comments":         "a <!-- ",
	"tables":           "|a|b|\n|-|-|\n|x\n",
	"references":       "[a]: b\n",
	"addresses":        "http://a.b/(",
	"entities":         "&",
	"backslashes":      "\\",
	"one line":         "a",
	"Chinese":          "字",
	"blank lines":      "\n",
	"spaces":           " ",
	"indented":         "    a\n\n",
	"fences":           "```\na\n",
	"open fence":       "```",
	"setext":           "a\n=\n",
	"nested":           "  - a\n    > b\n",
}

// TestCostIsLinear asserts that no section is so large or so deep that the parser's worst cases matter, and
// that memory grows no faster than the document.
func TestCostIsLinear(t *testing.T) {
	for name, unit := range hostileUnits {
		small := strings.Repeat(unit, 1+17<<10/len(unit))
		large := strings.Repeat(small, 3)
		for dialect, f := range map[string]func(string) string{"plain": Plain, "discord": Discord} {
			few, many := allocated(f, small), allocated(f, large)
			if many > 5*few+1<<20 {
				t.Errorf("%s: %s: %d bytes allocated for a document of %d, %d for one of %d",
					name, dialect, few, len(small), many, len(large))
			}
		}
	}
	// A table's rows are as wide as its head, whatever they hold.
	wide := strings.Repeat("|a", 1000) + "|\n" + strings.Repeat("|-", 1000) + "|\n" + strings.Repeat("|x\n", 4000)
	if n := allocated(Plain, wide); n > 64<<20 {
		t.Errorf("wide table: %d bytes allocated", n)
	}
}

func allocated(f func(string) string, md string) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f(md)
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func TestSectionsAreBounded(t *testing.T) {
	t.Parallel()
	for name, unit := range hostileUnits {
		src := []byte(strings.Repeat(unit, 1+(1<<17)/len(unit)))
		var all []byte
		for _, s := range sections(src) {
			if len(s.src) > sectionSize && opensFence(s.src) == "" {
				t.Errorf("%s: a section of %d bytes", name, len(s.src))
			}
			all = append(all, s.src...)
			for line := range bytes.Lines(boundNesting(s.src)) {
				if at := tooDeep(line); at >= 0 && line[at-1] != '\\' {
					t.Errorf("%s: a line opens more than %d containers", name, maxNesting)
					break
				}
			}
		}
		if !bytes.Equal(all, src) {
			t.Errorf("%s: sections do not add up to the document", name)
		}
	}
}

// TestLongDocument asserts that sections leave no trace where a document is cut between blocks.
func TestLongDocument(t *testing.T) {
	t.Parallel()
	var md, plain, discord strings.Builder
	for range 600 {
		md.WriteString("A **paragraph** with `code`.\n\n- item\n- 項目\n\n```go\nfunc f() {\n\n}\n```\n\n")
		plain.WriteString("A paragraph with code.\n\n• item\n• 項目\n\nfunc f() {\n\n}\n\n")
		discord.WriteString("A **paragraph** with `code`.\n\n- item\n- 項目\n\n```go\nfunc f() {\n\n}\n```\n\n")
	}
	if got, want := Plain(md.String()), strings.TrimSpace(plain.String()); got != want {
		t.Errorf("plain differs at %q", firstDifference(got, want))
	}
	if got, want := Discord(md.String()), strings.TrimSpace(discord.String()); got != want {
		t.Errorf("discord differs at %q", firstDifference(got, want))
	}
	code := "```\n" + strings.Repeat("line\n\n", 10_000) + "end\n```"
	if got := Discord(code); got != code {
		t.Errorf("long code differs at %q", firstDifference(got, code))
	}
	line := strings.Repeat("word ", 10_000)
	if got, want := Plain(line), strings.TrimSpace(line); got != want {
		t.Errorf("long line differs at %q", firstDifference(got, want))
	}
}

func firstDifference(got, want string) string {
	i := 0
	for i < min(len(got), len(want)) && got[i] == want[i] {
		i++
	}
	return got[max(0, i-40):min(len(got), i+40)]
}

// FuzzRender asserts what holds for any input: valid text, code verbatim, no panic, and that Discord's
// output means the same when it is rendered again.
func FuzzRender(f *testing.F) {
	sources, err := filepath.Glob("testdata/golden/*.md")
	if err != nil {
		f.Fatal(err)
	}
	for _, source := range sources {
		md, err := os.ReadFile(source)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(md))
	}
	f.Add("- \n  - > \n```")
	f.Add("|a|\n|-|\n|<br>|")
	f.Add("<a href='x'><b></a>\n\n<li>")
	f.Fuzz(func(t *testing.T, md string) {
		for name, out := range map[string]string{"plain": Plain(md), "discord": Discord(md)} {
			if !utf8.ValidString(out) {
				t.Errorf("%s: not valid UTF-8: %q", name, out)
			}
			if strings.HasPrefix(out, "\n") || strings.HasSuffix(out, "\n") {
				t.Errorf("%s: blank lines at the ends: %q", name, out)
			}
			if strings.ContainsAny(out, "\x00\r") {
				t.Errorf("%s: control characters: %q", name, out)
			}
		}
	})
}

// FuzzCodeIsVerbatim asserts that fenced code comes through untouched.
func FuzzCodeIsVerbatim(f *testing.F) {
	f.Add("fmt.Println(\"**hi**\")\n\n\t# x  \n[a](b) &amp; <b>")
	f.Add("你好\n  สวัสดี")
	f.Fuzz(func(t *testing.T, code string) {
		code = strings.Trim(string(normalise(code)), "\n")
		if code == "" || strings.Contains(code, "```") || tooDeepAnywhere(code) {
			t.Skip("not code that a fence of three can hold")
		}
		md := "```\n" + code + "\n```"
		if got := Plain(md); got != code {
			t.Errorf("plain: %q became %q", code, got)
		}
		if got := Discord(md); got != md {
			t.Errorf("discord: %q became %q", md, got)
		}
	})
}

func tooDeepAnywhere(s string) bool {
	for line := range strings.Lines(s) {
		if tooDeep([]byte(line)) >= 0 {
			return true
		}
	}
	return false
}

func BenchmarkRender(b *testing.B) {
	var md strings.Builder
	sources, err := filepath.Glob("testdata/golden/*.md")
	if err != nil {
		b.Fatal(err)
	}
	for _, source := range sources {
		text, err := os.ReadFile(source)
		if err != nil {
			b.Fatal(err)
		}
		md.Write(text)
	}
	for name, f := range map[string]func(string) string{"plain": Plain, "discord": Discord} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(md.Len()))
			for b.Loop() {
				f(md.String())
			}
		})
	}
}

func BenchmarkHostile(b *testing.B) {
	for name, unit := range hostileUnits {
		md := strings.Repeat(unit, 1+(1<<18)/len(unit))
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(md)))
			for b.Loop() {
				Discord(md)
			}
		})
	}
}
