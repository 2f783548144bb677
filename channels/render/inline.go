package render

import (
	"bytes"
	"unicode"

	"github.com/yuin/goldmark/ast"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// emphasisParser reads emphasis as CommonMark has it, but lets it open and close beside letters and
// punctuation of scripts that write no spaces: CommonMark leaves "**注意：**请" as it stands.
type emphasisParser struct{}

func (emphasisParser) Trigger() []byte { return []byte{'*', '_'} }

func (emphasisParser) Parse(_ ast.Node, block text.Reader, pc parser.Context) ast.Node {
	return scanDelimiter(block, pc, emphasisProcessor{}, 1)
}

type emphasisProcessor struct{}

func (emphasisProcessor) IsDelimiter(b byte) bool { return b == '*' || b == '_' }

func (emphasisProcessor) CanOpenCloser(opener, closer *parser.Delimiter) bool {
	return opener.Char == closer.Char
}

func (emphasisProcessor) OnMatch(consumes int) ast.Node { return ast.NewEmphasis(consumes) }

// strikeParser reads strikethrough between exactly two tildes on each side.
type strikeParser struct{}

func (strikeParser) Trigger() []byte { return []byte{'~'} }

func (strikeParser) Parse(_ ast.Node, block text.Reader, pc parser.Context) ast.Node {
	line, _ := block.PeekLine()
	if n := len(line) - len(bytes.TrimLeft(line, "~")); n != 2 || block.PrecendingCharacter() == '~' {
		return nil
	}
	return scanDelimiter(block, pc, strikeProcessor{}, 2)
}

type strikeProcessor struct{}

func (strikeProcessor) IsDelimiter(b byte) bool { return b == '~' }

func (strikeProcessor) CanOpenCloser(opener, closer *parser.Delimiter) bool {
	return opener.Char == closer.Char
}

func (strikeProcessor) OnMatch(int) ast.Node { return extast.NewStrikethrough() }

func scanDelimiter(block text.Reader, pc parser.Context, p parser.DelimiterProcessor, minimum int) ast.Node {
	before := block.PrecendingCharacter()
	line, segment := block.PeekLine()
	d := parser.ScanDelimiter(line, before, minimum, p)
	if d == nil {
		return nil
	}
	if d.Char != '_' {
		after := ' '
		if d.OriginalLength < len(line) {
			after = util.ToRune(line, d.OriginalLength)
		}
		d.CanOpen = !util.IsSpaceRune(after) &&
			(!isWesternPunct(after) || util.IsSpaceRune(before) || isWesternPunct(before) || spaceless(before))
		d.CanClose = !util.IsSpaceRune(before) &&
			(!isWesternPunct(before) || util.IsSpaceRune(after) || isWesternPunct(after) || spaceless(after))
	}
	d.Segment = segment.WithStop(segment.Start + d.OriginalLength)
	block.Advance(d.OriginalLength)
	pc.PushDelimiter(d)
	return d
}

// isWesternPunct reports punctuation other than that of East Asian scripts.
func isWesternPunct(r rune) bool { return util.IsPunctRune(r) && !spaceless(r) }

// spaceless reports whether r belongs to a script that writes no spaces between words.
func spaceless(r rune) bool {
	switch {
	case r < 0x0E00:
		return false
	case r >= 0x3000 && r <= 0x303F, r >= 0xFF00 && r <= 0xFFEF:
		return true
	}
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Bopomofo,
		unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}

// urlParser reads bare web addresses, also those written right after a letter of a spaceless script. The
// parser is asked at punctuation only, so it looks back from the colon.
type urlParser struct{}

func (urlParser) Trigger() []byte { return []byte{':'} }

func (urlParser) Parse(parent ast.Node, block text.Reader, pc parser.Context) ast.Node {
	scheme, ok := parent.LastChild().(*ast.Text)
	if !ok || pc.IsInLinkLabel() {
		return nil
	}
	line, segment := block.PeekLine()
	src := block.Source()
	start := segment.Start
	for start > scheme.Segment.Start && isWord(src[start-1]) {
		start--
	}
	if scheme.Segment.Stop != segment.Start {
		return nil
	}
	n := urlLen(src[start : segment.Start+len(line)])
	if n == 0 {
		return nil
	}
	block.Advance(start + n - segment.Start)
	if scheme.Segment = scheme.Segment.WithStop(start); scheme.Segment.IsEmpty() {
		parent.RemoveChild(parent, scheme)
	}
	return ast.NewAutoLink(ast.AutoLinkURL, ast.NewTextSegment(text.NewSegment(start, start+n)))
}

// urlLen returns the length of the web address that text begins with, 0 when it begins with none.
func urlLen(text []byte) int {
	scheme := schemeLen(string(text[:min(len(text), len("https://"))]))
	if scheme == 0 {
		return 0
	}
	n, round, square := scheme, 0, 0
	for n < len(text) && isURLByte(text[n]) && !bytes.HasPrefix(text[n:], []byte("**")) && !bytes.HasPrefix(text[n:], []byte("~~")) {
		n++
	}
	for _, c := range text[:n] {
		switch c {
		case '(':
			round++
		case ')':
			round--
		case '[':
			square++
		case ']':
			square--
		}
	}
	for n > scheme {
		switch text[n-1] {
		case '?', '!', '.', ',', ':', ';', '*', '_', '~', '\'':
		case ')':
			if round >= 0 {
				return n
			}
			round++
		case ']':
			if square >= 0 {
				return n
			}
			square++
		default:
			return n
		}
		n--
	}
	return 0
}

// schemeLen returns the length of "http://" or "https://" at the beginning of s, 0 when it is neither.
func schemeLen(s string) int {
	for _, p := range [...]string{"http://", "https://"} {
		if len(s) >= len(p) && s[:len(p)] == p {
			return len(p)
		}
	}
	return 0
}

// isURLByte reports the characters that RFC 3986 allows in an address.
func isURLByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' ||
		bytes.IndexByte([]byte("-._~:/?#[]@!$&'()*+,;=%"), c) >= 0
}
