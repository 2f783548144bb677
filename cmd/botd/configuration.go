package main

import (
	"os"

	"botd/cmd/botd/internal/app"
	"botd/config"
)

// defaultFile is read from the working directory when no other file is named.
const defaultFile = "botd.yaml"

// configFlag is the flag of every command that needs the configuration.
type configFlag struct {
	Config string `short:"c" env:"BOTD_CONFIG" placeholder:"FILE" help:"The configuration file."`
}

// path returns the file to read, empty for the environment.
func (f configFlag) path() string {
	if f.Config != "" {
		return f.Config
	}
	if _, err := os.Stat(defaultFile); err == nil {
		return defaultFile
	}
	return ""
}

// load reads the configuration, which can be used only if the problems hold no error.
func (f configFlag) load() (*config.Config, config.Problems) {
	return config.Load(f.path(), knownNames())
}

// knownNames are what a configuration may refer to in this program.
func knownNames() config.Options {
	return config.Options{Stores: app.Stores(), Tools: app.Tools()}
}
