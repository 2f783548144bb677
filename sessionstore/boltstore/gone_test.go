package boltstore

import (
	"errors"
	"os"
	"testing"

	"botd/sessionstore"
)

// TestFileTakenAway checks that nothing is acknowledged into a file that nobody will find again, and that
// writing goes on once the file is back in its place.
func TestFileTakenAway(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		take func(t *testing.T, path string)
		back bool
	}{
		{"moved away", func(*testing.T, string) {}, true},
		{"deleted", func(t *testing.T, path string) {
			if err := os.Remove(path + ".elsewhere"); err != nil {
				t.Fatal(err)
			}
		}, false},
		{"replaced by a copy", func(t *testing.T, path string) {
			b, err := os.ReadFile(path + ".elsewhere")
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
		}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			path := t.TempDir() + "/botd.db"
			db, err := Open(Options{Path: path})
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			add := func() error {
				return db.Append(t.Context(), "s", sessionstore.Batch{Items: bulk(10)})
			}
			if err := errors.Join(add(), db.Err()); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(path, path+".elsewhere"); err != nil {
				t.Skipf("this system does not move open files: %v", err)
			}
			tt.take(t, path)
			if err := add(); !errors.Is(err, ErrGone) {
				t.Errorf("Append = %v, want ErrGone", err)
			}
			if err := db.Compact(t.Context()); !errors.Is(err, ErrGone) {
				t.Errorf("Compact = %v, want ErrGone", err)
			}
			if err := db.Err(); !errors.Is(err, ErrGone) {
				t.Errorf("Err() = %v, want ErrGone", err)
			}
			wantItems(t, db, "s", 1)
			if !tt.back {
				return
			}
			if err := os.Rename(path+".elsewhere", path); err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(add(), db.Compact(t.Context()), add(), db.Err()); err != nil {
				t.Errorf("with the file back in its place: %v", err)
			}
			wantItems(t, db, "s", 3)
		})
	}
}
