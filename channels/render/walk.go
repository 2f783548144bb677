package render

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/yuin/goldmark/ast"
	extast "github.com/yuin/goldmark/extension/ast"
)

// dialect is how one kind of platform shows the constructs of Markdown.
type dialect interface {
	heading(w *walker, n *ast.Heading)
	// emphasis writes the children of n between marks, as Discord writes them.
	emphasis(w *walker, n ast.Node, mark string)
	link(w *walker, n ast.Node, url string)
	image(w *walker, alt, url string)
	// text writes text of the source, with its backslash escapes and entities, and says what stands
	// before and after it in the source.
	text(w *walker, raw []byte, before, after byte)
	// literal writes text that means nothing but itself.
	literal(w *walker, s string)
	codeSpan(w *walker, code string)
	codeBlock(w *walker, language, code string)
	rule(w *walker)
	// bullet returns the mark of an item in an unordered list, depth lists deep.
	bullet(depth int) string
	// number returns the mark of an item in an ordered list.
	number(n int, delimiter byte) string
	// task returns the mark of a task after the item's own, and whether it replaces the bullet.
	task(done bool) (mark string, replaces bool)
	// nestedQuotes reports whether a quote in a quote gets marks of its own.
	nestedQuotes() bool
	table(w *walker, t *table)
}

// walker writes a parsed section in one dialect.
type walker struct {
	writer
	dialect
	src []byte
	// lists and quotes count the open ones.
	lists, quotes int
	// marks counts the open emphasis by its mark.
	marks map[string]int
	// hrefs are the targets of open HTML anchors.
	hrefs []string
	// oneLine turns line breaks into spaces, for table cells and labels.
	oneLine bool
}

func convert(md string, d dialect) string {
	w := &walker{dialect: d, marks: map[string]int{}}
	for _, s := range sections(normalise(md)) {
		w.newline(s.glue)
		w.hrefs = w.hrefs[:0]
		if s.tail && len(s.src) > 0 && s.src[0] == ' ' {
			w.writer.text(" ")
		}
		w.src = boundNesting(s.src)
		w.blocks(parse(w.src))
	}
	return w.String()
}

// normalise makes the text valid UTF-8 with "\n" for line ends and without NUL.
func normalise(md string) []byte {
	md = strings.ToValidUTF8(md, "\uFFFD")
	return []byte(strings.NewReplacer("\r\n", "\n", "\r", "\n", "\x00", "").Replace(md))
}

// blocks writes the children of a container of blocks.
func (w *walker) blocks(parent ast.Node) {
	var prev ast.Node
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		if n.Kind() == ast.KindLinkReferenceDefinition {
			continue
		}
		if prev != nil {
			w.newline(w.between(prev, n))
		}
		w.block(n)
		prev = n
	}
}

// between is how many newlines stand between two blocks.
func (w *walker) between(prev, next ast.Node) int {
	if prev.Kind() == ast.KindHeading {
		return 1
	}
	if w.lists > 0 && (next.Kind() == ast.KindList || prev.Kind() == ast.KindList) {
		return 1
	}
	return 2
}

func (w *walker) block(n ast.Node) {
	switch n := n.(type) {
	case *ast.Heading:
		w.dialect.heading(w, n)
	case *ast.ThematicBreak:
		w.rule(w)
	case *ast.FencedCodeBlock:
		w.codeBlock(w, string(n.Language(w.src)), w.lines(n))
	case *ast.CodeBlock:
		w.codeBlock(w, "", w.lines(n))
	case *ast.Blockquote:
		w.quote(n)
	case *ast.List:
		w.list(n)
	case *ast.HTMLBlock:
		raw := w.lines(n)
		if n.HasClosure() {
			raw += string(n.ClosureLine.Value(w.src))
		}
		w.htmlBlock(raw)
	case *extast.Table:
		w.dialect.table(w, w.readTable(n))
	default:
		w.inlines(n)
	}
}

func (w *walker) quote(n ast.Node) {
	if w.quotes > 0 && !w.nestedQuotes() {
		w.blocks(n)
		return
	}
	w.quotes++
	w.push(container{first: "> ", rest: "> ", quote: true})
	w.blocks(n)
	w.pop()
	w.quotes--
}

