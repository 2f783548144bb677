package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Defaults of Options and Agent.
const (
	DefaultMaxModelCalls   = 10
	DefaultToolTimeout     = 30 * time.Second
	DefaultToolParallelism = 8
	// DefaultToolOutputLimit is in characters, about 16 000 tokens of English.
	DefaultToolOutputLimit = 48_000
	// MaxTools is how many tools a provider takes in one request (OpenAI API reference, tools).
	MaxTools = 128
)

// Options configures an Engine.
type Options struct {
	// Agents are all the agents there are; at least one.
	Agents []Agent
	// Default names the agent of turns that name none; empty: the first of Agents.
	Default string
	// Logger gets what went wrong and was survived: never text of messages. Nil: nothing is logged.
	Logger *slog.Logger
	// Budget bounds what of the history is shown to a model.
	Budget Budget
	// Compact sums up the older turns of a history that has outgrown the budget, by one more request to a
	// model, instead of leaving them out. The summary becomes part of the session.
	Compact bool
	// ToolTimeout ends one tool call; 0: DefaultToolTimeout.
	ToolTimeout time.Duration
	// ToolParallelism is how many calls of one answer run at once; 0: DefaultToolParallelism.
	ToolParallelism int
	// ToolOutputLimit is how many characters of one output reach the model and the session; head and
	// tail are kept. 0: DefaultToolOutputLimit.
	ToolOutputLimit int
	// Hooks are told of what the engine does.
	Hooks Hooks
	// Secret keys the opaque identifiers that providers see instead of sessions and people. Changing it
	// changes them all.
	Secret []byte
}

// Agent is a named set of instructions, model chain and tools.
type Agent struct {
	// Name matches ^[a-zA-Z0-9_-]{1,48}$.
	Name         string
	Instructions string
	// Description tells other agents what this one is for.
	Description string
	// Models are tried in order; at least one.
	Models []ModelRef
	Tools  []Tool
	// Toolsets add tools that come and go while the engine runs, such as those of an MCP server. Where a
	// name is taken, the tool is left out.
	Toolsets []Toolset
	// Handoffs names the agents to whom this one can hand the conversation over, by a tool
	// transfer_to_NAME. The other agent sees the whole conversation and answers from there on; Final.Agent
	// tells who answered last, so that the next turn can begin with it.
	Handoffs []string
	// Consults names the agents that this one can ask, by a tool ask_NAME. The other agent sees only the
	// question, and this one answers.
	Consults []string
	// InputGuards judge what people say before it reaches a model, when a turn begins with this agent.
	InputGuards []Guard
	// OutputGuards judge the answer, when this agent gives it; its text is then not streamed.
	OutputGuards []Guard
	// Refusal is said instead of what a guard blocks; empty: DefaultRefusal.
	Refusal string
	// Temperature is nil for the provider's default.
	Temperature *float64
	// MaxOutputTokens is 0 for the provider's default.
	MaxOutputTokens int
	// MaxModelCalls bounds the model calls of one run; in the last one tools are forbidden, so that there
	// is an answer. 0: DefaultMaxModelCalls.
	MaxModelCalls int
}

// ModelRef is one model of a chain.
type ModelRef struct {
	Model Model
	// Name is the provider's own name of the model.
	Name string
	// Provider is the configured name of the provider. Encrypted reasoning made by one provider is never
	// shown to another. It holds no slash.
	Provider string
	// Window is how many tokens the model takes, the answer included; 0: unknown. Some servers cut what is
	// too long without a word, so it is best known for them.
	Window int
}

func (m ModelRef) String() string { return m.Provider + "/" + m.Name }

// Engine runs turns.
type Engine struct {
	opts   Options
	log    *slog.Logger
	agents map[string]*compiled
}

// compiled is an Agent made ready.
type compiled struct {
	Agent
	tools map[string]Tool
	specs []ToolSpec
}

