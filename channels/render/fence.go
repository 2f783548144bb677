package render

import "strings"

// fence is the state of a scan through text with fenced code.
type fence struct {
	state fenceState
	// opener opens the current fence again, with the line end; closer closes it, with the line end before.
	// Both are empty outside of fences, closer in the line that closes one too.
	opener, closer string
}

type fenceState uint8

const (
	prose fenceState = iota
	openingLine
	code
	closingLine
)

const fenceMark = "```"

func (f fence) isOpen() bool { return f.state != prose }

// line returns the state in the line that rest begins with.
func (f fence) line(rest string) fence {
	switch f.state {
	case openingLine:
		f.state = code
	case closingLine:
		f = fence{}
	}
	text, _, _ := strings.Cut(rest[:min(len(rest), 128)], "\n")
	mark := strings.TrimLeft(text, "> ")
	switch {
	case !strings.HasPrefix(mark, fenceMark):
		return f
	case f.state == code:
		return fence{state: closingLine, opener: f.opener}
	case strings.Contains(mark[len(fenceMark):], "`"):
		return f // all in one line
	}
	lead := text[:len(text)-len(mark)]
	return fence{
		state:  openingLine,
		opener: lead + strings.TrimRight(mark, " \r") + "\n",
		closer: "\n" + lead + fenceMark,
	}
}

func isMark(line string) bool {
	return strings.HasPrefix(strings.TrimLeft(line[:min(len(line), 64)], "> "), fenceMark)
}

// markup tells which inline marks are open in a line of prose.
type markup struct {
	bold, code bool
	skip       int // before it the marks are counted
}

func (m markup) open() bool { return m.bold || m.code }

// next counts the mark that begins at at.
func (m markup) next(text string, at int) markup {
	if at < m.skip {
		return m
	}
	switch {
	case text[at] == '\\':
		m.skip = at + 2
	case text[at] == '`':
		n := len(text[at:]) - len(strings.TrimLeft(text[at:], "`"))
		m.code, m.skip = !m.code, at+n
	case !m.code && strings.HasPrefix(text[at:], "**"):
		m.bold, m.skip = !m.bold, at+2
	}
	return m
}
