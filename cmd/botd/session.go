package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"botd/cmd/botd/internal/admin"
	"botd/cmd/botd/internal/obs"
)

// sessionListCmd lists sessions.
type sessionListCmd struct {
	adminFlags
	Channel string `placeholder:"NAME" help:"Only the sessions of this channel."`
	Prefix  string `placeholder:"TEXT" help:"Only the sessions whose ID begins so."`
	Limit   int    `default:"100" help:"How many to list; 0 for all."`
}

// Help is the long help.
func (sessionListCmd) Help() string {
	return `A session is one line of memory. Its ID tells whose it is: line:user:U4af… is a person on the channel named line, discord:thread:33… a thread on the channel named discord.`
}

// Run is called by the command line.
func (c *sessionListCmd) Run(p *process) error {
	return c.with(p, func(g *connection) error {
		q := url.Values{"limit": {"1000"}}
		if c.Channel != "" {
			q.Set("channel", c.Channel)
		}
		if c.Prefix != "" {
			q.Set("prefix", c.Prefix)
		}
		return list(p, g, "/v1/sessions", q, c.Limit, c.JSON, []string{"SESSION", "ITEMS", "RESETS", "LAST WRITTEN"},
			func(t *table, s admin.Session) { t.add(s.ID, s.Items, s.Generation, s.Updated) })
	})
}

// list prints up to limit elements of a list, and says when there are more.
func list[T any](p *process, g *connection, path string, q url.Values, limit int, asJSON bool, head []string, row func(*table, T)) error {
	if limit < 0 {
		return errors.New("--limit must not be negative")
	}
	all := []T{}
	more := false
	for x, err := range admin.Pages[T](p.ctx, g.Client, path, q) {
		if err != nil {
			return err
		}
		if limit > 0 && len(all) == limit {
			more = true
			break
		}
		all = append(all, x)
	}
	if more {
		fmt.Fprintf(p.stderr, "botd: there are more than %d; see --limit\n", limit)
	}
	if asJSON {
		return printJSON(p.stdout, admin.Page[T]{Data: all})
	}
	t := newTable(p.stdout, head...)
	for _, x := range all {
		row(t, x)
	}
	return t.flush()
}

// sessionArg is the argument of commands about one session.
type sessionArg struct{ id string }

func (a *sessionArg) arguments() (string, cobra.PositionalArgs, func([]string)) {
	return "SESSION", cobra.ExactArgs(1), func(args []string) { a.id = args[0] }
}

// sessionArgs are the arguments of commands about several sessions.
type sessionArgs struct{ ids []string }

func (a *sessionArgs) arguments() (string, cobra.PositionalArgs, func([]string)) {
	return "SESSION...", cobra.MinimumNArgs(1), func(args []string) { a.ids = args }
}

// sessionShowCmd shows one session.
type sessionShowCmd struct {
	adminFlags
	sessionArg
	Limit int `short:"n" default:"50" help:"How many of the newest items to show, at most 1000."`
}

// shown is what show prints as JSON.
type shown struct {
	Session admin.Session `json:"session"`
	Items   []admin.Item  `json:"items"`
}

// Run is called by the command line.
func (c *sessionShowCmd) Run(p *process) error {
	return c.with(p, func(g *connection) error {
		var s shown
		if err := g.Get(p.ctx, admin.SessionPath(c.id), nil, &s.Session); err != nil {
			return err
		}
		var page admin.Page[admin.Item]
		if err := g.Get(p.ctx, admin.SessionPath(c.id, "items"), url.Values{"limit": {strconv.Itoa(c.Limit)}}, &page); err != nil {
			return err
		}
		s.Items = page.Data
		if c.JSON {
			return printJSON(p.stdout, s)
		}
		return printTranscript(p.stdout, s)
	})
}

// sessionResetCmd resets sessions.
type sessionResetCmd struct {
	adminFlags
	sessionArgs
}

// Help is the long help.
func (sessionResetCmd) Help() string {
	return `An answer that is being worked on is cancelled, cannot write to the session any more, and who had asked is told. What was forgotten can be restored for some days.`
}

// Run is called by the command line.
func (c *sessionResetCmd) Run(p *process) error {
	return c.with(p, func(g *connection) error {
		for _, id := range c.ids {
			var r admin.ResetResult
			if err := g.Do(p.ctx, http.MethodPost, admin.SessionPath(id, "reset"), nil, &r); err != nil {
				return err
			}
			if err := c.print(p.stdout, r); err != nil {
				return err
			}
		}
		return nil
	})
}

