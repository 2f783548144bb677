package sqlstore_test

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"botd/sessionstore"
	"botd/sessionstore/internal/dbtest"
	"botd/sessionstore/sqlstore"
	"botd/sessionstore/storetest"
)

// startPgbouncer starts a pooler in transaction mode in front of a database, with fewer connections than
// the store has, and returns the URL through it.
func startPgbouncer(t *testing.T, u *url.URL) *url.URL {
	t.Helper()
	path, err := exec.LookPath("pgbouncer")
	if err != nil {
		path = "/usr/sbin/pgbouncer"
		if _, err := os.Stat(path); err != nil {
			t.Skip("pgbouncer is not installed")
		}
	}
	ln, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := ln.Addr().(*net.TCPAddr)
	ln.Close()
	dir, err := os.MkdirTemp("", "pgbouncer") //nolint:usetesting // t.TempDir's parents are closed to the user it runs as
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	ini := fmt.Sprintf(`[databases]
* = host=%s port=%s user=%s
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 3
max_client_conn = 200
server_reset_query_always = 1
server_reset_query = DISCARD ALL
`, u.Hostname(), u.Port(), u.User.Username(), addr.Port)
	file := filepath.Join(dir, "pgbouncer.ini")
	if err := os.WriteFile(file, []byte(ini), 0o644); err != nil {
		t.Fatal(err)
	}
	args := []string{file}
	if os.Getuid() == 0 {
		args = []string{"-u", "nobody", file}
	}
	cmd := exec.CommandContext(t.Context(), path, args...)
	var out dbtest.Tail
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("pgbouncer: %s", out.String())
		}
	})
	through := *u
	through.Host = addr.String()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", through.Host)
		if err == nil {
			conn.Close()
			return &through
		}
		select {
		case <-ctx.Done():
			t.Fatalf("pgbouncer does not start: %s", out.String())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func TestBehindPgbouncerInTransactionMode(t *testing.T) {
	t.Parallel()
	url := ownTables(startPgbouncer(t, dbtest.Postgres(t)).String())
	t.Run("Store", func(t *testing.T) {
		storetest.Store(t, func(t *testing.T) sessionstore.Store { return open(t, url(t)) })
	})
}

// An append relies on what each of its statements sees; the database's own default must not change that.
func TestDatabaseThatDefaultsToSerializable(t *testing.T) {
	t.Parallel()
	u := dbtest.Postgres(t)
	py := connect(t, "pgx", u.String(), dollar)
	py.exec(py.db, "ALTER DATABASE "+strings.TrimPrefix(u.Path, "/")+" SET default_transaction_isolation = 'serializable'")
	s := open(t, u.String())
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for n := range 10 {
				if err := s.Append(t.Context(), "s", sessionstore.Batch{Turn: fmt.Sprint(i, "/", n), Items: dbtest.Items(`{}`)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if got := len(dbtest.Raws(t, s, "s", sessionstore.All)); got != 80 {
		t.Errorf("got %d items, want 80", got)
	}
}

func TestRoleThatMayNotMakeTables(t *testing.T) {
	t.Parallel()
	u := dbtest.Postgres(t)
	py := connect(t, "pgx", u.String(), dollar)
	role := dbtest.Name()
	py.exec(py.db, "CREATE ROLE "+role+" LOGIN PASSWORD 'x'")
	t.Cleanup(func() {
		for _, statement := range []string{"DROP OWNED BY ", "DROP ROLE "} {
			if _, err := py.db.ExecContext(context.WithoutCancel(t.Context()), statement+role); err != nil {
				t.Error(err)
			}
		}
	})
	own := *u
	own.User = url.UserPassword(role, "x")
	if _, err := sqlstore.Open(t.Context(), sqlstore.Options{URL: own.String()}); err == nil || !strings.Contains(err.Error(), "permission denied") {
		t.Errorf("open without tables: %v", err)
	}
	open(t, u.String())
	py.exec(py.db, "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO "+role)
	py.exec(py.db, "GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO "+role)
	s := open(t, own.String())
	dbtest.Append(t, s, "s", "turn", `{}`)
	if _, err := s.Pop(t.Context(), "s"); err != nil {
		t.Error(err)
	}
	if err := s.Clear(t.Context(), "s"); err != nil {
		t.Error(err)
	}
}

// A session ID may hold bytes that PostgreSQL's text may not.
func TestOddIDsKeepTheirOrder(t *testing.T) {
	t.Parallel()
	s := open(t, dbtest.Postgres(t).String())
	want := []sessionstore.ID{"a", "a\x00", "a\x00\x00", "a\x00b", "a\x01", "a\x01\x00", "a\x01\x01", "a\x01\x02", "a\x02", "aa", "b"}
	for i := range want {
		dbtest.Append(t, s, want[len(want)-1-i], "t", fmt.Sprintf(`{"n":%d}`, i))
	}
	for i, id := range want {
		if got := dbtest.Raws(t, s, id, 5); len(got) != 1 || got[0] != fmt.Sprintf(`{"n":%d}`, len(want)-1-i) {
			t.Errorf("%q holds %q", id, got)
		}
	}
	var got []sessionstore.ID
	for after := sessionstore.ID(""); ; {
		infos, err := s.Sessions(t.Context(), "", after, 2)
		if err != nil {
			t.Fatal(err)
		}
		if len(infos) == 0 {
			break
		}
		for _, info := range infos {
			got = append(got, info.ID)
		}
		after = got[len(got)-1]
	}
	if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
		t.Errorf("got %q, want %q", got, want)
	}
	infos, err := s.Sessions(t.Context(), "a\x00", "", 10)
	if err != nil || len(infos) != 3 {
		t.Errorf("with a prefix: %v, %v", infos, err)
	}
	if _, err := s.Items(t.Context(), "\xff", 1); err == nil {
		t.Error("an ID that is not UTF-8 was taken")
	}
}
