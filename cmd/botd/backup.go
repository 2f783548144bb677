package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"botd/cmd/botd/internal/admin"
	"botd/sessionstore/boltstore"
)

// fileArg is the argument of commands that write a file.
type fileArg struct{ file string }

func (a *fileArg) arguments() (string, cobra.PositionalArgs, func([]string)) {
	return "FILE", cobra.ExactArgs(1), func(args []string) { a.file = args[0] }
}

// backupCmd copies the database.
type backupCmd struct {
	adminFlags
	fileArg
	Force bool `help:"Replace the file if it exists."`
}

// Help is the long help.
func (backupCmd) Help() string {
	return `The copy is as the database was at one moment, and is checked page by page. It takes its place only when it is complete. To restore it, put it in the place of the database while no gateway runs. It can be read by its owner alone; it holds conversations.`
}

// Run is called by the command line.
func (c *backupCmd) Run(p *process) error {
	return c.with(p, func(g *connection) error {
		var size int64
		err := writeNew(c.file, c.Force, func(w io.Writer) error {
			counted := &counter{w: w}
			err := g.Stream(p.ctx, "/v1/backup", counted)
			size = counted.n
			return err
		})
		if err != nil {
			return err
		}
		if c.JSON {
			return printJSON(p.stdout, struct {
				File  string `json:"file"`
				Bytes int64  `json:"bytes"`
			}{c.file, size})
		}
		_, err = fmt.Fprintf(p.stdout, "%s: %d bytes\n", printable(c.file), size)
		return err
	})
}

type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

// writeNew makes a file that only its owner can read, which is there only when it is complete and on the
// disk. A file that exists is replaced by force only.
func writeNew(path string, force bool, write func(io.Writer) error) (err error) {
	if _, err := os.Lstat(path); err == nil && !force {
		return fmt.Errorf("%s: %w", path, fs.ErrExist)
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	if err := errors.Join(write(f), f.Sync(), f.Close()); err != nil {
		return err
	}
	if force {
		return os.Rename(f.Name(), path)
	}
	// A link, unlike a renaming, does not replace what somebody else has made meanwhile.
	if err := os.Link(f.Name(), path); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return err
		}
		return os.Rename(f.Name(), path) // the file system knows no links
	}
	return os.Remove(f.Name())
}

// verifyCmd checks the database.
type verifyCmd struct{ adminFlags }

// Help is the long help.
func (verifyCmd) Help() string {
	return `Exit code 0: sound; 1: damaged, and each fault is told. In a running gateway, writes wait meanwhile, for about a second per gigabyte.`
}

// Run is called by the command line.
func (c *verifyCmd) Run(p *process) error {
	return c.with(p, func(g *connection) error {
		var r admin.VerifyResult
		if err := g.Do(p.ctx, http.MethodPost, "/v1/verify", nil, &r); err != nil {
			return err
		}
		switch {
		case c.JSON:
			if err := printJSON(p.stdout, r); err != nil {
				return err
			}
		case r.OK:
			fmt.Fprintln(p.stdout, "the database is sound")
		}
		if r.OK {
			return nil
		}
		for _, fault := range r.Faults {
			fmt.Fprintln(p.stderr, "botd:", printable(fault))
		}
		return quietError{exitFailure}
	})
}

// compactCmd makes the database's file smaller.
type compactCmd struct{ adminFlags }

// Help is the long help.
func (compactCmd) Help() string {
	return `The file is written anew beside the old one, which needs as much room as is in use, and takes its place when it is complete.`
}

// compacted is what compact prints as JSON.
type compacted struct {
	Before int64 `json:"before"`
	After  int64 `json:"after"`
}

// Run is called by the command line.
func (c *compactCmd) Run(p *process) error {
	cfg, err := c.stored()
	if err != nil {
		return err
	}
	socket := cfg.AdminSocket()
	if c.Socket != "" {
		socket = c.Socket
	}
	_, dialErr := dial(p.ctx, socket)
	switch {
	case dialErr == nil:
		return fmt.Errorf("%w (it answers at %s)", errRuns, socket)
	case !errors.Is(dialErr, admin.ErrNoGateway):
		return fmt.Errorf("reach the gateway: %w", dialErr)
	}
	db, err := openFile(cfg, dialErr)
	if err != nil {
		return err
	}
	var r compacted
	r.Before, err = compact(p, db)
	if err == nil {
		r.After, _ = db.Size()
	}
	if err := errors.Join(err, db.Close()); err != nil {
		return err
	}
	if c.JSON {
		return printJSON(p.stdout, r)
	}
	_, err = fmt.Fprintf(p.stdout, "%d bytes before, %d after\n", r.Before, r.After)
	return err
}

func compact(p *process, db *boltstore.DB) (before int64, err error) {
	before, _ = db.Size()
	return before, db.Compact(p.ctx)
}
