package render

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/graphemes"
)

// Unit is what a platform counts when it limits the length of a text.
type Unit uint8

const (
	// CodePoints counts Unicode code points, as Discord does.
	CodePoints Unit = iota
	// UTF16 counts UTF-16 code units, as LINE does.
	UTF16
)

// Len returns the length of s in the unit.
func (u Unit) Len(s string) int {
	n := utf8.RuneCountInString(s)
	if u == UTF16 {
		for _, r := range s {
			if r > 0xFFFF {
				n++
			}
		}
	}
	return n
}

const (
	// minPiece is the smallest limit that can be kept: one code point outside the Basic Multilingual Plane
	// takes two UTF-16 units.
	minPiece = 2
	// minFenced is the least room in a piece that is worth the marks of a fence.
	minFenced = 16
)

// Split cuts text into pieces of at most limit units. It cuts, in this order of preference and as late as
// possible, between paragraphs, lines, sentences, at a space between Thai phrases, at a space, and as a
// last resort between grapheme clusters; never inside a cluster or a web address that fits a piece.
// White space at a cut is dropped, and no piece is empty or blank. A limit below 2 counts as 2.
func Split(text string, limit int, unit Unit) []string {
	pieces, _ := split(text, limit, unit, false)
	return pieces
}

// SplitFenced is Split for text with code fences, as Discord's function returns it. A cut inside a fence
// closes it and opens it again, with its language, at the beginning of the next piece; the marks count
// towards the limit. A fence that the text leaves open is closed. It does not cut inside inline code, bold
// text or a link that fits a piece either. Where the limit leaves no room for fences they are ordinary
// text.
func SplitFenced(text string, limit int, unit Unit) []string {
	pieces, _ := split(text, limit, unit, true)
	return pieces
}

// split returns the pieces, and how many bytes it looked at to find them.
func split(text string, limit int, unit Unit, fenced bool) (pieces []string, steps int) {
	limit = max(limit, minPiece)
	fenced = fenced && limit >= 4*minFenced
	text = strings.ToValidUTF8(text, "\uFFFD")
	var open fence
	for rest := skipBlank(text, true); rest != ""; {
		budget := limit - unit.Len(open.opener)
		if budget < limit/2 {
			open, budget = fence{}, limit
		}
		s := scanner{text: rest, budget: budget, unit: unit, fenced: fenced, fence: open}
		cut := s.scan()
		steps += s.steps
		if body := strings.TrimRightFunc(rest[:cut.at], unicode.IsSpace); body != "" {
			pieces = append(pieces, open.opener+body+cut.fence.closer)
		}
		open = cut.fence
		rest = skipBlank(rest[cut.at:], cut.at > 0 && rest[cut.at-1] == '\n')
	}
	return pieces, steps
}

// skipBlank drops blank lines, and spaces too unless they indent the line that a piece begins with.
func skipBlank(s string, atLine bool) string {
	t := strings.TrimLeftFunc(s, unicode.IsSpace)
	blank := s[:len(s)-len(t)]
	if t == "" || blank == "" {
		return t
	}
	if i := strings.LastIndexByte(blank, '\n'); i >= 0 {
		return s[i+1:]
	}
	if atLine {
		return s
	}
	_, last := utf8.DecodeLastRuneInString(blank)
	_, first := utf8.DecodeRuneInString(t)
	pair := s[len(blank)-last : len(blank)+first]
	if it := graphemes.FromString(pair); len(it.First()) == len(pair) {
		return s[len(blank)-last:] // a mark that belongs to the space
	}
	return t
}

// class is how good a place is for a cut; lower is better.
type class int

const (
	paragraph class = iota
	line
	sentence
	phrase
	space
	cluster  // not before closing or after opening punctuation
	anywhere // any boundary of clusters, or of code points in a cluster longer than a piece
	classes
)

// cut is a place to cut at.
type cut struct {
	at    int // in bytes; 0 for none
	size  int // in units, without white space at the end
	fence fence
}

// scanner looks for the best cut in the text that follows one.
type scanner struct {
	text   string
	budget int
	unit   Unit
	fenced bool
	fence  fence

	steps int
	size  int // units so far
	body  int // size without white space at the end
	cuts  [classes]cut

	ended   ending
	prev    rune // the last code point
	blank   bool // the current line is blank so far
	digits  bool // it holds but digits so far: the number of a list item
	atomEnd int  // before it there is no cut
	tried   int  // before it no atom begins
	inline  markup
}

// ending says how the text before the current place ends.
type ending uint8

const (
	midSentence ending = iota
	// westernEnd: after "." and the like; a sentence ends if a space follows.
	westernEnd
	// easternEnd: after "。" and the like; a sentence ends here.
	easternEnd
)

func (s *scanner) scan() cut {
	s.blank, s.digits = true, true
	// A piece takes at most four bytes for each unit. What lies far beyond is not even looked at, so that a
	// cluster without end costs no more than any other text.
	window := s.text[:min(len(s.text), 8*s.budget+64)]
	lineStart := 0
	for it := graphemes.FromString(window); it.Next(); {
		g, at := it.Value(), it.Start()
		s.steps += len(g)
		if it.End() == len(window) && len(window) < len(s.text) {
			return s.best(at, g)
		}
		if s.fenced && at == lineStart {
			s.fence = s.fence.line(s.text[at:])
			s.inline = markup{}
		}
		isSpace := strings.TrimSpace(g) == ""
		s.before(at, g, isSpace)

		n := s.unit.Len(g)
		if !isSpace && s.size+n+s.unit.Len(s.fence.closer) > s.budget {
			return s.best(at, g)
		}
		s.size += n
		if !isSpace {
			s.body = s.size
		}
		s.after(it.End(), g, isSpace)
		if isNewline(g) {
			lineStart = it.End()
		}
	}
	return cut{at: len(s.text), fence: fence{closer: s.fence.closer}}
}

