package config

import (
	_ "embed" // for the example, the starter and the schema
	"strings"
	"text/template"
)

//go:embed example.yaml
var example string

//go:embed starter.yaml
var starter string

//go:embed schema.json
var schema string

// Example returns a commented configuration that shows every key.
func Example() string { return example }

// Starter returns a short configuration to begin with, with OPENAI_API_KEY or, offline, with nothing at all.
func Starter(offline bool) string {
	model := "openai/" + DefaultModel
	if offline {
		model = "offline/offline"
	}
	var b strings.Builder
	err := template.Must(template.New("starter").Parse(starter)).Execute(&b, struct {
		Offline bool
		Model   string
	}{offline, model})
	if err != nil {
		panic(err) // writing to memory never fails, and the template is a constant
	}
	return b.String()
}

// Schema returns the JSON Schema of the configuration, with which editors complete and check it.
func Schema() string { return schema }
