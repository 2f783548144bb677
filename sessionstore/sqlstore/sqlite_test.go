package sqlstore_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"botd/sessionstore"
	"botd/sessionstore/internal/dbtest"
	"botd/sessionstore/sqlstore"
)

// copyFile copies a file of testdata to where it may be written.
func copyFile(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// plain opens a file without this package.
func plain(t *testing.T, file string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+file+"?_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func mustExec(t *testing.T, db *sql.DB, statement string, args ...any) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), statement, args...); err != nil {
		t.Fatal(err)
	}
}

func TestFileOfSQLiteSession(t *testing.T) {
	t.Parallel()
	s := openFile(t, copyFile(t, "agents_sdk_sqlite_0.22.0.db"))
	got, err := s.Items(t.Context(), "line:U123", sessionstore.All)
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 12, 1, 4, 13, 0, 0, time.UTC)
	item := func(seq uint64, raw string) sessionstore.Item {
		return sessionstore.Item{Seq: seq, At: at, Raw: []byte(raw)}
	}
	want := []sessionstore.Item{
		item(1, `{"role": "user", "content": "\u3053\u3093\u306b\u3061\u306f \ud83d\ude00"}`),
		item(2, `{"type": "reasoning", "id": "rs_1", "summary": []}`),
		item(3, `{"type": "function_call", "call_id": "call_1", "name": "get_weather", "arguments": "{}", "id": "fc_1"}`),
		item(4, `{"type": "function_call_output", "call_id": "call_1", "output": "\u6674\u308c"}`),
		item(5, `{"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": [{"type": "output_text", "text": "Hello \"x\" </script> &<>", "annotations": []}]}`),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	infos, err := s.Sessions(t.Context(), "", "", 10)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]sessionstore.Info{
		{ID: "discord:42", Items: 3, Created: at, Updated: at},
		{ID: "enc:U1", Items: 1, Created: at, Updated: at},
		{ID: "line:U123", Items: 5, Created: at, Updated: at},
	}, infos); diff != "" {
		t.Errorf("sessions (-want +got):\n%s", diff)
	}

	// The newest row of this session is corrupt.
	if it, err := s.Pop(t.Context(), "discord:42"); err != nil || string(it.Raw) != `{"role": "user", "content": "b"}` {
		t.Errorf("pop: got %s, %v", it.Raw, err)
	}
	dbtest.Append(t, s, "line:U123", "turn-1", `{"n":1}`)
	if got := dbtest.Raws(t, s, "line:U123", 2); !cmp.Equal(got, []string{string(want[4].Raw), `{"n":1}`}) {
		t.Errorf("after an append: %q", got)
	}
}

func TestFileOfSQLAlchemySession(t *testing.T) {
	t.Parallel()
	file := copyFile(t, "agents_sdk_sqlalchemy.db")
	s := openFile(t, file)
	dbtest.Append(t, s, "line:U123", "turn-1", `{"n":1}`)
	want := []string{
		`{"role":"user","content":"\u3053\u3093\u306b\u3061\u306f"}`,
		`{"type":"reasoning","id":"rs_1","summary":[]}`,
		`{"id":"msg_1","type":"message","role":"assistant","status":"completed","content":[{"type":"output_text","text":"\u306f\u3044","annotations":[]}]}`,
		`{"n":1}`,
	}
	if diff := cmp.Diff(want, dbtest.Raws(t, s, "line:U123", sessionstore.All)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := s.Clear(t.Context(), "line:U123"); err != nil {
		t.Fatal(err)
	}
	var n int
	row := plain(t, file).QueryRowContext(t.Context(), "SELECT (SELECT count(*) FROM agent_messages) + (SELECT count(*) FROM agent_sessions)")
	if err := row.Scan(&n); err != nil || n != 0 {
		t.Errorf("after Clear %d rows of the SDK's are left, %v", n, err)
	}
}

// layout describes a table and its indexes as SQLite understood them.
func layout(t *testing.T, db *sql.DB, table string) []string {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), `
		SELECT 'column ' || name || ' ' || type || ' ' || "notnull" || ' ' || coalesce(dflt_value, '-') || ' ' || pk FROM pragma_table_info(?1)
		UNION ALL SELECT 'foreign key ' || "table" || ' ' || "from" || ' ' || "to" || ' ' || on_delete FROM pragma_foreign_key_list(?1)
		UNION ALL SELECT 'index ' || l.name || ' ' || l."unique" || ' ' || i.name FROM pragma_index_list(?1) l, pragma_index_info(l.name) i
		UNION ALL SELECT 'autoincrement ' || (sql LIKE '%AUTOINCREMENT%') FROM sqlite_master WHERE name = ?1`, table)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var lines []string
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, line)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return lines
}

