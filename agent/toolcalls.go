package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	// maxSameCalls is how often one tool runs with the same arguments in one run.
	maxSameCalls = 2
	// toolGrace is how long a tool may take to return after its context has ended, before it is left
	// behind.
	toolGrace = 2 * time.Second
)

// toolOutcome is what the model is told about a call.
type toolOutcome struct {
	text     string
	failed   bool
	repeated bool
	// handoff names the agent that takes over.
	handoff string
}

// handedTo names the agent that takes over after the calls of an answer, "" when none does.
func handedTo(outcomes []toolOutcome) string {
	for _, o := range outcomes {
		if o.handoff != "" {
			return o.handoff
		}
	}
	return ""
}

// runTools runs the calls of one answer, several at once, and returns their outcomes in the order of the
// calls. Whatever goes wrong in a tool becomes an output; the error is errStopped or ctx's.
func (r *run) runTools(ctx context.Context, calls []call) ([]toolOutcome, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ctx = nest(withCaller(ctx, r.caller()), r.spend)
	plans := r.plans(calls)
	outcomes := make([]toolOutcome, len(calls))
	ended := make(chan int)
	next, running, stopped := 0, 0, false
	for next < len(calls) || running > 0 {
		for !stopped && ctx.Err() == nil && next < len(calls) && running < r.e.opts.ToolParallelism {
			i := next
			next++
			if !r.emit(Event{Tool: &ToolNotice{Name: calls[i].name, CallID: calls[i].id}}) {
				stopped = true
				cancel()
				break
			}
			running++
			go func() {
				seen := ToolCall{Turn: r.turn.ID, Agent: r.agent.Name, Tool: calls[i].name, Start: time.Now()}
				outcomes[i] = r.e.perform(ctx, plans[i])
				seen.Failed = outcomes[i].failed
				r.e.opts.Hooks.tool(seen)
				ended <- i
			}()
		}
		if running == 0 {
			break
		}
		i := <-ended
		running--
		if stopped || ctx.Err() != nil {
			continue
		}
		if !r.emit(Event{Tool: &ToolNotice{Name: calls[i].name, CallID: calls[i].id, Done: true, Failed: outcomes[i].failed}}) {
			stopped = true
			cancel()
		}
	}
	if stopped {
		return nil, errStopped
	}
	return outcomes, ctx.Err()
}

// plan is what to do about a call: run the tool, or answer without.
type plan struct {
	tool Tool
	name string
	args json.RawMessage
	// timeout ends the call; 0: only ctx does.
	timeout time.Duration
	// fixed is the outcome when tool is nil.
	fixed toolOutcome
}

// plans decides about all calls of an answer before any runs: equal calls side by side count too, and of
// several hand-offs the first is taken.
func (r *run) plans(calls []call) []plan {
	plans := make([]plan, len(calls))
	handed := false
	for i, c := range calls {
		p := r.plan(c)
		if h, ok := p.tool.(handoffTool); ok {
			p = r.planHandoff(p, h, handed)
			handed = handed || p.fixed.handoff != ""
		}
		plans[i] = p
	}
	return plans
}

func (r *run) planHandoff(p plan, h handoffTool, handed bool) plan {
	p.tool = nil
	switch {
	case handed:
		p.fixed = toolOutcome{text: secondHandoff}
	case r.handoffs >= maxHandoffs:
		p.fixed = toolOutcome{text: endedHandoffs, failed: true}
	default:
		p.fixed = toolOutcome{text: h.output(), handoff: h.to.Name}
	}
	return p
}

