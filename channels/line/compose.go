package line

import (
	"slices"
	"strings"

	"botd/channels"
	"botd/channels/render"
)

const (
	// maxBubbles is how many messages one call takes (Messaging API reference, Send reply message).
	maxBubbles = 5
	// maxUnits is the longest text in UTF-16 code units (Character counting in a text).
	maxUnits = 5000
	// easyUnits is the length up to which a bubble is easy to read on a telephone. Texts are cut there
	// as long as the bubbles of one call suffice.
	easyUnits = 2000
)

// Compose puts up to five bubbles into one call, because a reply token is good for one: the first call
// answers with the event's token, is marked Once, and quotes if asked to; what does not fit is pushed.
func (a *Adapter) Compose(m channels.Outbound) []channels.Outbound {
	h := decodeHandle(m.Reply)
	var sends []channels.Outbound
	for texts := range slices.Chunk(bubbles(m.Parts), maxBubbles) {
		s := channels.Outbound{ID: m.ID, To: m.To}
		for _, t := range texts {
			s.Parts = append(s.Parts, channels.Part{Type: channels.Text, Text: t})
		}
		if len(sends) == 0 {
			s.Quote = m.Quote && h.Quote != ""
			s.Once = h.Token != ""
			if s.Once || s.Quote {
				s.Reply = slices.Clone(m.Reply)
			}
		}
		sends = append(sends, s)
	}
	return sends
}

// bubbles turns parts into the texts of messages: each part begins a new one, unless there are so many
// that filling the bubbles saves a push.
func bubbles(parts []channels.Part) []string {
	var texts []string
	units := 0
	for _, p := range parts {
		text := strings.ToValidUTF8(p.Text, "\uFFFD")
		if p.Type == channels.Markdown {
			text = render.Plain(text)
		}
		if render.Visible(text) {
			texts = append(texts, text)
			units += render.UTF16.Len(text)
		}
	}
	for _, limit := range []int{easyUnits, maxUnits} {
		// White space at the cuts does not count, so that a little more may fit.
		if units > limit*maxBubbles*11/10 {
			continue
		}
		if pieces := split(texts, limit); len(pieces) <= maxBubbles {
			return pieces
		}
	}
	return split([]string{strings.Join(texts, "\n\n")}, maxUnits)
}

func split(texts []string, limit int) []string {
	var pieces []string
	for _, t := range texts {
		pieces = append(pieces, render.Split(t, limit, render.UTF16)...)
	}
	return pieces
}