func (c *sessionResetCmd) print(w io.Writer, r admin.ResetResult) error {
	if c.JSON {
		return printJSON(w, r)
	}
	id := printable(string(r.Session))
	if r.Archive == nil {
		_, err := fmt.Fprintf(w, "%s: reset; nothing is kept to be restored\n", id)
		return err
	}
	_, err := fmt.Fprintf(w, "%s: reset; %s can be restored until %s:\n  botd session restore %s --generation %d\n",
		id, count(r.Archive.Items, "item", "items"), when(r.Archive.Until), shellQuote(id), r.Archive.Generation)
	return err
}

// sessionRestoreCmd undoes a reset.
type sessionRestoreCmd struct {
	adminFlags
	sessionArg
	Generation int `default:"-1" placeholder:"N" help:"Which reset to undo, as session show tells; -1 for the last one."`
}

// Run is called by the command line.
func (c *sessionRestoreCmd) Run(p *process) error {
	return c.with(p, func(g *connection) error {
		var want admin.RestoreRequest
		if c.Generation >= 0 {
			generation := uint64(c.Generation)
			want.Generation = &generation
		}
		var r admin.RestoreResult
		if err := g.Do(p.ctx, http.MethodPost, admin.SessionPath(c.id, "restore"), want, &r); err != nil {
			return err
		}
		if c.JSON {
			return printJSON(p.stdout, r)
		}
		_, err := fmt.Fprintf(p.stdout, "%s: %s restored\n", printable(string(r.Session)), count(r.Restored.Items, "item", "items"))
		return err
	})
}

// sessionExportCmd exports one session.
type sessionExportCmd struct {
	configFlag
	Socket string `env:"BOTD_ADMIN_SOCKET" placeholder:"PATH" help:"The admin socket of the gateway; by default that of the configuration."`
	sessionArg
	Output string `short:"o" placeholder:"FILE" help:"Write to this new file instead of standard output."`
}

// Help is the long help.
func (sessionExportCmd) Help() string {
	return `Each line is a JSON object with session, at, turn, origin and item, the oldest first. Items that were summarised to save room are written as they were said.`
}

// Run is called by the command line.
func (c *sessionExportCmd) Run(p *process) error {
	return adminFlags{configFlag: c.configFlag, Socket: c.Socket}.with(p, func(g *connection) error {
		export := func(w io.Writer) error { return g.Stream(p.ctx, admin.SessionPath(c.id, "export"), w) }
		if c.Output != "" {
			return writeNew(c.Output, false, export)
		}
		if obs.IsTerminal(p.stdout) {
			return export(&jsonWriter{w: p.stdout})
		}
		return export(p.stdout)
	})
}

// sessionEraseCmd erases one session.
type sessionEraseCmd struct {
	adminFlags
	sessionArg
	Yes bool `short:"y" help:"Do not ask."`
}

// Help is the long help.
func (sessionEraseCmd) Help() string {
	return `Nothing of the session is left in the database's file, neither items nor archives nor messages under way. It cannot be undone. Backups made before are not touched.`
}

// Run is called by the command line.
func (c *sessionEraseCmd) Run(p *process) error {
	return c.with(p, func(g *connection) error {
		if !c.Yes {
			if err := confirm(p, c.id); err != nil {
				return err
			}
		}
		var r admin.EraseResult
		if err := g.Do(p.ctx, http.MethodDelete, admin.SessionPath(c.id), nil, &r); err != nil {
			return err
		}
		if c.JSON {
			return printJSON(p.stdout, r)
		}
		_, err := fmt.Fprintf(p.stdout, "%s: erased at %s: %s, and %s that could have been restored\n",
			printable(string(r.Session)), when(r.ErasedAt), count(r.Items, "item", "items"), count(r.Archived, "item", "items"))
		return err
	})
}

// confirm asks once; no answer is no.
func confirm(p *process, id string) error {
	fmt.Fprintf(p.stderr, "Erase %s for good? It cannot be undone. Type yes: ", printable(id))
	answer, err := bufio.NewReader(p.stdin).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read answer: %w", err)
	}
	if strings.TrimSpace(answer) != "yes" {
		return errors.New("nothing was erased: it was not confirmed (--yes does not ask)")
	}
	return nil
}
