package config

import (
	_ "embed" // for the example, the starter and the schema
	"strings"
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
	if !offline {
		return starter
	}
	return withoutKey.Replace(starter)
}

// withoutKey puts the built-in model in the place of one that needs a key. It is no template: text/template
// would keep every method of every type in the program, which makes it half as large again.
var withoutKey = strings.NewReplacer(
	"  openai:\n    api_key: ${OPENAI_API_KEY} # from the environment; get one at https://platform.openai.com/api-keys\n",
	"  offline:\n    type: offline # the built-in model, for trying out; a real one needs type: openai and an api_key\n",
	"openai/"+DefaultModel, "offline/offline",
)

// Schema returns the JSON Schema of the configuration, with which editors complete and check it.
func Schema() string { return schema }
