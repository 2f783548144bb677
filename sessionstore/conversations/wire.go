package conversations

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/openai/openai-go/v3"
	api "github.com/openai/openai-go/v3/conversations"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"
	"github.com/tidwall/sjson"
)

// Limits of the Conversations API (OpenAI API reference, Conversations).
const (
	createLimit = 20
	listLimit   = 100
)

// head is all that this package reads of an item.
type head struct {
	ID        string `json:"id"`
	Type      string `json:"type"`
	Role      string `json:"role"`
	CallID    string `json:"call_id"`
	Encrypted string `json:"encrypted_content"`
}

func headOf(raw []byte) head {
	var h head
	_ = json.Unmarshal(raw, &h) // a field of another type is as good as none
	if h.Type == "" && h.Role != "" {
		h.Type = "message"
	}
	return h
}

// same reports whether an item of the API's can be the one that was sent.
func same(got, sent head) bool {
	return got.Type == sent.Type && got.Role == sent.Role && got.CallID == sent.CallID
}

// keepsID tells the types whose schema requires an id.
func keepsID(kind string) bool {
	switch kind {
	case "reasoning", "item_reference", "file_search_call", "web_search_call", "computer_call",
		"code_interpreter_call", "image_generation_call", "local_shell_call", "local_shell_call_output",
		"mcp_list_tools", "mcp_approval_request", "mcp_approval_response", "mcp_call", "program", "program_output":
		return true
	}
	return false
}

// sendable is an item as the API takes it; ok is false for one that it cannot take.
func sendable(raw json.RawMessage) (item json.RawMessage, ok bool) {
	h := headOf(raw)
	if h.Type == "reasoning" && h.ID == "" && h.Encrypted == "" {
		return nil, false
	}
	if !keepsID(h.Type) {
		raw = without(raw, "id")
	}
	return without(raw, "provider_data"), true
}

// readable is an item of the API's as a model takes it.
func readable(raw json.RawMessage) json.RawMessage {
	if h := headOf(raw); h.Type == "message" && h.Role == "assistant" {
		return without(raw, "id")
	}
	return raw
}

// without takes a field out and leaves every other byte as it is.
func without(raw json.RawMessage, field string) json.RawMessage {
	out, err := sjson.DeleteBytes(raw, field)
	if err != nil {
		return raw
	}
	return out
}

// remoteItem is an item as the API gives it.
type remoteItem struct {
	id  string
	raw json.RawMessage
}

func remote(u api.ConversationItemUnion) remoteItem {
	raw := json.RawMessage(u.RawJSON())
	return remoteItem{id: headOf(raw).ID, raw: raw}
}

// walk calls f for the items of a conversation, in one order or the other, until it returns false.
func (s *Store) walk(ctx context.Context, conversation, after string, order api.ItemListParamsOrder, size int, f func(remoteItem) (bool, error)) error {
	q := api.ItemListParams{Order: order, Limit: openai.Int(int64(min(size, listLimit)))}
	if after != "" {
		q.After = openai.String(after)
	}
	pages := s.client.Conversations.Items.ListAutoPaging(ctx, conversation, q)
	for pages.Next() {
		if more, err := f(remote(pages.Current())); !more || err != nil {
			return err
		}
	}
	return pages.Err()
}

// landed returns the IDs of the first of the pending items, those that are in the conversation already.
func (s *Store) landed(ctx context.Context, r *record) (ids []string, err error) {
	p := r.Pending
	err = s.walk(ctx, r.Conversation, p.After, api.ItemListParamsOrderAsc, listLimit, func(it remoteItem) (bool, error) {
		if same(headOf(it.raw), headOf(p.Items[len(ids)])) {
			ids = append(ids, it.id)
		}
		return len(ids) < len(p.Items), nil
	})
	return ids, err
}

// create sends up to createLimit items and returns their IDs. It is never sent twice without a look at
// what became of the first time.
func (s *Store) create(ctx context.Context, conversation string, items []json.RawMessage) (ids []string, err error) {
	body := api.ItemNewParams{}
	for _, raw := range items {
		body.Items = append(body.Items, param.Override[responses.ResponseInputItemUnionParam](raw))
	}
	err = patiently(ctx, func() error {
		list, err := s.client.Conversations.Items.New(ctx, conversation, body, option.WithMaxRetries(0))
		if err != nil {
			return err
		}
		ids = nil
		for _, u := range list.Data {
			ids = append(ids, remote(u).id)
		}
		return nil
	})
	return ids, err
}

// lockWaits are how long to wait for whoever holds a conversation, as the Agents SDK does.
var lockWaits = [...]time.Duration{time.Second, 2 * time.Second, 4 * time.Second}

// patiently runs do again while the API says that it did nothing because the conversation was in use or
// too much was asked of it.
func patiently(ctx context.Context, do func() error) error {
	err := do()
	for _, wait := range lockWaits {
		if !busy(err) {
			return err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return err
		}
		err = do()
	}
	return err
}

// busy reports whether the API refused for now and did nothing.
func busy(err error) bool {
	ae, ok := errors.AsType[*openai.Error](err)
	return ok && (ae.Code == "conversation_locked" || ae.StatusCode == http.StatusTooManyRequests)
}

// refused reports whether the API refused for good.
func refused(err error) bool {
	ae, ok := errors.AsType[*openai.Error](err)
	return ok && ae.StatusCode >= 400 && ae.StatusCode < 500 && !busy(err) &&
		ae.StatusCode != http.StatusRequestTimeout && ae.StatusCode != http.StatusConflict &&
		ae.StatusCode != http.StatusUnauthorized && ae.StatusCode != http.StatusForbidden
}

// gone reports whether what was named does not exist.
func gone(err error) bool {
	ae, ok := errors.AsType[*openai.Error](err)
	return ok && ae.StatusCode == http.StatusNotFound
}

// plain is an error of the API without the request and the answer, which may hold a message.
func plain(err error) error {
	if ae, ok := errors.AsType[*openai.Error](err); ok {
		return &apiError{status: ae.StatusCode, code: ae.Code}
	}
	return err
}

// apiError is what an answer of the API said, in short.
type apiError struct {
	status int
	code   string
}

func (e *apiError) Error() string {
	text := "the Conversations API answered " + http.StatusText(e.status)
	if e.code != "" {
		text += " (" + e.code + ")"
	}
	return text
}