func (w *walker) list(l *ast.List) {
	w.lists++
	number := l.Start
	for n := l.FirstChild(); n != nil; n = n.NextSibling() {
		if n != l.FirstChild() {
			w.newline(1)
		}
		mark := w.bullet(w.lists)
		if l.IsOrdered() {
			mark = w.number(number, l.Marker)
			number++
		}
		if box, ok := taskOf(n); ok {
			sign, replaces := w.task(box.IsChecked)
			if replaces && !l.IsOrdered() {
				mark = sign
			} else {
				mark += sign
			}
		}
		indent := 2
		if l.IsOrdered() {
			indent = len(strconv.Itoa(number-1)) + 2
		}
		w.push(container{first: mark, rest: strings.Repeat(" ", indent)})
		w.blocks(n)
		w.pop()
	}
	w.lists--
}

// taskOf returns the check box of a list item.
func taskOf(item ast.Node) (*extast.TaskCheckBox, bool) {
	if item.FirstChild() == nil {
		return nil, false
	}
	box, ok := item.FirstChild().FirstChild().(*extast.TaskCheckBox)
	return box, ok
}

// lines returns the source of a block of lines.
func (w *walker) lines(n ast.Node) string {
	var b strings.Builder
	lines := n.Lines()
	for i := range lines.Len() {
		line := lines.At(i)
		b.Write(line.Value(w.src))
	}
	return b.String()
}

func (w *walker) inlines(parent ast.Node) {
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		w.inline(n)
	}
}

func (w *walker) inline(n ast.Node) {
	switch n := n.(type) {
	case *ast.Text:
		if n.IsRaw() {
			w.literal(w, string(n.Value(w.src)))
		} else {
			w.dialect.text(w, n.Value(w.src), w.at(n.Segment.Start-1), w.at(n.Segment.Stop))
		}
		if n.SoftLineBreak() || n.HardLineBreak() {
			w.lineBreak()
		}
	case *ast.Emphasis:
		w.emphasis(w, n, strings.Repeat("*", n.Level))
	case *extast.Strikethrough:
		w.emphasis(w, n, "~~")
	case *ast.CodeSpan:
		w.codeSpan(w, w.code(n))
	case *ast.Link:
		w.link(w, n, unescape(n.Destination))
	case *ast.Image:
		w.image(w, w.label(n), unescape(n.Destination))
	case *ast.AutoLink:
		w.writer.text(string(n.Label(w.src)))
	case *ast.RawHTML:
		w.htmlTag(string(bytes.Join(segments(n, w.src), nil)))
	case *extast.TaskCheckBox:
	default:
		w.inlines(n)
	}
}

// at returns a byte of the source, 0 outside of it.
func (w *walker) at(i int) byte {
	if i < 0 || i >= len(w.src) {
		return 0
	}
	return w.src[i]
}

func segments(n *ast.RawHTML, src []byte) [][]byte {
	parts := make([][]byte, n.Segments.Len())
	for i := range parts {
		s := n.Segments.At(i)
		parts[i] = s.Value(src)
	}
	return parts
}

// lineBreak ends a line. People on chat platforms expect to see the breaks that a model writes.
func (w *walker) lineBreak() {
	if w.oneLine {
		if w.last() != ' ' {
			w.writer.text(" ")
		}
		return
	}
	w.newline(1)
}

// code returns the content of a code span; line ends count as spaces.
func (w *walker) code(n ast.Node) string {
	var b strings.Builder
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if t, ok := c.(*ast.Text); ok {
			b.Write(t.Value(w.src))
		}
	}
	return strings.ReplaceAll(b.String(), "\n", " ")
}

// capture writes with f in dialect d and returns the text, in one line.
func (w *walker) capture(d dialect, f func(*walker)) string {
	sub := &walker{dialect: d, src: w.src, marks: map[string]int{}, oneLine: true}
	f(sub)
	return strings.TrimSpace(strings.ReplaceAll(sub.String(), "\n", " "))
}

// label returns the text of a node's children without any markup.
func (w *walker) label(n ast.Node) string {
	return w.capture(plain{}, func(sub *walker) { sub.inlines(n) })
}
