package render

import (
	"bytes"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// The bounds below keep the cost of parsing linear: within them the parser's worst cases are small, and
// no answer that a person would read comes near them.
const (
	// sectionSize is how much of a document is parsed at once, in bytes.
	sectionSize = 16 << 10
	// maxNesting is how many quotes and lists may open in one line.
	maxNesting = 32
	// maxBrackets, maxMarks and maxCells bound what one section may hold to be read in full.
	maxBrackets = 512
	maxMarks    = 2048
	maxCells    = 8192
)

// fullParser reads everything, bareParser neither links, emphasis, HTML nor tables. A parser holds no
// state between documents.
var (
	fullParser = newParser(true)
	bareParser = newParser(false)
)

func newParser(full bool) parser.Parser {
	blocks := []util.PrioritizedValue{
		util.Prioritized(parser.NewSetextHeadingParser(), 100),
		util.Prioritized(parser.NewThematicBreakParser(), 200),
		util.Prioritized(parser.NewListParser(), 300),
		util.Prioritized(parser.NewListItemParser(), 400),
		util.Prioritized(parser.NewCodeBlockParser(), 500),
		util.Prioritized(parser.NewATXHeadingParser(), 600),
		util.Prioritized(parser.NewFencedCodeBlockParser(), 700),
		util.Prioritized(parser.NewBlockquoteParser(), 800),
		util.Prioritized(parser.NewParagraphParser(), 1000),
	}
	inlines := []util.PrioritizedValue{
		util.Prioritized(parser.NewCodeSpanParser(), 100),
		util.Prioritized(urlParser{}, 600),
	}
	if !full {
		return parser.NewParser(parser.WithBlockParsers(blocks...), parser.WithInlineParsers(inlines...))
	}
	blocks = append(blocks, util.Prioritized(parser.NewHTMLBlockParser(), 900))
	inlines = append(inlines,
		util.Prioritized(extension.NewTaskCheckBoxParser(), 0),
		util.Prioritized(parser.NewLinkParser(), 200),
		util.Prioritized(parser.NewAutoLinkParser(), 300),
		util.Prioritized(parser.NewRawHTMLParser(), 400),
		util.Prioritized(emphasisParser{}, 500),
		util.Prioritized(strikeParser{}, 500),
	)
	return parser.NewParser(
		parser.WithBlockParsers(blocks...),
		parser.WithInlineParsers(inlines...),
		parser.WithParagraphTransformers(
			util.Prioritized(parser.LinkReferenceParagraphTransformer, 100),
			util.Prioritized(extension.NewTableParagraphTransformer(), 200),
		),
		parser.WithASTTransformers(util.Prioritized(extension.NewTableASTTransformer(), 0)),
	)
}

// parse reads one section.
func parse(src []byte) ast.Node {
	if hostile(src) {
		return bareParser.Parse(text.NewReader(src))
	}
	return fullParser.Parse(text.NewReader(src))
}

// hostile reports whether a section holds so many marks that the parser's cost would grow with their
// square.
func hostile(src []byte) bool {
	if bytes.Count(src, []byte{'['}) > maxBrackets {
		return true
	}
	marks, lines, pipes, widest := 0, 1, 0, 0
	var last byte
	for _, c := range src {
		switch c {
		case '*', '_', '~':
			if c != last {
				marks++
			}
		case '|':
			pipes++
			widest = max(widest, pipes)
		case '\n':
			lines, pipes = lines+1, 0
		}
		last = c
	}
	return marks > maxMarks || widest*lines > maxCells
}

// section is one part of a document, and what stood between it and the part before.
type section struct {
	src  []byte
	glue int // newlines before it
	tail bool
}

// sections cuts a long document where blocks end: before and after fenced code, and at blank lines
// followed by text that is not indented. A section without such a place is cut at the end of a line, a
// line without end before a letter. Fenced code is never cut.
func sections(src []byte) []section {
	if len(src) <= sectionSize {
		return []section{{src: src}}
	}
	var out []section
	start, safe, glue := 0, 0, 0
	tail := false
	cut := func(at, nextGlue int, nextTail bool) {
		if at > start {
			out = append(out, section{src[start:at], glue, tail})
		}
		start, safe, glue, tail = at, at, nextGlue, nextTail
	}
	var fence string
	blank := true
	for pos := 0; pos < len(src); {
		end := len(src)
		if i := bytes.IndexByte(src[pos:], '\n'); i >= 0 {
			end = pos + i + 1
		}
		line := src[pos:end]
		switch {
		case fence != "":
			if closesFence(line, fence) {
				fence = ""
				if start == safe && end-start > sectionSize {
					cut(end, 2, false)
				} else {
					safe = end
				}
			}
			blank = false
			pos = end
			continue
		case opensFence(line) != "":
			fence = opensFence(line)
			if pos-start > sectionSize/2 {
				cut(pos, 2, false)
			}
			safe = pos
			pos = end
			continue
		case blank && len(line) > 0 && line[0] != ' ' && line[0] != '\t' && line[0] != '\n':
			safe = pos
		}
		blank = len(bytes.TrimSpace(line)) == 0
		if end-start > sectionSize {
			if safe > start {
				cut(safe, 2, false)
			}
			if end-start > sectionSize && pos > start {
				cut(pos, 1, false)
			}
			for end-start > sectionSize {
				cut(midLine(src[start:start+sectionSize])+start, 0, true)
			}
		}
		pos = end
	}
	cut(len(src), 0, false)
	return out
}

// midLine returns where to cut a line that is too long: before a letter, so that the rest does not begin
// with something that means a block.
func midLine(line []byte) int {
	for i := len(line) - 1; i > len(line)/2; i-- {
		if c := line[i]; (c|0x20 >= 'a' && c|0x20 <= 'z') || c >= 0xC0 {
			return i
		}
	}
	return len(line)
}

// opensFence returns the marks that open fenced code in line, empty when none do.
func opensFence(line []byte) string {
	s := bytes.TrimLeft(line, " ")
	if len(line)-len(s) > 3 || len(s) < 3 || (s[0] != '`' && s[0] != '~') {
		return ""
	}
	n := 0
	for n < len(s) && s[n] == s[0] {
		n++
	}
	if n < 3 || (s[0] == '`' && bytes.IndexByte(s[n:], '`') >= 0) {
		return ""
	}
	return string(s[:n])
}

func closesFence(line []byte, fence string) bool {
	s := bytes.TrimLeft(line, " ")
	if len(line)-len(s) > 3 {
		return false
	}
	s = bytes.TrimRight(s, " \t\n")
	return len(s) >= len(fence) && len(bytes.Trim(s, fence[:1])) == 0
}

// boundNesting makes the marks of quotes and lists beyond maxNesting in one line literal.
func boundNesting(src []byte) []byte {
	var out []byte
	done := 0
	for pos := 0; pos < len(src); {
		end := len(src)
		if i := bytes.IndexByte(src[pos:], '\n'); i >= 0 {
			end = pos + i + 1
		}
		if at := tooDeep(src[pos:end]); at >= 0 {
			out = append(out, src[done:pos+at]...)
			out = append(out, '\\')
			done = pos + at
		}
		pos = end
	}
	if done == 0 {
		return src
	}
	return append(out, src[done:]...)
}

// tooDeep returns the place of the first mark in line beyond maxNesting, -1 when there is none.
func tooDeep(line []byte) int {
	marks := 0
	for i := 0; i < len(line); {
		mark := i
		switch c := line[i]; {
		case c == ' ' || c == '\t':
			i++
			continue
		case c == '>':
			i++
		case c == '-' || c == '*' || c == '+':
			i++
			if i < len(line) && line[i] != ' ' && line[i] != '\t' {
				return -1
			}
		case c >= '0' && c <= '9':
			for i < len(line) && line[i] >= '0' && line[i] <= '9' {
				i++
			}
			mark = i
			if i+1 >= len(line) || (line[i] != '.' && line[i] != ')') || (line[i+1] != ' ' && line[i+1] != '\t') {
				return -1
			}
			i++
		default:
			return -1
		}
		if marks++; marks > maxNesting {
			if rest := bytes.Trim(line, " \t\n"); rest[0] != '>' && len(bytes.Trim(rest, string(rest[:1])+" \t")) == 0 {
				return -1 // a rule
			}
			return mark
		}
	}
	return -1
}
