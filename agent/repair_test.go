package agent_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"botd/agent"
	"botd/sessionstore"
)

func readVectors(t *testing.T, name string, into any) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", "agents-sdk", name))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, into); err != nil {
		t.Fatal(err)
	}
}

func rawList(items []sessionstore.Item) []any {
	out := []any{}
	for _, it := range items {
		var v any
		if err := json.Unmarshal(it.Raw, &v); err != nil {
			v = err.Error()
		}
		out = append(out, v)
	}
	return out
}

func parseList(t *testing.T, raw string) []any {
	t.Helper()
	v := []any{}
	if err := json.Unmarshal([]byte(raw), &v); err != nil {
		t.Fatalf("%v in %s", err, raw)
	}
	return v
}

// Where the Agents SDK's result would be refused by the API, ours differs.
func TestRepairAsTheAgentsSDK(t *testing.T) {
	t.Parallel()
	const idless = `{"type":"message","role":"assistant","status":"completed","content":[{"type":"output_text","text":"a","annotations":[]}]}`
	differs := map[string]string{
		// The SDK sends the item with the identifier although its reasoning may be cut away: refused.
		"limit_cut_before_output":                 `[` + idless + `,{"role":"user","content":"new"}]`,
		"limit_cut_between_reasoning_and_message": `[` + idless + `,{"role":"user","content":"new"}]`,
		"mcp_call_never_pruned":                   `[{"role":"user","content":"new"}]`,
		// The SDK sends reasoning that led to nothing: refused.
		"lone_reasoning_kept": `[{"role":"user","content":"q"},{"role":"user","content":"new"}]`,
		// The SDK leaves the output before its call, which Chat Completions refuses.
		"output_before_call_order": `[{"type":"function_call","call_id":"c1","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c1","output":"ok"},{"role":"user","content":"new"}]`,
		// The SDK takes the output of another turn for a newer one.
		"same_output_twice_latest_kept_last_pos": `[{"type":"function_call","call_id":"c1","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c1","output":"old"},{"role":"user","content":"x"}]`,
		// The SDK sends one identifier twice.
		"assistant_same_id_not_deduped": `[` + idless + `,` + idless + `]`,
	}
	type vector struct {
		Name    string            `json:"name"`
		Input   []json.RawMessage `json:"history_plus_new"`
		Limited json.RawMessage   `json:"with_session_limit"`
		In      []json.RawMessage `json:"in"`
		Out     json.RawMessage   `json:"out"`
	}
	var orphans, dedupe []vector
	readVectors(t, "orphans.json", &orphans)
	readVectors(t, "dedupe.json", &dedupe)
	if len(orphans) != 10 || len(dedupe) != 5 {
		t.Fatalf("%d and %d vectors", len(orphans), len(dedupe))
	}
	for _, v := range append(orphans, dedupe...) {
		in, want := append(v.Input, v.In...), string(v.Limited)+string(v.Out)
		if ours, ok := differs[v.Name]; ok {
			if cmp.Equal(parseList(t, want), parseList(t, ours)) {
				t.Errorf("%s: said to differ and does not", v.Name)
			}
			want = ours
		}
		got := agent.Repair(history(in...), agent.RepairOptions{})
		if diff := cmp.Diff(parseList(t, want), rawList(got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", v.Name, diff)
		}
	}
}

func TestRepair(t *testing.T) {
	t.Parallel()
	const (
		u    = `{"role":"user","content":"q"}`
		c1   = `{"type":"function_call","id":"fc_1","call_id":"c1","name":"f","arguments":"{}"}`
		c1n  = `{"type":"function_call","call_id":"c1","name":"f","arguments":"{}"}`
		c2   = `{"type":"function_call","id":"fc_2","call_id":"c2","name":"f","arguments":"{}"}`
		c2n  = `{"type":"function_call","call_id":"c2","name":"f","arguments":"{}"}`
		o1   = `{"type":"function_call_output","call_id":"c1","output":"1"}`
		o2   = `{"type":"function_call_output","call_id":"c2","output":"2"}`
		rs1  = `{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"x"}`
		rs2  = `{"type":"reasoning","id":"rs_2","summary":[],"encrypted_content":"y"}`
		m1   = `{"type":"message","id":"msg_1","role":"assistant","content":[{"type":"output_text","text":"a"}]}`
		m1n  = `{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a"}]}`
		m2   = `{"type":"message","id":"msg_2","role":"assistant","content":[{"type":"output_text","text":"b"}]}`
		m2n  = `{"type":"message","role":"assistant","content":[{"type":"output_text","text":"b"}]}`
		web  = `{"type":"web_search_call","id":"ws_1","status":"completed"}`
		plan = `{"type":"compaction","id":"cmp_1","encrypted_content":"z"}`
	)
	stateless := agent.RepairOptions{Stateless: true}
	bare := agent.RepairOptions{NoReasoning: true}
	at := agent.RepairOptions{Provider: "here"}
	tests := map[string]struct {
		opts     agent.RepairOptions
		in, want []string
	}{
		"a history in order":                    {in: []string{u, rs1, c1, c2, o1, o2, rs2, m1, u, m2}},
		"outputs in another order than calls":   {in: []string{u, c1, c2, o2, o1, m1}},
		"a hosted call with its reasoning":      {in: []string{u, rs1, web, m1}},
		"compaction first":                      {in: []string{plan, u, m1}},
		"nothing":                               {in: []string{}},
		"a call without output":                 {in: []string{u, c1, u}, want: []string{u, u}},
		"its reasoning goes with it":            {in: []string{u, rs1, c1, u}, want: []string{u, u}},
		"and the identifiers of its kin":        {in: []string{u, rs1, c1, c2, o2, m1}, want: []string{u, c2n, o2, m1}},
		"but not those of later reasoning":      {in: []string{u, rs1, c1, rs2, m1}, want: []string{u, rs2, m1}},
		"a hosted call without its reasoning":   {in: []string{u, rs1, c1, web, m1}, want: []string{u, m1n}},
		"an output without call":                {in: []string{u, o1, m1}, want: []string{u, m1}},
		"an output in the next turn":            {in: []string{u, c1, u, o1, m1}, want: []string{u, u, m1}},
		"an output before its call":             {in: []string{u, rs1, o1, c1, m1}, want: []string{u, rs1, c1, o1, m1}},
		"an output written again":               {in: []string{u, c1, o1, `{"type":"function_call_output","call_id":"c1","output":"new"}`}, want: []string{u, c1, `{"type":"function_call_output","call_id":"c1","output":"new"}`}},
		"an output of another type":             {in: []string{u, c1, `{"type":"custom_tool_call_output","call_id":"c1","output":"1"}`, m1}, want: []string{u, m1}},
		"an ID used again in the next turn":     {in: []string{u, c1n, o1, m1n, u, c1n, o1, m1n}, want: []string{u, c1n, o1, m1n, u, `{"type":"function_call","call_id":"c1_2","name":"f","arguments":"{}"}`, `{"type":"function_call_output","call_id":"c1_2","output":"1"}`, m1n}},
		"an ID used again in the same turn":     {in: []string{u, c1n, o1, c1n, o1}, want: []string{u, c1n, o1, `{"type":"function_call","call_id":"c1_2","name":"f","arguments":"{}"}`, `{"type":"function_call_output","call_id":"c1_2","output":"1"}`}},
		"the same call twice":                   {in: []string{u, c1, c1, o1}, want: []string{u, c1, o1}},
		"a turn written twice":                  {in: []string{u, rs1, c1, o1, m1, rs1, c1, o1, m1}, want: []string{u, rs1, c1, o1, m1, m1n}},
		"reasoning at the end":                  {in: []string{u, m1, rs1}, want: []string{u, m1}},
		"reasoning before a person":             {in: []string{u, rs1, u, m1}, want: []string{u, u, m1}},
		"reasoning before an output":            {in: []string{u, c1, rs1, o1, m1}, want: []string{u, c1, o1, m1}},
		"two reasonings for one":                {in: []string{u, rs1, rs2, m1}},
		"a turn cut before its calls":           {in: []string{c1, c2, o1, o2, rs2, m1, u, m2}, want: []string{c1n, c2n, o1, o2, rs2, m1, u, m2}},
		"a turn cut before its message":         {in: []string{m1, u, m2}, want: []string{m1n, u, m2}},
		"a turn cut before its outputs":         {in: []string{o1, o2, m1, u}, want: []string{m1n, u}},
		"a call without ID":                     {in: []string{u, `{"type":"function_call","name":"f","arguments":"{}"}`, `{"type":"function_call_output","output":"1"}`}, want: []string{u}},
		"a call without name":                   {in: []string{u, `{"type":"function_call","call_id":"c1","name":"","arguments":"{}"}`, o1, m1}, want: []string{u, m1}},
		"arguments cut off":                     {in: []string{u, `{"type":"function_call","call_id":"c1","name":"f","arguments":"{\"a\":"}`, o1}, want: []string{u, c1n, o1}},
		"arguments that are a list":             {in: []string{u, `{"type":"function_call","call_id":"c1","name":"f","arguments":"[]"}`, o1}, want: []string{u, c1n, o1}},
		"arguments that are empty":              {in: []string{u, `{"type":"function_call","call_id":"c1","name":"f","arguments":""}`, o1}, want: []string{u, c1n, o1}},
		"an empty message":                      {in: []string{u, rs1, `{"type":"message","role":"assistant","content":[{"type":"output_text","text":""}]}`, m1}, want: []string{u, m1n}},
		"a refusal is not empty":                {in: []string{u, `{"type":"message","role":"assistant","content":[{"type":"refusal","refusal":"no"}]}`}},
		"private fields":                        {in: []string{u, `{"type":"function_call","_agents_tool_title":"T","_agents_tool_description":{"a":1},"provider_data":{"m":1},"status":null,"call_id":"c1","name":"f","arguments":"{}"}`, o1}, want: []string{u, c1n, o1}},
		"a placeholder for an identifier":       {in: []string{u, `{"id":"__fake_id__","type":"message","role":"assistant","content":"a"}`}, want: []string{u, `{"type":"message","role":"assistant","content":"a"}`}},
		"an encrypted envelope":                 {in: []string{u, `{"__enc__":1,"v":1,"kid":"hkdf-v1","payload":"g"}`, m1}, want: []string{u, m1}},
		"what is not JSON":                      {in: []string{u, `{"type":`, `5`, ``, m1}, want: []string{u, m1}},
		"other calls and their outputs":         {in: []string{u, `{"type":"shell_call","call_id":"s"}`, `{"type":"shell_call_output","call_id":"s"}`, `{"type":"computer_call","call_id":"k"}`, m1}, want: []string{u, `{"type":"shell_call","call_id":"s"}`, `{"type":"shell_call_output","call_id":"s"}`, m1}},
		"stateless: reasoning without content":  {opts: stateless, in: []string{u, `{"type":"reasoning","id":"rs_1","summary":[]}`, m1}, want: []string{u, m1n}},
		"stateless: readable reasoning":         {opts: stateless, in: []string{u, `{"type":"reasoning","id":"rs_1","summary":[],"content":[{"type":"reasoning_text","text":"hm"}]}`, m1}},
		"stateless: a reference":                {opts: stateless, in: []string{u, `{"type":"item_reference","id":"msg_9"}`, m1}, want: []string{u, m1}},
		"no reasoning":                          {opts: bare, in: []string{plan, u, rs1, c1, o1, m1, web}, want: []string{u, c1n, o1, m1, web}},
		"another provider's":                    {opts: at, in: []string{"there", plan, u, rs1, c1, o1, web, m1}, want: []string{u, c1n, o1, m1n}},
		"the same provider's":                   {opts: at, in: []string{"here", plan, u, rs1, c1, o1, web, m1}, want: []string{plan, u, rs1, c1, o1, web, m1}},
		"of no known provider":                  {opts: at, in: []string{plan, u, rs1, c1, o1, web, m1}},
		"one identifier for different messages": {in: []string{u, m1, strings.Replace(m2, "msg_2", "msg_1", 1)}, want: []string{u, m1, m2n}},
		"and its reasoning goes":                {in: []string{u, rs1, m1, rs2, strings.Replace(m2, "msg_2", "msg_1", 1)}, want: []string{u, rs1, m1, m2n}},
		"one identifier for different calls":    {in: []string{u, c1, o1, strings.Replace(c2, "fc_2", "fc_1", 1), o2}, want: []string{u, c1, o1, c2n, o2}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			origin := ""
			if len(tt.in) > 0 && (tt.in[0] == "here" || tt.in[0] == "there") {
				origin = "a@" + tt.in[0] + "/m"
				tt.in = tt.in[1:]
			}
			var in []sessionstore.Item
			for i, raw := range tt.in {
				in = append(in, sessionstore.Item{Seq: uint64(i), Raw: json.RawMessage(raw)})
				if !strings.Contains(raw, `"role":"user"`) {
					in[i].Origin = origin
				}
			}
			before := cmp.Diff([]sessionstore.Item{}, in)
			got := agent.Repair(in, tt.opts)
			if cmp.Diff([]sessionstore.Item{}, in) != before {
				t.Error("the items given were changed")
			}
			if tt.want == nil {
				tt.want = tt.in
			}
			var texts []string
			for _, it := range got {
				texts = append(texts, string(it.Raw))
			}
			if diff := cmp.Diff(strings.Join(tt.want, "\n"), strings.Join(texts, "\n")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if err := inOrder(got); err != nil && tt.opts == (agent.RepairOptions{}) {
				t.Error(err)
			}
		})
	}
}

// inOrder is the judge: it knows the rules of the providers, and nothing of how Repair works.
func inOrder(items []sessionstore.Item) error {
	type item struct {
		Type, Role, ID, Name, Arguments string
		CallID                          string `json:"call_id"`
	}
	open := make(map[string]bool)
	calls, ids := make(map[string]bool), make(map[string]bool)
	var reasoning bool
	endOfTurn := func() error {
		if len(open) > 0 {
			return fmt.Errorf("no tool output found for function call %v", open)
		}
		if reasoning {
			return errors.New("reasoning was provided without its required following item")
		}
		return nil
	}
	for _, it := range items {
		var v item
		if err := json.Unmarshal(it.Raw, &v); err != nil {
			return err
		}
		if v.ID != "" {
			key := v.Type + "/" + v.ID
			if ids[key] {
				return fmt.Errorf("duplicate item found with id %s", v.ID)
			}
			ids[key] = true
		}
		if v.Role == "user" {
			if err := endOfTurn(); err != nil {
				return err
			}
			continue
		}
		isReasoning := v.Type == "reasoning"
		if v.Type == "function_call_output" {
			if !open[v.CallID] {
				return fmt.Errorf("no tool call found for function call output with call_id %s", v.CallID)
			}
			delete(open, v.CallID)
			if reasoning {
				return errors.New("reasoning was provided without its required following item")
			}
		}
		if v.Type == "function_call" {
			if v.Name == "" || v.CallID == "" || calls[v.CallID] || !json.Valid([]byte(v.Arguments)) {
				return fmt.Errorf("bad or repeated call: %s", it.Raw)
			}
			calls[v.CallID], open[v.CallID] = true, true
		}
		reasoning = isReasoning
	}
	return endOfTurn()
}

// drawHistory makes a history in order: turns with steps of reasoning, text, calls and outputs. needs
// tells for each identifier which reasoning the provider wants to see with it.
func drawHistory(t *rapid.T) (items []sessionstore.Item, needs map[string]string) {
	needs = make(map[string]string)
	n := 0
	add := func(format string, args ...any) {
		items = append(items, sessionstore.Item{Seq: uint64(len(items)), Raw: json.RawMessage(fmt.Sprintf(format, args...))})
	}
	for range rapid.IntRange(1, 4).Draw(t, "turns") {
		for range rapid.IntRange(1, 2).Draw(t, "messages") {
			add(`{"role":"user","content":"q"}`)
		}
		for range rapid.IntRange(0, 3).Draw(t, "steps") {
			var calls []int
			for range rapid.IntRange(1, 2).Draw(t, "blocks") {
				rs := ""
				for range rapid.IntRange(0, 2).Draw(t, "reasoning") {
					n++
					rs = fmt.Sprintf("rs_%d", n)
					add(`{"type":"reasoning","id":"%s","summary":[],"encrypted_content":"x"}`, rs)
				}
				produce := func(id string) string {
					needs[id] = rs
					return id
				}
				for i := range rapid.IntRange(1, 3).Draw(t, "items") {
					n++
					switch rapid.IntRange(0, 2).Draw(t, "kind") {
					case 0:
						add(`{"type":"message","id":"%s","role":"assistant","content":[{"type":"output_text","text":"a"}]}`, produce(fmt.Sprint("msg_", n)))
					case 1:
						add(`{"type":"function_call","id":"%s","call_id":"c%d","name":"f","arguments":"{}"}`, produce(fmt.Sprint("fc_", n)), n)
						calls = append(calls, n)
					case 2:
						if i == 0 && rs == "" {
							continue
						}
						add(`{"type":"web_search_call","id":"%s","status":"completed"}`, produce(fmt.Sprint("ws_", n)))
					}
				}
			}
			for _, c := range rapid.Permutation(calls).Draw(t, "outputs") {
				add(`{"type":"function_call_output","call_id":"c%d","output":"1"}`, c)
			}
		}
	}
	return items, needs
}

// keepsReasoning reports an identifier that stands without the reasoning that it needs.
func keepsReasoning(items []sessionstore.Item, needs map[string]string) error {
	have := make(map[string]bool)
	for _, it := range items {
		var v struct{ ID string }
		if err := json.Unmarshal(it.Raw, &v); err != nil {
			return err
		}
		if rs := needs[v.ID]; rs != "" && !have[rs] {
			return fmt.Errorf("item %s was provided without its required reasoning item %s", v.ID, rs)
		}
		have[v.ID] = true
	}
	return nil
}

func TestRepairChangesNothingThatIsInOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		items, needs := drawHistory(t)
		if err := errors.Join(inOrder(items), keepsReasoning(items, needs)); err != nil {
			t.Fatalf("the generator made a history out of order: %v", err)
		}
		if diff := cmp.Diff(items, agent.Repair(items, agent.RepairOptions{Stateless: true})); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	})
}

