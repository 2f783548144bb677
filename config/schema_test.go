package config_test

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"botd/config"
)

// object is one JSON object of the schema.
type object = map[string]any

// schemaMaker writes a JSON Schema from the structs and their comments.
type schemaMaker struct{ comments map[string]string }

func newSchemaMaker(t *testing.T) schemaMaker {
	t.Helper()
	m := schemaMaker{map[string]string{}}
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		m.read(file)
	}
	return m
}

// read takes the comments of a file's fields.
func (m schemaMaker) read(file *ast.File) {
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok {
			return true
		}
		if st, ok := spec.Type.(*ast.StructType); ok {
			for _, f := range st.Fields.List {
				for _, name := range f.Names {
					m.comments[spec.Name.Name+"."+name.Name] = strings.Join(strings.Fields(f.Doc.Text()), " ")
				}
			}
		}
		return true
	})
}

// section is the schema of a struct: one object, or one for each of its types.
func (m schemaMaker) section(typ reflect.Type) object {
	variants := []any{}
	for field := range typ.Fields() {
		if kind := field.Tag.Get("when"); kind != "" {
			variants = append(variants, m.variant(typ, kind))
		}
	}
	if len(variants) == 0 {
		return m.variant(typ, "")
	}
	for _, kind := range typeChoices(typ) {
		if !hasPart(typ, kind) {
			variants = append(variants, m.variant(typ, kind))
		}
	}
	return object{"oneOf": variants}
}

func typeChoices(typ reflect.Type) []string {
	f, _ := typ.FieldByName("Type")
	return strings.Split(f.Tag.Get("enum"), ",")
}

func hasPart(typ reflect.Type, kind string) bool {
	for field := range typ.Fields() {
		if field.Tag.Get("when") == kind {
			return true
		}
	}
	return false
}

// variant is the schema of a struct of one type.
func (m schemaMaker) variant(typ reflect.Type, kind string) object {
	properties, required, together := object{}, []string{}, []any{}
	var walk func(reflect.Type)
	walk = func(typ reflect.Type) {
		for f := range typ.Fields() {
			if when := f.Tag.Get("when"); when != "" {
				if when == kind {
					walk(f.Type.Elem())
				}
				continue
			}
			key := f.Tag.Get("yaml")
			s := m.value(f)
			s["description"] = m.comments[typ.Name()+"."+f.Name]
			if key == "type" && kind != "" {
				s = object{"const": kind, "description": s["description"]}
				if f.Tag.Get("default") != kind {
					required = append(required, key)
				}
			} else if f.Tag.Get("required") != "" && f.Type != reflect.TypeFor[config.Secret]() {
				required = append(required, key)
			}
			properties[key] = s
			if file := f.Tag.Get("file"); file != "" || f.Type == reflect.TypeFor[config.Secret]() {
				properties[key+"_file"] = object{"type": "string", "description": "The file that holds " + key + "."}
				if f.Tag.Get("required") != "" {
					ways := []any{object{"required": []string{key}}, object{"required": []string{key + "_file"}}}
					if other := f.Tag.Get("instead"); other != "" {
						ways = append(ways, object{"required": []string{other}})
					}
					together = append(together, object{"oneOf": ways})
				}
			}
		}
	}
	walk(typ)
	s := object{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		s["required"] = required
	}
	if len(together) > 0 {
		s["allOf"] = together
	}
	return s
}

