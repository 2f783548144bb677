package main

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"

	"botd/channels"
	"botd/channels/dispatch"
	"botd/cmd/botd/internal/admin"
)

// deliveryListCmd lists deliveries.
type deliveryListCmd struct {
	adminFlags
	State string `placeholder:"STATE" help:"Only those that are waiting, held, unknown or dead."`
	Text  bool   `help:"Show what they say, too."`
	Limit int    `default:"100" help:"How many of each state to list; 0 for all."`
}

// Help is the long help.
func (deliveryListCmd) Help() string {
	return `waiting: about to be sent. held: kept until you ask for it, because the platform's quota is used up. unknown: perhaps shown, perhaps not; never sent again by itself. dead: refused by the platform for good, or given up.`
}

// Run is called by the command line.
func (c *deliveryListCmd) Run(p *process) error {
	states := []dispatch.State{dispatch.Waiting, dispatch.Held, dispatch.Unknown, dispatch.Dead}
	if c.State != "" {
		states = []dispatch.State{dispatch.State(c.State)}
	}
	return c.with(p, func(g *connection) error {
		all := []admin.Delivery{}
		for _, state := range states {
			q := url.Values{"state": {string(state)}, "text": {strconv.FormatBool(c.Text)}, "limit": {"1000"}}
			n := 0
			for d, err := range admin.Pages[admin.Delivery](p.ctx, g.Client, "/v1/deliveries", q) {
				if err != nil {
					return err
				}
				if n++; c.Limit > 0 && n > c.Limit {
					fmt.Fprintf(p.stderr, "botd: there are more than %d that are %s; see --limit\n", c.Limit, state)
					break
				}
				all = append(all, d)
			}
		}
		if c.JSON {
			return printJSON(p.stdout, admin.Page[admin.Delivery]{Data: all})
		}
		t := newTable(p.stdout, "NUMBER", "STATE", "CREATED", "ATTEMPTS", "SESSION", "TO", "REASON", "TEXT")
		for _, d := range all {
			t.add(d.Seq, d.State, d.Created, d.Attempts, d.Session, place(d.To), d.Reason, d.Text)
		}
		return t.flush()
	})
}

// place is an address in a table.
func place(a channels.Address) string {
	if a.Thread != "" {
		return a.Channel + " " + a.Room + " " + a.Thread
	}
	return a.Channel + " " + a.Room
}

// numberArgs are the arguments of commands about things that have a number.
type numberArgs struct{ numbers []uint64 }

func (a *numberArgs) arguments() (string, cobra.PositionalArgs, func([]string)) {
	count := func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return errors.New("give the numbers that ls shows")
		}
		a.numbers = nil
		for _, arg := range args {
			n, err := strconv.ParseUint(arg, 10, 64)
			if err != nil || n == 0 {
				return fmt.Errorf("%q is not a number that ls shows", arg)
			}
			a.numbers = append(a.numbers, n)
		}
		return nil
	}
	return "NUMBER...", count, func([]string) {}
}

// act does one thing to each number and says so.
func (a *numberArgs) act(p *process, f adminFlags, path, act, done string) error {
	return f.with(p, func(g *connection) error {
		for _, n := range a.numbers {
			var out struct {
				Seq uint64 `json:"seq"`
			}
			if err := g.Do(p.ctx, http.MethodPost, fmt.Sprintf("%s/%d/%s", path, n, act), nil, &out); err != nil {
				return err
			}
			if f.JSON {
				if err := printJSON(p.stdout, out); err != nil {
					return err
				}
				continue
			}
			fmt.Fprintf(p.stdout, "%d: %s\n", n, done)
		}
		return nil
	})
}

// deliveryRetryCmd sends deliveries again.
type deliveryRetryCmd struct {
	adminFlags
	numberArgs
}

// Help is the long help.
func (deliveryRetryCmd) Help() string {
	return `One that is unknown is sent again only in a way that cannot show it twice.`
}

// Run is called by the command line.
func (c *deliveryRetryCmd) Run(p *process) error {
	return c.act(p, c.adminFlags, "/v1/deliveries", "retry", "to be sent again")
}

// deliveryDropCmd gives deliveries up.
type deliveryDropCmd struct {
	adminFlags
	numberArgs
}

// Help is the long help.
func (deliveryDropCmd) Help() string {
	return `A dropped delivery is dead, stays visible for some days, and can be retried until then. While no gateway runs, those that wait can be dropped too.`
}

// Run is called by the command line.
func (c *deliveryDropCmd) Run(p *process) error {
	return c.act(p, c.adminFlags, "/v1/deliveries", "drop", "dropped")
}
