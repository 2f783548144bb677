package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"botd/agent"
	"botd/agent/agenttest"
	"botd/sessionstore"
)

// engine returns an engine with one agent over the models, in the order given.
func engine(t *testing.T, o agent.Options, a agent.Agent, models ...agent.Model) *agent.Engine {
	t.Helper()
	if a.Name == "" {
		a.Name = "concierge"
	}
	for i, m := range models {
		a.Models = append(a.Models, agent.ModelRef{Model: m, Name: fmt.Sprintf("m%d", i+1), Provider: fmt.Sprintf("p%d", i+1)})
	}
	o.Agents = append(o.Agents, a)
	e, err := agent.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func say(text string) agent.Turn {
	return agent.Turn{ID: "t1", Session: "s", Input: []agent.Message{{
		Speaker: agent.Speaker{ID: "U1", Name: "Ann"}, Parts: []agent.Part{{Text: text}},
	}}}
}

// result is what a run gave.
type result struct {
	text  string
	tools []agent.ToolNotice
	final *agent.Final
	err   error
}

func collect(ctx context.Context, e *agent.Engine, turn agent.Turn) (r result) {
	for ev, err := range e.Run(ctx, turn) {
		switch {
		case err != nil:
			r.err = err
		case ev.Tool != nil:
			r.tools = append(r.tools, *ev.Tool)
		case ev.Final != nil:
			r.final = ev.Final
		default:
			r.text += ev.Delta
		}
	}
	return r
}

// must runs a turn that has to succeed.
func must(t *testing.T, e *agent.Engine, turn agent.Turn) result {
	t.Helper()
	r := collect(t.Context(), e, turn)
	if r.err != nil {
		t.Fatalf("run: %v", r.err)
	}
	if r.final == nil {
		t.Fatal("run ended without a final event")
	}
	return r
}

// kinds describes items in short.
func kinds(items []sessionstore.Item) string {
	var b []string
	for _, it := range items {
		b = append(b, kind(it.Raw))
	}
	return strings.Join(b, " ")
}

func kind(raw json.RawMessage) string {
	var v struct {
		Type, Role string
		CallID     string `json:"call_id"`
	}
	if err := json.Unmarshal(raw, &v); err != nil {
		return err.Error()
	}
	switch v.Type {
	case "function_call":
		return "call:" + v.CallID
	case "function_call_output":
		return "out:" + v.CallID
	case "", "message":
		return v.Role
	}
	return v.Type
}

func inputKinds(req *agent.Request) string {
	var b []string
	for _, raw := range req.Input {
		b = append(b, kind(raw))
	}
	return strings.Join(b, " ")
}

func history(raws ...json.RawMessage) []sessionstore.Item {
	var items []sessionstore.Item
	for i, raw := range raws {
		items = append(items, sessionstore.Item{Seq: uint64(i), Raw: raw})
	}
	return items
}

func TestRunAnswersAndRemembers(t *testing.T) {
	t.Parallel()
	m := agenttest.NewModel(agenttest.Say("Hello, Ann!"))
	e := engine(t, agent.Options{}, agent.Agent{Instructions: "Be kind."}, m)
	turn := say("hi, I am Ann")
	turn.History = history(agent.UserMessage("before"), agent.AssistantMessage("yes?"))
	r := must(t, e, turn)
	if r.text != "Hello, Ann!" || r.final.Text != "Hello, Ann!" {
		t.Errorf("streamed %q, final %q", r.text, r.final.Text)
	}
	if got := kinds(r.final.Items); got != "user assistant" {
		t.Errorf("items to remember: %s", got)
	}
	if got := string(r.final.Items[0].Raw); got != `{"role":"user","content":"hi, I am Ann"}` {
		t.Errorf("a direct message is stored as %s", got)
	}
	if got := r.final.Items[1].Origin; got != "concierge@p1/m1" {
		t.Errorf("origin of the answer: %q", got)
	}
	req := m.Requests()[0]
	if got := inputKinds(req); got != "user assistant user" {
		t.Errorf("model was shown: %s", got)
	}
	if req.Instructions != "Be kind." || req.Model != "m1" || req.CacheKey == "" || strings.Contains(req.Safety, "U1") || req.Safety == "" {
		t.Errorf("request: %+v", req)
	}
	want := agent.Usage{Requests: 1, InputTokens: 10, OutputTokens: 5}
	if diff := cmp.Diff(want, r.final.Usage); diff != "" {
		t.Errorf("usage (-want +got):\n%s", diff)
	}
}

func TestRunCallsTools(t *testing.T) {
	t.Parallel()
	m := agenttest.NewModel(
		agenttest.Step{Text: "Let me look. ", Calls: []agenttest.Call{{ID: "a", Name: "echo", Args: `{"n":1}`}, {ID: "b", Name: "echo", Args: `{"n":2}`}}},
		agenttest.Use("a", "echo", ""),
		agenttest.Say("Done."),
	)
	echo := agenttest.Echo("echo")
	e := engine(t, agent.Options{}, agent.Agent{Tools: []agent.Tool{echo}}, m)
	r := must(t, e, say("go"))
	// The ID "a" came twice in one turn: the second call has one of its own.
	if got, want := kinds(r.final.Items), "user assistant call:a call:b out:a out:b call:a_2 out:a_2 assistant"; got != want {
		t.Errorf("items to remember:\n got %s\nwant %s", got, want)
	}
	if r.final.Text != "Done." || r.text != "Let me look. Done." {
		t.Errorf("final %q, streamed %q", r.final.Text, r.text)
	}
	if got := inputKinds(m.Requests()[1]); got != "user assistant call:a call:b out:a out:b" {
		t.Errorf("second request was shown: %s", got)
	}
	if got := string(r.final.Items[4].Raw); got != `{"type":"function_call_output","call_id":"a","output":"{\"n\":1}"}` {
		t.Errorf("output item: %s", got)
	}
	if len(r.tools) != 6 || r.tools[0].Done || !r.tools[5].Done || r.tools[5].CallID != "a_2" {
		t.Errorf("notices: %+v", r.tools)
	}
}

// What a tool or the model does wrong is told to the model; the run goes on.
func TestToolFailuresBecomeOutputs(t *testing.T) {
	t.Parallel()
	tools := []agent.Tool{
		agenttest.NewTool("err", func(context.Context, json.RawMessage) (string, error) { return "", errors.New("no such order") }),
		agenttest.NewTool("panics", func(context.Context, json.RawMessage) (string, error) { panic("secret") }),
		agenttest.NewTool("slow", func(ctx context.Context, _ json.RawMessage) (string, error) {
			<-ctx.Done()
			return "", ctx.Err()
		}),
		agenttest.NewTool("deaf", func(context.Context, json.RawMessage) (string, error) {
			time.Sleep(time.Hour)
			return "too late", nil
		}),
		agenttest.NewTool("long", func(context.Context, json.RawMessage) (string, error) {
			return strings.Repeat("é", 50) + strings.Repeat("x", 100) + strings.Repeat("ü", 50), nil
		}),
		agenttest.NewTool("broken", func(context.Context, json.RawMessage) (string, error) { return "a\xffb", nil }),
	}
	tests := map[string]struct{ tool, args, want string }{
		"an error":             {"err", `{}`, "error: no such order"},
		"a panic":              {"panics", `{}`, "error: the tool failed"},
		"a timeout":            {"slow", `{}`, "error: the tool did not answer within 30s"},
		"a tool deaf to ctx":   {"deaf", `{}`, "error: the tool did not answer within 30s"},
		"arguments cut off":    {"err", `{"a":`, "error: the arguments are not a JSON object; write them again"},
		"arguments not object": {"err", `[1]`, "error: the arguments are not a JSON object; write them again"},
		"an unknown name":      {"nope", `{}`, `error: there is no tool named "nope"; the tools are: broken, deaf, err, long, panics, slow`},
		"an empty name":        {"", `{}`, `error: there is no tool named ""; the tools are: broken, deaf, err, long, panics, slow`},
		"too much":             {"long", `{}`, strings.Repeat("é", 50) + strings.Repeat("x", 25) + "\n[… 100 characters left out …]\n" + strings.Repeat("ü", 25)},
		"invalid UTF-8":        {"broken", `{}`, "a\uFFFDb"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := agenttest.NewModel(agenttest.Use("c1", tt.tool, tt.args), agenttest.Say("Sorry."))
				e := engine(t, agent.Options{ToolOutputLimit: 100}, agent.Agent{Tools: tools}, m)
				r := must(t, e, say("go"))
				var got struct{ Output string }
				second := m.Requests()[1].Input
				if tt.tool == "" {
					// A call without a name cannot be replayed: the pair is left out.
					if k := inputKinds(m.Requests()[1]); k != "user" {
						t.Errorf("shown after a nameless call: %s", k)
					}
					return
				}
				if err := json.Unmarshal(second[len(second)-1], &got); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tt.want, got.Output); diff != "" {
					t.Errorf("output (-want +got):\n%s", diff)
				}
				failed := r.tools[1].Failed
				if want := strings.HasPrefix(tt.want, "error"); failed != want {
					t.Errorf("notice says failed %v, want %v", failed, want)
				}
				time.Sleep(2 * time.Hour) // the deaf tool ends; the bubble would tell of one that did not
			})
		})
	}
}