// value is the schema of one key.
func (m schemaMaker) value(f reflect.StructField) object {
	variable := object{"type": "string", "pattern": `\$\{`}
	number := func(kind string) object {
		s := object{"type": kind}
		for tag, key := range map[string]string{"min": "minimum", "max": "maximum"} {
			if n, err := strconv.ParseFloat(f.Tag.Get(tag), 64); err == nil {
				s[key] = n
			}
		}
		out := object{"anyOf": []any{s, variable}}
		if n, err := strconv.ParseFloat(f.Tag.Get("default"), 64); err == nil {
			out["default"] = n
		}
		return out
	}
	typ := f.Type
	switch {
	case typ == reflect.TypeFor[time.Duration]():
		return object{"type": "string", "pattern": `^([0-9.]+(ns|us|µs|ms|s|m|h))+$|\$\{`, "default": f.Tag.Get("default")}
	case typ == reflect.TypeFor[*float64]():
		return number("number")
	case typ == reflect.TypeFor[config.Secret]():
		return object{"type": "string"}
	}
	switch typ.Kind() {
	case reflect.Int:
		return number("integer")
	case reflect.Bool:
		return object{"anyOf": []any{object{"type": "boolean"}, variable}, "default": f.Tag.Get("default") == "true"}
	case reflect.Slice:
		return object{"type": "array", "items": object{"type": "string"}}
	case reflect.Map:
		s := object{"type": "object", "propertyNames": object{"pattern": "^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$"}}
		if f.Tag.Get("names") == "any" {
			s["propertyNames"] = object{"pattern": `^\S{1,200}$`}
		}
		if typ.Elem() == reflect.TypeFor[config.Secret]() {
			s["additionalProperties"] = object{"type": "string"}
		} else {
			s["additionalProperties"] = m.section(typ.Elem())
		}
		return s
	case reflect.Struct:
		return m.section(typ)
	}
	s := object{"type": "string"}
	if enum := f.Tag.Get("enum"); enum != "" {
		s = object{"anyOf": []any{object{"enum": strings.Split(enum, ",")}, variable}}
	}
	if def := f.Tag.Get("default"); def != "" {
		s["default"] = def
	}
	return s
}

func TestSchemaIsThatOfTheStructs(t *testing.T) {
	t.Parallel()
	schema := newSchemaMaker(t).section(reflect.TypeFor[config.Config]())
	schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	schema["title"] = "botd configuration"
	var want bytes.Buffer
	enc := json.NewEncoder(&want)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(schema); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile("schema.json", want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if config.Schema() != want.String() {
		t.Error("schema.json is not that of the structs: go test ./config -update")
	}
}

func TestSchemaJudgesAsLoadDoes(t *testing.T) {
	t.Parallel()
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(config.Schema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("schema.json", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, text string
		ok         bool
	}{
		{"the example", config.Example(), true},
		{"the least", minimal, true},
		{"an unknown key", minimal + "nonsense: 1\n", false},
		{"a key of another type", "channels: {c: {type: console, token: x}}", false},
		{"an unknown type", "channels: {c: {type: cnsole}}", false},
		{"a secret that is missing", "channels: {d: {type: discord}}", false},
		{"a secret in a file", "channels: {d: {type: discord, token_file: x}}", true},
		{"a secret twice", "channels: {d: {type: discord, token_file: x, token: y}}", false},
		{"a provider without a type", "providers: {p: {api_key: x}}", true},
		{"a number out of range", "agents: {a: {models: [x/y], temperature: 3}}", false},
		{"a number from a variable", "agents: {a: {models: [x/y], max_turns: \"${N}\"}}", true},
		{"a duration without a unit", "limits: {grace: 20}", false},
		{"an agent without models", "agents: {a: {}}", false},
		{"a channel ID instead of a token", "channels: {l: {type: line, channel_secret: x, channel_id: \"1\"}}", true},
		{"a channel ID beside a token", "channels: {l: {type: line, channel_secret: x, channel_id: \"1\", channel_access_token: x}}", false},
		{"neither token nor channel ID", "channels: {l: {type: line, channel_secret: x}}", false},
		{"a model with any name", "providers: {p: {models: {\"org/m:7b\": {window: 8192}}}}", true},
		{"headers", "providers: {p: {headers: {X-Org: x, X-Key_file: y}}}", true},
		{"an MCP server", "mcp: {shop: {command: x, args: [y], env: {K: v}}}", true},
		{"a key that no MCP server has", "mcp: {shop: {cmd: x}}", false},
	} {
		var value any
		if err := yaml.Unmarshal([]byte(tt.text), &value); err != nil {
			t.Fatal(err)
		}
		plain, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		instance, err := jsonschema.UnmarshalJSON(bytes.NewReader(plain))
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(instance); (err == nil) != tt.ok {
			t.Errorf("%s: the schema says %v, want ok %v", tt.name, err, tt.ok)
		}
	}
}