// However a history in order is cut, thinned, repeated and joined, no provider refuses what Repair makes
// of it, and Repair finds nothing more to do.
func TestRepairOfAnyDamage(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		items, needs := drawHistory(t)
		from := rapid.IntRange(0, len(items)).Draw(t, "from")
		to := rapid.IntRange(from, len(items)).Draw(t, "to")
		damaged := append([]sessionstore.Item(nil), items[from:to]...)
		onlyCut := true
		for range rapid.IntRange(0, 3).Draw(t, "damages") {
			if len(damaged) == 0 {
				break
			}
			onlyCut = false
			i := rapid.IntRange(0, len(damaged)-1).Draw(t, "at")
			switch rapid.SampledFrom([]string{"drop", "repeat", "swap"}).Draw(t, "damage") {
			case "drop":
				damaged = append(damaged[:i:i], damaged[i+1:]...)
			case "repeat":
				damaged = append(damaged, damaged[i])
			case "swap":
				j := rapid.IntRange(0, len(damaged)-1).Draw(t, "with")
				damaged[i], damaged[j] = damaged[j], damaged[i]
			}
		}
		opts := agent.RepairOptions{Stateless: rapid.Bool().Draw(t, "stateless"), NoReasoning: rapid.Bool().Draw(t, "no reasoning")}
		damaged = append(damaged, sessionstore.Item{Raw: agent.UserMessage("new")})
		got := agent.Repair(damaged, opts)
		if err := inOrder(got); err != nil {
			t.Fatalf("%v\nin  %s\nout %s", err, kinds(damaged), kinds(got))
		}
		// A swap can put an item behind reasoning that is not its own, which nobody could tell.
		if onlyCut {
			if err := keepsReasoning(got, needs); err != nil {
				t.Fatalf("%v\nin  %s\nout %s", err, kinds(damaged), kinds(got))
			}
		}
		if diff := cmp.Diff(got, agent.Repair(got, opts)); diff != "" {
			t.Fatalf("not idempotent (-once +twice):\n%s", diff)
		}
		people := func(items []sessionstore.Item) int { return strings.Count(" "+kinds(items), " user") }
		if people(damaged) != people(got) {
			t.Fatal("what a person said was dropped")
		}
	})
}

