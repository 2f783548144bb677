// Package dbtest holds what the tests of the stores over other people's databases share: the addresses of
// the servers, a proxy that cuts connections, short ways to write and read, and the reference workload.
//
// A test that needs a server skips with a reason when there is none; with BOTD_REQUIRE_SERVERS=1 that is a
// failure. BOTD_TEST_POSTGRES, BOTD_TEST_MYSQL and BOTD_TEST_REDIS name servers elsewhere.
package dbtest

import (
	"encoding/json"
	"errors"
	"os"
	"sync"
	"testing"

	"botd/sessionstore"
)

// Absent skips the test for a reason, or fails it where everything must be there.
func Absent(t testing.TB, reason string) {
	t.Helper()
	if os.Getenv("BOTD_REQUIRE_SERVERS") == "1" {
		t.Fatal(reason)
	}
	t.Skip(reason)
}

// Items makes the items of a batch.
func Items(raws ...string) []sessionstore.Item {
	items := make([]sessionstore.Item, len(raws))
	for i, raw := range raws {
		items[i].Raw = json.RawMessage(raw)
	}
	return items
}

// Append appends a turn to a session that was never cleared.
func Append(t testing.TB, s sessionstore.Store, id sessionstore.ID, turn string, raws ...string) {
	t.Helper()
	AppendAt(t, s, id, 0, turn, raws...)
}

// AppendAt appends a turn that began in a generation.
func AppendAt(t testing.TB, s sessionstore.Store, id sessionstore.ID, generation uint64, turn string, raws ...string) {
	t.Helper()
	err := s.Append(t.Context(), id, sessionstore.Batch{Turn: turn, Generation: generation, Items: Items(raws...)})
	if err != nil {
		t.Fatal(err)
	}
}

// WantStale appends a batch that must be refused.
func WantStale(t testing.TB, s sessionstore.Store, id sessionstore.ID, b sessionstore.Batch) {
	t.Helper()
	if err := s.Append(t.Context(), id, b); !errors.Is(err, sessionstore.ErrStale) {
		t.Errorf("append of an earlier generation: got %v, want ErrStale", err)
	}
}

// Raws returns the newest items' bytes, oldest first.
func Raws(t testing.TB, s sessionstore.Store, id sessionstore.ID, limit int) []string {
	t.Helper()
	items, err := s.Items(t.Context(), id, limit)
	if err != nil {
		t.Fatal(err)
	}
	raws := make([]string, len(items))
	for i, it := range items {
		raws[i] = string(it.Raw)
	}
	return raws
}

// Generation returns a session's generation.
func Generation(t testing.TB, s sessionstore.Store, id sessionstore.ID) uint64 {
	t.Helper()
	g, err := s.Generation(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// Tail keeps the last bytes written to it, for the error output of a process.
type Tail struct {
	mu  sync.Mutex
	buf []byte
}

// Write implements io.Writer.
func (w *Tail) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.buf = append(w.buf, p...)
	w.buf = w.buf[max(0, len(w.buf)-4096):]
	return len(p), nil
}

// String returns what is kept.
func (w *Tail) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return string(w.buf)
}
