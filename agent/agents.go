package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

const (
	// maxHandoffs bounds the hand-offs of one run: agents may not pass a question round for ever.
	maxHandoffs = 5
	// maxDepth bounds agents that ask agents.
	maxDepth = 3

	handoffPrefix = "transfer_to_"
	askPrefix     = "ask_"
)

// Outputs of hand-offs, as the Agents SDK words them.
const (
	secondHandoff = "Multiple handoffs detected, ignoring this one."
	endedHandoffs = "error: this question was handed over too often; answer it yourself"
)

// handoffTool is the call by which an agent hands the conversation over.
type handoffTool struct{ to *Agent }

// Spec implements Tool.
func (h handoffTool) Spec() ToolSpec {
	return ToolSpec{
		Name:        handoffPrefix + h.to.Name,
		Description: describe("Handoff to the "+h.to.Name+" agent to handle the request.", h.to),
		Parameters:  json.RawMessage(`{"type":"object","properties":{},"additionalProperties":false}`),
	}
}

// Call implements Tool. The run itself does what is to be done.
func (h handoffTool) Call(context.Context, json.RawMessage) (ToolResult, error) {
	return ToolResult{Text: h.output()}, nil
}

// output tells the model who has taken over.
func (h handoffTool) output() string {
	return string(encode(struct {
		Assistant string `json:"assistant"`
	}{h.to.Name}))
}

// askTool lets an agent ask another one, which answers from an empty history, with its own tools.
type askTool struct {
	engine *Engine
	to     *Agent
}

// Spec implements Tool.
func (a askTool) Spec() ToolSpec {
	return ToolSpec{
		Name:        askPrefix + a.to.Name,
		Description: describe("Asks the "+a.to.Name+" agent, who knows nothing of this conversation but what the input says.", a.to),
		Parameters: json.RawMessage(`{"type":"object","properties":{"input":{"type":"string",` +
			`"description":"The question, complete in itself"}},"required":["input"],"additionalProperties":false}`),
	}
}

func describe(what string, a *Agent) string {
	if a.Description == "" {
		return what
	}
	return what + " " + a.Description
}

// Call implements Tool: it is a run of its own, of which the answer and the usage are passed on.
func (a askTool) Call(ctx context.Context, args json.RawMessage) (ToolResult, error) {
	var in struct {
		Input string `json:"input"`
	}
	if err := json.Unmarshal(args, &in); err != nil {
		return ToolResult{}, fmt.Errorf("read arguments: %w", err)
	}
	n, _ := ctx.Value(nestingKey{}).(nesting)
	if n.depth >= maxDepth {
		return ToolResult{}, errors.New("agents have asked agents too deep; answer without")
	}
	caller, _ := CallerFrom(ctx)
	turn := Turn{
		ID: caller.Turn, Session: caller.Session, Agent: a.to.Name, Place: caller.Place,
		Input: []Message{{Speaker: caller.Speaker, Parts: []Part{{Text: in.Input}}}},
	}
	for ev, err := range a.engine.Run(ctx, turn) {
		if err != nil {
			// The details are for the log and the operator, not for the other model.
			a.engine.log.Warn("agent asked as a tool failed", "turn", caller.Turn, "agent", a.to.Name, "err", err)
			return ToolResult{}, errors.New("the agent could not answer")
		}
		if ev.Final != nil {
			if n.spent != nil {
				n.spent(ev.Final.Usage)
			}
			return ToolResult{Text: ev.Final.Text}, nil
		}
	}
	return ToolResult{}, errors.New("the agent gave no answer")
}

// nesting is what a run knows of the runs around it.
type nesting struct {
	depth int
	// spent adds to the usage of the run that asks.
	spent func(Usage)
}

type nestingKey struct{}

// nest prepares ctx for the tools of a run.
func nest(ctx context.Context, spent func(Usage)) context.Context {
	n, _ := ctx.Value(nestingKey{}).(nesting)
	return context.WithValue(ctx, nestingKey{}, nesting{depth: n.depth + 1, spent: spent})
}

// begin returns the agent to begin a turn with: the one that the turn names, or one to whom that one has
// handed the conversation over, directly or not, when the history shows that it answered last.
func (e *Engine) begin(t Turn) *compiled {
	a := e.agents[t.Agent]
	if a == nil {
		a = e.agents[e.opts.Default]
		if t.Agent != "" {
			e.log.Warn("agent of the turn is not defined, using the default", "turn", t.ID, "agent", t.Agent, "default", a.Name)
		}
	}
	for _, it := range slices.Backward(t.History) {
		if it.Origin == "" {
			continue
		}
		last, _, _ := strings.Cut(it.Origin, "@")
		if e.handsOver(a, last, make(map[string]bool)) {
			return e.agents[last]
		}
		break
	}
	return a
}

// handsOver reports whether hand-offs lead from one agent to another.
func (e *Engine) handsOver(from *compiled, to string, seen map[string]bool) bool {
	seen[from.Name] = true
	for _, name := range from.Handoffs {
		if name == to || !seen[name] && e.handsOver(e.agents[name], to, seen) {
			return true
		}
	}
	return false
}

// handOver makes another agent answer from here on.
func (r *run) handOver(to string) {
	r.e.opts.Hooks.handoff(r.turn.ID, r.agent.Name, to)
	r.agent = r.e.equip(r.e.agents[to])
	r.model = 0
	r.instructions = instructions(r.agent, r.turn)
	r.handoffs++
}
