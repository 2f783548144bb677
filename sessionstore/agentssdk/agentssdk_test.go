package agentssdk_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"botd/sessionstore"
	"botd/sessionstore/agentssdk"
	"botd/sessionstore/internal/dbtest"
	"botd/sessionstore/sqlstore"
)

// oddItems are items whose bytes a careless copy would change.
var oddItems = []string{
	`{"role":"user","content":"こんにちは 😀"}`,
	`{"role": "user", "content": "\u3053\u3093 \ud83d\ude00"}`,
	"{\n  \"type\" : \"message\",\r\n\t\"content\": \"</script> & <b>\"\n}",
	` {"n": 9007199254740993, "f": 1.0, "e": 1E5, "a":1, "a":2} `,
	`{"content":"line one\nline two\u2028\u0000"}`,
	`{}`,
}

func openStore(t *testing.T) *sqlstore.Store {
	t.Helper()
	s, err := sqlstore.Open(t.Context(), sqlstore.Options{URL: "sqlite::memory:"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// collect returns the rows and the faults of a sequence that must not fail.
func collect(t *testing.T, rows agentssdk.Rows) (good []agentssdk.Row, faults []string) {
	t.Helper()
	for r, err := range rows {
		if f, ok := errors.AsType[*agentssdk.Fault](err); ok {
			faults = append(faults, f.Error())
		} else if err != nil {
			t.Fatal(err)
		} else {
			good = append(good, r)
		}
	}
	return good, faults
}

// each yields rows.
func each(rows ...agentssdk.Row) agentssdk.Rows {
	return func(yield func(agentssdk.Row, error) bool) {
		for _, r := range rows {
			if !yield(r, nil) {
				return
			}
		}
	}
}

func raws(rows []agentssdk.Row) []string {
	var out []string
	for _, r := range rows {
		out = append(out, string(r.Raw))
	}
	return out
}

func testdata(name string) string { return filepath.Join("testdata", name) }

func TestReadFileOfSQLiteSession(t *testing.T) {
	t.Parallel()
	rows, faults := collect(t, agentssdk.ReadSQLite(t.Context(), testdata("agents_sdk_sqlite_0.22.0.db"), agentssdk.Tables{}))
	if len(rows) != 8 {
		t.Errorf("got %d rows, want 8", len(rows))
	}
	if diff := cmp.Diff([]string{`row 9 of session "discord:42": not a JSON object`}, faults); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
	want := agentssdk.Row{
		Number: 1, Session: "line:U123", At: time.Date(2026, 12, 1, 4, 13, 0, 0, time.UTC),
		Raw: []byte(`{"role": "user", "content": "\u3053\u3093\u306b\u3061\u306f \ud83d\ude00"}`),
	}
	if diff := cmp.Diff(want, rows[3]); diff != "" {
		t.Errorf("row 1 (-want +got):\n%s", diff)
	}
	if left, err := filepath.Glob(testdata("*-wal")); err != nil || len(left) > 0 {
		t.Errorf("reading left %q beside the file, %v", left, err)
	}
}

func TestReadFileOfSQLAlchemySession(t *testing.T) {
	t.Parallel()
	rows, faults := collect(t, agentssdk.ReadSQLite(t.Context(), testdata("agents_sdk_sqlalchemy.db"), agentssdk.Tables{}))
	want := []string{
		`{"role":"user","content":"\u3053\u3093\u306b\u3061\u306f"}`,
		`{"type":"reasoning","id":"rs_1","summary":[]}`,
		`{"id":"msg_1","type":"message","role":"assistant","status":"completed","content":[{"type":"output_text","text":"\u306f\u3044","annotations":[]}]}`,
	}
	if diff := cmp.Diff(want, raws(rows)); diff != "" || len(faults) > 0 {
		t.Errorf("(-want +got):\n%s\nfaults: %q", diff, faults)
	}
}

func TestOtherFilesAreRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	text := filepath.Join(dir, "text.db")
	if err := os.WriteFile(text, []byte(strings.Repeat("not a database\n", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		path   string
		tables agentssdk.Tables
		want   string
	}{
		"missing":     {filepath.Join(dir, "missing.db"), agentssdk.Tables{}, "no such file"},
		"no database": {text, agentssdk.Tables{}, "not a database"},
		"other table": {testdata("agents_sdk_sqlalchemy.db"), agentssdk.Tables{Messages: "chat"}, "table chat is missing"},
		"bad name":    {testdata("agents_sdk_sqlalchemy.db"), agentssdk.Tables{Messages: "a; DROP"}, "letters, digits and _ only"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := 0
			for _, err := range agentssdk.ReadSQLite(t.Context(), tt.path, tt.tables) {
				if n++; err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("got %v, want %q", err, tt.want)
				}
			}
			if n != 1 {
				t.Errorf("the sequence had %d elements, want the error alone", n)
			}
		})
	}
	if exists, _ := filepath.Glob(filepath.Join(dir, "missing*")); len(exists) > 0 {
		t.Errorf("reading made %q", exists)
	}
}

// Every way from a store to a file and back to a store keeps every byte.
func TestRoundTrips(t *testing.T) {
	t.Parallel()
	from := openStore(t)
	for i, raw := range oddItems {
		dbtest.Append(t, from, "line-shop:user:U1", fmt.Sprint("turn-", i), raw, `{"role":"assistant"}`)
		dbtest.Append(t, from, "discord:'; DROP TABLE--", fmt.Sprint("turn-", i), raw)
	}
	key, err := agentssdk.NewKey("secret")
	if err != nil {
		t.Fatal(err)
	}
	tripper := func(encrypt bool, layout agentssdk.Layout) func(*testing.T, agentssdk.Rows) agentssdk.Rows {
		return func(t *testing.T, rows agentssdk.Rows) agentssdk.Rows {
			path := filepath.Join(t.TempDir(), "out.db")
			if encrypt {
				rows = agentssdk.Encrypt(rows, key)
			}
			if _, err := agentssdk.WriteSQLite(t.Context(), path, layout, agentssdk.Tables{}, rows, agentssdk.Options{}); err != nil {
				t.Fatal(err)
			}
			return agentssdk.Decrypt(agentssdk.ReadSQLite(t.Context(), path, agentssdk.Tables{}), key, 0)
		}
	}
	for name, trip := range map[string]func(*testing.T, agentssdk.Rows) agentssdk.Rows{
		"SQLiteSession":                tripper(false, agentssdk.SQLiteSession),
		"SQLAlchemySession":            tripper(false, agentssdk.SQLAlchemySession),
		"EncryptedSession over either": tripper(true, agentssdk.SQLiteSession),
		"JSON lines": func(t *testing.T, rows agentssdk.Rows) agentssdk.Rows {
			var buf bytes.Buffer
			if _, err := agentssdk.WriteJSONL(t.Context(), &buf, rows, agentssdk.Options{}); err != nil {
				t.Fatal(err)
			}
			return agentssdk.ReadJSONL(t.Context(), &buf)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			to := openStore(t)
			rep, err := agentssdk.WriteStore(t.Context(), to, trip(t, agentssdk.ReadStore(t.Context(), from, "")), agentssdk.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if want := (agentssdk.Report{Sessions: 2, Items: 3 * len(oddItems)}); rep != want {
				t.Errorf("report %+v, want %+v", rep, want)
			}
			for _, id := range []sessionstore.ID{"line-shop:user:U1", "discord:'; DROP TABLE--"} {
				if diff := cmp.Diff(dbtest.Raws(t, from, id, sessionstore.All), dbtest.Raws(t, to, id, sessionstore.All)); diff != "" {
					t.Errorf("%s (-before +after):\n%s", id, diff)
				}
			}
		})
	}
}

func TestJSONLinesKeepTurnOriginAndTime(t *testing.T) {
	t.Parallel()
	want := []agentssdk.Row{
		{Number: 1, Session: "<a>", Turn: "t&1", Origin: "clerk@openai/gpt-5", At: time.Date(2026, 1, 2, 3, 4, 5, 6_000_000, time.UTC), Raw: []byte(`{ "a": 1 }`)},
		{Number: 2, Session: "<a>", Raw: []byte("{\n}")},
	}
	var buf bytes.Buffer
	if _, err := agentssdk.WriteJSONL(t.Context(), &buf, each(want...), agentssdk.Options{}); err != nil {
		t.Fatal(err)
	}
	const text = `{"session":"<a>","at":"2026-01-02T03:04:05.006Z","turn":"t&1","origin":"clerk@openai/gpt-5","item":{ "a": 1 }}
{"session":"<a>","text":"{\n}"}
`
	if diff := cmp.Diff(text, buf.String()); diff != "" {
		t.Errorf("written (-want +got):\n%s", diff)
	}
	got, _ := collect(t, agentssdk.ReadJSONL(t.Context(), &buf))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("read back (-want +got):\n%s", diff)
	}
}

func TestBadLinesAreReportedAndPassedOver(t *testing.T) {
	t.Parallel()
	const text = `{"session":"s","item":{"n":1}}

not json
{"session":"s"}
{"session":"s","item":{},"text":"{}"}
{"session":"s","item":[1]}
{"session":"s","text":"{"}
{"session":"","item":{}}
{"session":"s","item":{"n":2}}`
	rows, faults := collect(t, agentssdk.ReadJSONL(t.Context(), strings.NewReader(text)))
	if diff := cmp.Diff([]string{`{"n":1}`, `{"n":2}`}, raws(rows)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{
		`row 3 of session "": not a line of an export`,
		`row 4 of session "s": not a line of an export`,
		`row 5 of session "s": not a line of an export`,
		`row 6 of session "s": not a JSON object`,
		`row 7 of session "s": not a JSON object`,
		`row 8 of session "": invalid session ID`,
	}, faults); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
}

// A writer passes on what a reader found wrong and writes the rest.
func TestWritersReportFaults(t *testing.T) {
	t.Parallel()
	golden := func() agentssdk.Rows {
		return agentssdk.ReadSQLite(t.Context(), testdata("agents_sdk_sqlite_0.22.0.db"), agentssdk.Tables{})
	}
	for name, tt := range map[string]struct {
		write func(agentssdk.Options) (agentssdk.Report, error)
		want  []string
	}{
		"JSON lines": {func(o agentssdk.Options) (agentssdk.Report, error) {
			return agentssdk.WriteJSONL(t.Context(), io.Discard, golden(), o)
		}, []string{agentssdk.ReasonNotObject}},
		"SQLite": {func(o agentssdk.Options) (agentssdk.Report, error) {
			return agentssdk.WriteSQLite(t.Context(), filepath.Join(t.TempDir(), "x.db"), agentssdk.SQLiteSession, agentssdk.Tables{}, golden(), o)
		}, []string{agentssdk.ReasonNotObject}},
		"store": {func(o agentssdk.Options) (agentssdk.Report, error) {
			return agentssdk.WriteStore(t.Context(), openStore(t), golden(), o)
		}, []string{agentssdk.ReasonNotObject, agentssdk.ReasonSealed}},
	} {
		var got []string
		rep, err := tt.write(agentssdk.Options{Fault: func(f *agentssdk.Fault) { got = append(got, f.Reason) }})
		if err != nil || rep.Faults != len(tt.want) || rep.Items != 9-len(tt.want) {
			t.Errorf("%s: %+v, %v", name, rep, err)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestImportMakesATurnOfEachQuestion(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	row := func(turn, raw string) agentssdk.Row {
		return agentssdk.Row{Session: "s", Turn: turn, Raw: []byte(raw)}
	}
	rows := []agentssdk.Row{
		row("", `{"role":"user","n":1}`), row("", `{"role":"user","n":2}`), row("", `{"role":"assistant","n":3}`),
		row("", `{"role":"user","n":4}`), row("", `{"type":"function_call","n":5}`),
		row("kept", `{"role":"user","n":6}`), row("kept", `{"role":"user","n":7}`),
		row("", `{"role":"assistant","n":8}`),
		row("kept", `{"n":9}`), // a turn that others wrote into: its second part must not be taken for a repetition
	}
	if _, err := agentssdk.WriteStore(t.Context(), s, each(rows...), agentssdk.Options{}); err != nil {
		t.Fatal(err)
	}
	items, err := s.Items(t.Context(), "s", sessionstore.All)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]string{}
	var shape []string
	for i, it := range items {
		if string(it.Raw) != string(rows[i].Raw) {
			t.Errorf("item %d: %s", i, it.Raw)
		}
		if names[it.Turn] == "" {
			names[it.Turn] = string(rune('A' + len(names)))
		}
		shape = append(shape, names[it.Turn])
	}
	if got := strings.Join(shape, ""); got != "AAABBCCDE" {
		t.Errorf("turns: got %s, want AAABBCCDE", got)
	}
	if items[5].Turn != "kept" {
		t.Errorf("the turn of item 6 became %q", items[5].Turn)
	}
}

// fragile fails its nth append.
type fragile struct {
	*sqlstore.Store
	left int
}

func (f *fragile) Append(ctx context.Context, id sessionstore.ID, b sessionstore.Batch) error {
	if f.left--; f.left < 0 {
		return errors.New("killed")
	}
	return f.Store.Append(ctx, id, b)
}

func TestAnImportThatWasCutShortCanBeRunAgain(t *testing.T) {
	t.Parallel()
	var rows []agentssdk.Row
	want := map[sessionstore.ID][]string{}
	for i := range 30 {
		r := agentssdk.Row{Session: sessionstore.ID(fmt.Sprint("s", i/10)), Raw: []byte(`{"role":"user","content":"the same"}`)}
		if i%2 == 1 {
			r.Raw = []byte(`{"role":"assistant"}`)
		}
		want[r.Session] = append(want[r.Session], string(r.Raw))
		rows = append(rows, r)
	}
	for cut := range 15 {
		s := openStore(t)
		if _, err := agentssdk.WriteStore(t.Context(), &fragile{s, cut}, each(rows...), agentssdk.Options{}); err == nil {
			t.Fatalf("cut %d: no error", cut)
		}
		for range 2 {
			if _, err := agentssdk.WriteStore(t.Context(), s, each(rows...), agentssdk.Options{}); err != nil {
				t.Fatal(err)
			}
		}
		for id, raws := range want {
			if diff := cmp.Diff(raws, dbtest.Raws(t, s, id, sessionstore.All)); diff != "" {
				t.Errorf("cut %d, session %s (-want +got):\n%s", cut, id, diff)
			}
		}
	}
}

func TestSessionsWhoseRowsAreApartAreRefused(t *testing.T) {
	t.Parallel()
	row := func(id sessionstore.ID) agentssdk.Row {
		return agentssdk.Row{Number: 3, Session: id, Raw: []byte(`{}`)}
	}
	rows := each(row("a"), row("b"), row("a"))
	path := filepath.Join(t.TempDir(), "x.db")
	for name, err := range map[string]error{
		"store":  second(agentssdk.WriteStore(t.Context(), openStore(t), rows, agentssdk.Options{})),
		"lines":  second(agentssdk.WriteJSONL(t.Context(), io.Discard, rows, agentssdk.Options{})),
		"SQLite": second(agentssdk.WriteSQLite(t.Context(), path, agentssdk.SQLiteSession, agentssdk.Tables{}, rows, agentssdk.Options{})),
	} {
		if err == nil || !strings.Contains(err.Error(), `row 3 of session "a"`) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if left, _ := os.ReadDir(filepath.Dir(path)); len(left) > 0 {
		t.Errorf("half a file was left: %v", left)
	}
	if _, err := agentssdk.WriteSQLite(t.Context(), path, agentssdk.SQLiteSession, agentssdk.Tables{}, each(row("a")), agentssdk.Options{}); err != nil {
		t.Fatal(err)
	}
	if err := second(agentssdk.WriteSQLite(t.Context(), path, agentssdk.SQLiteSession, agentssdk.Tables{}, each(row("b")), agentssdk.Options{})); !errors.Is(err, os.ErrExist) {
		t.Errorf("writing over a file: got %v", err)
	}
}

func second(_ agentssdk.Report, err error) error { return err }

// What is read is handed on before the next is read: nothing gathers the file in memory.
func TestLinesStream(t *testing.T) {
	t.Parallel()
	r, w := io.Pipe()
	next := make(chan struct{}, 1)
	next <- struct{}{}
	go func() {
		for n := range 100 {
			<-next // only when the row before has arrived
			fmt.Fprintf(w, "{\"session\":\"s\",\"item\":{\"n\":%d}}\n", n)
		}
		w.Close()
	}()
	n := 0
	for _, err := range agentssdk.ReadJSONL(t.Context(), r) {
		if err != nil {
			t.Fatal(err)
		}
		n++
		next <- struct{}{}
	}
	if n != 100 {
		t.Errorf("got %d rows", n)
	}
}

func FuzzJSONL(f *testing.F) {
	f.Add([]byte(`{"session":"s","at":"2026-01-02T03:04:05Z","turn":"t","origin":"o","item":{ "a" : "\u2028</b>" }}` + "\n" + `{"session":"s","text":" {}\n"}`))
	f.Add([]byte("\ufeff{}\n\n{\"session\":1}"))
	f.Fuzz(func(t *testing.T, in []byte) {
		rows, _ := collect(t, agentssdk.ReadJSONL(t.Context(), bytes.NewReader(in)))
		seen := map[sessionstore.ID]bool{}
		for i, r := range rows {
			if i > 0 && r.Session != rows[i-1].Session && seen[r.Session] {
				return // apart, which WriteJSONL refuses
			}
			seen[r.Session] = true
		}
		var buf bytes.Buffer
		rep, err := agentssdk.WriteJSONL(t.Context(), &buf, each(rows...), agentssdk.Options{})
		if err != nil || rep.Items != len(rows) || rep.Faults != 0 {
			t.Fatalf("what was read cannot be written: %+v, %v", rep, err)
		}
		again, faults := collect(t, agentssdk.ReadJSONL(t.Context(), &buf))
		if len(faults) > 0 {
			t.Fatalf("what was written cannot be read: %q", faults)
		}
		for i := range rows {
			rows[i].Number = int64(i + 1)
			rows[i].At = rows[i].At.UTC()
		}
		if diff := cmp.Diff(rows, again); diff != "" {
			t.Errorf("(-first +second):\n%s", diff)
		}
	})
}
