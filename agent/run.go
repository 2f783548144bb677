package agent

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"botd/sessionstore"
)

// errStopped ends a run whose consumer has stopped the iteration.
var errStopped = errors.New("iteration stopped")

// errNoText is the cause when a model gave neither text nor calls.
var errNoText = errors.New("the model answered without text")

// run is the state of one run.
type run struct {
	e     *Engine
	turn  Turn
	agent *compiled
	emit  func(Event) bool
	// history is what the session remembers beside summary, and fresh what this run adds to it; prelude is
	// added before.
	history, fresh, prelude []sessionstore.Item
	summary                 string
	instructions            string
	cacheKey                string
	safety                  string
	// usage is the sum over all requests, those of agents asked as tools included.
	usageMu sync.Mutex
	usage   Usage
	// model is the index of the model in use; a run never goes back to one that failed.
	model int
	// tried counts the calls of tools by name and arguments; effects tells that a tool has run.
	tried   map[string]int
	effects bool
	// handoffs counts the agents that have taken over.
	handoffs int
	// squeeze and noReasoning are what was done to make a provider take the conversation.
	squeeze     int
	noReasoning bool
}

func (e *Engine) newRun(t Turn, emit func(Event) bool) (*run, error) {
	a := e.equip(e.begin(t))
	input := inputItems(t)
	if len(input) == 0 {
		return nil, &Error{Kind: InvalidRequest, Err: errors.New("the turn holds no text")}
	}
	r := &run{
		e: e, turn: t, agent: a, emit: emit,
		fresh:        input,
		instructions: instructions(a, t),
		cacheKey:     e.opaque("session", string(t.Session)),
		safety:       e.safetyID(t),
		tried:        make(map[string]int),
	}
	r.summary, r.history = unfold(t.History)
	return r, nil
}

// toolMode says what a model may do with tools in one answer.
type toolMode uint8

const (
	// toolsFree lets the model call tools.
	toolsFree toolMode = iota
	// toolsForbidden shows the tools and forbids to call them, which keeps the provider's cache.
	toolsForbidden
	// toolsHidden shows none, for models that call although it is forbidden.
	toolsHidden
)

// loop calls the model and the tools until there is a text.
func (r *run) loop(ctx context.Context) (*Final, error) {
	if blocked, err := r.guardInput(ctx); blocked != nil || err != nil {
		return blocked, err
	}
	if r.e.opts.Compact {
		if err := r.compact(ctx); err != nil {
			return nil, err
		}
	}
	mode := toolsFree
	for n := 1; ; n++ {
		if n >= r.agent.MaxModelCalls && mode == toolsFree {
			mode = toolsForbidden
		}
		done, err := r.ask(ctx, mode)
		if err != nil {
			return nil, err
		}
		calls, items := r.calls(done.Items)
		if len(calls) > 0 && mode == toolsFree {
			stuck, err := r.callTools(ctx, calls, items)
			if err != nil {
				return nil, err
			}
			if stuck {
				mode = toolsForbidden
			}
			continue
		}
		text := answerText(items)
		if text == "" {
			if mode == toolsHidden {
				return nil, &Error{Kind: Transient, RequestID: done.RequestID, Err: errNoText}
			}
			mode = toolsHidden
			continue
		}
		if blocked, err := r.guardOutput(ctx, text); blocked != nil || err != nil {
			return blocked, err
		}
		r.keep(items)
		final := r.final(text)
		final.Truncated = done.Truncated
		return final, nil
	}
}

// final is the end of a run that succeeded.
func (r *run) final(text string) *Final {
	r.usageMu.Lock()
	defer r.usageMu.Unlock()
	return &Final{
		Text: text,
		// What is stored holds no call without its output, even of a model that called against the rule.
		Items: append(r.prelude, Repair(r.fresh, RepairOptions{})...),
		Agent: r.agent.Name,
		Usage: r.usage,
	}
}

func (r *run) spend(u Usage) {
	r.usageMu.Lock()
	defer r.usageMu.Unlock()
	r.usage = r.usage.Add(u)
}

// keep appends what the model made to what the session will remember.
func (r *run) keep(items []json.RawMessage) {
	r.add(origin(r.agent.Name, r.agent.Models[r.model]), items...)
}

func (r *run) add(origin string, items ...json.RawMessage) {
	for _, raw := range items {
		r.fresh = append(r.fresh, sessionstore.Item{Turn: r.turn.ID, Origin: origin, Raw: raw})
	}
}

// call is one tool call of an answer.
type call struct{ id, name, args string }

// calls finds the tool calls in an answer. A call whose ID is missing or was used before in this turn
// gets a new one, in the items returned: an output could not be told apart otherwise.
func (r *run) calls(items []json.RawMessage) ([]call, []json.RawMessage) {
	var calls []call
	var used map[string]bool
	for i, raw := range items {
		if peek(raw).typ != typeCall {
			continue
		}
		if used == nil {
			used = callIDs(r.fresh)
			items = slices.Clone(items)
		}
		v := gjson.GetManyBytes(raw, "call_id", "name", "arguments")
		id := uniqueID(v[0].Str, used)
		used[id] = true
		if id != v[0].Str {
			if changed, err := sjson.SetBytes(raw, "call_id", id); err == nil {
				items[i] = changed
			}
		}
		calls = append(calls, call{id: id, name: v[1].Str, args: v[2].Str})
	}
	return calls, items
}

// callTools runs the calls and keeps the answer with their outputs. It reports stuck when the model did
// nothing but repeat itself.
func (r *run) callTools(ctx context.Context, calls []call, items []json.RawMessage) (stuck bool, err error) {
	results, err := r.runTools(ctx, calls)
	if err != nil {
		return false, err
	}
	r.keep(items)
	outputs := make([]json.RawMessage, len(calls))
	stuck = true
	for i, c := range calls {
		outputs[i] = FunctionCallOutput(c.id, results[i].text)
		stuck = stuck && results[i].repeated
	}
	r.keep(outputs)
	if to := handedTo(results); to != "" {
		r.handOver(to)
		return false, nil
	}
	return stuck, nil
}
