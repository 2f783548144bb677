package config

import (
	"fmt"
	"regexp"
	"strings"
)

// source is the text of a configuration, for showing places in it.
type source struct {
	file  string
	lines []string
}

func newSource(file string, data []byte) source {
	text := strings.ReplaceAll(strings.ToValidUTF8(string(data), "\uFFFD"), "\r\n", "\n")
	return source{file: file, lines: strings.Split(text, "\n")}
}

// snippet shows line (from 1) with its neighbours and a caret below column (from 1).
func (s source) snippet(line, column int) string {
	if line < 1 || line > len(s.lines) {
		return ""
	}
	var b strings.Builder
	for n := max(1, line-1); n <= min(len(s.lines), line+1); n++ {
		mark := " "
		if n == line {
			mark = ">"
		} else if strings.TrimSpace(s.lines[n-1]) == "" {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "%s %4d | %s", mark, n, printable(maskLine(s.lines[n-1])))
		if n == line {
			b.WriteString("\n       | " + caretIndent(s.lines[n-1], column) + "^")
		}
	}
	return b.String()
}

// caretIndent is white space as wide as what is shown before column; East Asian characters take two cells.
func caretIndent(line string, column int) string {
	runes := []rune(line)
	before := maskLine(string(runes[:min(max(0, column-1), len(runes))]))
	var b strings.Builder
	for _, r := range before {
		switch {
		case r == '\t':
			b.WriteByte('\t')
		case r >= 0x1100:
			b.WriteString("  ")
		default:
			b.WriteByte(' ')
		}
	}
	return b.String()
}

// printable keeps control characters of a file from reaching a terminal.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r != '\t' && (r < 0x20 || r >= 0x7f && r < 0xa0) {
			return '\uFFFD'
		}
		return r
	}, s)
}

const masked = "***"

var (
	// secretValue matches the value of a key that sounds like a secret, misspelled ones included.
	secretValue = regexp.MustCompile(`(?i)([\w.-]*(?:secr|tok|key|passw|auth|cred|cookie)[\w.-]*["']?\s*:\s+)("(?:[^"\\]|\\.)*"?|'(?:[^']|'')*'?|(?:\$\{[^}]*\}|[^,}\s#])(?:\$\{[^}]*\}|[^,}#])*)`)
	// soundsSecret matches the names of what is a secret, among names of all kinds.
	soundsSecret = regexp.MustCompile(`(?i)secr|tok|key|passw|auth|cred|cookie`)
	// opaque matches a run of characters that is long enough to be a credential.
	opaque = regexp.MustCompile(`[A-Za-z0-9+/=_.\-]{20,}`)
	// reference matches a variable, and what only looks like one.
	reference = regexp.MustCompile(`\$\$|\$\{[A-Za-z_]\w*\}`)
	// amount matches a value that is too short a number to be a secret.
	amount = regexp.MustCompile(`^[0-9.]{1,8}\s*$`)
	// userinfo matches the credentials in a URL.
	userinfo = regexp.MustCompile(`://[^/@\s]+@`)
	digit    = regexp.MustCompile(`[0-9]`)
	letter   = regexp.MustCompile(`[A-Za-z]`)
)

// variableSign stands for a variable while the rest of a line is masked.
const variableSign = '\uE000'

// maskLine hides what may be a secret: the value of every key that sounds like one unless it is a file, and every
// long opaque word. The names of variables stay, as they tell which one to set.
func maskLine(line string) string {
	var variables []string
	line = strings.ReplaceAll(line, string(variableSign), "\uFFFD")
	line = reference.ReplaceAllStringFunc(line, func(m string) string {
		if m == "$$" {
			return m
		}
		variables = append(variables, m)
		return string(variableSign)
	})
	line = secretValue.ReplaceAllStringFunc(line, func(m string) string {
		parts := secretValue.FindStringSubmatch(m)
		key := strings.TrimRight(parts[1], " \t:\"'")
		if strings.HasSuffix(key, "_file") || amount.MatchString(parts[2]) {
			return m
		}
		return parts[1] + maskAround(parts[2])
	})
	line = userinfo.ReplaceAllStringFunc(line, func(m string) string {
		return "://" + maskAround(strings.TrimSuffix(strings.TrimPrefix(m, "://"), "@")) + "@"
	})
	line = opaque.ReplaceAllStringFunc(line, func(word string) string {
		path := word[0] == '/' || word[0] == '.'
		if path || !digit.MatchString(word) || !letter.MatchString(word) {
			return word
		}
		return masked
	})
	for _, v := range variables {
		line = strings.Replace(line, string(variableSign), v, 1)
	}
	return line
}

// maskAround hides a value but for the variables in it, and for white space and quotes around these.
func maskAround(value string) string {
	pieces := strings.Split(value, string(variableSign))
	if len(pieces) == 1 {
		return masked
	}
	for i, p := range pieces {
		if core := strings.Trim(p, " \t\"'"); core != "" {
			pieces[i] = strings.Replace(p, core, masked, 1)
		}
	}
	return strings.Join(pieces, string(variableSign))
}
