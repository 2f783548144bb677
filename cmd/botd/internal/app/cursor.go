package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"botd/channels/discord"
	"botd/config"
)

// cursorFile keeps how far a channel has read, in a file beside that of the store. It is no part of the
// store on purpose: when a backup of the store is put back, messages that were answered since must not be
// fetched and answered again.
type cursorFile struct {
	path string
	log  *slog.Logger
}

var _ discord.Cursor = (*cursorFile)(nil)

// newCursor returns the cursor of a channel, nil when the store keeps nothing over a restart.
func newCursor(cfg *config.Config, channel string, log *slog.Logger) discord.Cursor {
	path, err := config.BoltPath(cfg.Store)
	if err != nil {
		return nil
	}
	return &cursorFile{path: path + "." + channel + ".cursor", log: log}
}

// Load returns what was saved last. A file that cannot be understood counts as none: the only loss is that
// nothing is caught up on.
func (c *cursorFile) Load(context.Context) (map[string]string, error) {
	text, err := os.ReadFile(c.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("load cursor: %w", err)
	}
	var read map[string]string
	if err := json.Unmarshal(text, &read); err != nil {
		c.log.Warn("cursor is damaged and begins anew", "path", c.path)
		return nil, nil
	}
	return read, nil
}

// Save replaces the file as a whole, so that a crash leaves the old one or the new one.
func (c *cursorFile) Save(_ context.Context, read map[string]string) error {
	if err := c.save(read); err != nil {
		return fmt.Errorf("save cursor: %w", err)
	}
	return nil
}

func (c *cursorFile) save(read map[string]string) error {
	text, err := json.Marshal(read)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(c.path), filepath.Base(c.path)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // a no-op once it has its name
	_, err = f.Write(text)
	err = errors.Join(err, f.Sync(), f.Close())
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), c.path)
}
