package conversations_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

// fake is the Conversations API in this process, reached as an http.RoundTripper.
type fake struct {
	t testing.TB

	mu            sync.Mutex
	conversations map[string][]map[string]any
	made          int
	requests      []string
	bodies        []string // of item creations

	locked int                                                 // creations and deletions to refuse for now
	refuse func(item map[string]any) bool                      // items to refuse for good
	lose   func(n int, r *http.Request) (request, answer bool) // what to lose of the nth request
	n      int                                                 // requests since lose was set
	down   bool
}

func newFake(t testing.TB) *fake { return &fake{t: t, conversations: map[string][]map[string]any{}} }

type lostError struct{ what string }

func (e *lostError) Error() string { return "connection lost with the " + e.what }

// RoundTrip implements http.RoundTripper.
func (f *fake) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.requests = append(f.requests, r.Method+" "+r.URL.RequestURI())
	var lostRequest, lostAnswer bool
	if f.lose != nil {
		lostRequest, lostAnswer = f.lose(f.n, r)
		f.n++
	}
	if f.down || lostRequest {
		return nil, &lostError{"request"}
	}
	w := httptest.NewRecorder()
	f.serve(w, r)
	if lostAnswer {
		return nil, &lostError{"answer"}
	}
	return w.Result(), nil
}

func (f *fake) client() *http.Client { return &http.Client{Transport: f} }

// losing loses something until the function it returns is called.
func (f *fake) losing(lose func(n int, r *http.Request) (request, answer bool)) (stop func() (requests int)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lose, f.n = lose, 0
	return func() int {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.lose = nil
		return f.n
	}
}

func (f *fake) serve(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "Bearer key" {
		problem(w, http.StatusUnauthorized, "invalid_api_key")
		return
	}
	parts := strings.Split(strings.Trim(strings.TrimPrefix(r.URL.Path, "/v1"), "/"), "/")
	if parts[0] != "conversations" {
		problem(w, http.StatusNotFound, "")
		return
	}
	if len(parts) == 1 && r.Method == http.MethodPost {
		f.validate("/conversations", r)
		f.made++
		id := fmt.Sprint("conv_", f.made)
		f.conversations[id] = nil
		reply(w, map[string]any{"id": id, "object": "conversation", "created_at": 1, "metadata": nil})
		return
	}
	items, ok := f.conversations[parts[1]]
	if !ok {
		problem(w, http.StatusNotFound, "")
		return
	}
	if f.locked > 0 && r.Method != http.MethodGet {
		f.locked--
		problem(w, http.StatusBadRequest, "conversation_locked")
		return
	}
	switch {
	case len(parts) == 2 && r.Method == http.MethodDelete:
		delete(f.conversations, parts[1])
		reply(w, map[string]any{"id": parts[1], "object": "conversation.deleted", "deleted": true})
	case len(parts) == 3 && r.Method == http.MethodPost:
		f.create(w, r, parts[1])
	case len(parts) == 3 && r.Method == http.MethodGet:
		f.list(w, r, items)
	case len(parts) == 4 && r.Method == http.MethodDelete:
		at := slices.IndexFunc(items, func(it map[string]any) bool { return it["id"] == parts[3] })
		if at < 0 {
			problem(w, http.StatusNotFound, "")
			return
		}
		f.conversations[parts[1]] = slices.Delete(slices.Clone(items), at, at+1)
		reply(w, map[string]any{"id": parts[1], "object": "conversation", "created_at": 1, "metadata": nil})
	default:
		problem(w, http.StatusMethodNotAllowed, "")
	}
}

func (f *fake) create(w http.ResponseWriter, r *http.Request, conversation string) {
	body := f.validate("/conversations/{conversation_id}/items", r)
	f.bodies = append(f.bodies, string(body))
	var in struct{ Items []map[string]any }
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	if err := dec.Decode(&in); err != nil || len(in.Items) == 0 || len(in.Items) > 20 {
		problem(w, http.StatusBadRequest, "array_above_max_length")
		return
	}
	var made []map[string]any
	for _, it := range in.Items {
		if f.refuse != nil && f.refuse(it) {
			problem(w, http.StatusBadRequest, "invalid_value")
			return
		}
		made = append(made, f.normalise(it))
	}
	f.conversations[conversation] = append(slices.Clone(f.conversations[conversation]), made...)
	replyList(w, made, false)
}

// normalise spells an item as the API does.
func (f *fake) normalise(it map[string]any) map[string]any {
	f.made++
	kind, _ := it["type"].(string)
	if kind == "" {
		kind = "message"
	}
	it["type"] = kind
	if id, _ := it["id"].(string); id == "" {
		it["id"] = fmt.Sprintf("%s_%d", kind, f.made)
	}
	if text, ok := it["content"].(string); ok && kind == "message" {
		part := map[string]any{"type": "input_text", "text": text}
		if it["role"] == "assistant" {
			part = map[string]any{"type": "output_text", "text": text, "annotations": []any{}}
		}
		it["content"], it["status"] = []any{part}, "completed"
	}
	return it
}