// before notes the place before cluster g.
func (s *scanner) before(at int, g string, isSpace bool) {
	if s.fenced && !s.fence.isOpen() {
		s.inline = s.inline.next(s.text, at)
	}
	if at > 0 && !isSpace {
		r, _ := utf8.DecodeRuneInString(g)
		begins := !isCloser(r) && !isTerminator(r)
		if s.ended == easternEnd && begins {
			s.note(sentence, at)
		}
		if begins && !isOpener(s.prev) {
			s.note(cluster, at)
		}
		s.note(anywhere, at)
	}
	s.atom(at)
}

// after notes the place after cluster g.
func (s *scanner) after(at int, g string, isSpace bool) {
	r, _ := utf8.DecodeRuneInString(g)
	switch {
	case isNewline(g):
		if s.blank {
			s.note(paragraph, at)
		} else {
			s.note(line, at)
		}
		s.blank, s.digits, s.ended = true, true, midSentence
	case isSpace:
		switch {
		case s.ended != midSentence:
			s.note(sentence, at)
		case unicode.Is(unicode.Thai, s.prev):
			s.note(phrase, at)
		default:
			s.note(space, at)
		}
		s.ended = midSentence
	default:
		switch {
		case strings.ContainsRune("。！？｡．", r):
			s.ended = easternEnd
		case strings.ContainsRune(".!?…ฯ", r):
			if s.ended == midSentence && (s.blank || !s.digits) {
				s.ended = westernEnd
			}
		case !isCloser(r):
			s.ended = midSentence
		}
		s.blank = false
		s.digits = s.digits && r >= '0' && r <= '9'
	}
	s.prev, _ = utf8.DecodeLastRuneInString(g)
}

func isNewline(g string) bool { return g == "\n" || g == "\r\n" }

// note keeps a place for a cut, unless it is inside an atom, would leave nothing, or would part the marks
// of a fence from its content.
func (s *scanner) note(c class, at int) {
	if s.body == 0 || at < s.atomEnd || s.body+s.unit.Len(s.fence.closer) > s.budget {
		return
	}
	f := s.fence
	switch {
	case f.state == openingLine, f.state == closingLine && c > line, f.state == code && isMark(s.text[at:]):
		return
	case f.state == closingLine:
		f = fence{}
	}
	if s.inline.open() && c != line && c != paragraph && c != anywhere {
		return
	}
	s.cuts[c] = cut{at: at, size: s.body, fence: f}
}

// best returns the best of the places noted: one of a good class that fills at least half of the piece,
// else a quarter, else whatever there is. g at at is the cluster that does not fit any more.
func (s *scanner) best(at int, g string) cut {
	for _, share := range [...]int{2, 4} {
		for c := range cluster {
			if s.cuts[c].size >= s.budget/share && s.cuts[c].at > 0 {
				return s.cuts[c]
			}
		}
	}
	for c := cluster; c < classes; c++ {
		if s.cuts[c].at > 0 && (s.cuts[c].size >= s.budget/2 || c == anywhere) {
			return s.cuts[c]
		}
	}
	// No place was noted: the first cluster is longer than a piece, or the marks of a fence are in the
	// way. Cut between code points rather than not at all.
	if at > 0 {
		return cut{at: at}
	}
	f, room := s.fence, s.budget-s.unit.Len(s.fence.closer)
	if f.state != code || room < minFenced {
		f, room = fence{}, s.budget
	}
	n, end := 0, 0
	for i, r := range g {
		if n += s.unit.Len(string(r)); n > room {
			break
		}
		end = i + utf8.RuneLen(r)
	}
	return cut{at: end, fence: f}
}

// atom finds out whether something begins at at that must stay whole.
func (s *scanner) atom(at int) {
	if at < s.tried || at < s.atomEnd || (s.fence.isOpen() && s.text[at] != 'h') {
		return
	}
	var n int
	switch s.text[at] {
	case 'h':
		if schemeLen(s.text[at:min(len(s.text), at+8)]) == 0 {
			return
		}
		for n = at; n < len(s.text) && n <= at+s.budget && isURLByte(s.text[n]); n++ {
		}
	case '[':
		if !s.fenced {
			return
		}
		if n = linkEnd(s.text, at, at+4*s.budget); n == 0 {
			return
		}
	default:
		return
	}
	if s.unit.Len(s.text[at:n])+s.unit.Len(s.fence.closer) <= s.budget {
		s.atomEnd = n
	} else {
		s.tried = n // too long to stay whole, and so is what begins inside
	}
}

// linkEnd returns where the link that begins at at ends, 0 when none does before limit.
func linkEnd(text string, at, limit int) int {
	text = text[:min(len(text), limit)]
	label := strings.IndexAny(text[at+1:], "[]\n")
	if label < 0 || !strings.HasPrefix(text[at+1+label:], "](http") {
		return 0
	}
	target := at + 1 + label + 2
	if end := strings.IndexAny(text[target:], ") \n["); end >= 0 && text[target+end] == ')' {
		return target + end + 1
	}
	return 0
}

func isCloser(r rune) bool {
	return unicode.In(r, unicode.Pe, unicode.Pf) || strings.ContainsRune("\"'、，,;:；：・ー々〻ゝヽ%％°℃~〜～", r)
}

func isTerminator(r rune) bool { return strings.ContainsRune("。！？｡．.!?…ฯๆ", r) }

func isOpener(r rune) bool {
	return unicode.In(r, unicode.Ps, unicode.Pi) || r == '$' || r == '¥' || r == '#'
}
