package app

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"botd/channels/dispatch"
	"botd/config"
	"botd/sessionstore"
	"botd/sessionstore/boltstore"
	"botd/sessionstore/memstore"
)

// store keeps sessions and the journal in one.
type store interface {
	sessionstore.Store
	dispatch.Journal
}

// housekeeper is a store that deletes what is no longer kept, until ctx ends.
type housekeeper interface {
	Housekeep(ctx context.Context) error
}

// writable is a store that can tell why it takes no more writes.
type writable interface{ Err() error }

// housekeep runs the store's housekeeping, if it has any, until ctx ends.
func (a *App) housekeep(ctx context.Context) {
	h, ok := a.store.(housekeeper)
	if !ok {
		return
	}
	if err := h.Housekeep(ctx); err != nil {
		a.log.Error("housekeeping of the store has ended", "err", err)
	}
}

// checkStore reports whether the store can be read and takes writes.
func (a *App) checkStore(ctx context.Context) error {
	if w, ok := a.store.(writable); ok {
		if err := w.Err(); err != nil {
			return err
		}
	}
	if _, err := a.store.Stats(ctx); err != nil {
		return err
	}
	return a.intake.check()
}

// stores opens a store by the scheme of its URL. A new kind of store is one line here.
var stores = map[string]func(url string, log *slog.Logger) (store, error){
	"bbolt":  openBolt,
	"memory": func(string, *slog.Logger) (store, error) { return memstore.New(), nil },
}

// Stores returns the URL schemes that can be opened, sorted.
func Stores() []string { return slices.Sorted(maps.Keys(stores)) }

func openStore(url string, log *slog.Logger) (store, error) {
	scheme, _, _ := strings.Cut(url, ":")
	open, ok := stores[scheme]
	if !ok {
		return nil, fmt.Errorf("open store: unknown scheme %q (want %s)", scheme, strings.Join(Stores(), ", "))
	}
	s, err := open(url, log)
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	return s, nil
}

// openBolt opens the file of a bbolt URL, and makes its folder.
func openBolt(url string, log *slog.Logger) (store, error) {
	path, err := config.BoltPath(url)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of the store: %w", err)
	}
	return boltstore.Open(boltstore.Options{Path: path, Logger: log})
}
