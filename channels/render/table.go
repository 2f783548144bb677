package render

import (
	"strings"
	"unicode"

	"github.com/clipperhouse/uax29/v2/graphemes"
	"github.com/yuin/goldmark/ast"
	extast "github.com/yuin/goldmark/extension/ast"
	"golang.org/x/text/width"
)

// gridWidth is the widest table that is shown aligned, in columns of a fixed-width font: wider lines wrap
// in Discord's window and become unreadable.
const gridWidth = 76

// table is a table that was read.
type table struct {
	head  []cell
	rows  [][]cell
	align []extast.Alignment
	links bool
}

type cell struct {
	node ast.Node
	text string
}

func (w *walker) readTable(n *extast.Table) *table {
	t := &table{align: n.Alignments}
	for row := n.FirstChild(); row != nil; row = row.NextSibling() {
		var cells []cell
		for c := row.FirstChild(); c != nil; c = c.NextSibling() {
			cells = append(cells, cell{c, w.label(c)})
			t.links = t.links || hasLink(c)
		}
		if row.Kind() == extast.KindTableHeader {
			t.head = cells
		} else {
			t.rows = append(t.rows, cells)
		}
	}
	return t
}

// hasLink reports whether a link or image is among the descendants of n.
func hasLink(n ast.Node) bool {
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		switch c.Kind() {
		case ast.KindLink, ast.KindImage, ast.KindAutoLink:
			return true
		}
		if hasLink(c) {
			return true
		}
	}
	return false
}

// stack writes each row as lines of "key: value", keys between marks. Empty cells say nothing.
func (t *table) stack(w *walker, mark string) {
	if len(t.rows) == 0 {
		t.stackRow(w, t.head, func(int) cell { return cell{} }, mark)
		return
	}
	for i, row := range t.rows {
		if i > 0 {
			w.newline(2)
		}
		t.stackRow(w, row, func(i int) cell {
			if i < len(t.head) {
				return t.head[i]
			}
			return cell{}
		}, mark)
	}
}

func (t *table) stackRow(w *walker, row []cell, key func(int) cell, mark string) {
	wasOneLine := w.oneLine
	w.oneLine = true
	first := true
	for i, c := range row {
		if c.text == "" && !hasLink(c.node) {
			continue
		}
		if !first {
			w.newline(1)
		}
		first = false
		if k := key(i); k.text != "" {
			if mark == "" {
				w.inlines(k.node)
				w.writer.text(": ")
			} else {
				w.emphasis(w, k.node, mark)
				w.writer.text(": ")
			}
		}
		w.inlines(c.node)
	}
	w.oneLine = wasOneLine
}

// aligns reports whether the table can be shown aligned without loss: narrow enough, and without links,
// which do not work inside code.
func (t *table) aligns() bool {
	total := 0
	for _, n := range t.widths() {
		total += n + 3
	}
	return !t.links && total-3 <= gridWidth
}

func (t *table) widths() []int {
	widths := make([]int, len(t.head))
	for _, row := range append([][]cell{t.head}, t.rows...) {
		for i, c := range row {
			if i < len(widths) {
				widths[i] = max(widths[i], displayWidth(c.text))
			}
		}
	}
	return widths
}

// grid returns the table with aligned columns.
func (t *table) grid() string {
	widths := t.widths()
	var b strings.Builder
	line := func(row []cell) {
		var l strings.Builder
		for i, n := range widths {
			if i > 0 {
				l.WriteString(" | ")
			}
			text := ""
			if i < len(row) {
				text = row[i].text
			}
			space := n - displayWidth(text)
			left := 0
			switch t.align[i] {
			case extast.AlignRight:
				left = space
			case extast.AlignCenter:
				left = space / 2
			}
			l.WriteString(strings.Repeat(" ", left) + text + strings.Repeat(" ", space-left))
		}
		b.WriteString(strings.TrimRight(l.String(), " ") + "\n")
	}
	line(t.head)
	for i, n := range widths {
		if i > 0 {
			b.WriteString("-+-")
		}
		b.WriteString(strings.Repeat("-", n))
	}
	b.WriteByte('\n')
	for _, row := range t.rows {
		line(row)
	}
	return b.String()
}

// displayWidth returns how many columns of a fixed-width font s takes.
func displayWidth(s string) int {
	n := 0
	for it := graphemes.FromString(s); it.Next(); {
		n += clusterWidth(it.Value())
	}
	return n
}

func clusterWidth(cluster string) int {
	n := 0
	for _, r := range cluster {
		switch {
		case r == '\uFE0F':
			return 2
		case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
			continue
		}
		switch width.LookupRune(r).Kind() {
		case width.EastAsianWide, width.EastAsianFullwidth:
			return 2
		}
		n++
	}
	return n
}
