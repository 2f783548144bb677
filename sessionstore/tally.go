package sessionstore

import (
	"context"
	"fmt"
)

// Counts is what one Tally counts. All of them only grow.
type Counts struct {
	// Turns are answers given, Requests are calls to a model.
	Turns    int64 `json:"turns,omitempty"`
	Requests int64 `json:"requests,omitempty"`
	// InputTokens include the CachedTokens, OutputTokens the ReasoningTokens.
	InputTokens     int64 `json:"input_tokens,omitempty"`
	CachedTokens    int64 `json:"cached_tokens,omitempty"`
	OutputTokens    int64 `json:"output_tokens,omitempty"`
	ReasoningTokens int64 `json:"reasoning_tokens,omitempty"`
	// CostMicros is the price in millionths of the currency of the price table; calls without a price add 0.
	CostMicros int64 `json:"cost_micros,omitempty"`
	// Estimated are the Requests whose tokens were estimated, Unpriced those without a price.
	Estimated int64 `json:"estimated,omitempty"`
	Unpriced  int64 `json:"unpriced,omitempty"`
	// Pushes are messages that the platform charges for, as far as it has such.
	Pushes int64 `json:"pushes,omitempty"`
}

// Add returns the sum of both.
func (c Counts) Add(d Counts) Counts {
	return Counts{
		Turns: c.Turns + d.Turns, Requests: c.Requests + d.Requests,
		InputTokens: c.InputTokens + d.InputTokens, CachedTokens: c.CachedTokens + d.CachedTokens,
		OutputTokens: c.OutputTokens + d.OutputTokens, ReasoningTokens: c.ReasoningTokens + d.ReasoningTokens,
		CostMicros: c.CostMicros + d.CostMicros,
		Estimated:  c.Estimated + d.Estimated, Unpriced: c.Unpriced + d.Unpriced, Pushes: c.Pushes + d.Pushes,
	}
}

// Tally is a named counter: "day/2026-12-04/channel/line-shop". Keys are within the limits of a record's.
type Tally struct {
	Key    string
	Counts Counts
}

// ValidateTallies reports whether a Tallier can add them. A key may occur more than once.
func ValidateTallies(add []Tally) error {
	for i, t := range add {
		if err := validName("key", t.Key, MaxRecordKeyLen); err != nil {
			return fmt.Errorf("counter %d: %w", i, err)
		}
	}
	return nil
}

// Tallier is implemented by stores that keep counters. Journals add those of a turn in its commit.
type Tallier interface {
	// AddTallies adds to counters, making those that do not exist, all or none.
	AddTallies(ctx context.Context, add ...Tally) error
	// Tallies returns up to limit counters whose key begins with prefix and is greater than after, in the order
	// of their keys. An empty result means that there are no more.
	Tallies(ctx context.Context, prefix, after string, limit int) ([]Tally, error)
	// DropTallies deletes the counters whose key begins with prefix.
	DropTallies(ctx context.Context, prefix string) error
}
