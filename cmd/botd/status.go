package main

import (
	"fmt"
	"net/http"

	"github.com/spf13/cobra"

	"botd/cmd/botd/internal/admin"
)

// statusCmd shows what goes on.
type statusCmd struct{ adminFlags }

// status is what is printed as JSON.
type status struct {
	Channels []admin.Channel `json:"channels"`
	Stats    admin.Stats     `json:"stats"`
}

// Run is called by the command line.
func (c *statusCmd) Run(p *process) error {
	return c.with(p, func(g *connection) error {
		var s status
		if err := g.Get(p.ctx, "/v1/stats", nil, &s.Stats); err != nil {
			return err
		}
		var page admin.Page[admin.Channel]
		if err := g.Get(p.ctx, "/v1/channels", nil, &page); err != nil {
			return err
		}
		s.Channels = page.Data
		if c.JSON {
			return printJSON(p.stdout, s)
		}
		return s.print(p)
	})
}

func (s status) print(p *process) error {
	if len(s.Channels) > 0 {
		t := newTable(p.stdout, "CHANNEL", "PLATFORM", "STATUS", "DETAIL")
		for _, c := range s.Channels {
			t.add(c.Name, c.Platform, c.Status, c.Detail)
		}
		if err := t.flush(); err != nil {
			return err
		}
		fmt.Fprintln(p.stdout)
	}
	t := newTable(p.stdout, "WHAT", "HOW MANY")
	t.add("messages not answered yet", s.Stats.Pending)
	t.add("messages set aside (botd event ls)", s.Stats.DeadEvents)
	t.add("deliveries waiting", s.Stats.Waiting)
	t.add("deliveries held", s.Stats.Held)
	t.add("deliveries unknown", s.Stats.Unknown)
	t.add("deliveries dead", s.Stats.Dead)
	if f := s.Stats.File; f != nil {
		t.add("bytes of the database", f.Size)
		t.add("bytes of it that are free", f.Free)
	}
	if err := t.flush(); err != nil {
		return err
	}
	if !s.Stats.Oldest.IsZero() {
		fmt.Fprintf(p.stdout, "\nThe oldest message not answered is from %s.\n", when(s.Stats.Oldest))
	}
	return nil
}

// logLevelCmd shows or changes the log level.
type logLevelCmd struct {
	adminFlags
	level string
}

func (c *logLevelCmd) arguments() (string, cobra.PositionalArgs, func([]string)) {
	return "[debug|info|warn|error]", cobra.MaximumNArgs(1), func(args []string) {
		if len(args) > 0 {
			c.level = args[0]
		}
	}
}

// Help is the long help.
func (logLevelCmd) Help() string {
	return `The change lasts until the gateway stops or reads its configuration again (SIGHUP).`
}

// Run is called by the command line.
func (c *logLevelCmd) Run(p *process) error {
	return c.with(p, func(g *connection) error {
		var l admin.LogLevel
		var err error
		if c.level == "" {
			err = g.Get(p.ctx, "/v1/log-level", nil, &l)
		} else {
			err = g.Do(p.ctx, http.MethodPut, "/v1/log-level", admin.LogLevel{Level: c.level}, &l)
		}
		if err != nil {
			return err
		}
		if c.JSON {
			return printJSON(p.stdout, l)
		}
		_, err = fmt.Fprintln(p.stdout, l.Level)
		return err
	})
}