func TestToolsRunSideBySideWithinBounds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var now, most atomic.Int32
		tool := agenttest.NewTool("w", func(ctx context.Context, _ json.RawMessage) (string, error) {
			most.Store(max(most.Load(), now.Add(1)))
			defer now.Add(-1)
			time.Sleep(time.Second)
			return "ok", nil
		})
		var calls []agenttest.Call
		for i := range 9 {
			calls = append(calls, agenttest.Call{ID: fmt.Sprint("c", i), Name: "w", Args: fmt.Sprintf(`{"i":%d}`, i)})
		}
		m := agenttest.NewModel(agenttest.Step{Calls: calls}, agenttest.Say("ok"))
		e := engine(t, agent.Options{ToolParallelism: 3}, agent.Agent{Tools: []agent.Tool{tool}}, m)
		start := time.Now()
		must(t, e, say("go"))
		if d := time.Since(start); d != 3*time.Second || most.Load() != 3 {
			t.Errorf("9 calls of a second, 3 at once: took %v with %d at once", d, most.Load())
		}
	})
}

// However a model goes on calling, there is an answer in words.
func TestThereIsAlwaysAnAnswer(t *testing.T) {
	t.Parallel()
	n := 0
	different := func(int, *agent.Request) agenttest.Step {
		n++
		return agenttest.Use(fmt.Sprint("c", n), "echo", fmt.Sprintf(`{"n":%d}`, n))
	}
	obeys := func(call func(int, *agent.Request) agenttest.Step, when func(*agent.Request) bool) *agenttest.Model {
		return agenttest.ModelFunc(func(n int, req *agent.Request) agenttest.Step {
			if when(req) {
				return agenttest.Say("That is all I found.")
			}
			return call(n, req)
		})
	}
	same := func(n int, _ *agent.Request) agenttest.Step {
		return agenttest.Use(fmt.Sprint("c", n), "echo", `{ "q": 1 }`)
	}
	tests := map[string]struct {
		model         *agenttest.Model
		requests      int
		ran           int
		lastToolsSeen bool
	}{
		"it obeys the last call without tools": {obeys(different, func(r *agent.Request) bool { return r.NoTools }), 4, 3, true},
		"it calls until it sees no tools":      {obeys(different, func(r *agent.Request) bool { return len(r.Tools) == 0 }), 5, 3, false},
		"it repeats itself":                    {obeys(same, func(r *agent.Request) bool { return r.NoTools }), 4, 2, true},
		"it says nothing at first":             {obeys(func(int, *agent.Request) agenttest.Step { return agenttest.Step{} }, func(r *agent.Request) bool { return len(r.Tools) == 0 }), 2, 0, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			echo := agenttest.Echo("echo")
			e := engine(t, agent.Options{}, agent.Agent{Tools: []agent.Tool{echo}, MaxModelCalls: 4}, tt.model)
			r := must(t, e, say("go"))
			if r.final.Text != "That is all I found." {
				t.Errorf("answer %q", r.final.Text)
			}
			reqs := tt.model.Requests()
			if len(reqs) != tt.requests || len(echo.Calls()) != tt.ran {
				t.Errorf("%d requests, tool ran %d times; want %d, %d", len(reqs), len(echo.Calls()), tt.requests, tt.ran)
			}
			if seen := len(reqs[len(reqs)-1].Tools) > 0; seen != tt.lastToolsSeen {
				t.Errorf("tools shown in the last request: %v", seen)
			}
			checkPaired(t, r.final.Items)
		})
	}
}

