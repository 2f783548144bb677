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
	Config  string `short:"c" default:"botd.yaml" placeholder:"FILE" help:"The file to write."`
	Offline bool   `help:"Use the built-in offline model, which needs no key."`
}

// Help is the long help.
func (initCmd) Help() string {
	return `The file has one model provider, one agent and a console channel; LINE and Discord are commented out, with where to get each value. botd config example shows every key. A file that exists is never replaced.`
}

// Run is called by the command line.
func (c initCmd) Run(p *process) error {
	f, err := os.OpenFile(c.Config, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) // it may come to hold secrets
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists: remove it, or name another file with --config", c.Config)
	}
	if err != nil {
		return fmt.Errorf("write configuration: %w", err)
	}
	_, err = f.WriteString(config.Starter(c.Offline))
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write configuration: %w", err)
	}
	first := "set OPENAI_API_KEY and "
	if c.Offline {
		first = ""
	}
	check := "botd check"
	if c.Config != defaultFile {
		check += " --config " + shellQuote(c.Config)
	}
	_, err = fmt.Fprintf(p.stdout, "%s written: %scheck it with: %s\n", c.Config, first, check)
	return err
}
