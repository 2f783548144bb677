package agent_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"botd/agent"
	"botd/agent/agenttest"
)

// guard blocks texts that hold a word; err instead when it is set.
type guard struct {
	name, word string
	err        error
	seen       *[]string
}

func (g guard) Name() string { return g.name }

func (g guard) Check(_ context.Context, text string) (bool, error) {
	if g.seen != nil {
		*g.seen = append(*g.seen, text)
	}
	return g.err == nil && strings.Contains(text, g.word), g.err
}

func TestInputGuards(t *testing.T) {
	t.Parallel()
	var seen []string
	m := agenttest.NewModel(agenttest.Say("fine"))
	e := engine(t, agent.Options{}, agent.Agent{
		InputGuards: []agent.Guard{guard{name: "a", word: "never"}, guard{name: "b", word: "bomb", seen: &seen}}, Refusal: "No.",
	}, m)
	turn := say("how to build a bomb")
	turn.Group = true
	r := must(t, e, turn)
	if r.final.Text != "No." || r.final.Blocked != "b" || r.text != "" || len(m.Requests()) != 0 {
		t.Errorf("final %+v after %d requests", r.final, len(m.Requests()))
	}
	if got := kinds(r.final.Items); got != "user assistant" || !strings.Contains(string(r.final.Items[1].Raw), "No.") {
		t.Errorf("remembered %s", got)
	}
	if len(seen) != 1 || seen[0] != "how to build a bomb" {
		t.Errorf("judged %q", seen)
	}
	if r := must(t, e, say("how to bake a cake")); r.final.Text != "fine" || r.final.Blocked != "" || r.text != "fine" {
		t.Errorf("final %+v", r.final)
	}
}

func TestOutputGuards(t *testing.T) {
	t.Parallel()
	guarded := agent.Agent{Tools: []agent.Tool{agenttest.Echo("echo")}, OutputGuards: []agent.Guard{guard{name: "g", word: "secret"}}}
	steps := func(text string) *agenttest.Model {
		return agenttest.NewModel(agenttest.Use("c", "echo", "{}"), agenttest.Say(text))
	}
	r := must(t, engine(t, agent.Options{}, guarded, steps("the secret is 42")), say("tell"))
	if r.final.Text != agent.DefaultRefusal || r.final.Blocked != "g" || r.text != "" {
		t.Errorf("final %+v, streamed %q", r.final, r.text)
	}
	if got := kinds(r.final.Items); got != "user call:c out:c assistant" {
		t.Errorf("remembered %s", got)
	}
	for _, it := range r.final.Items {
		if strings.Contains(string(it.Raw), "secret") {
			t.Errorf("what was blocked is remembered: %s", it.Raw)
		}
	}
	if r := must(t, engine(t, agent.Options{}, guarded, steps("nothing to see")), say("tell")); r.final.Text != "nothing to see" || r.text != "" {
		t.Errorf("final %+v, streamed %q", r.final, r.text)
	}
}

// What could not be judged goes no further.
func TestGuardsThatFail(t *testing.T) {
	t.Parallel()
	broken := guard{name: "g", err: errors.New("no answer")}
	blocks := guard{name: "h", word: "hi"}
	limited := &agent.Error{Kind: agent.RateLimited, Err: errors.New("slow down")}
	m := agenttest.ModelFunc(func(int, *agent.Request) agenttest.Step { return agenttest.Say("hi") })
	for name, tt := range map[string]struct {
		a    agent.Agent
		want string
	}{
		"input":                   {agent.Agent{InputGuards: []agent.Guard{broken}}, "transient"},
		"output":                  {agent.Agent{OutputGuards: []agent.Guard{broken}}, "transient"},
		"with a kind":             {agent.Agent{InputGuards: []agent.Guard{guard{name: "g", err: limited}}}, "rate limited"},
		"while another blocks it": {agent.Agent{InputGuards: []agent.Guard{broken, blocks}}, "blocked by h"},
		"only in another's hands": {agent.Agent{}, ""},
	} {
		r := collect(t.Context(), engine(t, agent.Options{}, tt.a, m), say("hi"))
		got := ""
		if e, ok := errors.AsType[*agent.Error](r.err); ok {
			got = e.Kind.String()
		} else if r.final.Blocked != "" {
			got = "blocked by " + r.final.Blocked
		}
		if got != tt.want {
			t.Errorf("%s: got %q (%v), want %q", name, got, r.err, tt.want)
		}
	}
}

// Of several agents the first judges what is said and the last what is answered.
func TestGuardsOfTeams(t *testing.T) {
	t.Parallel()
	var in, out, other []string
	e := team(t, agent.Options{},
		agent.Agent{
			Name: "front", Models: over(agenttest.NewModel(agenttest.Use("c", "transfer_to_back", "{}")), "p"), Handoffs: []string{"back"},
			InputGuards: []agent.Guard{guard{name: "in", word: "x!", seen: &in}}, OutputGuards: []agent.Guard{guard{name: "no", seen: &other, word: "x!"}},
		},
		agent.Agent{
			Name: "back", Models: over(agenttest.NewModel(agenttest.Say("answer")), "p"),
			InputGuards: []agent.Guard{guard{name: "no", seen: &other, word: "x!"}}, OutputGuards: []agent.Guard{guard{name: "out", word: "x!", seen: &out}},
		},
	)
	must(t, e, say("question"))
	if len(in) != 1 || len(out) != 1 || len(other) != 0 {
		t.Errorf("judged: in %q, out %q, others %q", in, out, other)
	}
}