func TestNewFileHasTheLayoutOfSQLiteSession(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "new ?#%.db") // what a URI must escape
	s, err := sqlstore.Open(t.Context(), sqlstore.Options{URL: "sqlite:///" + strings.NewReplacer("%", "%25", "?", "%3f", "#", "%23", " ", "%20").Replace(file)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if fi, err := os.Stat(file); err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("the file: %v, %v; want mode 0600", fi, err)
	}
	link := filepath.Join(t.TempDir(), "plain.db")
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	got, want := plain(t, link), plain(t, copyFile(t, "agents_sdk_sqlite_0.22.0.db"))
	for _, table := range []string{"agent_sessions", "agent_messages"} {
		if diff := cmp.Diff(layout(t, want, table), layout(t, got, table)); diff != "" {
			t.Errorf("%s (-SDK +botd):\n%s", table, diff)
		}
	}
	var mode string
	if err := got.QueryRowContext(t.Context(), "PRAGMA journal_mode").Scan(&mode); err != nil || mode != "wal" {
		t.Errorf("journal mode %q, %v", mode, err)
	}
}

func TestRowsAreReadByAnIndexInTheirOrder(t *testing.T) {
	t.Parallel()
	early := filepath.Join(t.TempDir(), "early.db")
	db := plain(t, early)
	mustExec(t, db, `CREATE TABLE agent_sessions (session_id TEXT PRIMARY KEY, created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP, updated_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP)`)
	mustExec(t, db, `CREATE TABLE agent_messages (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL, message_data TEXT NOT NULL, created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP)`)
	mustExec(t, db, `CREATE INDEX idx_agent_messages_session_id ON agent_messages (session_id, created_at)`)
	for name, file := range map[string]string{
		"new":                   filepath.Join(t.TempDir(), "new.db"),
		"SQLiteSession":         copyFile(t, "agents_sdk_sqlite_0.22.0.db"),
		"SQLAlchemySession":     copyFile(t, "agents_sdk_sqlalchemy.db"),
		"early SQLiteSession's": early,
	} {
		t.Run(name, func(t *testing.T) {
			openFile(t, file)
			rows, err := plain(t, file).QueryContext(t.Context(), "EXPLAIN QUERY PLAN SELECT message_data FROM agent_messages WHERE session_id = 's' AND id < 9 ORDER BY id DESC LIMIT 3")
			if err != nil {
				t.Fatal(err)
			}
			defer rows.Close()
			var plan []string
			for rows.Next() {
				var n int
				var line string
				if err := rows.Scan(&n, &n, &n, &line); err != nil {
					t.Fatal(err)
				}
				plan = append(plan, line)
			}
			if len(plan) != 1 || !strings.Contains(plan[0], "(session_id=? AND id<?)") {
				t.Errorf("plan: %q", plan)
			}
		})
	}
}

