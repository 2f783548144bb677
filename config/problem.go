package config

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Severity tells whether the program can run in spite of a problem.
type Severity string

// The severities.
const (
	// SeverityError: the configuration cannot be used.
	SeverityError Severity = "error"
	// SeverityWarning: it can be used, but probably does not do what is wanted.
	SeverityWarning Severity = "warning"
)

// Problem is one thing that is wrong. It holds no secret.
type Problem struct {
	Severity Severity `json:"severity"`
	// File is the file as it was named, empty when the configuration came from the environment.
	File string `json:"file,omitempty"`
	// Line and Column count from 1; 0 when the problem has no place.
	Line   int `json:"line,omitempty"`
	Column int `json:"column,omitempty"`
	// Path is the path of keys, such as channels.line.agent.
	Path    string `json:"path,omitempty"`
	Message string `json:"message"`
	// Remedy says how to mend it.
	Remedy string `json:"remedy,omitempty"`
	// Snippet shows the lines around with a caret below the place, secrets masked.
	Snippet string `json:"snippet,omitempty"`
}

// OfChannel reports whether the problem is one of a channel, which does not concern who uses none.
func (p Problem) OfChannel() bool {
	return p.Path == "channels" || strings.HasPrefix(p.Path, "channels.")
}

// String formats the problem over several lines, without a newline at the end.
func (p Problem) String() string {
	var b strings.Builder
	if p.File != "" {
		b.WriteString(p.File)
		if p.Line > 0 {
			fmt.Fprintf(&b, ":%d:%d", p.Line, p.Column)
		}
		b.WriteString(": ")
	}
	fmt.Fprintf(&b, "%s: %s", p.Severity, p.Message)
	if p.Snippet != "" {
		b.WriteString("\n" + p.Snippet)
	}
	if p.Remedy != "" {
		b.WriteString("\n   fix: " + p.Remedy)
	}
	return b.String()
}

// Problems are all the problems of one configuration, in the order of the file.
type Problems []Problem

// Err returns the problems as an error, or nil when none of them is an error.
func (ps Problems) Err() error {
	if ps.count(SeverityError) == 0 {
		return nil
	}
	return &Error{Problems: ps}
}

// Warnings returns the problems that are only warnings.
func (ps Problems) Warnings() Problems {
	return slices.DeleteFunc(slices.Clone(ps), func(p Problem) bool { return p.Severity != SeverityWarning })
}

// String formats every problem, with a blank line between them.
func (ps Problems) String() string {
	texts := make([]string, len(ps))
	for i, p := range ps {
		texts[i] = p.String()
	}
	return strings.Join(texts, "\n\n")
}

func (ps Problems) count(s Severity) (n int) {
	for _, p := range ps {
		if p.Severity == s {
			n++
		}
	}
	return n
}

// Summary counts the problems in words: "2 errors, 1 warning".
func (ps Problems) Summary() string {
	var parts []string
	for _, s := range []Severity{SeverityError, SeverityWarning} {
		switch n := ps.count(s); n {
		case 0:
		case 1:
			parts = append(parts, "1 "+string(s))
		default:
			parts = append(parts, strconv.Itoa(n)+" "+string(s)+"s")
		}
	}
	return cmp.Or(strings.Join(parts, ", "), "no problems")
}

func (ps Problems) sort() {
	slices.SortStableFunc(ps, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
}

// Error is a configuration that cannot be used.
type Error struct{ Problems Problems }

// Error formats every problem.
func (e *Error) Error() string { return "invalid configuration\n" + e.Problems.String() }
