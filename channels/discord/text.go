package discord

import (
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// scope is what is needed to resolve the mentions in one message.
type scope struct {
	self     string
	guild    string
	mentions listOf[user]
	dir      *directory
	// whole keeps the bot's own mention at the ends of the text too.
	whole bool
}

// text turns Discord's markup for people, roles, rooms, emoji, times and commands into words. A mention
// of the bot at the beginning or end is how it is called, and falls away.
func (s scope) text(raw string) string {
	raw = strings.TrimSpace(raw)
	if !strings.Contains(raw, "<") {
		return raw
	}
	if !s.whole {
		raw = s.trimCall(raw)
	}
	var b strings.Builder
	for {
		i := strings.IndexByte(raw, '<')
		if i < 0 {
			b.WriteString(raw)
			return b.String()
		}
		b.WriteString(raw[:i])
		raw = raw[i:]
		tag, n := tagAt(raw)
		word, ok := s.resolve(tag)
		if !ok {
			word, n = raw[:1], 1
		}
		b.WriteString(word)
		raw = raw[n:]
	}
}

// trimCall takes the mentions of the bot off both ends.
func (s scope) trimCall(raw string) string {
	for {
		tag, n := tagAt(raw)
		if !s.isCall(tag) {
			break
		}
		raw = strings.TrimLeft(strings.TrimSpace(raw[n:]), ",:")
		raw = strings.TrimSpace(raw)
	}
	for strings.HasSuffix(raw, ">") {
		i := strings.LastIndexByte(raw, '<')
		if i < 0 {
			break
		}
		tag, n := tagAt(raw[i:])
		if i+n != len(raw) || !s.isCall(tag) {
			break
		}
		raw = strings.TrimSpace(raw[:i])
	}
	return raw
}

// tagLimit bounds a tag: the longest is a command with its name and subcommands.
const tagLimit = 160

// tagAt returns what stands between angle brackets at the beginning of s, and the length with them.
func tagAt(s string) (tag string, n int) {
	if len(s) < 3 || s[0] != '<' {
		return "", 0
	}
	end := strings.IndexByte(s[:min(len(s), tagLimit)], '>')
	if end < 2 || strings.IndexByte(s[1:end], '<') >= 0 {
		return "", 0
	}
	return s[1:end], end + 1
}

// isCall reports that a tag mentions the bot or its role.
func (s scope) isCall(tag string) bool {
	if id, ok := strings.CutPrefix(tag, "@&"); ok {
		return s.dir.ownRole(s.guild, id)
	}
	id, ok := strings.CutPrefix(tag, "@")
	return ok && s.self != "" && strings.TrimPrefix(id, "!") == s.self
}

// resolve returns the words for a tag. (Discord documentation, Reference, Message Formatting.)
func (s scope) resolve(tag string) (string, bool) {
	switch {
	case strings.HasPrefix(tag, "@&"):
		return resolved("@", tag[2:], "role", s.dir.roleName)
	case strings.HasPrefix(tag, "@"):
		return resolved("@", strings.TrimPrefix(tag[1:], "!"), "user", s.userName)
	case strings.HasPrefix(tag, "#"):
		return resolved("#", tag[1:], "room", func(id string) (string, bool) {
			r, ok := s.dir.room(id)
			return r.Name.v, ok
		})
	case strings.HasPrefix(tag, ":"), strings.HasPrefix(tag, "a:"):
		parts := strings.Split(strings.TrimPrefix(tag, "a"), ":")
		if len(parts) != 3 || parts[1] == "" || !isSnowflake(parts[2]) {
			return "", false
		}
		return ":" + parts[1] + ":", true
	case strings.HasPrefix(tag, "t:"):
		seconds, _, _ := strings.Cut(tag[2:], ":")
		n, err := strconv.ParseInt(seconds, 10, 64)
		if err != nil || n < -1<<36 || n > 1<<36 {
			return "", false
		}
		return time.Unix(n, 0).UTC().Format("2006-01-02 15:04 MST"), true
	case strings.HasPrefix(tag, "/"):
		name, id, ok := strings.Cut(tag, ":")
		if !ok || !isSnowflake(id) || name == "/" {
			return "", false
		}
		return name, true
	}
	return "", false
}

// resolved is the name behind an ID with its mark, or a general word where the name is not known.
func resolved(mark, id, general string, name func(string) (string, bool)) (string, bool) {
	if !isSnowflake(id) {
		return "", false
	}
	if n, ok := name(id); ok && n != "" {
		return mark + oneLine(n), true
	}
	return mark + general, true
}

func (s scope) userName(id string) (string, bool) {
	for u := range s.mentions.all {
		if u.ID == id {
			return u.name(nickname{}), true
		}
	}
	return "", false
}

// quoteText puts foreign text on one line, within limit code points.
func quoteText(text string, limit int) string {
	text = oneLine(text)
	if utf8.RuneCountInString(text) <= limit {
		return text
	}
	n := 0
	for i := range text {
		if n++; n > limit {
			return text[:i] + "…"
		}
	}
	return text
}

// oneLine replaces white space of any kind, and what could close the bracket around a quotation.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		switch r {
		case '[':
			return '('
		case ']':
			return ')'
		}
		return r
	}, strings.Join(strings.Fields(s), " "))
}
