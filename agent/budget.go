package agent

import (
	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"botd/sessionstore"
)

// DefaultMaxTokens bounds the history when Budget says nothing.
const DefaultMaxTokens = 32_000

// Budget bounds what of a session's history is shown to a model. Whole turns are left out, oldest first;
// the turn under way always stays.
type Budget struct {
	// MaxItems is 0 for any number.
	MaxItems int
	// MaxTokens is an estimate; 0: DefaultMaxTokens.
	MaxTokens int
}

// trim returns the newest whole turns within the budget.
func trim(items []sessionstore.Item, b Budget) []sessionstore.Item {
	maxTokens := orDefault(b.MaxTokens, DefaultMaxTokens)
	start, tokens := len(items), 0
	for start > 0 {
		tokens += EstimateTokens(items[start-1].Raw)
		if tokens > maxTokens || b.MaxItems > 0 && len(items)-start >= b.MaxItems {
			break
		}
		start--
	}
	if start == 0 {
		return items
	}
	for start < len(items) && !beginsTurn(items, start) {
		start++
	}
	return items[start:]
}

// beginsTurn reports whether a turn begins at i: with the first of the messages that people sent
// together.
func beginsTurn(items []sessionstore.Item, i int) bool {
	return peek(items[i].Raw).isUser() && (i == 0 || !peek(items[i-1].Raw).isUser())
}

// Steps of squeezing a conversation that a model refuses as too long.
const (
	_ = iota // everything that fits
	// squeezeHalf shows the newer half of the history, with short tool outputs.
	squeezeHalf
	// squeezeAll shows the turn under way alone.
	squeezeAll
)

// Limits of tool outputs in a squeezed conversation, in characters.
const (
	squeezedOldOutput = 400
	squeezedNewOutput = 8_000
	minimalOutput     = 2_000
)

// view returns the items to show to a model, before their repair.
func (r *run) view(ref *ModelRef) []sessionstore.Item {
	fresh, b := r.fresh, r.e.opts.Budget
	if ref.Window > 0 {
		fresh = fitOutputs(fresh, r.room(ref))
	}
	b.MaxTokens = r.historyTokens(ref, fresh)
	history := trim(r.history, b)
	switch r.squeeze {
	case squeezeHalf:
		half := Budget{MaxTokens: max(countTokens(history)/2, 1)}
		history = capOutputs(trim(history, half), squeezedOldOutput)
		fresh = capOutputs(fresh, squeezedNewOutput)
	case squeezeAll:
		history, fresh = nil, capOutputs(fresh, minimalOutput)
	}
	all := make([]sessionstore.Item, 0, 1+len(history)+len(fresh))
	if r.summary != "" {
		all = append(all, shownSummary(r.summary))
	}
	return append(append(all, history...), fresh...)
}

// historyTokens is what the budget and a model's window leave for the history beside the fresh items.
func (r *run) historyTokens(ref *ModelRef, fresh []sessionstore.Item) int {
	n := orDefault(r.e.opts.Budget.MaxTokens, DefaultMaxTokens)
	if ref.Window > 0 {
		n = min(n, r.room(ref)-countTokens(fresh))
	}
	if r.summary != "" {
		n -= EstimateTokens([]byte(r.summary))
	}
	return max(n, 1)
}

// room is what a model's window leaves for the conversation: without the answer, the instructions, the
// tools, and a twentieth for what the estimate misses.
func (r *run) room(ref *ModelRef) int {
	answer := r.agent.MaxOutputTokens
	if answer == 0 {
		answer = min(ref.Window/4, defaultAnswer)
	}
	return max(ref.Window-ref.Window/20-answer-r.overhead(), 0)
}

// defaultAnswer is kept free for an answer whose length is not bounded, in tokens.
const defaultAnswer = 4096

// overhead estimates the tokens of all that is not conversation.
func (r *run) overhead() int {
	n := EstimateTokens([]byte(r.instructions))
	for _, s := range r.agent.specs {
		n += EstimateTokens([]byte(s.Name)) + EstimateTokens([]byte(s.Description)) + EstimateTokens(s.Parameters)
	}
	return n
}

// fitOutputs shortens the outputs of tools, all alike, as far as the items need it to fit.
func fitOutputs(items []sessionstore.Item, tokens int) []sessionstore.Item {
	for _, limit := range []int{squeezedNewOutput, minimalOutput, squeezedOldOutput} {
		if countTokens(items) <= tokens {
			return items
		}
		items = capOutputs(items, limit)
	}
	return items
}

// capOutputs shortens the outputs of tools in items.
func capOutputs(items []sessionstore.Item, limit int) []sessionstore.Item {
	out := make([]sessionstore.Item, len(items))
	for i, it := range items {
		if peek(it.Raw).typ == typeOutput {
			if text := gjson.GetBytes(it.Raw, "output"); text.Type == gjson.String {
				if b, err := sjson.SetBytes(it.Raw, "output", capText(text.Str, limit)); err == nil {
					it.Raw = b
				}
			}
		}
		out[i] = it
	}
	return out
}
