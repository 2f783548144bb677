package sqlstore_test

import (
	"path/filepath"
	"testing"

	"botd/sessionstore"
	"botd/sessionstore/sqlstore"
	"botd/sessionstore/storetest"
)

// kinds open an empty store of each kind.
var kinds = map[string]func(t *testing.T) string{
	"SQLite":          func(t *testing.T) string { return "sqlite:///" + filepath.Join(t.TempDir(), "x.db") },
	"SQLiteInMemory":  func(*testing.T) string { return "sqlite::memory:" },
	"SQLAlchemysFile": func(t *testing.T) string { return "sqlite:///" + emptied(t, copyFile(t, "agents_sdk_sqlalchemy.db")) },
}

func TestConformance(t *testing.T) {
	t.Parallel()
	for name, url := range kinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			open := func(t *testing.T) *sqlstore.Store {
				s, err := sqlstore.Open(t.Context(), sqlstore.Options{URL: url(t)})
				if err != nil {
					t.Fatal(err)
				}
				return s
			}
			t.Run("Store", func(t *testing.T) {
				t.Parallel()
				storetest.Store(t, func(t *testing.T) sessionstore.Store { return open(t) })
			})
			t.Run("Lister", func(t *testing.T) {
				t.Parallel()
				storetest.Lister(t, func(t *testing.T) storetest.Listing { return open(t) })
			})
		})
	}
}

// emptied takes the rows out of a file.
func emptied(t *testing.T, file string) string {
	t.Helper()
	db := plain(t, file)
	mustExec(t, db, "DELETE FROM agent_messages")
	mustExec(t, db, "DELETE FROM agent_sessions")
	return file
}
