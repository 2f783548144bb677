package render

import (
	"strconv"
	"strings"

	"github.com/yuin/goldmark/ast"
)

// Plain returns Markdown as text for platforms without any markup. Links become "label (url)", tables
// stacked "key: value" blocks, lists get bullets that need no markup; code stays verbatim.
func Plain(md string) string { return convert(md, plain{}) }

type plain struct{}

func (plain) heading(w *walker, n *ast.Heading) {
	if n.FirstChild() == nil {
		return
	}
	mark := "■ "
	if n.Level > 2 {
		mark = "▪ "
	}
	w.writer.text(mark)
	w.inlines(n)
}

func (plain) emphasis(w *walker, n ast.Node, _ string) { w.inlines(n) }

func (plain) link(w *walker, n ast.Node, url string) {
	label := w.label(n)
	switch {
	case label == "":
		w.writer.text(url)
	case url == "" || strings.HasPrefix(url, "#"):
		w.inlines(n)
	case sameTarget(label, url):
		w.writer.text(label)
	default:
		w.inlines(n)
		w.writer.text(" (" + url + ")")
	}
}

func (plain) image(w *walker, alt, url string) {
	switch {
	case alt == "":
		w.writer.text(url)
	case url == "":
		w.writer.text(alt)
	default:
		w.writer.text(alt + " (" + url + ")")
	}
}

func (plain) text(w *walker, raw []byte, _, _ byte) { w.writer.text(unescape(raw)) }

func (plain) literal(w *walker, s string) { w.writer.text(s) }

func (plain) codeSpan(w *walker, code string) { w.writer.text(code) }

func (plain) codeBlock(w *walker, _, code string) { w.verbatim(strings.TrimRight(code, "\n")) }

func (plain) rule(*walker) {}

func (plain) bullet(depth int) string {
	return [...]string{"• ", "◦ ", "▪ "}[(depth-1)%3]
}

func (plain) number(n int, delimiter byte) string { return strconv.Itoa(n) + string(delimiter) + " " }

func (plain) task(done bool) (string, bool) { return box(done), true }

func (plain) nestedQuotes() bool { return true }

func (plain) table(w *walker, t *table) { t.stack(w, "") }

func box(done bool) string {
	if done {
		return "☑ "
	}
	return "☐ "
}

// sameTarget reports whether a link's label says where the link goes.
func sameTarget(label, url string) bool {
	trim := func(s string) string {
		for _, p := range [...]string{"https://", "http://", "mailto:", "tel:"} {
			s = strings.TrimPrefix(s, p)
		}
		return strings.TrimSuffix(s, "/")
	}
	return strings.EqualFold(trim(label), trim(url))
}
