package config

import _ "embed" // for the example and the schema

//go:embed example.yaml
var example string

//go:embed schema.json
var schema string

// Example returns a commented configuration that shows every key.
func Example() string { return example }

// Schema returns the JSON Schema of the configuration, with which editors complete and check it.
func Schema() string { return schema }
