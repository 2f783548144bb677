package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"botd/cmd/botd/internal/demo"
	"botd/cmd/botd/internal/obs"
	"botd/config"
)

// demoCmd shows the whole gateway without any account.
type demoCmd struct {
	Listen  string `placeholder:"HOST:PORT" help:"Loopback address of the page; by default 127.0.0.1:7788, or any free port if that is taken."`
	Data    string `placeholder:"DIR" help:"Folder to keep the conversations in; without it they are gone when the demo stops."`
	BaseURL string `name:"base-url" placeholder:"URL" env:"OPENAI_BASE_URL" help:"Server of a real model that speaks the OpenAI API, such as http://127.0.0.1:11434/v1."`
	Model   string `placeholder:"NAME" env:"BOTD_MODEL" help:"Name of the real model; offline is the built-in one."`
	Verbose bool   `short:"v" help:"Show the gateway's log."`
}

// Help is the long help.
func (demoCmd) Help() string {
	return `Starts the whole gateway between two platforms that stand in for LINE and Discord on this machine, and a page with both chats, what is stored of them, and buttons to reset it. It needs no account and no network: a built-in model answers by a few rules. With OPENAI_API_KEY set, or with --base-url, a real model answers.`
}

// demoWordDelay makes the built-in model write about as fast as a real one.
const demoWordDelay = 35 * time.Millisecond

// Run is called by the command line.
func (c demoCmd) Run(p *process) error {
	o := demo.Options{
		Listen: c.Listen, APIKey: os.Getenv("OPENAI_API_KEY"), BaseURL: c.BaseURL, Model: c.Model,
		WordDelay: demoWordDelay, Version: buildVersion(),
	}
	switch o.Model {
	case "":
		o.Model = config.DefaultModel
	case "offline":
		o.APIKey, o.BaseURL = "", ""
	}
	if c.Data != "" {
		dir, err := filepath.Abs(c.Data)
		if err != nil {
			return fmt.Errorf("find the folder of --data: %w", err)
		}
		o.Data = dir
	}
	level := slog.LevelWarn
	if c.Verbose {
		level = slog.LevelDebug
	}
	var secrets []string
	if o.APIKey != "" {
		secrets = append(secrets, o.APIKey)
	}
	log, err := obs.NewLogger(obs.LogOptions{Writer: p.stderr, Format: "text", Level: level, Secrets: secrets})
	if err != nil {
		return err
	}
	o.Logger = log
	ctx, stop := untilSignal(p.ctx, log)
	defer stop()
	d, err := demo.New(o)
	if err != nil {
		return c.blame(err)
	}
	fmt.Fprintf(p.stdout, "The botd demo is at %s\nCtrl-C stops it.\n", d.URL())
	return d.Run(ctx)
}

// blame names the flags or variables that a problem of the demo's own configuration, which nobody wrote, comes
// from.
func (c demoCmd) blame(err error) error {
	bad, ok := errors.AsType[*config.Error](err)
	if !ok {
		return err
	}
	given := func(flag, value, variable string) string {
		if value != "" && os.Getenv(variable) == value {
			return "the environment variable " + variable
		}
		return flag
	}
	sources := []struct{ suffix, name string }{
		{".base_url", given("--base-url", c.BaseURL, "OPENAI_BASE_URL")},
		{".api_key", "the environment variable OPENAI_API_KEY"},
		{".models[0]", given("--model", c.Model, "BOTD_MODEL")},
		{"store", "--data"},
	}
	told := &config.Error{}
	for _, p := range bad.Problems {
		p.File, p.Line, p.Column, p.Snippet = "", 0, 0, ""
		for _, s := range sources {
			if strings.HasSuffix(p.Path, s.suffix) {
				named := strings.ReplaceAll(p.Message, p.Path, s.name)
				if named == p.Message {
					named = s.name + ": " + p.Message
				}
				p.Message = named
				told.Problems = append(told.Problems, p)
				break
			}
		}
	}
	if len(told.Problems) == 0 {
		return err
	}
	return told
}
