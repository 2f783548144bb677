// Package spectest judges JSON by LINE's published OpenAPI documents, for tests.
//
// LINE marks polymorphic objects (events, sources, message objects) with a discriminator alone, without
// oneOf, which validators pass over; Check follows it.
package spectest

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

// Load reads one of LINE's documents ("webhook.yml"). BOTD_SPECS names the folder that holds line/; it
// defaults to ../shared/specs beside the module. The test is skipped when the document is not there.
func Load(t testing.TB, name string) *openapi3.T {
	t.Helper()
	dir := os.Getenv("BOTD_SPECS")
	if dir == "" {
		dir = filepath.Join(moduleRoot(t), "..", "shared", "specs")
	}
	path := filepath.Join(dir, "line", name)
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		if os.Getenv("BOTD_REQUIRE_SPECS") == "1" {
			t.Fatalf("LINE's %s is not in %s, and BOTD_REQUIRE_SPECS asks for it", name, dir)
		}
		t.Skipf("LINE's %s is not here: set BOTD_SPECS to a folder that holds line/%[1]s", name)
	}
	doc, err := openapi3.NewLoader().LoadFromFile(path)
	if err != nil {
		t.Fatalf("load %s: %v", name, err)
	}
	return doc
}

func moduleRoot(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			t.Fatal("no go.mod above the test")
		}
		dir = parent
	}
}

// Check judges a JSON text by a schema of the document, by its discriminators all the way down.
func Check(doc *openapi3.T, schema string, text []byte) error {
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		return fmt.Errorf("decode: %w", err)
	}
	ref := doc.Components.Schemas[schema]
	if ref == nil {
		return fmt.Errorf("no schema %s", schema)
	}
	return walk(doc, schema, ref, v)
}

func walk(doc *openapi3.T, path string, ref *openapi3.SchemaRef, v any) error {
	s := ref.Value
	if d := s.Discriminator; d != nil {
		obj, _ := v.(map[string]any)
		typ, _ := obj[d.PropertyName].(string)
		target, known := d.Mapping[typ]
		if !known {
			return fmt.Errorf("%s: %s %q is not in the document", path, d.PropertyName, typ)
		}
		s = doc.Components.Schemas[filepath.Base(target.Ref)].Value
	}
	if err := s.VisitJSON(v); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	switch v := v.(type) {
	case []any:
		for i, item := range v {
			if err := walk(doc, fmt.Sprintf("%s[%d]", path, i), s.Items, item); err != nil {
				return err
			}
		}
	case map[string]any:
		for name, p := range properties(s) {
			if value, is := v[name]; is {
				if err := walk(doc, path+"."+name, p, value); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// properties gathers what a schema says itself and through allOf.
func properties(s *openapi3.Schema) openapi3.Schemas {
	all := openapi3.Schemas{}
	for _, part := range s.AllOf {
		maps.Copy(all, properties(part.Value))
	}
	maps.Copy(all, s.Properties)
	return all
}
