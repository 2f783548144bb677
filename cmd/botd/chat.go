package main

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"time"

	"botd/channels/console"
	"botd/channels/dispatch"
	"botd/cmd/botd/internal/app"
	"botd/cmd/botd/internal/obs"
	"botd/config"
)

// chatCmd talks to the bot in the terminal.
type chatCmd struct {
	configFlag
	Agent   string `placeholder:"NAME" help:"The agent to talk to; by default the first by name."`
	Data    string `placeholder:"FILE" help:"Remember the conversation in this file; by default it is forgotten at the end."`
	Offline bool   `help:"Talk to the built-in offline model, whatever is configured."`
	Verbose bool   `short:"v" help:"Log everything to standard error."`
}

// Help is the long help.
func (chatCmd) Help() string {
	return `Agents and models come from the configuration, whose channels are left alone; only when there is none, neither a file nor a variable, the built-in offline model answers. /reset forgets the conversation, /help tells more, Ctrl-D ends. When input is not a terminal, each line is a message that waits for the answer to the one before, and botd ends once all are answered.`
}

// terminalChannel is the name of the channel, and part of the session ID in the file of --data.
const terminalChannel = "terminal"

// Run is called by the command line.
func (c chatCmd) Run(p *process) error {
	cfg, warnings, err := c.configuration()
	if err != nil {
		return err
	}
	if len(warnings) > 0 {
		fmt.Fprintf(p.stderr, "%s\n\nThe chat goes on without channels.\n", warnings)
	}
	level := slog.LevelWarn
	if c.Verbose {
		level = slog.LevelDebug
	}
	log, err := obs.NewLogger(obs.LogOptions{Writer: p.stderr, Format: "text", Level: level, Secrets: cfg.Secrets()})
	if err != nil {
		return err
	}
	live := obs.IsTerminal(p.stdout)
	terminal := console.Options{Channel: terminalChannel, In: p.stdin, Out: p.stdout, Rewrite: live}
	if obs.IsTerminal(p.stdin) {
		terminal.Prompt = "> "
		fmt.Fprintln(p.stderr, c.greeting(cfg))
	}
	var gateway *app.App
	awaitAnswers := func(ctx context.Context) {
		if err := gateway.AwaitIdle(ctx); err != nil && ctx.Err() == nil {
			log.Error("wait for the answers", "err", err)
		}
	}
	if terminal.Prompt == "" { // nobody reads an answer before writing on
		terminal.Answered = awaitAnswers
	}
	adapter, err := console.New(terminal)
	if err != nil {
		return err
	}
	gateway, err = app.New(cfg, app.Options{
		Logger: log, Version: buildVersion(), Started: p.started,
		Channels: []dispatch.Channel{{Adapter: adapter, Agent: c.Agent, NoPreview: !live}},
	})
	if err != nil {
		return err
	}
	ctx, stop := untilSignal(p.ctx, log)
	defer stop()
	ctx, end := context.WithCancel(ctx)
	defer end()
	go func() {
		select {
		case <-adapter.InputEnded():
			awaitAnswers(ctx)
			end()
		case <-ctx.Done():
		}
	}()
	return gateway.Run(ctx)
}

// offlineYAML is the configuration of a chat when there is no other.
const offlineYAML = `
providers: {offline: {type: offline}}
agents: {assistant: {models: [offline/offline], tools: [clock]}}
`

// chatGrace is how long an answer may go on after Ctrl-C.
const chatGrace = time.Second

// configuration is the configured one, or the built-in one when there is none, without channels and listener.
// What is wrong with the channels is not in the way, as they are not started; it comes as warnings.
func (c chatCmd) configuration() (_ *config.Config, warnings config.Problems, _ error) {
	cfg, problems := c.load()
	if c.Offline || problems.NothingSet() {
		cfg, problems = config.Parse("", []byte(offlineYAML), knownNames())
	}
	var serious config.Problems
	for _, p := range problems {
		switch {
		case p.Severity != config.SeverityError: // such as of the store, which is another one here
		case p.OfChannel():
			p.Severity = config.SeverityWarning
			warnings = append(warnings, p)
		default:
			serious = append(serious, p)
		}
	}
	if err := serious.Err(); err != nil {
		return nil, nil, &config.Error{Problems: append(serious, warnings...)}
	}
	if _, ok := cfg.Agents[c.Agent]; c.Agent != "" && !ok {
		return nil, nil, fmt.Errorf("there is no agent named %q", c.Agent)
	}
	cfg.Channels, cfg.Server.Listen = nil, ""
	cfg.Limits.Grace = chatGrace
	cfg.Store = "memory:"
	if c.Data != "" {
		path, err := filepath.Abs(c.Data)
		if err != nil {
			return nil, nil, fmt.Errorf("find the file of --data: %w", err)
		}
		cfg.Store = "bbolt://" + path
	}
	return cfg, warnings, nil
}

func (c chatCmd) greeting(cfg *config.Config) string {
	name := c.Agent
	if name == "" {
		name = app.DefaultAgent(cfg)
	}
	memory := "forgotten at the end (see --data)"
	if c.Data != "" {
		memory = "remembered in " + c.Data
	}
	return fmt.Sprintf("Talking to %s (%s). The conversation is %s.\n/help tells what you can do, Ctrl-D ends.",
		name, strings.Join(cfg.Agents[name].Models, ", "), memory)
}
