package sqlstore_test

import (
	"bufio"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"botd/sessionstore"
	"botd/sessionstore/internal/dbtest"
	"botd/sessionstore/sqlstore"
)

// python is a Python program that uses the Agents SDK on the same file.
type python struct {
	t   *testing.T
	in  *json.Encoder
	out *bufio.Scanner
}

func startPython(t *testing.T, file string) *python {
	t.Helper()
	path, err := exec.LookPath("python3")
	if err != nil {
		dbtest.Absent(t, "python3 is not installed")
	}
	cmd := exec.CommandContext(t.Context(), path, filepath.Join("testdata", "agents_sdk.py"), file)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr dbtest.Tail
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		if err := cmd.Wait(); err != nil && t.Context().Err() == nil {
			t.Errorf("python3: %v\n%s", err, stderr.String())
		}
	})
	return &python{t: t, in: json.NewEncoder(in), out: bufio.NewScanner(out)}
}

func (p *python) call(request map[string]any, answer any) {
	p.t.Helper()
	if err := p.in.Encode(request); err != nil {
		p.t.Fatalf("ask python3: %v", err)
	}
	if !p.out.Scan() {
		p.t.Fatalf("python3 gave no answer to %v: %v", request["op"], p.out.Err())
	}
	if err := json.Unmarshal(p.out.Bytes(), answer); err != nil {
		p.t.Fatal(err)
	}
}

func (p *python) add(session string, items ...string) {
	p.t.Helper()
	raws := make([]json.RawMessage, len(items))
	for i, it := range items {
		raws[i] = json.RawMessage(it)
	}
	p.call(map[string]any{"op": "add", "session": session, "items": raws}, new(any))
}

func (p *python) raw(session, data string) {
	p.t.Helper()
	p.call(map[string]any{"op": "raw", "session": session, "data": data}, new(any))
}

// get returns the texts as they are stored; limit 0 asks for all.
func (p *python) get(session string, limit int) []string {
	p.t.Helper()
	request := map[string]any{"op": "get", "session": session}
	if limit > 0 {
		request["limit"] = limit
	}
	var texts []string
	p.call(request, &texts)
	return texts
}

func (p *python) pop(session string) string {
	p.t.Helper()
	var text *string
	p.call(map[string]any{"op": "pop", "session": session}, &text)
	if text == nil {
		return ""
	}
	return *text
}

func (p *python) clear(session string) {
	p.t.Helper()
	p.call(map[string]any{"op": "clear", "session": session}, new(any))
}

func openFile(t *testing.T, file string) *sqlstore.Store {
	t.Helper()
	s, err := sqlstore.Open(t.Context(), sqlstore.Options{URL: "sqlite:///" + file})
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

func TestPythonAndGoShareAFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "shared.db")
	py := startPython(t, file)
	s := openFile(t, file)
	const id = "line-shop:user:U1"
	raw := []string{
		`{"role":"user","content":"こんにちは 😀"}`,
		"{ \"type\" : \"message\",\n\t\"content\":\"</script> & \\u0000 \\\"quoted\\\"\", \"n\":9007199254740993, \"f\":1.0 }",
		`{"role": "user", "content": "\u3053\u3093 \ud83d\ude00"}`, // as json.dumps spells it
	}

	dbtest.Append(t, s, id, "turn-1", raw[0], raw[1])
	py.add(id, raw[2])
	dbtest.Append(t, s, id, "turn-2", raw[0])
	want := []string{raw[0], raw[1], raw[2], raw[0]}

	if diff := cmp.Diff(want, py.get(id, 0)); diff != "" {
		t.Errorf("Python sees something else (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, dbtest.Raws(t, s, id, sessionstore.All)); diff != "" {
		t.Errorf("Go sees something else (-want +got):\n%s", diff)
	}
	items, err := s.Items(t.Context(), id, 2)
	if err != nil {
		t.Fatal(err)
	}
	if items[0].Turn != "" || items[1].Turn != "turn-2" {
		t.Errorf("turns of Python's and Go's item: got %q and %q", items[0].Turn, items[1].Turn)
	}
	if items[0].At.IsZero() || items[1].At.IsZero() {
		t.Errorf("times: %v, %v", items[0].At, items[1].At)
	}

	// A turn is known whatever Python did in between; what Python pops is gone here.
	dbtest.Append(t, s, id, "turn-2", raw[0])
	if got := py.pop(id); got != raw[0] {
		t.Errorf("Python popped %s", got)
	}
	dbtest.Append(t, s, id, "turn-2", raw[0])
	if it, err := s.Pop(t.Context(), id); err != nil || string(it.Raw) != raw[2] {
		t.Errorf("Go popped %s, %v", it.Raw, err)
	}
	if diff := cmp.Diff(raw[:2], py.get(id, 0)); diff != "" {
		t.Errorf("after both popped (-want +got):\n%s", diff)
	}

	// Corrupt rows do not count, on either side, and Pop removes them.
	for _, bad := range []string{"{bad", "null", "[1]", `"text"`, ""} {
		py.raw(id, bad)
	}
	if diff := cmp.Diff(dbtest.Raws(t, s, id, 2), py.get(id, 2)); diff != "" {
		t.Errorf("with corrupt rows (-go +python):\n%s", diff)
	}
	if it, err := s.Pop(t.Context(), id); err != nil || string(it.Raw) != raw[1] {
		t.Errorf("pop over corrupt rows: got %s, %v", it.Raw, err)
	}

	if err := s.Clear(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if got := py.get(id, 0); len(got) != 0 {
		t.Errorf("after Clear Python sees %q", got)
	}
}

func TestAClearByPythonCounts(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "shared.db")
	py := startPython(t, file)
	s := openFile(t, file)
	const id = "s"
	dbtest.Append(t, s, id, "turn-1", `{"n":1}`)
	py.clear(id)

	if g := dbtest.Generation(t, s, id); g != 1 {
		t.Errorf("generation after Python cleared: got %d, want 1", g)
	}
	dbtest.WantStale(t, s, id, sessionstore.Batch{Turn: "turn-2", Generation: 0, Items: dbtest.Items(`{"n":2}`)})
	if got := py.get(id, 0); len(got) != 0 {
		t.Errorf("a run that began before the clear wrote %q", got)
	}
	// The next run goes on, and its turn may have any name.
	dbtest.AppendAt(t, s, id, 1, "turn-1", `{"n":3}`)
	if diff := cmp.Diff([]string{`{"n":3}`}, py.get(id, 0)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := s.Clear(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if g := dbtest.Generation(t, s, id); g != 2 {
		t.Errorf("generation after both cleared: got %d, want 2", g)
	}
}

func TestPythonAndGoWriteAtOnce(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "shared.db")
	py := startPython(t, file)
	s := openFile(t, file)
	const rounds = 100
	done := make(chan error, 1)
	go func() {
		var err error
		for range rounds {
			err = s.Append(t.Context(), "s", sessionstore.Batch{Items: dbtest.Items(`{"by":"go"}`, `{"by":"go"}`)})
			if err != nil {
				break
			}
		}
		done <- err
	}()
	for range rounds {
		py.add("s", `{"by":"python"}`)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if got := len(py.get("s", 0)); got != 3*rounds {
		t.Errorf("got %d items, want %d", got, 3*rounds)
	}
	if diff := cmp.Diff(py.get("s", 50), dbtest.Raws(t, s, "s", 50)); diff != "" {
		t.Errorf("the two see different things (-python +go):\n%s", diff)
	}
}
