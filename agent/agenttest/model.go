package agenttest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"botd/agent"
)

// Call is a tool call that a scripted model makes.
type Call struct{ ID, Name, Args string }

// Step is one answer of a scripted model. What is set is yielded in the order of the fields.
type Step struct {
	// Delay passes before anything is yielded, DeltaDelay before each delta. Both end with ctx.
	Delay, DeltaDelay time.Duration
	// Text is the text of the answer, streamed by words.
	Text string
	// Calls are made after the text.
	Calls []Call
	// Items, when set, are the items of the answer instead of those made of Text and Calls.
	Items []json.RawMessage
	// Truncated marks the answer as ended at a limit.
	Truncated bool
	// Usage is added to one request; zero: 10 tokens in, 5 out.
	Usage agent.Usage
	// Err ends the answer after its text.
	Err error
	// Cut ends the answer after its text with neither an error nor a completion.
	Cut bool
	// Hang waits for ctx to end after the text.
	Hang bool
}

// Say is an answer in words.
func Say(text string) Step { return Step{Text: text} }

// Use is an answer that calls one tool.
func Use(id, name, args string) Step { return Step{Calls: []Call{{ID: id, Name: name, Args: args}}} }

// Fail is an answer that fails with an error of a kind.
func Fail(kind agent.ErrorKind) Step {
	return Step{Err: &agent.Error{Kind: kind, Err: errors.New("scripted failure")}}
}

// Model answers by a script.
type Model struct {
	mu       sync.Mutex
	script   func(n int, req *agent.Request) Step
	requests []*agent.Request
}

var _ agent.Model = (*Model)(nil)

// NewModel returns a model that gives its first answer to the first request and so on. A request past the
// end of the script fails.
func NewModel(steps ...Step) *Model {
	return ModelFunc(func(n int, _ *agent.Request) Step {
		if n >= len(steps) {
			return Step{Err: fmt.Errorf("request %d is past the end of a script of %d", n+1, len(steps))}
		}
		return steps[n]
	})
}

// ModelFunc returns a model whose answer to the nth request, counted from 0, is a function of it. The
// function may be called for several requests at once.
func ModelFunc(script func(n int, req *agent.Request) Step) *Model { return &Model{script: script} }

// Requests returns all requests so far.
func (m *Model) Requests() []*agent.Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.requests)
}

// Stream implements agent.Model.
func (m *Model) Stream(ctx context.Context, req *agent.Request) iter.Seq2[agent.ModelEvent, error] {
	return func(yield func(agent.ModelEvent, error) bool) {
		kept := *req
		kept.Input = slices.Clone(req.Input)
		kept.Tools = slices.Clone(req.Tools)
		m.mu.Lock()
		n := len(m.requests)
		m.requests = append(m.requests, &kept)
		m.mu.Unlock()
		s := m.script(n, &kept)
		if err := wait(ctx, s.Delay); err != nil {
			yield(agent.ModelEvent{}, err)
			return
		}
		for _, word := range strings.SplitAfter(s.Text, " ") {
			if word == "" {
				continue
			}
			if err := wait(ctx, s.DeltaDelay); err != nil {
				yield(agent.ModelEvent{}, err)
				return
			}
			if !yield(agent.ModelEvent{Delta: word}, nil) {
				return
			}
		}
		if s.Hang {
			<-ctx.Done()
			s.Err = ctx.Err()
		}
		switch {
		case s.Err != nil:
			yield(agent.ModelEvent{}, s.Err)
		case s.Cut:
		default:
			yield(agent.ModelEvent{Done: s.completion(n)}, nil)
		}
	}
}

func (s Step) completion(n int) *agent.Completion {
	c := &agent.Completion{
		Items: s.Items, Truncated: s.Truncated, Usage: s.Usage,
		RequestID: fmt.Sprintf("req_%d", n+1),
	}
	if c.Usage == (agent.Usage{}) {
		c.Usage = agent.Usage{InputTokens: 10, OutputTokens: 5}
	}
	c.Usage.Requests = 1
	if c.Items != nil {
		return c
	}
	if s.Text != "" {
		c.Items = append(c.Items, agent.AssistantMessage(s.Text))
	}
	for _, call := range s.Calls {
		c.Items = append(c.Items, agent.FunctionCall(call.ID, call.Name, call.Args))
	}
	return c
}

func wait(ctx context.Context, d time.Duration) error {
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
