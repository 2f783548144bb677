package sqlstore_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"botd/sessionstore"
	"botd/sessionstore/internal/dbtest"
	"botd/sessionstore/sqlstore"
	"botd/sessionstore/storetest"
)

// kind is a kind of database. make returns what gives the URL of an empty store each time.
type kind struct {
	name string
	make func(t *testing.T) func(t *testing.T) string
}

var kinds = []kind{
	{"SQLite", each(func(t *testing.T) string { return "sqlite:///" + filepath.Join(t.TempDir(), "x.db") })},
	{"SQLiteInMemory", each(func(*testing.T) string { return "sqlite::memory:" })},
	{"SQLAlchemysFile", each(func(t *testing.T) string { return "sqlite:///" + emptied(t, copyFile(t, "agents_sdk_sqlalchemy.db")) })},
	{"PostgreSQL", func(t *testing.T) func(*testing.T) string { return ownTables(dbtest.Postgres(t).String()) }},
	{"MySQL", func(t *testing.T) func(*testing.T) string { return ownTables(dbtest.MySQL(t).String()) }},
}

func each(url func(*testing.T) string) func(*testing.T) func(*testing.T) string {
	return func(*testing.T) func(*testing.T) string { return url }
}

// ownTables gives every store of one database tables of its own.
func ownTables(url string) func(*testing.T) string {
	var n atomic.Int64
	sep := "?"
	if strings.Contains(url, "?") {
		sep = "&"
	}
	return func(*testing.T) string {
		i := n.Add(1)
		return fmt.Sprintf("%s%ssessions_table=Sessions_%d&messages_table=Messages_%d&max_conns=4", url, sep, i, i)
	}
}

func open(t testing.TB, url string) *sqlstore.Store {
	t.Helper()
	s, err := sqlstore.Open(t.Context(), sqlstore.Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestConformance(t *testing.T) {
	t.Parallel()
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			url := k.make(t)
			t.Run("Store", func(t *testing.T) {
				t.Parallel()
				storetest.Store(t, func(t *testing.T) sessionstore.Store { return open(t, url(t)) })
			})
			t.Run("Contract", func(t *testing.T) {
				t.Parallel()
				dbtest.Contract(t, open(t, url(t)))
			})
			t.Run("Lister", func(t *testing.T) {
				t.Parallel()
				storetest.Lister(t, func(t *testing.T) storetest.Listing { return open(t, url(t)) })
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
