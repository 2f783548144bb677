package app

import (
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
