package agent

import (
	"encoding/json"
	"strings"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"botd/sessionstore"
)

// outputTypes maps the calls that the caller answers to the type of the answer. All other items of a
// model (a hosted web search, say) stand for themselves.
var outputTypes = map[string]string{
	typeCall:           typeOutput,
	"custom_tool_call": "custom_tool_call_output",
	"shell_call":       "shell_call_output",
	"apply_patch_call": "apply_patch_call_output",
	"computer_call":    "computer_call_output",
	"local_shell_call": "local_shell_call_output",
	"tool_search_call": "tool_search_output",
	"program":          "program_output",
}

// callTypes is the inverse of outputTypes.
var callTypes = func() map[string]string {
	m := make(map[string]string, len(outputTypes))
	for c, o := range outputTypes {
		m[o] = c
	}
	return m
}()

// class is what an item is to the repair.
type class uint8

const (
	classOther      class = iota // messages of people and of the system
	classMessage                 // a message of the assistant
	classCall                    // a call that needs an output
	classOutput                  // the output of a call
	classReasoning               // reasoning
	classStandalone              // any other item of a model
)

// none marks an index that is not set.
const none = -1

// entry is one item under repair.
type entry struct {
	head
	sessionstore.Item
	class class
	drop  bool
	// noID takes the identifier away.
	noID bool
	// after is the index within the turn of the call behind which an output belongs, none otherwise.
	after int
	// answer is the index within the turn of a call's output, none otherwise.
	answer int
	// callID is the new call ID, empty to keep the old one.
	newCallID string
	// badArgs is set for arguments that must be replaced.
	badArgs bool
}

// newEntry looks at an item by itself. It returns false for one that cannot be shown to any model.
func newEntry(it sessionstore.Item, o RepairOptions) (entry, bool) {
	if !sessionstore.ValidItem(it.Raw) {
		return entry{}, false
	}
	e := entry{head: peek(it.Raw), Item: it, after: none, answer: none}
	if e.envelope {
		return entry{}, false
	}
	e.classify()
	foreign := o.Provider != "" && it.Origin != "" && originProvider(it.Origin) != o.Provider
	e.noID = e.id == placeholderID || foreign && e.ofModel()
	e.drop = e.refused(o, foreign)
	if e.typ == typeCall && !e.drop {
		args := gjson.GetBytes(it.Raw, "arguments").Str
		e.badArgs = !strings.HasPrefix(strings.TrimLeft(args, " \t\r\n"), "{") || !json.Valid([]byte(args))
	}
	return e, true
}

// placeholderID is what the Agents SDK writes where a chat completion has no identifier.
const placeholderID = "__fake_id__"

func (e *entry) classify() {
	switch {
	case e.isAssistant():
		e.class = classMessage
	case e.typ == typeMessage || e.typ == "":
		e.class = classOther
	case outputTypes[e.typ] != "":
		e.class = classCall
	case callTypes[e.typ] != "":
		e.class = classOutput
	case e.typ == typeReasoning:
		e.class = classReasoning
	default:
		e.class = classStandalone
	}
}

// ofModel reports whether a model made the item.
func (e *entry) ofModel() bool { return e.class != classOther && e.class != classOutput }

// refused reports what no provider takes, whatever stands around it.
func (e *entry) refused(o RepairOptions, foreign bool) bool {
	switch e.class {
	case classMessage:
		return messageText(e.Raw) == ""
	case classCall:
		named := e.name != "" || e.typ != typeCall && e.typ != "custom_tool_call"
		return e.callID == "" || !named
	case classOutput:
		return e.callID == ""
	case classReasoning:
		return foreign || o.NoReasoning || o.Stateless && opaque(e.Raw)
	case classStandalone:
		return foreign || o.NoReasoning && e.typ == typeCompact || o.Stateless && e.typ == typeReference
	}
	return false
}

// opaque reports whether reasoning holds nothing that a provider could read.
func opaque(raw json.RawMessage) bool {
	v := gjson.GetManyBytes(raw, "encrypted_content", "content.#")
	return v[0].Str == "" && v[1].Int() == 0
}

// repaired returns the item with its fields changed, the same bytes where there is nothing to change.
func (e *entry) repaired() sessionstore.Item {
	it := e.Item
	set := func(key string, value any) {
		if b, err := sjson.SetBytes(it.Raw, key, value); err == nil {
			it.Raw = b
		}
	}
	del := func(key string) {
		if b, err := sjson.DeleteBytes(it.Raw, key); err == nil {
			it.Raw = b
		}
	}
	if e.noID && e.id != "" {
		del("id")
	}
	if e.newCallID != "" {
		set("call_id", e.newCallID)
	}
	if e.badArgs {
		set("arguments", "{}")
	}
	if e.private {
		var keys []string
		gjson.ParseBytes(it.Raw).ForEach(func(k, v gjson.Result) bool {
			if isPrivate(k.Str, v) {
				keys = append(keys, gjson.Escape(k.Str))
			}
			return true
		})
		for _, k := range keys {
			del(k)
		}
	}
	return it
}
