package openai_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"botd/agent"
	"botd/agent/openai"
)

// specification is OpenAI's own description of its API, or why it is not there.
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
	// The document's unions name a discriminator that some of their members lack, and have members that
	// overlap (a message of a person is both an EasyInputMessage and an InputMessage): taken literally no
	// request could be valid. So a union here is met by at least one of its members.
	seen := make(map[*openapi3.Schema]bool)
	for _, s := range doc.Components.Schemas {
		loosen(s, seen)
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
	for _, list := range []openapi3.SchemaRefs{s.AnyOf, s.AllOf} {
		for _, r := range list {
			loosen(r, seen)
		}
	}
	for _, r := range s.Properties {
		loosen(r, seen)
	}
	loosen(s.Items, seen)
	loosen(s.Not, seen)
	loosen(s.AdditionalProperties.Schema, seen)
}

// schema returns the schema of a request body.
func schema(t *testing.T, path string) *openapi3.Schema {
	t.Helper()
	doc, missing := specification()
	if missing != "" {
		if os.Getenv("BOTD_REQUIRE_SPECS") == "1" {
			t.Fatal(missing)
		}
		t.Skip(missing)
	}
	return doc.Paths.Value(path).Post.RequestBody.Value.Content["application/json"].Schema.Value
}

// properties are all the fields that a schema names.
func properties(s *openapi3.Schema) map[string]bool {
	names := make(map[string]bool)
	for n := range s.Properties {
		names[n] = true
	}
	for _, part := range s.AllOf {
		for n := range properties(part.Value) {
			names[n] = true
		}
	}
	return names
}

// conversations are the requests that the engine makes.
func conversations() map[string]*agent.Request {
	tools := []agent.ToolSpec{
		{Name: "clock", Description: "Tells the time.", Parameters: json.RawMessage(`{"type":"object","properties":{"zone":{"type":"string"}},"additionalProperties":false}`)},
		{Name: "bare", Parameters: json.RawMessage(`{"type":"object"}`)},
	}
	return map[string]*agent.Request{
		"text":                hello(),
		"text, offered tools": {Model: "m", Input: hello().Input, Tools: tools},
		"everything":          full(),
		"outputs of tools": {Model: "m", Tools: tools, Input: []json.RawMessage{
			agent.UserMessage("go"), json.RawMessage(reasonItem), json.RawMessage(callItem),
			agent.FunctionCall("c2", "bare", "{}"),
			agent.FunctionCallOutput("call_1", "12:00"), agent.FunctionCallOutput("c2", ""),
		}},
		"a group": {Model: "m", Instructions: "x", Input: []json.RawMessage{
			json.RawMessage(`{"role":"user","content":[{"type":"input_text","text":"[from \"Ann\" id=aaaaaaaa]"},{"type":"input_text","text":"hi"}]}`),
			agent.AssistantMessage("hi"), json.RawMessage(messageItem), agent.UserMessage("ho"),
		}},
		"an image": {Model: "m", Input: []json.RawMessage{
			json.RawMessage(`{"role":"user","content":[{"type":"input_text","text":"see"},{"type":"input_image","detail":"auto","image_url":"data:image/png;base64,AA=="}]}`),
		}},
	}
}

func TestRequestsKeepToTheSpecification(t *testing.T) {
	t.Parallel()
	apis := map[string]openai.API{"/responses": openai.Responses, "/chat/completions": openai.Chat}
	for path, api := range apis {
		s := schema(t, path)
		known := properties(s)
		for name, req := range conversations() {
			for _, dialect := range []openai.Dialect{openai.OpenAI, openai.Azure, openai.Generic} {
				answer := stream(completed)
				if api == openai.Chat {
					answer = stream(chunk(`{"content":"x"}`, "stop"))
				}
				p := newProvider(t, answer)
				if _, _, err := ask(t.Context(), p.model(t, openai.Options{API: api, Dialect: dialect}), req); err != nil {
					t.Fatal(err)
				}
				sent := decode(t, p.requests()[0].body).(map[string]any)
				if err := s.VisitJSON(sent); err != nil {
					t.Errorf("%s, %s, dialect %d: %v\n%s", path, name, dialect, err, p.requests()[0].body)
				}
				for field := range sent {
					if !known[field] {
						t.Errorf("%s, %s, dialect %d: field %q is not in the specification", path, name, dialect, field)
					}
				}
			}
		}
	}
}

// The check above is worth something only if it finds faults.
func TestTheSpecificationFindsFaults(t *testing.T) {
	t.Parallel()
	faults := map[string][]string{
		"/responses": {
			`{"model":"m","input":[{"role":"usr","content":"x"}]}`,
			`{"model":"m","input":[{"type":"function_call","name":"f","arguments":"{}"}]}`,
			`{"model":"m","input":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"x"}]}]}`,
			`{"model":"m","input":[{"type":"reasoning","summary":[]}]}`,
			`{"model":"m","input":"x","tools":[{"type":"function","parameters":{},"strict":false}]}`,
			`{"model":"m","input":"x","store":"no"}`,
		},
		"/chat/completions": {
			`{"model":"m","messages":[{"role":"usr","content":"x"}]}`,
			`{"model":"m","messages":[{"role":"tool","content":"x"}]}`,
			`{"model":"m","messages":[{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f"}}]}]}`,
			`{"model":"m"}`,
		},
	}
	for path, bodies := range faults {
		for _, b := range bodies {
			if schema(t, path).VisitJSON(decode(t, []byte(b))) == nil {
				t.Errorf("%s takes %s", path, b)
			}
		}
	}
}
