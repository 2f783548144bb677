package app

import (
	"context"
	"fmt"
	"regexp"
	"unicode/utf8"

	"botd/agent"
	"botd/config"
)

// lengthGuard blocks texts of more characters than it says.
type lengthGuard int

// Name implements agent.Guard.
func (lengthGuard) Name() string { return "max_input_chars" }

// Check implements agent.Guard.
func (g lengthGuard) Check(_ context.Context, text string) (bool, error) {
	return utf8.RuneCountInString(text) > int(g), nil
}

// patternGuard blocks texts in which its pattern is found.
type patternGuard struct {
	name    string
	pattern *regexp.Regexp
}

// Name implements agent.Guard.
func (g patternGuard) Name() string { return g.name }

// Check implements agent.Guard.
func (g patternGuard) Check(_ context.Context, text string) (bool, error) {
	return g.pattern.MatchString(text), nil
}

// buildGuards makes the guards of an agent. Patterns are named by their place in the configuration, so that
// a log tells which one it was without telling what it looks for.
func buildGuards(c config.Guards) (input, output []agent.Guard, err error) {
	if c.MaxInputChars > 0 {
		input = append(input, lengthGuard(c.MaxInputChars))
	}
	for _, side := range []struct {
		key      string
		patterns []string
		guards   *[]agent.Guard
	}{{"block_input", c.BlockInput, &input}, {"block_output", c.BlockOutput, &output}} {
		for i, p := range side.patterns {
			re, err := regexp.Compile(p)
			if err != nil {
				return nil, nil, fmt.Errorf("read guards.%s[%d]: %w", side.key, i, err)
			}
			*side.guards = append(*side.guards, patternGuard{fmt.Sprintf("%s[%d]", side.key, i), re})
		}
	}
	return input, output, nil
}
