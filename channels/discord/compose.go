package discord

import (
	"strings"
	"unicode/utf8"

	"botd/channels"
	"botd/channels/render"
)

// maxContent is the length of a message in code points. (Discord documentation, Message, Create Message:
// "up to 2000 characters".)
const maxContent = 2000

// Compose renders an answer and splits it into messages of at most 2000 code points, code fences kept
// whole. The first one refers to the message answered when m.Quote is set.
//
// An ordinary message carries a nonce and may be sent again. The answer to a slash command may not: its
// first message edits the acknowledgement, which may be repeated, but not after the interaction's 15
// minutes, when it becomes an ordinary message; its other messages have no key at all. They are marked
// Once.
func (a *Adapter) Compose(m channels.Outbound) []channels.Outbound {
	var texts []string
	for _, p := range m.Parts {
		if text := outboundText(p); render.Visible(text) {
			texts = append(texts, text)
		}
	}
	r := decodeReply(m.Reply)
	pieces := render.SplitFenced(strings.Join(texts, "\n"), maxContent, render.CodePoints)
	sends := make([]channels.Outbound, len(pieces))
	for i, piece := range pieces {
		s := m
		s.Parts = []channels.Part{{Type: channels.Text, Text: piece}}
		s.Quote = m.Quote && i == 0 && r.Message != ""
		s.Once = r.Interaction != nil
		if r != (reply{}) {
			r.Part = i
			s.Reply = r.encode()
		} else {
			s.Reply = nil
		}
		sends[i] = s
	}
	return sends
}

// outboundText is one part in Discord's Markdown.
func outboundText(p channels.Part) string {
	switch p.Type {
	case channels.Markdown:
		return render.Discord(p.Text)
	case channels.Text:
		return literal(p.Text)
	}
	// Media are not sent; their description is.
	text := p.Text
	if text == "" && p.Media != nil {
		text = p.Media.Name
	}
	return literal(text)
}

// literal escapes what Discord would take for markup. Web addresses stay as they are: Discord shows a
// backslash inside one.
func literal(text string) string {
	if !strings.ContainsAny(text, "\\*_~|`[]<>#-") {
		return text
	}
	var b strings.Builder
	begins := true // only blanks since the beginning of the line
	for i := 0; i < len(text); {
		if n := addressLen(text[i:]); n > 0 {
			b.WriteString(text[i : i+n])
			i, begins = i+n, false
			continue
		}
		c := text[i]
		special := "\\*_~|`[]<"
		if begins {
			special = "\\*_~|`[]<>#-"
		}
		if strings.IndexByte(special, c) >= 0 {
			b.WriteByte('\\')
		}
		if c != ' ' {
			begins = c == '\n'
		}
		_, n := utf8.DecodeRuneInString(text[i:])
		b.WriteString(text[i : i+n])
		i += n
	}
	return b.String()
}

// addressLen is the length of the web address at the beginning of s, 0 when there is none.
func addressLen(s string) int {
	if !strings.HasPrefix(s, "https://") && !strings.HasPrefix(s, "http://") {
		return 0
	}
	if end := strings.IndexAny(s, " \n\t<>\"`"); end >= 0 {
		return end
	}
	return len(s)
}
