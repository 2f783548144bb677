package render

import (
	"strconv"
	"strings"

	"github.com/yuin/goldmark/ast"
)

// Discord returns Markdown in Discord's dialect of it. What Discord does not show becomes something that
// it does: tables become fenced code, headings below the third level bold lines, images links. What
// CommonMark takes literally is escaped where Discord would not. Mentions are left as they stand: whether
// one rings is the sender's to say, with the message's allowed_mentions.
func Discord(md string) string { return convert(md, discord{}) }

type discord struct{}

// discordRule stands for a thematic break, which Discord does not know.
const discordRule = "──────────"

// zeroWidthSpace keeps three backticks inside code from ending it; Discord knows no longer fence.
const zeroWidthSpace = "\u200b"

func (d discord) heading(w *walker, n *ast.Heading) {
	if n.FirstChild() == nil {
		return
	}
	if n.Level > 3 || w.lists > 0 {
		d.emphasis(w, n, "**")
		return
	}
	w.writer.text(strings.Repeat("#", n.Level) + " ")
	w.inlines(n)
}

func (discord) emphasis(w *walker, n ast.Node, mark string) {
	if w.marks[mark] > 0 {
		w.inlines(n)
		return
	}
	w.marks[mark]++
	w.writer.text(mark)
	w.inlines(n)
	w.writer.text(mark)
	w.marks[mark]--
}

func (discord) link(w *walker, n ast.Node, url string) {
	label := w.label(n)
	switch {
	case label == "":
		w.writer.text(url)
	case url == "" || strings.HasPrefix(url, "#"):
		w.inlines(n)
	case sameTarget(label, url) && schemeLen(url) > 0:
		w.writer.text(url)
	case schemeLen(url) == 0 || strings.Contains(label, "://"):
		// Discord links only web addresses, and none under a label that looks like one.
		w.inlines(n)
		w.writer.text(" (" + url + ")")
	default:
		w.writer.text("[")
		w.inlines(n)
		w.writer.text("](" + escapeURL(url) + ")")
	}
}

func (d discord) image(w *walker, alt, url string) {
	switch {
	case alt == "":
		w.writer.text(url)
	case schemeLen(url) == 0 || strings.Contains(alt, "://"):
		d.literal(w, alt)
		if url != "" {
			w.writer.text(" (" + url + ")")
		}
	default:
		w.writer.text("[")
		d.literal(w, alt)
		w.writer.text("](" + escapeURL(url) + ")")
	}
}

func (discord) text(w *walker, raw []byte, before, after byte) {
	w.writer.text(discordText(string(raw), before, after, w.marking()))
}

func (discord) literal(w *walker, s string) { w.writer.text(escapeDiscord(s, true)) }

func (discord) codeSpan(w *walker, code string) {
	mark := "`"
	for _, m := range [...]string{"`", "``", "```"} {
		if mark = m; !hasRun(code, len(m)) {
			break
		}
	}
	pad := ""
	if strings.HasPrefix(code, "`") || strings.HasSuffix(code, "`") {
		pad = " "
	}
	w.writer.text(mark + pad + code + pad + mark)
}

func (discord) codeBlock(w *walker, language, code string) {
	if len(language) > maxLanguage || strings.Trim(language, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_+-.#") != "" {
		language = ""
	}
	code = strings.ReplaceAll(strings.TrimRight(code, "\n"), "```", "`"+zeroWidthSpace+"`"+zeroWidthSpace+"`")
	w.verbatim("```" + language)
	w.newline(1)
	w.verbatim(code)
	w.newline(1)
	w.verbatim("```")
}

// maxLanguage is the longest name of a language that is kept, in bytes: every piece of a long code block
// repeats it.
const maxLanguage = 32

func (discord) rule(w *walker) { w.writer.text(discordRule) }

func (discord) bullet(int) string { return "- " }

func (discord) number(n int, _ byte) string { return strconv.Itoa(n) + ". " }

func (discord) task(done bool) (string, bool) { return box(done), false }

func (discord) nestedQuotes() bool { return false }

func (d discord) table(w *walker, t *table) {
	if !t.aligns() {
		t.stack(w, "**")
		return
	}
	d.codeBlock(w, "", t.grid())
}

// marking reports whether emphasis is open.
func (w *walker) marking() bool {
	for _, n := range w.marks {
		if n > 0 {
			return true
		}
	}
	return false
}

// hasRun reports whether s holds a run of exactly n backticks.
func hasRun(s string, n int) bool {
	run := 0
	for i := range len(s) + 1 {
		if i < len(s) && s[i] == '`' {
			run++
			continue
		}
		if run == n {
			return true
		}
		run = 0
	}
	return false
}

func escapeURL(url string) string {
	return strings.NewReplacer("(", "%28", ")", "%29", " ", "%20", "<", "%3C", ">", "%3E", "\n", "").Replace(url)
}