func TestUnsuitableFilesAreRefused(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		statement, want string
	}{
		"AdvancedSQLiteSession": {"CREATE TABLE message_structure (id INTEGER PRIMARY KEY)", "AdvancedSQLiteSession"},
		"newer release":         {"CREATE TABLE botd_schema (version INTEGER NOT NULL); INSERT INTO botd_schema VALUES (2)", "version 2, this program knows 1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "x.db")
			mustExec(t, plain(t, file), tt.statement)
			_, err := sqlstore.Open(t.Context(), sqlstore.Options{URL: "sqlite:///" + file})
			if !errors.Is(err, sqlstore.ErrSchema) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v", err)
			}
			if got := layout(t, plain(t, file), "agent_sessions"); len(got) != 0 {
				t.Errorf("the refused file was changed: %q", got)
			}
		})
	}
}

func TestInvalidURLs(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ url, want string }{
		{"bbolt:///x", `unknown scheme "bbolt"`},
		{"sqlite://file.db", "three slashes"},
		{"sqlite:///x?sessions_table=a;drop", "malformed parameters"},
		{"sqlite:///x?sessions_table=a+b", "table name"},
		{"sqlite:///x?busy_timeout=5", "not a duration such as 5s"},
		{"sqlite:///x?synchronous=off", "neither full nor normal"},
		{"sqlite:///x?max_conns=none", "not a positive number"},
		{"sqlite:///x?mode=ro", `unknown parameter "mode"`},
		{"postgres://u:hunter2@[::1", "invalid database URL"},
	} {
		_, err := sqlstore.Open(t.Context(), sqlstore.Options{URL: tt.url})
		if !errors.Is(err, sqlstore.ErrURL) || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: got %v, want %q", tt.url, err, tt.want)
		}
	}
}

func TestMemoryStaysAcrossReadsThatWereCutShort(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"sqlite::memory:", "sqlite://", "sqlite:///:memory:", "sqlite+aiosqlite:///:memory:"} {
		s, err := sqlstore.Open(t.Context(), sqlstore.Options{URL: url})
		if err != nil {
			t.Fatalf("%s: %v", url, err)
		}
		defer s.Close()
		for i := range 20 {
			dbtest.Append(t, s, "s", fmt.Sprint("turn-", i), `{"n":1}`)
			ctx, cancel := context.WithCancel(t.Context())
			go cancel()
			_, _ = s.Items(ctx, "s", sessionstore.All)
			cancel()
		}
		if got := len(dbtest.Raws(t, s, "s", sessionstore.All)); got != 20 {
			t.Errorf("%s: got %d items, want 20", url, got)
		}
	}
}

func TestOneDatabaseTwoPairsOfTables(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "x.db")
	a := openFile(t, file)
	b, err := sqlstore.Open(t.Context(), sqlstore.Options{URL: "sqlite:///" + file + "?sessions_table=Order&messages_table=Group"})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	dbtest.Append(t, a, "s", "turn", `{"in":"a"}`)
	dbtest.Append(t, b, "s", "turn", `{"in":"b"}`)
	if err := a.Clear(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	if got := dbtest.Raws(t, b, "s", 5); !cmp.Equal(got, []string{`{"in":"b"}`}) || dbtest.Generation(t, b, "s") != 0 {
		t.Errorf("the other pair holds %q", got)
	}
}

