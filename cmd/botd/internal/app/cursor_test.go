package app

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"botd/config"
)

func TestCursorKeepsWhatWasSavedLast(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cfg := &config.Config{Store: "bbolt://" + filepath.Join(dir, "botd.db")}
	log := slog.New(slog.DiscardHandler)
	c := newCursor(cfg, "discord", log)
	if got, err := c.Load(t.Context()); got != nil || err != nil {
		t.Errorf("Load() before anything was saved = %v, %v", got, err)
	}
	for _, want := range []map[string]string{{"": "1"}, {"": "2", "33": "4"}} {
		if err := c.Save(t.Context(), want); err != nil {
			t.Fatal(err)
		}
		got, err := newCursor(cfg, "discord", log).Load(t.Context())
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("Load() (-want +got):\n%s%v", diff, err)
		}
	}
	if got, err := newCursor(cfg, "other", log).Load(t.Context()); got != nil || err != nil {
		t.Errorf("another channel's cursor = %v, %v", got, err)
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 1 {
		t.Fatalf("left beside the store: %v, %v", files, err)
	}
	if err := os.WriteFile(filepath.Join(dir, files[0].Name()), []byte(`{"":`), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := c.Load(t.Context()); got != nil || err != nil {
		t.Errorf("Load() of a damaged file = %v, %v", got, err)
	}
}

func TestNoCursorWithoutAFile(t *testing.T) {
	t.Parallel()
	if c := newCursor(&config.Config{Store: "memory:"}, "discord", nil); c != nil {
		t.Error("a store in memory has a cursor")
	}
}
