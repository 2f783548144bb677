package sqlstore_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	_ "github.com/jackc/pgx/v5/stdlib"

	"botd/sessionstore"
	"botd/sessionstore/internal/dbtest"
	"botd/sessionstore/sqlstore"
)

// sdk is another program that uses the SDK's tables on a server: the statements of SQLAlchemySession
// (extensions/memory/sqlalchemy_session.py, openai-agents-python 0.22.0).
type sdk struct {
	t  *testing.T
	db *sql.DB
	// arg is the nth parameter of a statement.
	arg func(n int) string
}

func dollar(n int) string { return fmt.Sprint("$", n) }

func question(int) string { return "?" }

func connect(t *testing.T, driver, dsn string, arg func(int) string) sdk {
	t.Helper()
	db, err := sql.Open(driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return sdk{t: t, db: db, arg: arg}
}

func mysqlDSN(u *url.URL) string {
	password, _ := u.User.Password()
	return fmt.Sprintf("%s:%s@tcp(%s)%s?multiStatements=true", u.User.Username(), password, u.Host, u.Path)
}

func (p sdk) exec(db interface {
	ExecContext(context.Context, string, ...any) (sql.Result, error)
}, statement string, args ...any,
) {
	p.t.Helper()
	for n := range args {
		statement = strings.Replace(statement, "%s", p.arg(n+1), 1)
	}
	if _, err := db.ExecContext(p.t.Context(), statement, args...); err != nil {
		p.t.Fatalf("%s: %v", statement, err)
	}
}

func (p sdk) add(session string, raws ...string) {
	p.t.Helper()
	tx, err := p.db.BeginTx(p.t.Context(), nil)
	if err != nil {
		p.t.Fatal(err)
	}
	var n int
	if err := tx.QueryRowContext(p.t.Context(), "SELECT count(*) FROM agent_sessions WHERE session_id = "+p.arg(1), session).Scan(&n); err != nil {
		p.t.Fatal(err)
	}
	if n == 0 {
		p.exec(tx, "INSERT INTO agent_sessions (session_id) VALUES (%s)", session)
	}
	for _, raw := range raws {
		p.exec(tx, "INSERT INTO agent_messages (session_id, message_data) VALUES (%s, %s)", session, raw)
	}
	p.exec(tx, "UPDATE agent_sessions SET updated_at = CURRENT_TIMESTAMP WHERE session_id = %s", session)
	if err := tx.Commit(); err != nil {
		p.t.Fatal(err)
	}
}

func (p sdk) get(session string) []string {
	p.t.Helper()
	rows, err := p.db.QueryContext(p.t.Context(), "SELECT message_data FROM agent_messages WHERE session_id = "+p.arg(1)+" ORDER BY created_at ASC, id ASC", session)
	if err != nil {
		p.t.Fatal(err)
	}
	defer rows.Close()
	var raws []string
	for rows.Next() {
		var raw string
		if err := rows.Scan(&raw); err != nil {
			p.t.Fatal(err)
		}
		raws = append(raws, raw)
	}
	return raws
}

func (p sdk) pop(session string) {
	p.t.Helper()
	var id int64
	err := p.db.QueryRowContext(p.t.Context(), "SELECT id FROM agent_messages WHERE session_id = "+p.arg(1)+" ORDER BY created_at DESC, id DESC LIMIT 1", session).Scan(&id)
	if err != nil {
		p.t.Fatal(err)
	}
	p.exec(p.db, "DELETE FROM agent_messages WHERE id = %s", id)
}

func (p sdk) clear(session string) {
	p.t.Helper()
	p.exec(p.db, "DELETE FROM agent_messages WHERE session_id = %s", session)
	p.exec(p.db, "DELETE FROM agent_sessions WHERE session_id = %s", session)
}

// servers open a database of the test's own: its URL, and another program on it.
var servers = []struct {
	name string
	make func(t *testing.T) (*url.URL, sdk)
	// schema is the SDK's, as SQLAlchemy compiles it.
	schema string
}{
	{
		"PostgreSQL", func(t *testing.T) (*url.URL, sdk) {
			u := dbtest.Postgres(t)
			return u, connect(t, "pgx", u.String(), dollar)
		}, `CREATE TABLE agent_sessions (session_id VARCHAR NOT NULL, created_at TIMESTAMP WITHOUT TIME ZONE DEFAULT CURRENT_TIMESTAMP NOT NULL, updated_at TIMESTAMP WITHOUT TIME ZONE DEFAULT CURRENT_TIMESTAMP NOT NULL, PRIMARY KEY (session_id));
CREATE TABLE agent_messages (id SERIAL NOT NULL, session_id VARCHAR NOT NULL, message_data TEXT NOT NULL, created_at TIMESTAMP WITHOUT TIME ZONE DEFAULT CURRENT_TIMESTAMP NOT NULL, PRIMARY KEY (id), FOREIGN KEY(session_id) REFERENCES agent_sessions (session_id) ON DELETE CASCADE);
CREATE INDEX idx_agent_messages_session_time ON agent_messages (session_id, created_at)`,
	},
	{
		"MySQL", func(t *testing.T) (*url.URL, sdk) {
			u := dbtest.MySQL(t)
			return u, connect(t, "mysql", mysqlDSN(u), question)
		}, `CREATE TABLE agent_sessions (session_id VARCHAR(190) COLLATE utf8mb4_bin NOT NULL, created_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP, updated_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP, PRIMARY KEY (session_id));
CREATE TABLE agent_messages (id INTEGER NOT NULL AUTO_INCREMENT, session_id VARCHAR(190) COLLATE utf8mb4_bin NOT NULL, message_data TEXT NOT NULL, created_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP, PRIMARY KEY (id), FOREIGN KEY(session_id) REFERENCES agent_sessions (session_id) ON DELETE CASCADE);
CREATE INDEX idx_agent_messages_session_time ON agent_messages (session_id, created_at)`,
	},
}

func TestTheSDKAndGoShareAServer(t *testing.T) {
	t.Parallel()
	for _, srv := range servers {
		for _, first := range []string{"SDK", "Go"} {
			t.Run(srv.name+"/TablesMadeBy"+first, func(t *testing.T) {
				t.Parallel()
				u, py := srv.make(t)
				if first == "SDK" {
					py.exec(py.db, srv.schema)
					py.add("s", `{"from":"before"}`)
					py.clear("s")
				}
				s := open(t, u.String())
				raw := "{ \"こん\":\t\"\\ud83d\\ude00 😀\",\n\"n\":1.0, \"f\":9007199254740993 }"

				dbtest.Append(t, s, "s", "turn-1", raw, `{"n":2}`)
				py.add("s", `{"n":3}`, "{bad", "null")
				dbtest.Append(t, s, "s", "turn-2", `{"n":4}`)
				if diff := cmp.Diff([]string{raw, `{"n":2}`, `{"n":3}`, "{bad", "null", `{"n":4}`}, py.get("s")); diff != "" {
					t.Errorf("the SDK sees something else (-want +got):\n%s", diff)
				}
				items, err := s.Items(t.Context(), "s", 3)
				if err != nil {
					t.Fatal(err)
				}
				for i, want := range []struct{ turn, raw string }{{"turn-1", `{"n":2}`}, {"", `{"n":3}`}, {"turn-2", `{"n":4}`}} {
					if items[i].Turn != want.turn || string(items[i].Raw) != want.raw || items[i].At.IsZero() {
						t.Errorf("item %d: %s of %q at %v, want %s of %q", i, items[i].Raw, items[i].Turn, items[i].At, want.raw, want.turn)
					}
				}
				if d := items[1].At.Sub(items[0].At).Abs(); d.Hours() > 0.5 {
					t.Errorf("the times of the SDK's and of Go's items are %v apart", d)
				}

				py.pop("s")
				dbtest.Append(t, s, "s", "turn-2", `{"n":4}`)
				if it, err := s.Pop(t.Context(), "s"); err != nil || string(it.Raw) != `{"n":3}` {
					t.Errorf("pop over corrupt rows: %s, %v", it.Raw, err)
				}
				if diff := cmp.Diff([]string{raw, `{"n":2}`}, py.get("s")); diff != "" {
					t.Errorf("after pops (-want +got):\n%s", diff)
				}

				py.clear("s")
				if g := dbtest.Generation(t, s, "s"); g != 1 {
					t.Errorf("generation after the SDK cleared: %d, want 1", g)
				}
				dbtest.WantStale(t, s, "s", sessionstore.Batch{Turn: "turn-3", Items: dbtest.Items(`{}`)})
				dbtest.AppendAt(t, s, "s", 1, "turn-1", `{"n":5}`)
				if err := s.Clear(t.Context(), "s"); err != nil {
					t.Fatal(err)
				}
				if got := py.get("s"); len(got) != 0 || dbtest.Generation(t, s, "s") != 2 {
					t.Errorf("after Clear the SDK sees %q", got)
				}
			})
		}
	}
}

// Ciphertext must not reach a model, and must not be thrown away as corrupt.
func TestItemsOfEncryptedSession(t *testing.T) {
	t.Parallel()
	const sealed = `{"__enc__":1,"v":1,"kid":"hkdf-v1","payload":"gAAA"}`
	check := func(t *testing.T, s *sqlstore.Store, id sessionstore.ID, want ...string) {
		if got := dbtest.Raws(t, s, id, 9); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("got %q, want %q", got, want)
		}
		for range 2 {
			if _, err := s.Pop(t.Context(), id); !errors.Is(err, sqlstore.ErrSealed) {
				t.Errorf("pop: %v", err)
			}
		}
	}
	for _, srv := range servers {
		t.Run(srv.name, func(t *testing.T) {
			t.Parallel()
			u, py := srv.make(t)
			s := open(t, u.String())
			py.add("s", `{"n":1}`, sealed, `{"__enc__":2}`, sealed)
			check(t, s, "s", `{"n":1}`, `{"__enc__":2}`)
			if got := py.get("s"); len(got) != 4 {
				t.Errorf("left: %q", got)
			}
		})
	}
	t.Run("SQLite", func(t *testing.T) {
		t.Parallel()
		check(t, openFile(t, copyFile(t, "agents_sdk_sqlite_0.22.0.db")), "enc:U1")
	})
}

