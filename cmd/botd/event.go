package main

import (
	"net/url"
	"strconv"

	"botd/cmd/botd/internal/admin"
)

// eventListCmd lists dead letters.
type eventListCmd struct {
	adminFlags
	Text  bool `help:"Show what they say, too."`
	Limit int  `default:"100" help:"How many to list; 0 for all."`
}

// Run is called by the command line.
func (c *eventListCmd) Run(p *process) error {
	return c.with(p, func(g *connection) error {
		q := url.Values{"text": {strconv.FormatBool(c.Text)}, "limit": {"1000"}}
		return list(p, g, "/v1/dead-events", q, c.Limit, c.JSON,
			[]string{"NUMBER", "RECEIVED", "SET ASIDE", "ATTEMPTS", "SESSION", "NAME", "REASON", "LAST ERROR", "TEXT"},
			func(t *table, e admin.DeadEvent) {
				t.add(e.Seq, e.Received, e.Dead, e.Attempts, e.Session, e.Name, e.Reason, e.LastError, e.Text)
			})
	})
}

// eventReviveCmd has dead letters answered after all.
type eventReviveCmd struct {
	adminFlags
	numberArgs
}

// Run is called by the command line.
func (c *eventReviveCmd) Run(p *process) error {
	return c.act(p, c.adminFlags, "/v1/dead-events", "revive", "to be answered")
}