func (f *fake) list(w http.ResponseWriter, r *http.Request, items []map[string]any) {
	q := r.URL.Query()
	limit := 20
	if v := q.Get("limit"); v != "" {
		limit, _ = strconv.Atoi(v)
	}
	order := q.Get("order")
	if limit < 1 || limit > 100 || order != "" && order != "asc" && order != "desc" {
		problem(w, http.StatusBadRequest, "invalid_value")
		return
	}
	items = slices.Clone(items)
	if order != "asc" {
		slices.Reverse(items)
	}
	if after := q.Get("after"); after != "" {
		at := slices.IndexFunc(items, func(it map[string]any) bool { return it["id"] == after })
		if at < 0 {
			problem(w, http.StatusBadRequest, "invalid_value")
			return
		}
		items = items[at+1:]
	}
	replyList(w, items[:min(limit, len(items))], len(items) > limit)
}

func reply(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

func replyList(w http.ResponseWriter, items []map[string]any, more bool) {
	if items == nil {
		items = []map[string]any{}
	}
	first, last := "", ""
	if len(items) > 0 {
		first, _ = items[0]["id"].(string)
		last, _ = items[len(items)-1]["id"].(string)
	}
	reply(w, map[string]any{"object": "list", "data": items, "first_id": first, "last_id": last, "has_more": more})
}

func problem(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{
		"message": "Something about the text hush-hush.", "type": "invalid_request_error", "param": nil, "code": code,
	}})
}

// specification is OpenAI's own description of its API, or why it is not there. Taken literally its unions
// admit nothing: they name discriminators that members lack, and their members overlap. So a union is met
// by at least one of its members here.
var specification = sync.OnceValues(func() (*openapi3.T, string) {
	dir := os.Getenv("BOTD_SPECS")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared", "specs")
	}
	file := filepath.Join(dir, "openai", "openapi.yaml")
	if _, err := os.Stat(file); err != nil {
		return nil, "OpenAI's specification is not here (set BOTD_SPECS): " + err.Error()
	}
	doc, err := openapi3.NewLoader().LoadFromFile(file)
	if err != nil {
		panic(err)
	}
	// The document wants an assistant's message to have an id, which a new item has not: the API gives it
	// one, and the Agents SDK sends it without.
	message := doc.Components.Schemas["OutputMessage"].Value
	message.Required = slices.DeleteFunc(slices.Clone(message.Required), func(name string) bool { return name == "id" })
	seen := map[*openapi3.Schema]bool{}
	for _, path := range []string{"/conversations", "/conversations/{conversation_id}/items"} {
		loosen(doc.Paths.Value(path).Post.RequestBody.Value.Content["application/json"].Schema, seen)
	}
	return doc, ""
})

func loosen(ref *openapi3.SchemaRef, seen map[*openapi3.Schema]bool) {
	if ref == nil || ref.Value == nil || seen[ref.Value] {
		return
	}
	s := ref.Value
	seen[s] = true
	s.AnyOf = append(s.AnyOf, s.OneOf...)
	s.OneOf, s.Discriminator = nil, nil
	refs := []*openapi3.SchemaRef{s.Items, s.Not, s.AdditionalProperties.Schema}
	refs = append(append(refs, s.AnyOf...), s.AllOf...)
	for _, p := range s.Properties {
		refs = append(refs, p)
	}
	for _, r := range refs {
		loosen(r, seen)
	}
}

// validate returns a request's body, which must be as the specification says where that is at hand.
func (f *fake) validate(path string, r *http.Request) []byte {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		f.t.Error(err)
	}
	doc, missing := specification()
	if missing != "" {
		if os.Getenv("BOTD_REQUIRE_SPECS") == "1" {
			f.t.Error(missing)
		}
		return body
	}
	var v any
	if err := json.Unmarshal(body, &v); err != nil {
		f.t.Errorf("%s: the body is no JSON: %v", path, err)
		return body
	}
	schema := doc.Paths.Value(path).Post.RequestBody.Value.Content["application/json"].Schema.Value
	if err := schema.VisitJSON(v); err != nil {
		f.t.Errorf("%s: the request is not as specified: %v\n%s", path, err, body)
	}
	return body
}

// memState is a State that dies with the test.
type memState struct {
	mu sync.Mutex
	m  map[string][]byte
}

func (s *memState) Get(_ context.Context, key string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.m[key]), nil
}

func (s *memState) Swap(_ context.Context, key string, old, value []byte) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, ok := s.m[key]
	if ok != (old != nil) || !bytes.Equal(v, old) {
		return false, nil
	}
	if value == nil {
		delete(s.m, key)
		return true, nil
	}
	if s.m == nil {
		s.m = map[string][]byte{}
	}
	s.m[key] = slices.Clone(value)
	return true, nil
}

func (s *memState) Keys(_ context.Context, prefix, after string, limit int) (keys []string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for k := range s.m {
		if strings.HasPrefix(k, prefix) && k > after {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	return keys[:min(limit, len(keys))], nil
}
