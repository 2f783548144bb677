package boltstore

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestOpenSaysWhatItWaitsFor opens files as a crash and as a clean end leave them.
func TestOpenSaysWhatItWaitsFor(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, crashed := filepath.Join(dir, "botd.db"), filepath.Join(dir, "crashed.db")
	db := mustOpen(t, Options{Path: path})
	say(t, db, "s", "t", "hello")
	content, err := os.ReadFile(path)
	must(t, err)
	must(t, os.WriteFile(crashed, content, 0o600))
	must(t, db.Close())
	for _, test := range []struct {
		path string
		says bool
	}{{crashed, true}, {path, false}} {
		var log bytes.Buffer
		db, err := Open(Options{Path: test.path, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		must(t, err)
		wantItems(t, db, "s", 1)
		must(t, db.Close())
		if got := strings.Contains(log.String(), "looking for its free pages"); got != test.says || test.says != db.Crashed() {
			t.Errorf("opening %s: log %q, crashed %t, want it told %t", test.path, log.String(), db.Crashed(), test.says)
		}
	}
}
