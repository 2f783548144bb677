package main

import (
	"fmt"
	"io"

	"botd/config"
)

// configExampleCmd prints the example.
type configExampleCmd struct{}

// Run is called by the command line.
func (configExampleCmd) Run(p *process) error {
	_, err := io.WriteString(p.stdout, config.Example())
	return err
}

// configSchemaCmd prints the JSON Schema.
type configSchemaCmd struct{}

// Run is called by the command line.
func (configSchemaCmd) Run(p *process) error {
	_, err := io.WriteString(p.stdout, config.Schema())
	return err
}

// configShowCmd prints what a configuration means.
type configShowCmd struct {
	configFlag
}

// Run is called by the command line.
func (c configShowCmd) Run(p *process) error {
	cfg, problems := c.load()
	if err := problems.Err(); err != nil {
		return err
	}
	text, err := cfg.YAML()
	if err != nil {
		return fmt.Errorf("show configuration: %w", err)
	}
	_, err = p.stdout.Write(text)
	return err
}
