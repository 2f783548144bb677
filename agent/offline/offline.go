package offline

import (
	"context"
	"iter"
	"strings"
	"time"

	"botd/agent"
)

// Options configures a Model; the zero value answers at once.
type Options struct {
	// WordDelay passes before each word, so that one can watch the answer being written.
	WordDelay time.Duration
}

// Model answers offline.
type Model struct{ opts Options }

var _ agent.Model = (*Model)(nil)

// New returns a model.
func New(o Options) *Model { return &Model{opts: o} }

// Stream implements agent.Model.
func (m *Model) Stream(ctx context.Context, req *agent.Request) iter.Seq2[agent.ModelEvent, error] {
	return func(yield func(agent.ModelEvent, error) bool) {
		text, call := answer(readConversation(req.Input), req)
		done := &agent.Completion{Usage: agent.Usage{
			Requests: 1, InputTokens: inputTokens(req), OutputTokens: agent.EstimateTokens([]byte(text)), Estimated: true,
		}}
		if call != nil {
			done.Items = append(done.Items, call)
		}
		for _, word := range strings.SplitAfter(text, " ") {
			if err := pause(ctx, m.opts.WordDelay); err != nil {
				yield(agent.ModelEvent{}, err)
				return
			}
			if word != "" && !yield(agent.ModelEvent{Delta: word}, nil) {
				return
			}
		}
		if text != "" {
			done.Items = append(done.Items, agent.AssistantMessage(text))
		}
		yield(agent.ModelEvent{Done: done}, nil)
	}
}

func inputTokens(req *agent.Request) int {
	n := agent.EstimateTokens([]byte(req.Instructions))
	for _, raw := range req.Input {
		n += agent.EstimateTokens(raw)
	}
	return n
}

func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
