package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"botd/agent"
	"botd/agent/agenttest"
)

// team returns an engine with the agents, each over its model, the first of them the default.
func team(t *testing.T, o agent.Options, agents ...agent.Agent) *agent.Engine {
	t.Helper()
	o.Agents = agents
	e, err := agent.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func over(m agent.Model, provider string) []agent.ModelRef {
	return []agent.ModelRef{{Model: m, Name: "m", Provider: provider}}
}

func TestHandoff(t *testing.T) {
	t.Parallel()
	tool := agenttest.Echo("look")
	front := agenttest.NewModel(agenttest.Step{Calls: []agenttest.Call{
		{ID: "a", Name: "look", Args: `{}`}, {ID: "b", Name: "transfer_to_billing", Args: `{}`}, {ID: "c", Name: "transfer_to_front2", Args: `{}`},
	}})
	back := agenttest.NewModel(agenttest.Say("Here is your bill."))
	var handed []string
	e := team(t, agent.Options{Hooks: agent.Hooks{Handoff: func(turn, from, to string) { handed = append(handed, turn+":"+from+">"+to) }}},
		agent.Agent{Name: "front", Instructions: "front desk", Models: over(front, "p1"), Tools: []agent.Tool{tool}, Handoffs: []string{"billing", "front2"}},
		agent.Agent{Name: "billing", Instructions: "billing desk", Description: "Knows all bills.", Models: over(back, "p2")},
		agent.Agent{Name: "front2", Models: over(agenttest.NewModel(), "p1")},
	)
	r := must(t, e, say("my bill?"))
	if r.final.Text != "Here is your bill." || r.final.Agent != "billing" || len(tool.Calls()) != 1 {
		t.Errorf("answer %q by %q, tool ran %d times", r.final.Text, r.final.Agent, len(tool.Calls()))
	}
	if got, want := kinds(r.final.Items), "user call:a call:b call:c out:a out:b out:c assistant"; got != want {
		t.Errorf("items %s, want %s", got, want)
	}
	if got := string(r.final.Items[5].Raw); !strings.Contains(got, `{\"assistant\":\"billing\"}`) {
		t.Errorf("output of the hand-off: %s", got)
	}
	if got := string(r.final.Items[6].Raw); !strings.Contains(got, "Multiple handoffs detected, ignoring this one.") {
		t.Errorf("output of the second hand-off: %s", got)
	}
	req := back.Requests()[0]
	if req.Instructions != "billing desk" || len(req.Tools) != 0 || inputKinds(req) != "user call:a call:b call:c out:a out:b out:c" {
		t.Errorf("the other agent was asked: %+v", req)
	}
	if o := r.final.Items[7].Origin; o != "billing@p2/m" {
		t.Errorf("origin %q", o)
	}
	var offered string
	for _, s := range front.Requests()[0].Tools {
		if s.Name == "transfer_to_billing" {
			offered = s.Description
		}
	}
	if offered != "Handoff to the billing agent to handle the request. Knows all bills." {
		t.Errorf("hand-off offered as %q", offered)
	}
	if diff := cmp.Diff([]string{"t1:front>billing"}, handed); diff != "" {
		t.Errorf("hook (-want +got):\n%s", diff)
	}
}

// A conversation that was handed over stays there, as far as the agent of the channel hands over at all.
func TestHandedOverConversationsStay(t *testing.T) {
	t.Parallel()
	models := map[string]*agenttest.Model{}
	var agents []agent.Agent
	for name, to := range map[string][]string{"front": {"billing"}, "billing": {"refunds"}, "refunds": nil, "stranger": nil} {
		models[name] = agenttest.ModelFunc(func(int, *agent.Request) agenttest.Step { return agenttest.Say(name) })
		agents = append(agents, agent.Agent{Name: name, Models: over(models[name], "p"), Handoffs: to})
	}
	e := team(t, agent.Options{Default: "front"}, agents...)
	for want, turn := range map[string]struct{ agent, last string }{
		"front":    {"front", ""},
		"billing":  {"front", "billing"},
		"refunds":  {"front", "refunds"},
		"stranger": {"stranger", "refunds"},
	} {
		t1 := say("hi")
		t1.Agent = turn.agent
		t1.History = history(agent.UserMessage("q"), agent.AssistantMessage("a"), agent.UserMessage("unanswered"))
		if turn.last != "" {
			t1.History[1].Origin = turn.last + "@p/m"
		}
		if r := must(t, e, t1); r.final.Text != want || r.final.Agent != want {
			t.Errorf("after %q a turn for %q was answered by %q, want %q", turn.last, turn.agent, r.final.Agent, want)
		}
	}
}

// Agents that hand a question to and fro must answer in the end.
func TestHandoffPingPongEnds(t *testing.T) {
	t.Parallel()
	pass := func(to string) *agenttest.Model {
		return agenttest.ModelFunc(func(n int, req *agent.Request) agenttest.Step {
			if req.NoTools {
				return agenttest.Say("I answer, then.")
			}
			return agenttest.Use("c", "transfer_to_"+to, "{}")
		})
	}
	a, b := pass("b"), pass("a")
	e := team(t, agent.Options{},
		agent.Agent{Name: "a", Models: over(a, "p"), Handoffs: []string{"b"}, MaxModelCalls: 50},
		agent.Agent{Name: "b", Models: over(b, "p"), Handoffs: []string{"a"}, MaxModelCalls: 50})
	r := must(t, e, say("hi"))
	if n := len(a.Requests()) + len(b.Requests()); r.final.Text != "I answer, then." || n > 8 {
		t.Errorf("answer %q after %d requests", r.final.Text, n)
	}
	checkPaired(t, r.final.Items)
}

func TestConsult(t *testing.T) {
	t.Parallel()
	var caller agent.Caller
	tool := agenttest.NewTool("stock", func(ctx context.Context, _ json.RawMessage) (string, error) {
		caller, _ = agent.CallerFrom(ctx)
		return "3 left", nil
	})
	desk := agenttest.NewModel(
		agenttest.Step{Text: "One moment.", Calls: []agenttest.Call{{ID: "a", Name: "ask_store", Args: `{"input":"how many?"}`}, {ID: "b", Name: "ask_store", Args: `{"input":"broken?"}`}}},
		agenttest.Say("There are 3."))
	store := agenttest.ModelFunc(func(_ int, req *agent.Request) agenttest.Step {
		switch {
		case strings.Contains(string(req.Input[0]), "broken"):
			return agenttest.Fail(agent.Unauthorized)
		case len(req.Input) == 1:
			return agenttest.Use("x", "stock", "{}")
		}
		return agenttest.Say("3 in stock")
	})
	e := team(t, agent.Options{},
		agent.Agent{Name: "desk", Models: over(desk, "p"), Consults: []string{"store"}},
		agent.Agent{Name: "store", Models: over(store, "p"), Tools: []agent.Tool{tool}})
	turn := say("how many do you have?")
	turn.History = history(agent.UserMessage("before"), agent.AssistantMessage("yes"))
	r := must(t, e, turn)
	if got, want := kinds(r.final.Items), "user assistant call:a call:b out:a out:b assistant"; got != want || r.final.Agent != "desk" {
		t.Errorf("items %s, want %s, by %q", got, want, r.final.Agent)
	}
	if got := string(r.final.Items[4].Raw); !strings.Contains(got, `"output":"3 in stock"`) {
		t.Errorf("answer of the other agent: %s", got)
	}
	if got := string(r.final.Items[5].Raw); !strings.Contains(got, `"output":"error: the agent could not answer"`) {
		t.Errorf("failure of the other agent: %s", got)
	}
	if r.text != "One moment.There are 3." {
		t.Errorf("streamed %q", r.text)
	}
	if r.final.Usage.Requests != 4 || r.final.Usage.InputTokens != 40 {
		t.Errorf("usage %+v does not hold the other agent's", r.final.Usage)
	}
	for _, req := range store.Requests() {
		if strings.Contains(string(req.Input[0]), "before") {
			t.Error("the other agent saw the conversation")
		}
	}
	if caller.Agent != "store" || caller.Speaker.ID != "U1" {
		t.Errorf("the other agent's tool ran for %+v", caller)
	}
}

func TestConsultingInCirclesEnds(t *testing.T) {
	t.Parallel()
	ask := func(to string) *agenttest.Model {
		return agenttest.ModelFunc(func(_ int, req *agent.Request) agenttest.Step {
			if len(req.Input) > 1 {
				return agenttest.Say("done")
			}
			return agenttest.Use("c", "ask_"+to, `{"input":"you?"}`)
		})
	}
	a, b := ask("b"), ask("a")
	e := team(t, agent.Options{},
		agent.Agent{Name: "a", Models: over(a, "p"), Consults: []string{"b"}},
		agent.Agent{Name: "b", Models: over(b, "p"), Consults: []string{"a"}})
	r := must(t, e, say("hi"))
	if n := len(a.Requests()) + len(b.Requests()); r.final.Text != "done" || n != 6 {
		t.Errorf("answer %q after %d requests", r.final.Text, n)
	}
}

func TestCancelReachesConsultedAgents(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	inner := agenttest.ModelFunc(func(int, *agent.Request) agenttest.Step {
		cancel()
		return agenttest.Step{Hang: true}
	})
	e := team(t, agent.Options{},
		agent.Agent{Name: "a", Models: over(agenttest.NewModel(agenttest.Use("c", "ask_b", `{"input":"x"}`)), "p"), Consults: []string{"b"}},
		agent.Agent{Name: "b", Models: over(inner, "p")})
	if r := collect(ctx, e, say("hi")); !errors.Is(r.err, context.Canceled) || r.final != nil {
		t.Errorf("got %v", r.err)
	}
}

func TestNewChecksTeams(t *testing.T) {
	t.Parallel()
	m := over(agenttest.NewModel(), "p")
	for want, a := range map[string]agent.Agent{
		`hand-off "x" is not defined`:               {Name: "a", Models: m, Handoffs: []string{"x"}},
		`hand-off "a" is the agent itself`:          {Name: "a", Models: m, Handoffs: []string{"a"}},
		`consulted agent "x" is not defined`:        {Name: "a", Models: m, Consults: []string{"x"}},
		`tool "transfer_to_b" is given twice`:       {Name: "a", Models: m, Handoffs: []string{"b", "b"}},
		`tool "ask_b" is given twice`:               {Name: "a", Models: m, Consults: []string{"b"}, Tools: []agent.Tool{agenttest.Echo("ask_b")}},
		`a name is 1 to 48 of a-z, A-Z, 0-9, _ and`: {Name: strings.Repeat("a", 49), Models: m},
	} {
		_, err := agent.New(agent.Options{Agents: []agent.Agent{a, {Name: "b", Models: m}}})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

func TestHooksTellOfEveryCall(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var models, tools []string
	hooks := agent.Hooks{
		Model: func(c agent.ModelCall) {
			mu.Lock()
			defer mu.Unlock()
			kind := "ok"
			if e, ok := errors.AsType[*agent.Error](c.Err); ok {
				kind = e.Kind.String()
			}
			models = append(models, strings.Join([]string{c.Turn, c.Agent, c.Provider, c.Model, kind, c.RequestID}, " "))
			if c.Start.IsZero() || c.Duration < c.FirstDelta || (kind == "ok") != (c.Usage.Requests == 1) {
				t.Errorf("call %+v", c)
			}
		},
		Tool: func(c agent.ToolCall) {
			mu.Lock()
			defer mu.Unlock()
			if tools = append(tools, c.Tool); c.Failed != (c.Tool == "nope") {
				t.Errorf("call %+v", c)
			}
		},
	}
	m1 := agenttest.NewModel(agenttest.Fail(agent.Transient))
	m2 := agenttest.NewModel(agenttest.Use("a", "echo", "{}"), agenttest.Use("b", "nope", "{}"), agenttest.Say("ok"))
	must(t, engine(t, agent.Options{Hooks: hooks}, agent.Agent{Tools: []agent.Tool{agenttest.Echo("echo")}}, m1, m2), say("hi"))
	want := []string{"t1 concierge p1 m1 transient ", "t1 concierge p2 m2 ok req_1", "t1 concierge p2 m2 ok req_2", "t1 concierge p2 m2 ok req_3"}
	if diff := cmp.Diff(want, models); diff != "" {
		t.Errorf("model calls (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"echo", "nope"}, tools); diff != "" {
		t.Errorf("tool calls (-want +got):\n%s", diff)
	}
}

// set is a toolset whose tools are set by the test.
type set struct{ tools []agent.Tool }

func (s *set) Tools() []agent.Tool { return s.tools }

func TestToolsetsComeAndGo(t *testing.T) {
	t.Parallel()
	m := agenttest.ModelFunc(func(_ int, req *agent.Request) agenttest.Step {
		if len(req.Input) == 1 && len(req.Tools) > 1 {
			return agenttest.Use("c", "late", "{}")
		}
		return agenttest.Say("ok")
	})
	s := &set{}
	late := agenttest.Echo("late")
	e := engine(t, agent.Options{}, agent.Agent{Tools: []agent.Tool{agenttest.Echo("fixed")}, Toolsets: []agent.Toolset{s}}, m)
	names := func() string {
		reqs := m.Requests()
		var n []string
		for _, spec := range reqs[len(reqs)-1].Tools {
			n = append(n, spec.Name)
		}
		return strings.Join(n, " ")
	}
	must(t, e, say("hi"))
	if got := names(); got != "fixed" {
		t.Errorf("before: %s", got)
	}
	s.tools = []agent.Tool{late, agenttest.Echo("fixed"), agenttest.Echo("bad name"), agenttest.Echo("early")}
	must(t, e, say("hi"))
	if got := names(); got != "early fixed late" || len(late.Calls()) != 1 {
		t.Errorf("with the set: %s, called %d times", got, len(late.Calls()))
	}
	s.tools = nil
	for i := range 200 {
		s.tools = append(s.tools, agenttest.Echo("t"+strings.Repeat("x", i%60)+string(rune('a'+i/60))))
	}
	must(t, e, say("hi"))
	if got := len(strings.Fields(names())); got != agent.MaxTools {
		t.Errorf("%d tools shown", got)
	}
}

func TestAQuestionIsNotHandedOnForEver(t *testing.T) {
	t.Parallel()
	name := func(i int) string { return "agent" + string(rune('a'+i)) }
	var agents []agent.Agent
	for i := range 8 {
		m := agenttest.ModelFunc(func(_ int, req *agent.Request) agenttest.Step {
			if strings.Contains(string(req.Input[len(req.Input)-1]), "handed over too often") {
				return agenttest.Say("I answer, then.")
			}
			return agenttest.Use("c", "transfer_to_"+name((i+1)%8), "{}")
		})
		agents = append(agents, agent.Agent{Name: name(i), Models: over(m, "p"), Handoffs: []string{name((i + 1) % 8)}, MaxModelCalls: 50})
	}
	handed := 0
	e := team(t, agent.Options{Hooks: agent.Hooks{Handoff: func(string, string, string) { handed++ }}}, agents...)
	if r := must(t, e, say("hi")); r.final.Text != "I answer, then." || r.final.Agent != "agentf" || handed != 5 {
		t.Errorf("answer %q by %s after %d hand-offs", r.final.Text, r.final.Agent, handed)
	}
}