var (
	agentNameRE = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,48}$`)
	toolNameRE  = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
)

// New returns an engine. The error names every mistake in the options.
func New(o Options) (*Engine, error) {
	o.ToolTimeout = orDefault(o.ToolTimeout, DefaultToolTimeout)
	o.ToolParallelism = orDefault(o.ToolParallelism, DefaultToolParallelism)
	o.ToolOutputLimit = orDefault(o.ToolOutputLimit, DefaultToolOutputLimit)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	e := &Engine{opts: o, log: o.Logger, agents: make(map[string]*compiled, len(o.Agents))}
	var errs []error
	if len(o.Agents) == 0 {
		errs = append(errs, errors.New("no agent: at least one is needed"))
	}
	agents := slices.Clone(o.Agents)
	known := make(map[string]*Agent, len(agents))
	for i := range agents {
		known[agents[i].Name] = &agents[i]
	}
	for _, a := range agents {
		c, err := e.compile(a, known)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if e.agents[a.Name] != nil {
			errs = append(errs, fmt.Errorf("agent %q is defined twice", a.Name))
		}
		e.agents[a.Name] = c
	}
	if e.opts.Default == "" && len(o.Agents) > 0 {
		e.opts.Default = o.Agents[0].Name
	}
	if len(errs) == 0 && e.agents[e.opts.Default] == nil {
		errs = append(errs, fmt.Errorf("default agent %q is not defined", o.Default))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return e, nil
}

func orDefault[T int | time.Duration](v, def T) T {
	if v <= 0 {
		return def
	}
	return v
}

func (e *Engine) compile(a Agent, known map[string]*Agent) (*compiled, error) {
	a.MaxModelCalls = orDefault(a.MaxModelCalls, DefaultMaxModelCalls)
	c := &compiled{Agent: a, tools: make(map[string]Tool, len(a.Tools))}
	var errs []error
	fail := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("agent %q: "+format, append([]any{a.Name}, args...)...))
	}
	if !agentNameRE.MatchString(a.Name) {
		fail("a name is 1 to 48 of a-z, A-Z, 0-9, _ and -")
	}
	if len(a.Models) == 0 {
		fail("no model: at least one is needed")
	}
	for i, m := range a.Models {
		if m.Model == nil || m.Name == "" {
			fail("model %d has no name or no driver", i)
		}
		if strings.Contains(m.Provider, "/") {
			fail("provider %q: a name holds no slash", m.Provider)
		}
	}
	tools := slices.Clone(a.Tools)
	other := func(what, name string) *Agent {
		to := known[name]
		switch {
		case to == nil:
			fail("%s %q is not defined", what, name)
		case name == a.Name:
			fail("%s %q is the agent itself", what, name)
			return nil
		}
		return to
	}
	for _, name := range a.Handoffs {
		if to := other("hand-off", name); to != nil {
			tools = append(tools, handoffTool{to})
		}
	}
	for _, name := range a.Consults {
		if to := other("consulted agent", name); to != nil {
			tools = append(tools, askTool{e, to})
		}
	}
	for _, t := range tools {
		if err := c.add(t); err != nil {
			fail("%w", err)
		}
	}
	if len(c.specs) > MaxTools {
		fail("%d tools: a provider takes at most %d", len(c.specs), MaxTools)
	}
	c.sort()
	return c, errors.Join(errs...)
}

// add gives the agent one more tool.
func (c *compiled) add(t Tool) error {
	s := t.Spec()
	var schema struct {
		Type string `json:"type"`
	}
	switch {
	case !toolNameRE.MatchString(s.Name):
		return fmt.Errorf("tool %q: a name is 1 to 64 of a-z, A-Z, 0-9, _ and -", s.Name)
	case c.tools[s.Name] != nil:
		return fmt.Errorf("tool %q is given twice", s.Name)
	case json.Unmarshal(s.Parameters, &schema) != nil || schema.Type != "object":
		return fmt.Errorf("tool %q: parameters are not a JSON Schema of type object", s.Name)
	}
	c.tools[s.Name] = t
	c.specs = append(c.specs, s)
	return nil
}

// sort brings the tools in a stable order: it keeps the beginning of all requests equal, which is what
// providers cache.
func (c *compiled) sort() {
	slices.SortFunc(c.specs, func(x, y ToolSpec) int { return strings.Compare(x.Name, y.Name) })
}

// equip returns the agent with the tools that its toolsets have now.
func (e *Engine) equip(c *compiled) *compiled {
	if len(c.Toolsets) == 0 {
		return c
	}
	full := &compiled{Agent: c.Agent, tools: maps.Clone(c.tools), specs: slices.Clone(c.specs)}
	for _, set := range c.Toolsets {
		for _, t := range set.Tools() {
			if len(full.specs) == MaxTools {
				e.log.Warn("too many tools, leaving out the rest", "agent", c.Name, "limit", MaxTools)
				break
			}
			if err := full.add(t); err != nil {
				e.log.Warn("leaving out a tool", "agent", c.Name, "err", err)
			}
		}
	}
	full.sort()
	return full
}

// Run answers one turn. It yields text and tool notices as they come and last a Final; or, last, an
// error, which is an *Error where the cause is known and ctx's error when ctx ended. It writes nothing.
// Stopping the iteration cancels what is under way and waits for it.
//
// A turn that names an agent that does not exist (any more) goes to the default agent.
func (e *Engine) Run(ctx context.Context, t Turn) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		r, err := e.newRun(t, func(ev Event) bool { return yield(ev, nil) })
		if err != nil {
			yield(Event{}, err)
			return
		}
		inner := ctx
		if t.Spent != nil {
			inner = context.WithValue(ctx, spenderKey{}, t.Spent)
		}
		final, err := r.loop(inner)
		switch {
		case errors.Is(err, errStopped):
		case ctx.Err() != nil && err != nil:
			yield(Event{}, context.Cause(ctx))
		case err != nil:
			yield(Event{}, fmt.Errorf("run agent %q: %w", r.agent.Name, err))
		default:
			yield(Event{Final: final}, nil)
		}
	}
}