func TestAWriteThatFailsDoesNotHarmItsGroup(t *testing.T) {
	t.Parallel()
	s := openFile(t, filepath.Join(t.TempDir(), "x.db"))
	if err := s.Clear(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range 200 {
		wg.Go(func() {
			b := sessionstore.Batch{Turn: fmt.Sprint(i), Generation: 1, Items: dbtest.Items(`{"n":1}`, `{"n":2}`)}
			if i%2 == 0 {
				b.Generation = 0
				if err := s.Append(t.Context(), "s", b); !errors.Is(err, sessionstore.ErrStale) {
					t.Errorf("append %d: %v, want ErrStale", i, err)
				}
				return
			}
			if err := s.Append(t.Context(), "s", b); err != nil {
				t.Errorf("append %d: %v", i, err)
			}
		})
	}
	wg.Wait()
	if got := len(dbtest.Raws(t, s, "s", sessionstore.All)); got != 200 {
		t.Errorf("got %d items, want 200", got)
	}
}

func TestAnotherProcessHoldsTheLock(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "x.db")
	s, err := sqlstore.Open(t.Context(), sqlstore.Options{URL: "sqlite:///" + file + "?busy_timeout=50ms"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	dbtest.Append(t, s, "s", "turn-1", `{"n":1}`)
	other, err := plain(t, file).Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if _, err := other.ExecContext(t.Context(), "BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	b := sessionstore.Batch{Turn: "turn-2", Items: dbtest.Items(`{"n":2}`)}
	if err := s.Append(t.Context(), "s", b); err == nil || !strings.Contains(err.Error(), "another process keeps the database locked") {
		t.Errorf("append while locked: got %v", err)
	}
	if got := dbtest.Raws(t, s, "s", 5); !cmp.Equal(got, []string{`{"n":1}`}) {
		t.Errorf("reading while locked: got %q", got)
	}
	if _, err := other.ExecContext(t.Context(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	dbtest.Append(t, s, "s", "turn-2", `{"n":2}`)
	if got := dbtest.Raws(t, s, "s", 5); !cmp.Equal(got, []string{`{"n":1}`, `{"n":2}`}) {
		t.Errorf("after the lock was released: got %q", got)
	}
}

func TestAContextThatEndsWhileAWriteWaits(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "x.db")
	s := openFile(t, file)
	other, err := plain(t, file).Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if _, err := other.ExecContext(t.Context(), "BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	// The first write has begun and waits for the lock; the others queue behind it.
	var wg sync.WaitGroup
	results := make([]error, 20)
	ctx, cancel := context.WithCancel(t.Context())
	for i := range results {
		wg.Go(func() {
			results[i] = s.Append(ctx, "s", sessionstore.Batch{Turn: fmt.Sprint(i), Items: dbtest.Items(fmt.Sprintf(`{"n":%d}`, i))})
		})
	}
	time.AfterFunc(50*time.Millisecond, func() {
		cancel()
		time.AfterFunc(50*time.Millisecond, func() { _, _ = other.ExecContext(context.WithoutCancel(ctx), "ROLLBACK") })
	})
	wg.Wait()
	written := map[string]bool{}
	for _, raw := range dbtest.Raws(t, s, "s", sessionstore.All) {
		written[raw] = true
	}
	for i, err := range results {
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("append %d: %v", i, err)
		}
		if raw := fmt.Sprintf(`{"n":%d}`, i); written[raw] != (err == nil) {
			t.Errorf("append %d returned %v, written: %v", i, err, written[raw])
		}
	}
}

func TestTextThatIsNotUTF8IsNoItem(t *testing.T) {
	t.Parallel()
	s := openFile(t, filepath.Join(t.TempDir(), "x.db"))
	err := s.Append(t.Context(), "s", sessionstore.Batch{Items: dbtest.Items(`{"n":1}`, "{\"n\":\"\xff\"}")})
	if !errors.Is(err, sessionstore.ErrInvalidItem) || !strings.Contains(err.Error(), "item 1") {
		t.Errorf("got %v", err)
	}
	if got := dbtest.Raws(t, s, "s", 5); len(got) != 0 {
		t.Errorf("written: %q", got)
	}
}

func TestAReopenedFileKnowsItsTurns(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "x.db")
	s := openFile(t, file)
	if err := s.Clear(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	dbtest.AppendAt(t, s, "s", 1, "turn-1", `{"n":1}`)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = openFile(t, file)
	dbtest.AppendAt(t, s, "s", 1, "turn-1", `{"n":1}`)
	dbtest.WantStale(t, s, "s", sessionstore.Batch{Turn: "turn-0", Items: dbtest.Items(`{}`)})
	if got := dbtest.Raws(t, s, "s", 5); !cmp.Equal(got, []string{`{"n":1}`}) {
		t.Errorf("got %q", got)
	}
}
