package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"time"

	"botd/cmd/botd/internal/admin"
	"botd/config"
	"botd/sessionstore/boltstore"
)

// errRuns is returned by what only works while no gateway runs.
var errRuns = errors.New("the gateway is running: stop it first")

// adminFlags are the flags of every command that works on a gateway or its file.
type adminFlags struct {
	configFlag
	Socket string `env:"BOTD_ADMIN_SOCKET" placeholder:"PATH" help:"The admin socket of the gateway; by default that of the configuration."`
	JSON   bool   `help:"Print JSON, as the admin API answers it."`
}

// connection is a gateway, or its file while none runs.
type connection struct {
	*admin.Client
	close func() error
}

// gateway connects to the running gateway, or opens its file when none runs, and says so.
func (f adminFlags) gateway(p *process) (*connection, error) {
	if f.Socket != "" {
		c, err := admin.Dial(p.ctx, f.Socket)
		if err != nil {
			return nil, err
		}
		return &connection{c, nothing}, nil
	}
	cfg, err := f.stored()
	if err != nil {
		return nil, err
	}
	c, dialErr := dial(p.ctx, cfg.AdminSocket())
	if dialErr == nil {
		return &connection{c, nothing}, nil
	}
	if !errors.Is(dialErr, admin.ErrNoGateway) {
		return nil, fmt.Errorf("reach the gateway: %w", dialErr)
	}
	db, err := openFile(cfg, dialErr)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(p.stderr, "botd: %v; working on the file of %s itself\n", dialErr, cfg.Store)
	// A store that keeps the audit records these acts, too; there is no log of a gateway to write them to.
	s := admin.New(admin.Options{Store: db, Journal: db, Logger: slog.New(slog.DiscardHandler)})
	return &connection{s.Local(), db.Close}, nil
}

func nothing() error { return nil }

func dial(ctx context.Context, socket string) (*admin.Client, error) {
	if socket == "" {
		return nil, fmt.Errorf("%w: there is no admin socket (admin.socket)", admin.ErrNoGateway)
	}
	return admin.Dial(ctx, socket)
}

// fileTimeout is how long to wait for another process to release the file.
const fileTimeout = 500 * time.Millisecond

// openFile opens the file of a gateway that does not answer. It makes none.
func openFile(cfg *config.Config, dialErr error) (*boltstore.DB, error) {
	path, err := config.BoltPath(cfg.Store)
	if err != nil {
		return nil, fmt.Errorf("%w, and the store %s is no file", dialErr, cfg.Store)
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w, and there is no file %s", dialErr, path)
	}
	db, err := boltstore.Open(boltstore.Options{Path: path, LockTimeout: fileTimeout})
	if errors.Is(err, boltstore.ErrLocked) {
		return nil, fmt.Errorf("%w, and its file cannot be opened instead: %w", dialErr, err)
	}
	return db, err
}

// stored returns the configuration as far as it tells where the gateway is. What is wrong elsewhere, such
// as a secret that is not set here, is not in the way.
func (f adminFlags) stored() (*config.Config, error) {
	cfg, problems := f.load()
	if cfg == nil && f.path() == "" {
		cfg, problems = config.Parse("", []byte(offlineYAML), knownNames())
		if store := os.Getenv("BOTD_STORE"); cfg != nil && store != "" {
			cfg.Store = store
		}
	}
	if cfg == nil {
		return nil, problems.Err()
	}
	var ours config.Problems
	for _, problem := range problems {
		if strings.HasPrefix(problem.Path, "store") || strings.HasPrefix(problem.Path, "admin") {
			ours = append(ours, problem)
		}
	}
	return cfg, ours.Err()
}

// with runs act on the gateway or its file.
func (f adminFlags) with(p *process, act func(*connection) error) error {
	c, err := f.gateway(p)
	if err != nil {
		return err
	}
	return errors.Join(act(c), c.close())
}
