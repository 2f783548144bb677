package agent

import "time"

// Hooks are told of what a run does, for metrics, traces and audit. Nil functions are left out. They are
// called from the goroutines of the run, several at once, and must not block. They get no text of
// messages.
type Hooks struct {
	// Model is told of every request to a model when it has ended.
	Model func(ModelCall)
	// Tool is told of every tool call when it has ended.
	Tool func(ToolCall)
	// Handoff is told when another agent takes over.
	Handoff func(turn, from, to string)
}

// ModelCall is one request to a model.
type ModelCall struct {
	Turn, Agent     string
	Provider, Model string
	Start           time.Time
	// FirstDelta is how long it took until the first text, 0 when none came.
	FirstDelta time.Duration
	Duration   time.Duration
	Usage      Usage
	RequestID  string
	// Err is nil for an answer; an *Error where the cause is known; ctx's when the run was stopped.
	Err error
}

// ToolCall is one call of a tool.
type ToolCall struct {
	Turn, Agent, Tool string
	Start             time.Time
	Duration          time.Duration
	// Failed reports that the model was given an error text as the output.
	Failed bool
}

func (h Hooks) model(c ModelCall) {
	if h.Model != nil {
		c.Duration = time.Since(c.Start)
		h.Model(c)
	}
}

func (h Hooks) tool(c ToolCall) {
	if h.Tool != nil {
		c.Duration = time.Since(c.Start)
		h.Tool(c)
	}
}

func (h Hooks) handoff(turn, from, to string) {
	if h.Handoff != nil {
		h.Handoff(turn, from, to)
	}
}