func TestManyStartAtOnceOnAnEmptyDatabase(t *testing.T) {
	t.Parallel()
	for _, srv := range servers {
		t.Run(srv.name, func(t *testing.T) {
			t.Parallel()
			u, py := srv.make(t)
			var wg sync.WaitGroup
			for i := range 8 {
				wg.Go(func() {
					s, err := sqlstore.Open(t.Context(), sqlstore.Options{URL: u.String(), MaxConns: 2})
					if err != nil {
						t.Errorf("open: %v", err)
						return
					}
					defer s.Close()
					for n := range 5 {
						if err := s.Append(t.Context(), "s", sessionstore.Batch{Turn: fmt.Sprint(i, "/", n), Items: dbtest.Items(`{}`)}); err != nil {
							t.Errorf("append: %v", err)
						}
					}
				})
			}
			wg.Wait()
			if got := len(py.get("s")); got != 40 {
				t.Errorf("got %d items, want 40", got)
			}
		})
	}
}

func TestTwoStoresFenceEachOther(t *testing.T) {
	t.Parallel()
	for _, srv := range servers {
		t.Run(srv.name, func(t *testing.T) {
			t.Parallel()
			u, py := srv.make(t)
			stores := []*sqlstore.Store{open(t, u.String()), open(t, u.String())}
			var wg sync.WaitGroup
			for _, s := range stores {
				for w := range 4 {
					wg.Go(func() {
						for n := range 10 {
							// Every turn is tried by both stores; clears go on meanwhile.
							g, err := s.Generation(t.Context(), "s")
							if err != nil {
								t.Error(err)
								continue
							}
							raw := fmt.Sprintf(`{"turn":"%d/%d"}`, w, n)
							err = s.Append(t.Context(), "s", sessionstore.Batch{Turn: fmt.Sprint(w, "/", n), Generation: g, Items: dbtest.Items(raw, raw)})
							if err != nil && !errors.Is(err, sessionstore.ErrStale) {
								t.Error(err)
							}
							if w == 0 && n%4 == 3 {
								if err := s.Clear(t.Context(), "s"); err != nil {
									t.Error(err)
								}
							}
						}
					})
				}
			}
			wg.Wait()
			if g := dbtest.Generation(t, stores[0], "s"); g != 4 {
				t.Errorf("generation %d after 4 clears", g)
			}
			raws := py.get("s")
			if diff := cmp.Diff(dbtest.Raws(t, stores[0], "s", sessionstore.All), raws); diff != "" {
				t.Errorf("the SDK, which orders by time, sees another order (-go +sdk):\n%s", diff)
			}
			seen := map[string]bool{}
			for i := 0; i+1 < len(raws); i += 2 {
				if raws[i] != raws[i+1] || seen[raws[i]] {
					t.Errorf("turn torn or doubled at %d: %q", i, raws)
					break
				}
				seen[raws[i]] = true
			}
		})
	}
}

func TestResilience(t *testing.T) {
	t.Parallel()
	for _, srv := range servers {
		t.Run(srv.name, func(t *testing.T) {
			t.Parallel()
			u, _ := srv.make(t)
			p := dbtest.NewProxy(t, u.Host)
			through := *u
			through.Host = p.Addr()
			dbtest.Resilience(t, p, open(t, through.String()), sqlstore.ErrOutcomeUnknown)
		})
	}
}

func TestErrorsOfServersHoldNoSecret(t *testing.T) {
	t.Parallel()
	for _, srv := range servers {
		t.Run(srv.name, func(t *testing.T) {
			t.Parallel()
			u, _ := srv.make(t)
			for name, host := range map[string]string{"NoServer": "127.0.0.1:1", "NoDatabase": u.Host} {
				bad := *u
				bad.Host, bad.Path, bad.User = host, "/does_not_exist", url.UserPassword("nobody", "hunter2")
				_, err := sqlstore.Open(t.Context(), sqlstore.Options{URL: bad.String()})
				if err == nil || strings.Contains(err.Error(), "hunter2") {
					t.Errorf("%s: %v", name, err)
				}
			}
		})
	}
}