// checkPaired fails unless every call has its output and every output its call.
func checkPaired(t *testing.T, items []sessionstore.Item) {
	t.Helper()
	open := map[string]bool{}
	for _, it := range items {
		k := kind(it.Raw)
		if id, ok := strings.CutPrefix(k, "call:"); ok {
			open[id] = true
		}
		if id, ok := strings.CutPrefix(k, "out:"); ok {
			if !open[id] {
				t.Errorf("output of %s without a call", id)
			}
			delete(open, id)
		}
	}
	if len(open) > 0 {
		t.Errorf("calls without output: %v", open)
	}
}

// A model that both answers and calls a tool although it must not has answered; the call is forgotten.
func TestForbiddenCallsBesideAnAnswerAreForgotten(t *testing.T) {
	t.Parallel()
	m := agenttest.ModelFunc(func(int, *agent.Request) agenttest.Step {
		return agenttest.Step{Text: "There.", Calls: []agenttest.Call{{ID: "c", Name: "echo", Args: "{}"}}}
	})
	echo := agenttest.Echo("echo")
	r := must(t, engine(t, agent.Options{}, agent.Agent{Tools: []agent.Tool{echo}, MaxModelCalls: 1}, m), say("go"))
	if got := kinds(r.final.Items); got != "user assistant" || r.final.Text != "There." || len(echo.Calls()) != 0 {
		t.Errorf("answer %q, remembered %s, tool ran %d times", r.final.Text, got, len(echo.Calls()))
	}
}

