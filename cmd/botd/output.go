package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf8"
)

// printable makes text from outside harmless for a terminal: what is not shown, such as the escapes that
// move a cursor or the marks that turn the writing direction, is written out.
func printable(s string) string { return neutral(s, "") }

// neutral is printable, but for the characters in keep.
func neutral(s, keep string) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case visible(r) || strings.ContainsRune(keep, r):
			b.WriteString(s[i : i+n])
		case r == '\n':
			b.WriteString(`\n`)
		case r < 0x80:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
		i += n
	}
	return b.String()
}

// visible reports whether a character shows as itself. The joiners are parts of emoji and of scripts.
func visible(r rune) bool {
	const zeroWidthNonJoiner, zeroWidthJoiner = '\u200c', '\u200d'
	return unicode.IsPrint(r) || r == zeroWidthNonJoiner || r == zeroWidthJoiner
}

// jsonWriter passes JSON on in a form that is the same JSON and harmless for a terminal. In JSON, what it
// escapes can only stand inside strings.
type jsonWriter struct {
	w    io.Writer
	rest []byte // an incomplete character
}

func (j *jsonWriter) Write(p []byte) (int, error) {
	text := append(j.rest, p...)
	var out bytes.Buffer
	for len(text) > 0 && utf8.FullRune(text) {
		r, n := utf8.DecodeRune(text)
		switch {
		case visible(r) || r == '\n' || r == '\t' || r == '\r':
			out.Write(text[:n])
		case r < 0x10000:
			fmt.Fprintf(&out, `\u%04x`, r)
		default:
			high, low := (r-0x10000)>>10+0xd800, (r-0x10000)&0x3ff+0xdc00
			fmt.Fprintf(&out, `\u%04x\u%04x`, high, low)
		}
		text = text[n:]
	}
	j.rest = bytes.Clone(text)
	if _, err := j.w.Write(out.Bytes()); err != nil {
		return 0, err
	}
	return len(p), nil
}

// printJSON writes v for a program, or a person, to read.
func printJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(&jsonWriter{w: w})
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("write answer: %w", err)
	}
	return nil
}

// table writes rows of cells, each made printable.
type table struct{ w *tabwriter.Writer }

func newTable(w io.Writer, head ...string) *table {
	t := &table{tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)}
	t.row(head)
	return t
}

func (t *table) add(cells ...any) {
	text := make([]string, len(cells))
	for i, c := range cells {
		switch c := c.(type) {
		case time.Time:
			text[i] = when(c)
		default:
			text[i] = fmt.Sprint(c)
		}
	}
	t.row(text)
}

func (t *table) row(cells []string) {
	for i, c := range cells {
		if i > 0 {
			fmt.Fprint(t.w, "\t")
		}
		if c == "" {
			c = "-"
		}
		fmt.Fprint(t.w, printable(c))
	}
	fmt.Fprintln(t.w)
}

func (t *table) flush() error { return t.w.Flush() }

// when is a time as tables show it, in the zone of the reader.
func when(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Local().Format("2006-01-02 15:04:05")
}

// count is a number of things.
func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprint(n, " ", many)
}

// shellQuote makes one word of a text, to be copied into a shell.
func shellQuote(s string) string {
	plain := strings.IndexFunc(s, func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789:_-.,/@%+=", r)
	}) < 0
	if plain && s != "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
