package agent

import (
	"slices"
	"strconv"

	"botd/sessionstore"
)

// RepairOptions says whom repaired items are for.
type RepairOptions struct {
	// Provider is the configured name of the provider that will read the items. What another provider
	// made is shown without its identifiers, and its reasoning, which no other can read, not at all.
	// Empty: every provider's items are treated alike.
	Provider string
	// Stateless leaves out what only a provider that stored the conversation could resolve: reasoning
	// without content and references to items.
	Stateless bool
	// NoReasoning leaves out all reasoning and compaction, for a provider that refuses its content.
	NoReasoning bool
}

// Repair returns the items in a form that no provider refuses. It changes nothing of a history that is
// in order, is idempotent, and leaves the items given as they are. Histories get out of order when a
// limit cuts through a turn, when a process died between two writes, when items come from elsewhere, or
// when a model breaks the rules. In a repaired history
//
//   - every tool call has exactly one output, after it and within its turn, and every output a call; a
//     turn goes from one user message to the next, and within it an ID may be used again after its
//     output: the later pair then gets an ID of its own;
//   - reasoning is followed by what it led to, and what it led to keeps its identifier only together
//     with the reasoning;
//   - no identifier stands twice, no call is without a name, no arguments are other than a JSON object,
//     no message of the assistant is empty;
//   - private fields of the Agents SDK and its encrypted envelopes are gone.
func Repair(items []sessionstore.Item, o RepairOptions) []sessionstore.Item {
	r := repairer{
		opts:    o,
		entries: make([]entry, 0, len(items)),
		byID:    make(map[string]string),
		callIDs: make(map[string]bool),
	}
	for _, it := range items {
		if e, ok := newEntry(it, o); ok {
			r.entries = append(r.entries, e)
		}
	}
	for lo := 0; lo < len(r.entries); {
		hi := lo + 1
		for hi < len(r.entries) && !r.entries[hi].isUser() {
			hi++
		}
		turn := r.entries[lo:hi]
		r.dedupe(turn)
		pair(turn)
		link(turn, !turn[0].isUser())
		r.rename(turn)
		lo = hi
	}
	return r.result(len(items))
}

// repairer is a repair under way.
type repairer struct {
	opts    RepairOptions
	entries []entry
	// byID holds the call ID of the first item of each type and identifier, callIDs all call IDs in use.
	byID    map[string]string
	callIDs map[string]bool
}

// dedupe drops items that stand a second time and takes the identifier from those that only look so.
func (r *repairer) dedupe(turn []entry) {
	for i := range turn {
		e := &turn[i]
		if e.drop || e.id == "" || e.noID {
			continue
		}
		key := e.typ + "\x00" + e.id
		first, seen := r.byID[key]
		if !seen {
			r.byID[key] = e.callID
			continue
		}
		switch {
		case e.class == classReasoning, e.class == classStandalone, e.class == classCall && first == e.callID:
			e.drop = true
		default:
			e.noID = true
		}
	}
}

// pair finds the output of every call within a turn and drops what has no partner.
func pair(turn []entry) {
	open := make(map[string]int)     // calls that wait for their output
	answered := make(map[string]int) // the latest call of an ID that has one
	early := make(map[string]int)    // outputs that came before any call of their ID
	for i := range turn {
		e := &turn[i]
		if e.drop {
			continue
		}
		switch e.class {
		case classCall:
			key := e.typ + "\x00" + e.callID
			if _, waits := open[key]; waits {
				e.drop = true
			} else if o, ok := early[key]; ok {
				delete(early, key)
				e.answer, turn[o].after = o, i
				answered[key] = i
			} else {
				open[key] = i
			}
		case classOutput:
			key := callTypes[e.typ] + "\x00" + e.callID
			if c, ok := open[key]; ok {
				delete(open, key)
				turn[c].answer = i
				answered[key] = c
			} else if c, ok := answered[key]; ok {
				// Written again: the later one counts, in the place of the earlier.
				old := &turn[turn[c].answer]
				again := *e
				again.after = old.after
				*old = again
				e.drop = true
			} else {
				if o, ok := early[key]; ok {
					turn[o].drop = true
				}
				early[key] = i
			}
		}
	}
	for _, i := range open {
		turn[i].drop = true
	}
	for _, i := range early {
		turn[i].drop = true
	}
}

// link keeps reasoning and what it led to together. cut says that the beginning of the turn is missing
// and with it perhaps the reasoning behind the first items.
func link(turn []entry, cut bool) {
	// lost says that the reasoning behind the items that follow is missing, up to the end of the answer
	// that they are from: outputs stand between two answers.
	lost := cut
	for i := 0; i < len(turn); i++ {
		e := &turn[i]
		if e.class == classOutput && !e.drop && e.after == none {
			lost = false
		}
		if e.class != classReasoning {
			if lost && !e.drop {
				e.loseReasoning()
			}
			continue
		}
		// The run of reasoning that ends before the item it led to stands or falls as one.
		end, dropped := i, false
		for end < len(turn) && (turn[end].class == classReasoning || turn[end].after != none) {
			dropped = dropped || turn[end].class == classReasoning && turn[end].drop
			end++
		}
		lost = dropped || end == len(turn) || turn[end].drop || turn[end].noID || !turn[end].ofModel()
		for j := i; j < end; j++ {
			if turn[j].class == classReasoning {
				turn[j].drop = lost
			}
		}
		i = end - 1
	}
}

// loseReasoning takes away what ties an item to reasoning that is missing: the identifier, or where the
// item must have one, the item.
func (e *entry) loseReasoning() {
	switch {
	case e.id == "" || e.typ == typeCompact || e.typ == typeReference:
	case e.class == classStandalone:
		e.drop = true
	case e.ofModel():
		e.noID = true
	}
}

// rename gives a pair an ID of its own when an earlier pair has the same.
func (r *repairer) rename(turn []entry) {
	for i := range turn {
		e := &turn[i]
		if e.class != classCall || e.drop {
			continue
		}
		id := uniqueID(e.callID, r.callIDs)
		r.callIDs[id] = true
		if id != e.callID {
			e.newCallID, turn[e.answer].newCallID = id, id
		}
	}
}

// uniqueID returns id, or where it is empty or used, one made of it that is not.
func uniqueID(id string, used map[string]bool) string {
	if id != "" && !used[id] {
		return id
	}
	if id == "" {
		id = "call"
	}
	for n := 2; ; n++ {
		if c := id + "_" + strconv.Itoa(n); !used[c] {
			return c
		}
	}
}

// callIDs returns the call IDs in items.
func callIDs(items []sessionstore.Item) map[string]bool {
	used := make(map[string]bool)
	for _, it := range items {
		if h := peek(it.Raw); h.callID != "" {
			used[h.callID] = true
		}
	}
	return used
}

// result collects what is left, each output that came too early behind its call.
func (r *repairer) result(n int) []sessionstore.Item {
	out := make([]sessionstore.Item, 0, n)
	lo := 0
	for i := range r.entries {
		e := &r.entries[i]
		if e.isUser() {
			lo = i
		}
		if e.drop || e.after != none {
			continue
		}
		out = append(out, e.repaired())
		if e.class == classCall {
			if a := &r.entries[lo+e.answer]; a.after != none {
				out = append(out, a.repaired())
			}
		}
	}
	return slices.Clip(out)
}
