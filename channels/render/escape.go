package render

import (
	"html"
	"strings"
)

// entityLen bounds the length of an entity, in bytes: the longest name has 33.
const entityLen = 36

// entity returns the text that the entity at the beginning of s stands for, and its length; 0 when there
// is none.
func entity(s string) (string, int) {
	if len(s) < 3 || s[0] != '&' {
		return "", 0
	}
	end := strings.IndexByte(s[:min(len(s), entityLen)], ';')
	if end < 2 {
		return "", 0
	}
	name := s[:end+1]
	if out := html.UnescapeString(name); out != name {
		return out, end + 1
	}
	return "", 0
}

func isPunct(c byte) bool {
	return c >= '!' && c <= '/' || c >= ':' && c <= '@' || c >= '[' && c <= '`' || c >= '{' && c <= '~'
}

// unescape resolves the backslash escapes and entities of Markdown source.
func unescape(raw []byte) string {
	s := string(raw)
	if !strings.ContainsAny(s, `\&`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		if s[i] == '\\' && i+1 < len(s) && isPunct(s[i+1]) {
			b.WriteByte(s[i+1])
			i += 2
			continue
		}
		if text, n := entity(s[i:]); n > 0 {
			b.WriteString(text)
			i += n
			continue
		}
		b.WriteByte(s[i])
		i++
	}
	return b.String()
}

// escapeDiscord escapes all that Discord could take for markup; begins says that s begins a line.
func escapeDiscord(s string, begins bool) string {
	var b strings.Builder
	begun := !begins
	for i := range len(s) {
		special := "\\*_~|`[]"
		if !begun {
			special = "\\*_~|`[]>#-" // marks at the beginning of a line
		}
		if strings.IndexByte(special, s[i]) >= 0 {
			b.WriteByte('\\')
		}
		begun = s[i] != '\n' && (begun || !isBlank(s[i]))
		b.WriteByte(s[i])
	}
	return b.String()
}

// discordText turns source text, literal by CommonMark, into text that is literal by Discord. Escapes stay
// as they are, entities are resolved. before and after are the bytes around it, marking says that emphasis is open.
func discordText(s string, before, after byte, marking bool) string {
	if !strings.ContainsAny(s, "\\&*_~|`]") {
		return s
	}
	var b strings.Builder
	at := func(i int) byte {
		switch {
		case i < 0:
			return before
		case i < len(s):
			return s[i]
		case i > len(s):
			return 0
		}
		return after
	}
	for i := 0; i < len(s); i++ {
		c := s[i]
		escape := false
		switch c {
		case '\\':
			if isPunct(at(i + 1)) {
				b.WriteByte(c)
				i++
				c = s[i]
			}
		case '&':
			if text, n := entity(s[i:]); n > 0 {
				b.WriteString(escapeDiscord(text, i == 0 && isBlank(before)))
				i += n - 1
				continue
			}
		case '*':
			escape = marking || !isBlank(at(i+1))
		case '_':
			escape = !isWord(at(i-1)) || !isWord(at(i+1))
		case '~':
			escape = at(i+1) == '~' || at(i-1) == '~'
		case '|':
			// Bars around words hide them, and a model may well mean it; bars between words do not.
			escape = at(i+1) == '|' && isBlank(at(i-1)) && isBlank(at(i+2))
		case '`':
			escape = true
		case ']':
			escape = at(i+1) == '('
		}
		if escape {
			b.WriteByte('\\')
		}
		b.WriteByte(c)
	}
	return b.String()
}

func isBlank(c byte) bool { return c == 0 || c == ' ' || c == '\n' || c == '\t' }

func isWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_'
}
