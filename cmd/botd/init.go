package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"botd/config"
)

// initCmd writes a configuration to begin with.
type initCmd struct {
	Config string `short:"c" default:"botd.yaml" placeholder:"FILE" help:"The file to write."`
}

// Help is the long help.
func (initCmd) Help() string { return "A file that exists is never replaced." }

// Run is called by the command line.
func (c initCmd) Run(p *process) error {
	f, err := os.OpenFile(c.Config, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) // it may come to hold secrets
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists: remove it, or name another file with --config", c.Config)
	}
	if err != nil {
		return fmt.Errorf("write configuration: %w", err)
	}
	_, err = f.WriteString(config.Example())
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write configuration: %w", err)
	}
	_, err = fmt.Fprintf(p.stdout, "%s written: keep what you need of it, then check it with botd check --config %[1]s\n", c.Config)
	return err
}
