package agent

import (
	"bytes"
	"unicode/utf8"

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
		tokens += approxTokens(items[start-1].Raw)
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

// approxTokens estimates the tokens of an item from above: four bytes of ASCII, or one other character,
// are about one token in the vocabularies of today. Encrypted content costs the reasoning it stands for,
// which is far less than its text.
func approxTokens(raw []byte) int {
	n := len(raw)
	if bytes.Contains(raw, []byte(`"encrypted_content"`)) {
		n -= len(gjson.GetBytes(raw, "encrypted_content").Raw) * 3 / 4
	}
	ascii := n
	if runes := utf8.RuneCount(raw); runes < len(raw) {
		wide := 0
		for _, c := range raw {
			if c >= utf8.RuneSelf {
				wide++
			}
		}
		ascii -= wide
		return ascii/4 + runes - (len(raw) - wide) + 4
	}
	return ascii/4 + 4
}

// Steps of squeezing a conversation that a model refuses as too long.
const (
	squeezeNone = iota
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
func (r *run) view() []sessionstore.Item {
	history, fresh := trim(r.history, r.e.opts.Budget), r.fresh
	switch r.squeeze {
	case squeezeHalf:
		tokens := 0
		for _, it := range history {
			tokens += approxTokens(it.Raw)
		}
		history = capOutputs(trim(history, Budget{MaxTokens: max(tokens/2, 1)}), squeezedOldOutput)
		fresh = capOutputs(fresh, squeezedNewOutput)
	case squeezeAll:
		history, fresh = nil, capOutputs(fresh, minimalOutput)
	}
	all := make([]sessionstore.Item, 0, len(history)+len(fresh))
	return append(append(all, history...), fresh...)
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
