package render

import "strings"

// htmlElements are the elements whose tags are markup; anything else in angle brackets ("<your-name>",
// "<T>") is text that a reader wants to see.
var htmlElements = func() map[string]bool {
	m := map[string]bool{}
	for name := range strings.FieldsSeq(`a abbr address article aside b bdi bdo big blockquote body br button
		caption center cite code col colgroup dd del details dfn dialog div dl dt em fieldset figcaption
		figure font footer form h1 h2 h3 h4 h5 h6 head header hr html i iframe img input ins kbd label legend
		li link main mark meta nav ol option p picture pre q rp rt ruby s samp script section select small
		source span strike strong style sub summary sup table tbody td textarea tfoot th thead title tr tt
		u ul var video wbr`) {
		m[name] = true
	}
	return m
}()

// htmlBlock writes the text of a block of HTML.
func (w *walker) htmlBlock(raw string) {
	skip := ""
	for raw != "" {
		i := strings.IndexByte(raw, '<')
		if i < 0 {
			i = len(raw)
		}
		if skip == "" {
			w.htmlText(raw[:i])
		}
		if raw = raw[i:]; raw == "" {
			return
		}
		n := tagLen(raw)
		if n == 0 {
			if skip == "" {
				w.literal(w, "<")
			}
			raw = raw[1:]
			continue
		}
		name, closing := tagName(raw[:n])
		switch {
		case skip != "":
			if closing && name == skip {
				skip = ""
			}
		case !closing && (name == "script" || name == "style"):
			skip = name
		default:
			w.htmlTag(raw[:n])
		}
		raw = raw[n:]
	}
}

// htmlText writes text between tags; line ends of the source stay.
func (w *walker) htmlText(s string) {
	for i, line := range strings.Split(s, "\n") {
		if i > 0 {
			w.lineBreak()
		}
		if line = strings.TrimLeft(line, " \t"); line != "" {
			var b strings.Builder
			for j := 0; j < len(line); {
				text, n := entity(line[j:])
				if n == 0 {
					text, n = line[j:j+1], 1
				}
				b.WriteString(text)
				j += n
			}
			w.literal(w, b.String())
		}
	}
}

// htmlTag writes what a tag means to a reader.
func (w *walker) htmlTag(tag string) {
	name, closing := tagName(tag)
	switch {
	case strings.HasPrefix(tag, "<!") || strings.HasPrefix(tag, "<?"):
	case !htmlElements[name]:
		w.literal(w, tag)
	case name == "br" || closing && (name == "p" || name == "div" || name == "tr" || name == "summary"):
		w.lineBreak()
	case name == "li" && !closing:
		w.lineBreak()
		w.writer.text(w.bullet(1))
	case (name == "td" || name == "th") && closing:
		w.writer.text(" ")
	case name == "a" && !closing:
		w.hrefs = append(w.hrefs, attribute(tag, "href"))
	case name == "a" && len(w.hrefs) > 0:
		if href := w.hrefs[len(w.hrefs)-1]; href != "" {
			w.writer.text(" (" + href + ")")
		}
		w.hrefs = w.hrefs[:len(w.hrefs)-1]
	case name == "img":
		w.image(w, attribute(tag, "alt"), attribute(tag, "src"))
	}
}

// tagLen returns the length of the tag, comment or declaration that s begins with, 0 when it begins with
// none.
func tagLen(s string) int {
	if strings.HasPrefix(s, "<!--") {
		if i := strings.Index(s, "-->"); i >= 0 {
			return i + 3
		}
		return len(s)
	}
	if len(s) < 2 || !(s[1] == '/' || s[1] == '!' || s[1] == '?' || s[1]|0x20 >= 'a' && s[1]|0x20 <= 'z') {
		return 0
	}
	var quote byte
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == '<':
			return 0
		case c == '>':
			return i + 1
		}
	}
	return 0
}

// tagName returns the lower-case name in a tag, and whether it is an end tag.
func tagName(tag string) (name string, closing bool) {
	s := strings.TrimPrefix(tag, "<")
	s, closing = strings.CutPrefix(s, "/")
	end := strings.IndexFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-')
	})
	if end < 0 {
		end = len(s)
	}
	// A name goes on to the next space, slash or bracket: "<b:c>" is not b.
	if end < len(s) && !strings.ContainsRune(" \t\n/>", rune(s[end])) {
		return "", closing
	}
	return strings.ToLower(s[:end]), closing
}

// attribute returns the value of a quoted attribute.
func attribute(tag, name string) string {
	lower := strings.ToLower(tag)
	for from := 0; ; {
		i := strings.Index(lower[from:], name+"=")
		if i < 0 {
			return ""
		}
		i += from
		from = i + len(name) + 1
		if !isBlank(tag[i-1]) || from >= len(tag) {
			continue
		}
		quote := tag[from]
		if quote != '"' && quote != '\'' {
			continue
		}
		if value, _, ok := strings.Cut(tag[from+1:], string(quote)); ok {
			return unescape([]byte(strings.ReplaceAll(value, "\n", " ")))
		}
	}
}