func TestModelThatNeverSpeaksFailsTheRun(t *testing.T) {
	t.Parallel()
	m := agenttest.ModelFunc(func(int, *agent.Request) agenttest.Step { return agenttest.Step{} })
	r := collect(t.Context(), engine(t, agent.Options{}, agent.Agent{}, m), say("hi"))
	if e, ok := errors.AsType[*agent.Error](r.err); !ok || e.Kind != agent.Transient || r.final != nil {
		t.Errorf("got %v, final %v", r.err, r.final)
	}
	if n := len(m.Requests()); n != 2 {
		t.Errorf("%d requests, want 2", n)
	}
}

func TestFallback(t *testing.T) {
	t.Parallel()
	fail := agenttest.Fail
	spoken := agenttest.Step{Text: "I thi", Err: &agent.Error{Kind: agent.Transient, Err: errors.New("cut")}}
	tests := map[string]struct {
		first []agenttest.Step
		want  string // text, or the kind of the error
		calls int    // requests to the second model
	}{
		"transient":               {[]agenttest.Step{fail(agent.Transient)}, "second", 1},
		"rate limited":            {[]agenttest.Step{fail(agent.RateLimited)}, "second", 1},
		"out of credit":           {[]agenttest.Step{fail(agent.QuotaExhausted)}, "second", 1},
		"a stream without an end": {[]agenttest.Step{{Cut: true}}, "second", 1},
		"too long at any length":  {[]agenttest.Step{fail(agent.ContextOverflow), fail(agent.ContextOverflow), fail(agent.ContextOverflow)}, "second", 1},
		"refused reasoning twice": {[]agenttest.Step{fail(agent.BadReasoning), fail(agent.BadReasoning)}, "bad reasoning", 0},
		"key refused":             {[]agenttest.Step{fail(agent.Unauthorized)}, "unauthorized", 0},
		"request refused":         {[]agenttest.Step{fail(agent.InvalidRequest)}, "invalid request", 0},
		"unknown model":           {[]agenttest.Step{fail(agent.ModelNotFound)}, "model not found", 0},
		"content refused":         {[]agenttest.Step{fail(agent.Filtered)}, "filtered", 0},
		"after visible text":      {[]agenttest.Step{spoken}, "transient", 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			second := agenttest.NewModel(agenttest.Say("second"))
			e := engine(t, agent.Options{}, agent.Agent{}, agenttest.NewModel(tt.first...), second)
			r := collect(t.Context(), e, say("hi"))
			got := ""
			if err, ok := errors.AsType[*agent.Error](r.err); ok {
				got = err.Kind.String()
			} else if r.final != nil {
				got = r.final.Text
				if o := r.final.Items[1].Origin; o != "concierge@p2/m2" {
					t.Errorf("origin %q", o)
				}
			}
			if got != tt.want || len(second.Requests()) != tt.calls {
				t.Errorf("got %q (%v) with %d calls of the second model; want %q, %d", got, r.err, len(second.Requests()), tt.want, tt.calls)
			}
		})
	}
}

