package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestPrintable(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"Alice":                  "Alice",
		"名前 ไทย עברית é":         "名前 ไทย עברית é",
		"👩\u200d👩\u200d👧":        "👩\u200d👩\u200d👧",
		"\x1b[2J\x1b]0;x\x07":    `\x1b[2J\x1b]0;x\x07`,
		"\u009b31m":              `\u009b31m`,
		"a\tb\rc\nd":             `a\x09b\x0dc\nd`,
		"user\u202egpj.exe":      `user\u202egpj.exe`,
		"\u2066x\u2069":          `\u2066x\u2069`,
		"zero\u200bwidth\ufeff":  `zero\u200bwidth\ufeff`,
		"\xff\xc3":               `\xff\xc3`,
		"tag \U000e0041":         `tag \U000e0041`,
		"line\u2028sep\u2029end": `line\u2028sep\u2029end`,
	} {
		if got := printable(in); got != want {
			t.Errorf("printable(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestCellsStayInTheirColumns(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	table := newTable(&out, "NAME", "TEXT")
	table.add("evil\tname\n\x1b[1A", "")
	if err := table.flush(); err != nil {
		t.Fatal(err)
	}
	const want = "NAME                   TEXT\nevil\\x09name\\n\\x1b[1A  -\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
}

func TestShellQuote(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"line:user:U4af": "line:user:U4af", "a b": "'a b'", "it's": `'it'\''s'`, "$(rm)": "'$(rm)'", "": "''",
	} {
		if got := shellQuote(in); got != want {
			t.Errorf("shellQuote(%q) = %s, want %s", in, got, want)
		}
	}
}

// FuzzNothingMovesTheCursor holds that neither tables nor JSON can hold what a terminal obeys, that JSON
// stays what it was, and that it does not matter in which pieces it is written.
func FuzzNothingMovesTheCursor(f *testing.F) {
	for _, seed := range []string{"Alice", "\x1b[2J", "\u009b31m", "名\u202e", "\U000e0041\u2028", "\xff\xc3", "\x7f"} {
		f.Add(seed, 1)
	}
	f.Fuzz(func(t *testing.T, text string, at int) {
		harmless := func(what, s string) {
			t.Helper()
			for _, r := range s {
				if !visible(r) && r != '\n' {
					t.Errorf("%s of %q holds %q", what, text, r)
				}
			}
		}
		got := printable(text)
		harmless("text", got)
		if strings.Contains(got, "\n") {
			t.Errorf("text of %q has a second line", text)
		}
		if !utf8.ValidString(text) {
			return
		}
		raw, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		at = min(max(at, 0), len(raw))
		var out bytes.Buffer
		w := &jsonWriter{w: &out}
		for _, piece := range [][]byte{raw[:at], raw[at:]} {
			if n, err := w.Write(piece); err != nil || n != len(piece) {
				t.Fatalf("write: %d, %v", n, err)
			}
		}
		harmless("JSON", out.String())
		var back string
		if err := json.Unmarshal(out.Bytes(), &back); err != nil || back != text {
			t.Errorf("JSON of %q is %s, which is %q (%v)", text, out.Bytes(), back, err)
		}
	})
}

func TestReading(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ raw, speaker, text string }{
		{`{"role":"user","content":"hello"}`, "user", "hello"},
		{`{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a"},{"type":"refusal","refusal":"no"}]}`, "assistant", "a\nno"},
		{`{"role":"user","content":[{"type":"input_text","text":"see"},{"type":"input_image","image_url":"data:…"}]}`, "user", "see\n[input_image]"},
		{`{"type":"function_call","name":"clock","arguments":"{}"}`, "tool call", "clock {}"},
		{`{"type":"function_call_output","output":"noon"}`, "tool output", "noon"},
		{`{"type":"reasoning","summary":[]}`, "reasoning", `{"type":"reasoning","summary":[]}`},
		{`{"role":"user","content":7}`, "item", `{"role":"user","content":7}`},
		{`{"odd":1}`, "item", `{"odd":1}`},
		{`{"type":7}`, "item", `{"type":7}`},
	} {
		if speaker, text := reading([]byte(tt.raw)); speaker != tt.speaker || text != tt.text {
			t.Errorf("%s reads %q of %q, want %q of %q", tt.raw, text, speaker, tt.text, tt.speaker)
		}
	}
}