func (r *run) plan(c call) plan {
	args := bytes.TrimSpace([]byte(c.args))
	if len(args) == 0 {
		args = []byte("{}") // what many models write for a tool without parameters
	}
	refuse := func(format string, a ...any) plan {
		return plan{name: c.name, fixed: toolOutcome{text: "error: " + fmt.Sprintf(format, a...), failed: true}}
	}
	tool := r.agent.tools[c.name]
	key := c.name + "\x00" + compact(args)
	r.tried[key]++
	switch {
	case r.tried[key] > maxSameCalls:
		p := refuse("this call was made before with the same arguments; use the output that it gave")
		p.fixed.repeated = true
		return p
	case tool == nil:
		return refuse("there is no tool named %q; the tools are: %s", c.name, r.agent.toolNames())
	case args[0] != '{' || !json.Valid(args):
		return refuse("the arguments are not a JSON object; write them again")
	}
	p := plan{tool: tool, name: c.name, args: args, timeout: r.e.opts.ToolTimeout}
	switch tool.(type) {
	case handoffTool:
	case askTool:
		p.timeout = 0 // each of its steps has its own
		r.effects = true
	default:
		r.effects = true
	}
	return p
}

func (c *compiled) toolNames() string {
	if len(c.specs) == 0 {
		return "none"
	}
	names := make([]string, len(c.specs))
	for i, s := range c.specs {
		names[i] = s.Name
	}
	return strings.Join(names, ", ")
}

func compact(args []byte) string {
	var b bytes.Buffer
	if json.Compact(&b, args) != nil {
		return string(args)
	}
	return b.String()
}

// perform runs one planned call within its time.
func (e *Engine) perform(ctx context.Context, p plan) toolOutcome {
	if p.tool == nil {
		return p.fixed
	}
	tctx := ctx
	if p.timeout > 0 {
		var cancel context.CancelFunc
		tctx, cancel = context.WithTimeout(ctx, p.timeout)
		defer cancel()
	}
	ended := make(chan toolOutcome, 1)
	go func() { ended <- e.callTool(tctx, p) }()
	select {
	case o := <-ended:
		return o
	case <-tctx.Done():
	}
	grace := time.NewTimer(toolGrace)
	defer grace.Stop()
	select {
	case o := <-ended:
		return o
	case <-grace.C:
		e.log.Error("tool does not return after its context has ended, leaving it behind", "tool", p.name)
		return e.timedOut()
	}
}

func (e *Engine) timedOut() toolOutcome {
	return toolOutcome{text: fmt.Sprintf("error: the tool did not answer within %s", e.opts.ToolTimeout), failed: true}
}

func (e *Engine) callTool(ctx context.Context, p plan) (o toolOutcome) {
	defer func() {
		if v := recover(); v != nil {
			e.log.Error("tool panicked", "tool", p.name, "panic", panicText(v), "stack", string(debug.Stack()))
			o = toolOutcome{text: "error: the tool failed", failed: true}
		}
	}()
	res, err := p.tool.Call(ctx, slices.Clone(p.args))
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return e.timedOut()
	}
	if err != nil {
		return toolOutcome{text: capText("error: "+err.Error(), e.opts.ToolOutputLimit), failed: true}
	}
	return toolOutcome{text: capText(res.Text, e.opts.ToolOutputLimit)}
}

// panicText tells a panic without the value, which may hold what people wrote, unless the runtime made it.
func panicText(v any) string {
	if err, ok := v.(runtime.Error); ok {
		return err.Error()
	}
	return fmt.Sprintf("%T", v)
}

// capText keeps the head and the tail of a text longer than limit characters and says how much is
// missing between. Invalid UTF-8 is replaced.
func capText(s string, limit int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= limit {
		return s
	}
	n := utf8.RuneCountInString(s)
	if n <= limit {
		return s
	}
	tail := limit / 4
	head := limit - tail
	return s[:runeOffset(s, head)] + fmt.Sprintf("\n[… %d characters left out …]\n", n-limit) + s[runeOffset(s, n-tail):]
}

// runeOffset is the index of the nth character of s.
func runeOffset(s string, n int) int {
	for i := range s {
		if n == 0 {
			return i
		}
		n--
	}
	return len(s)
}
