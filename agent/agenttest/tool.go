package agenttest

import (
	"context"
	"encoding/json"
	"slices"
	"sync"

	"botd/agent"
)

// Tool is a tool made of a function; it records the arguments of its calls.
type Tool struct {
	name string
	call func(ctx context.Context, args json.RawMessage) (string, error)

	mu   sync.Mutex
	args []string
}

var _ agent.Tool = (*Tool)(nil)

// NewTool returns a tool that takes any object.
func NewTool(name string, call func(ctx context.Context, args json.RawMessage) (string, error)) *Tool {
	return &Tool{name: name, call: call}
}

// Echo returns a tool that gives back its arguments.
func Echo(name string) *Tool {
	return NewTool(name, func(_ context.Context, args json.RawMessage) (string, error) { return string(args), nil })
}

// Spec implements agent.Tool.
func (t *Tool) Spec() agent.ToolSpec {
	return agent.ToolSpec{
		Name: t.name, Description: "A tool for tests.",
		Parameters: json.RawMessage(`{"type":"object","properties":{}}`),
	}
}

// Call implements agent.Tool.
func (t *Tool) Call(ctx context.Context, args json.RawMessage) (agent.ToolResult, error) {
	t.mu.Lock()
	t.args = append(t.args, string(args))
	t.mu.Unlock()
	text, err := t.call(ctx, args)
	return agent.ToolResult{Text: text}, err
}

// Calls returns the arguments of all calls so far, in the order in which they began.
func (t *Tool) Calls() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.args)
}
