package app

import (
	"context"
	"fmt"
	"regexp"
	"unicode/utf8"

	"botd/agent"
	"botd/config"
)

// guard blocks texts by a rule. It is named by the rule's place in the configuration, so that the log tells
// which one it was without telling what it looks for, or in what.
type guard struct {
	name   string
	blocks func(text string) bool
}

// Name implements agent.Guard.
func (g guard) Name() string { return g.name }

// Check implements agent.Guard.
func (g guard) Check(_ context.Context, text string) (bool, error) {
	return g.blocks(text), nil
}

// buildGuards makes the guards of an agent.
func buildGuards(c config.Guards) (input, output []agent.Guard, err error) {
	if c.MaxInputChars > 0 {
		tooLong := func(text string) bool { return utf8.RuneCountInString(text) > c.MaxInputChars }
		input = append(input, guard{"max_input_chars", tooLong})
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
			*side.guards = append(*side.guards, guard{fmt.Sprintf("%s[%d]", side.key, i), re.MatchString})
		}
	}
	return input, output, nil
}
