package main

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"botd/cmd/botd/internal/app"
	"botd/cmd/botd/internal/obs"
	"botd/config"
)

// runCmd runs the gateway until SIGTERM or SIGINT.
type runCmd struct {
	configFlag
}

// Help is the long help.
func (runCmd) Help() string {
	return `SIGTERM or SIGINT stop it gracefully: no new messages are taken, running answers get limits.grace to finish, and what is left is answered after the next start. A second signal stops it at once; nothing is lost by that either. SIGHUP reads the configuration anew and puts in place what has changed of agents, providers, MCP servers, channels, session, limits and the log level; the log tells what, and what needs a restart.`
}

// Run is called by the command line.
func (c runCmd) Run(p *process) error {
	cfg, problems := c.load()
	if err := problems.Err(); err != nil {
		return err
	}
	secrets := obs.NewRedactor(cfg.Secrets())
	log, level, err := newLogger(cfg, p, secrets)
	if err != nil {
		return err
	}
	for _, w := range problems.Warnings() {
		where := log
		if w.File != "" {
			where = log.With("file", w.File, "line", w.Line)
		}
		where.Warn(w.Message, "fix", w.Remedy)
	}
	ctx, stop := untilSignal(p.ctx, log)
	defer stop()

	gateway, err := app.New(cfg, app.Options{
		Load: func() (*config.Config, config.Problems) {
			fresh, problems := c.load()
			if problems.Err() == nil {
				secrets.Add(fresh.Secrets())
			}
			return fresh, problems
		},
		Logger: log, Level: level, Version: buildVersion(), Started: p.started,
		Notify: app.SystemdNotify(os.Getenv("NOTIFY_SOCKET"), func(err error) { log.Warn("notify the service manager", "err", err) }),
	})
	if err != nil {
		return err
	}
	defer onHangup(func() {
		if _, err := gateway.Reload(ctx); err != nil {
			log.Warn("configuration not reloaded", "err", err)
		}
	})()
	return gateway.Run(ctx)
}

// newLogger returns the logger of the configuration, from which its secrets are kept away.
func newLogger(cfg *config.Config, p *process, secrets *obs.Redactor) (*slog.Logger, *slog.LevelVar, error) {
	level := new(slog.LevelVar)
	l, err := obs.ParseLevel(cfg.Log.Level)
	if err != nil {
		return nil, nil, err
	}
	level.Set(l)
	log, err := obs.NewLogger(obs.LogOptions{Writer: p.stderr, Format: cfg.Log.Format, Level: level, Redactor: secrets})
	return log, level, err
}

// untilSignal returns a context that ends at the first SIGTERM or SIGINT. The second one ends the process.
func untilSignal(parent context.Context, log *slog.Logger) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(parent)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	done := make(chan struct{})
	go func() {
		for n := 0; ; n++ {
			select {
			case s := <-signals:
				if n > 0 {
					log.Warn("second signal, stopping at once", "signal", s.String())
					os.Exit(exitFailure)
				}
				log.Info("signal received, stopping gracefully", "signal", s.String())
				cancel()
			case <-done:
				return
			}
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(done)
		cancel()
	}
}

// onHangup calls f at every SIGHUP until the returned function is called.
func onHangup(f func()) (stop func()) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGHUP)
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-signals:
				f()
			case <-done:
				return
			}
		}
	}()
	return func() {
		signal.Stop(signals)
		close(done)
		<-ended
	}
}
