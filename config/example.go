package config

import _ "embed" // for the example

//go:embed example.yaml
var example string

// Example returns a commented configuration that shows every key.
func Example() string { return example }