// To fail after a tool has run would run it again with the turn: the chain is tried once more.
func TestAfterToolsTheChainIsTriedTwice(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := agenttest.NewModel(agenttest.Use("c", "pay", "{}"), agenttest.Fail(agent.Transient), agenttest.Say("Paid."))
		pay := agenttest.Echo("pay")
		e := engine(t, agent.Options{}, agent.Agent{Tools: []agent.Tool{pay}}, m)
		r := must(t, e, say("pay"))
		if r.final.Text != "Paid." || len(pay.Calls()) != 1 {
			t.Errorf("answer %q, paid %d times", r.final.Text, len(pay.Calls()))
		}
	})
}

func TestFallbackErrorIsTheOneWorthWaitingFor(t *testing.T) {
	t.Parallel()
	limited := &agent.Error{Kind: agent.RateLimited, RetryAfter: time.Minute, Err: errors.New("slow down")}
	e := engine(t, agent.Options{}, agent.Agent{}, agenttest.NewModel(agenttest.Step{Err: limited}), agenttest.NewModel(agenttest.Fail(agent.QuotaExhausted)))
	r := collect(t.Context(), e, say("hi"))
	if got, _ := errors.AsType[*agent.Error](r.err); got != limited {
		t.Errorf("got %v", r.err)
	}
}

func TestRefusedReasoningIsLeftOut(t *testing.T) {
	t.Parallel()
	m := agenttest.NewModel(agenttest.Fail(agent.BadReasoning), agenttest.Say("ok"))
	turn := say("hi")
	turn.History = history(
		agent.UserMessage("q"),
		json.RawMessage(`{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"x"}`),
		json.RawMessage(`{"type":"message","id":"msg_1","role":"assistant","content":[{"type":"output_text","text":"a"}]}`),
	)
	must(t, engine(t, agent.Options{}, agent.Agent{}, m), turn)
	if got := inputKinds(m.Requests()[0]); got != "user reasoning assistant user" {
		t.Errorf("first request: %s", got)
	}
	second := m.Requests()[1]
	if got := inputKinds(second); got != "user assistant user" || strings.Contains(string(second.Input[1]), "msg_1") {
		t.Errorf("second request: %s, %s", got, second.Input[1])
	}
}

func TestReasoningOfAnotherProviderIsLeftOut(t *testing.T) {
	t.Parallel()
	m := agenttest.NewModel(agenttest.Say("ok"))
	turn := say("hi")
	turn.History = history(
		agent.UserMessage("q"),
		json.RawMessage(`{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"x"}`),
		json.RawMessage(`{"type":"message","id":"msg_1","role":"assistant","content":[{"type":"output_text","text":"a"}]}`),
	)
	for i := range turn.History[1:] {
		turn.History[i+1].Origin = "concierge@elsewhere/gpt-5.2"
	}
	must(t, engine(t, agent.Options{}, agent.Agent{}, m), turn)
	req := m.Requests()[0]
	if got := inputKinds(req); got != "user assistant user" || strings.Contains(string(req.Input[1]), "msg_1") {
		t.Errorf("shown: %s, %s", got, req.Input[1])
	}
}