func FuzzRepair(f *testing.F) {
	f.Add([]byte(`[{"role":"user","content":"q"},{"type":"reasoning","id":"rs_1"},{"type":"function_call","call_id":"c","name":"f","arguments":""}]`), true, "p")
	f.Add([]byte(`[{"type":"function_call_output","call_id":"c"},{"type":"function_call","call_id":"c","name":"f"},{"type":"function_call","call_id":"c","name":"f"}]`), false, "")
	f.Add([]byte(`[{"type":5,"role":{},"id":[],"status":null,"provider_data":{}},{"":""},{"a.b":1,"_agents_*":2}]`), false, "x")
	f.Fuzz(func(t *testing.T, data []byte, flag bool, provider string) {
		var raw []json.RawMessage
		if json.Unmarshal(data, &raw) != nil {
			t.Skip()
		}
		items := history(raw...)
		for i := range items {
			items[i].Origin = "a@p/m"
		}
		o := agent.RepairOptions{Provider: provider, Stateless: flag, NoReasoning: !flag}
		got := agent.Repair(items, o)
		for _, it := range got {
			if !sessionstore.ValidItem(it.Raw) {
				t.Fatalf("made %q, which is no item", it.Raw)
			}
		}
		if diff := cmp.Diff(got, agent.Repair(got, o)); diff != "" {
			t.Fatalf("not idempotent (-once +twice):\n%s", diff)
		}
	})
}
