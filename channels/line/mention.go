package line

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// mentionee is one mention in a text. Index and Length count UTF-16 code units (Character counting in a
// text); as not every client keeps to that, the place is checked before it is believed.
type mentionee struct {
	Type   string  `json:"type"`
	Index  float64 `json:"index"`
	Length float64 `json:"length"`
	IsSelf bool    `json:"isSelf"`
}

// stripSelf returns the text without the mentions of the bot, and whether there were any. A mention of
// everybody is none of the bot. A text that is nothing but a mention stays as it is.
func stripSelf(text string, mentionees []mentionee) (stripped string, self bool) {
	var spans []span
	for _, m := range mentionees {
		if m.Type != "user" || !m.IsSelf {
			continue
		}
		self = true
		if s, found := locate(text, m); found {
			spans = append(spans, s)
		}
	}
	slices.SortFunc(spans, func(a, b span) int { return a.from - b.from })
	var b strings.Builder
	at := 0
	for _, s := range spans {
		if s.from < at {
			continue
		}
		b.WriteString(text[at:s.from])
		at = s.to
		// The space before the mention stays; the one after it goes with it.
		if before := b.String(); before == "" || endsInSpace(before) {
			at += len(text[at:]) - len(strings.TrimLeft(text[at:], " \u00a0\u3000"))
		}
	}
	b.WriteString(text[at:])
	if stripped = strings.TrimSpace(b.String()); stripped == "" {
		return text, self
	}
	if len(spans) == 0 {
		return text, self
	}
	return stripped, self
}

func endsInSpace(s string) bool {
	r, _ := utf8.DecodeLastRuneInString(s)
	return unicode.IsSpace(r)
}

// span is a range of bytes.
type span struct{ from, to int }

// locate finds a mention in the text: by UTF-16 units, else by code points, where there is an at sign.
func locate(text string, m mentionee) (span, bool) {
	if m.Index < 0 || m.Length < 1 || m.Index+m.Length > float64(len(text)) {
		return span{}, false
	}
	for _, width := range []func(rune) int{utf16Width, one} {
		s, found := cut(text, int(m.Index), int(m.Index+m.Length), width)
		if found && (strings.HasPrefix(text[s.from:], "@") || strings.HasPrefix(text[s.from:], "＠")) {
			return s, true
		}
	}
	return span{}, false
}

func utf16Width(r rune) int {
	if r > 0xFFFF {
		return 2
	}
	return 1
}

func one(rune) int { return 1 }

// cut turns offsets in units of width into bytes; both must fall between code points.
func cut(text string, from, to int, width func(rune) int) (span, bool) {
	s := span{-1, -1}
	n := 0
	for i, r := range text {
		if n == from {
			s.from = i
		}
		if n == to {
			s.to = i
		}
		n += width(r)
	}
	if n == to {
		s.to = len(text)
	}
	return s, s.from >= 0 && s.to > s.from
}