func TestOverflowShowsLess(t *testing.T) {
	t.Parallel()
	var past []json.RawMessage
	for i := range 20 {
		past = append(past, agent.UserMessage(fmt.Sprint("question ", i)), agent.AssistantMessage("answer"))
	}
	m := agenttest.NewModel(agenttest.Fail(agent.ContextOverflow), agenttest.Fail(agent.ContextOverflow), agenttest.Say("ok"))
	turn := say("hi")
	turn.History = history(past...)
	must(t, engine(t, agent.Options{}, agent.Agent{}, m), turn)
	var lens []int
	for _, req := range m.Requests() {
		lens = append(lens, len(req.Input))
	}
	if lens[0] != 41 || lens[1] >= 25 || lens[1] <= 1 || lens[2] != 1 {
		t.Errorf("items shown: %v", lens)
	}
}

func TestBudgetLeavesOutWholeTurns(t *testing.T) {
	t.Parallel()
	past := []json.RawMessage{
		agent.UserMessage("one"), agent.FunctionCall("c1", "f", "{}"), agent.FunctionCallOutput("c1", "x"), agent.AssistantMessage("1"),
		agent.UserMessage("two"), agent.UserMessage("two, also"), agent.FunctionCall("c2", "f", "{}"), agent.FunctionCallOutput("c2", "x"), agent.AssistantMessage("2"),
		agent.UserMessage("three"), agent.AssistantMessage("3"),
	}
	tests := map[string]struct {
		budget agent.Budget
		want   int
	}{
		"all fits":               {agent.Budget{}, 11},
		"exactly two turns":      {agent.Budget{MaxItems: 7}, 7},
		"within the second turn": {agent.Budget{MaxItems: 6}, 2},
		"less than any turn":     {agent.Budget{MaxItems: 1}, 0},
		"few tokens":             {agent.Budget{MaxTokens: 80}, 2},
		"hardly any tokens":      {agent.Budget{MaxTokens: 1}, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := agenttest.NewModel(agenttest.Say("ok"))
			turn := say("four")
			turn.History = history(past...)
			must(t, engine(t, agent.Options{Budget: tt.budget}, agent.Agent{}, m), turn)
			if got := len(m.Requests()[0].Input) - 1; got != tt.want {
				t.Errorf("%d items of the history shown, want %d", got, tt.want)
			}
		})
	}
}

// Wherever a run is cancelled, it ends with ctx's error, at once, and leaves nothing.
func TestCancelLeavesNothing(t *testing.T) {
	t.Parallel()
	hang := agenttest.NewTool("hang", func(ctx context.Context, _ json.RawMessage) (string, error) {
		<-ctx.Done()
		return "half", nil
	})
	tests := map[string][]agenttest.Step{
		"before the answer": {{Delay: time.Hour, Text: "never"}},
		"amid the answer":   {{Text: "I am ", Hang: true}},
		"amid a tool":       {agenttest.Use("c", "hang", "{}")},
	}
	for name, steps := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				second := agenttest.NewModel()
				e := engine(t, agent.Options{}, agent.Agent{Tools: []agent.Tool{hang}}, agenttest.NewModel(steps...), second)
				stop := errors.New("stopped by the user")
				ctx, cancel := context.WithCancelCause(t.Context())
				time.AfterFunc(time.Second, func() { cancel(stop) })
				start := time.Now()
				r := collect(ctx, e, say("go"))
				if !errors.Is(r.err, stop) || r.final != nil || time.Since(start) != time.Second {
					t.Errorf("after %v: %v, final %v", time.Since(start), r.err, r.final)
				}
				if n := len(second.Requests()); n != 0 {
					t.Errorf("a cancelled run fell over %d times", n)
				}
			})
		})
	}
}

