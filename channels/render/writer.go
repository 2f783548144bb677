package render

import "strings"

// container is a quote or a list item that is open while its content is written.
type container struct {
	// first goes before its first line, rest before the others.
	first, rest string
	quote, used bool
}

// writer builds text line by line and puts the marks of the open containers before each.
type writer struct {
	b     []byte
	stack []container
	// gap is how many newlines are due before the next text.
	gap int
	// inLine reports that the current line has its prefix.
	inLine bool
}

func (w *writer) push(c container) { w.stack = append(w.stack, c) }

// pop closes the innermost container; one that got no text still shows its mark.
func (w *writer) pop() {
	if c := w.stack[len(w.stack)-1]; !c.used && !c.quote {
		w.begin(false)
	}
	w.stack = w.stack[:len(w.stack)-1]
}

// newline asks for at least n newlines before the next text.
func (w *writer) newline(n int) { w.gap = max(w.gap, n) }

// begin starts a line if none is begun. Verbatim lines get no indentation, for it would become part of
// what they show.
func (w *writer) begin(verbatim bool) {
	if w.gap > 0 {
		if len(w.b) > 0 {
			for i := range w.gap {
				w.b = append(w.b, '\n')
				if i < w.gap-1 {
					w.blankPrefix()
				}
			}
			w.inLine = false
		}
		w.gap = 0
	}
	if w.inLine {
		return
	}
	w.inLine = true
	for i := range w.stack {
		c := &w.stack[i]
		switch {
		case !c.used:
			w.b = append(w.b, c.first...)
			c.used = true
		case c.quote || !verbatim:
			w.b = append(w.b, c.rest...)
		}
	}
}

// blankPrefix marks an empty line inside quotes.
func (w *writer) blankPrefix() {
	for _, c := range w.stack {
		if !c.used {
			return
		}
		if c.quote {
			w.b = append(w.b, c.rest...)
		}
	}
}

// text writes s, which may hold newlines.
func (w *writer) text(s string) { w.write(s, false) }

// verbatim writes lines without indentation.
func (w *writer) verbatim(s string) { w.write(s, true) }

func (w *writer) write(s string, verbatim bool) {
	for s != "" {
		line, rest, more := strings.Cut(s, "\n")
		if line != "" {
			w.begin(verbatim)
			w.b = append(w.b, line...)
		}
		if more {
			w.gap++
		}
		s = rest
	}
}

// last returns the last byte of the current line, 0 at its beginning.
func (w *writer) last() byte {
	if w.gap > 0 || !w.inLine || len(w.b) == 0 {
		return 0
	}
	return w.b[len(w.b)-1]
}

// String returns the text without blank lines at its ends.
func (w *writer) String() string { return strings.Trim(string(w.b), "\n") }