// A consumer that stops listening ends everything that is under way.
func TestStoppingTheIterationWaitsForTools(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]int{"at a start": 2, "at an end": 3} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ended := false
				quick := agenttest.Echo("quick")
				slow := agenttest.NewTool("slow", func(ctx context.Context, _ json.RawMessage) (string, error) {
					<-ctx.Done()
					ended = true
					return "", ctx.Err()
				})
				m := agenttest.NewModel(agenttest.Step{Calls: []agenttest.Call{{ID: "a", Name: "slow"}, {ID: "b", Name: "quick"}}})
				e := engine(t, agent.Options{}, agent.Agent{Tools: []agent.Tool{slow, quick}}, m)
				start := time.Now()
				n := 0
				for range e.Run(t.Context(), say("go")) {
					if n++; n == at {
						break
					}
				}
				if !ended || time.Since(start) != 0 {
					t.Errorf("ended %v after %v", ended, time.Since(start))
				}
			})
		})
	}
}

func TestToolsKnowOnWhoseBehalfTheyRun(t *testing.T) {
	t.Parallel()
	var got agent.Caller
	tool := agenttest.NewTool("who", func(ctx context.Context, _ json.RawMessage) (string, error) {
		got, _ = agent.CallerFrom(ctx)
		return "ok", nil
	})
	m := agenttest.NewModel(agenttest.Use("c", "who", `{"user":"the boss"}`), agenttest.Say("ok"))
	turn := say("who am I?")
	turn.Place = "line"
	must(t, engine(t, agent.Options{}, agent.Agent{Tools: []agent.Tool{tool}}, m), turn)
	want := agent.Caller{Turn: "t1", Session: "s", Agent: "concierge", Place: "line", Speaker: agent.Speaker{ID: "U1", Name: "Ann"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("caller (-want +got):\n%s", diff)
	}
	if _, ok := agent.CallerFrom(t.Context()); ok {
		t.Error("there is a caller outside of a call")
	}
}

func TestTurnWithoutTextIsRefused(t *testing.T) {
	t.Parallel()
	e := engine(t, agent.Options{}, agent.Agent{}, agenttest.NewModel())
	r := collect(t.Context(), e, say(" \n"))
	if got, ok := errors.AsType[*agent.Error](r.err); !ok || got.Kind != agent.InvalidRequest {
		t.Errorf("got %v", r.err)
	}
}

func TestUnknownAgentGoesToTheDefault(t *testing.T) {
	t.Parallel()
	turn := say("hi")
	turn.Agent = "gone"
	r := must(t, engine(t, agent.Options{}, agent.Agent{}, agenttest.NewModel(agenttest.Say("hello"))), turn)
	if r.final.Agent != "concierge" {
		t.Errorf("answered by %q", r.final.Agent)
	}
}

func TestFinalAnswerLeavesCommentaryOut(t *testing.T) {
	t.Parallel()
	m := agenttest.NewModel(agenttest.Step{Items: []json.RawMessage{
		json.RawMessage(`{"type":"message","role":"assistant","phase":"commentary","content":[{"type":"output_text","text":"thinking aloud"}]}`),
		json.RawMessage(`{"type":"message","role":"assistant","phase":"final_answer","content":[{"type":"output_text","text":"42"}]}`),
	}, Truncated: true})
	r := must(t, engine(t, agent.Options{}, agent.Agent{}, m), say("?"))
	if r.final.Text != "42" || len(r.final.Items) != 3 || !r.final.Truncated {
		t.Errorf("final: %+v", r.final)
	}
}

func TestNewNamesEveryMistake(t *testing.T) {
	t.Parallel()
	bad := agenttest.Echo("has space")
	_, err := agent.New(agent.Options{Agents: []agent.Agent{
		{Name: "a b", Tools: []agent.Tool{bad}, Models: []agent.ModelRef{{Name: "m"}}},
		{Name: "c"},
	}})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{`agent "a b": a name is`, `tool "has space"`, "model 0 has no name or no driver", `agent "c": no model`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error does not say %q:\n%v", want, err)
		}
	}
	ok := agent.Agent{Name: "a", Models: []agent.ModelRef{{Model: agenttest.NewModel(), Name: "m"}}}
	for name, o := range map[string]agent.Options{
		"no agents":       {},
		"twice":           {Agents: []agent.Agent{ok, ok}},
		"unknown default": {Agents: []agent.Agent{ok}, Default: "b"},
	} {
		if _, err := agent.New(o); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
