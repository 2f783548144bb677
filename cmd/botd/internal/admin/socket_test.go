package admin_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"

	"botd/cmd/botd/internal/admin"
	"botd/sessionstore/boltstore"
)

func writeFile(t *testing.T, path string, text []byte) {
	t.Helper()
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestSocketIsForThisUserAlone(t *testing.T) {
	t.Parallel()
	path := socketPath(t)
	l, err := admin.Listen(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	info, err := os.Lstat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

func TestStaleSocketIsReplaced(t *testing.T) {
	t.Parallel()
	path := socketPath(t)
	left, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	left.SetUnlinkOnClose(false) // as a process does that is killed
	left.Close()
	if _, err := os.Lstat(path); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.Dial(t.Context(), path); !errors.Is(err, admin.ErrNoGateway) {
		t.Errorf("dial gives %v, want ErrNoGateway", err)
	}
	l, err := admin.Listen(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	if _, err := admin.Dial(t.Context(), path); !errors.Is(err, admin.ErrNoGateway) {
		t.Errorf("dial after the end gives %v, want ErrNoGateway", err)
	}
}

func TestSocketInUseIsLeftAlone(t *testing.T) {
	t.Parallel()
	h := open(t)
	if _, err := admin.Listen(t.Context(), h.socket); !errors.Is(err, admin.ErrServed) {
		t.Errorf("listen gives %v, want ErrServed", err)
	}
	if status, _, _ := h.raw("GET", "/v1/stats", ""); status != 200 {
		t.Errorf("the first server answers %d", status)
	}
}

func TestFileInTheWayIsLeftAlone(t *testing.T) {
	t.Parallel()
	path := socketPath(t)
	writeFile(t, path, []byte("precious"))
	if _, err := admin.Listen(t.Context(), path); err == nil || !strings.Contains(err.Error(), "no socket") {
		t.Errorf("listen gives %v", err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "precious" {
		t.Errorf("the file holds %q, %v", text, err)
	}
}

// auditStore is a store that keeps the audit.
type auditStore struct {
	*boltstore.DB
	records []admin.Record
	err     error
}

func (s *auditStore) AppendAudit(_ context.Context, record json.RawMessage) error {
	if s.err != nil {
		return s.err
	}
	var r admin.Record
	if err := json.Unmarshal(record, &r); err != nil {
		return err
	}
	s.records = append(s.records, r)
	return nil
}

func TestEveryActIsRecorded(t *testing.T) {
	t.Parallel()
	const id = "line:user:Uvery-private"
	var store *auditStore
	h := open(t, func(o *admin.Options) {
		store = &auditStore{DB: o.Store.(*boltstore.DB)}
		o.Store = store
	})
	h.say(id, "text that nobody logs")
	for _, tt := range []struct {
		target, act string
		whom        bool
		object      string
		failed      admin.Code
	}{
		{"GET /v1/sessions", "session.list", false, "", ""},
		{"GET /v1/sessions/" + id, "session.look", true, "", ""},
		{"GET /v1/sessions/" + id + "/items", "session.read", true, "", ""},
		{"GET /v1/sessions/" + id + "/export", "session.export", true, "", ""},
		{"POST /v1/sessions/" + id + "/reset", "session.reset", true, "", ""},
		{"POST /v1/sessions/" + id + "/restore", "session.restore", true, "", ""},
		{"DELETE /v1/sessions/" + id, "session.erase", true, "", ""},
		{"GET /v1/deliveries?state=held", "delivery.list", false, "", ""},
		{"POST /v1/deliveries/7/retry", "delivery.retry", false, "7", admin.CodeNoDelivery},
		{"POST /v1/deliveries/7/drop", "delivery.drop", false, "7", admin.CodeNoDelivery},
		{"GET /v1/deliveries?state=held&text=true", "delivery.list", false, "text", ""},
		{"GET /v1/dead-events", "event.list", false, "", ""},
		{"GET /v1/dead-events?text=true", "event.list", false, "text", ""},
		{"POST /v1/dead-events/7/revive", "event.revive", false, "7", admin.CodeNoEvent},
		{"PUT /v1/log-level", "log.level", false, "", admin.CodeInvalidRequest},
		{"GET /v1/backup", "store.backup", false, "", ""},
		{"POST /v1/verify", "store.verify", false, "", ""},
		{"GET /v1/stats", "", false, "", ""},
		{"GET /v1/channels", "", false, "", ""},
		{"GET /v1/log-level", "", false, "", ""},
	} {
		store.records = nil
		method, path, _ := strings.Cut(tt.target, " ")
		h.raw(method, path, "")
		if tt.act == "" {
			if len(store.records) != 0 {
				t.Errorf("%s is recorded: %+v", tt.target, store.records)
			}
			continue
		}
		want := 1
		if tt.failed != "" {
			want = 2
		}
		if len(store.records) != want {
			t.Errorf("%s gives %d records, want %d", tt.target, len(store.records), want)
			continue
		}
		r := store.records[0]
		if r.Act != tt.act || r.At.IsZero() || r.Object != tt.object || r.Failed != "" || (r.Whom == admin.Hash(id)) != tt.whom {
			t.Errorf("%s is recorded as %+v", tt.target, r)
		}
		if runtime.GOOS == "linux" && r.Who != fmt.Sprintf("uid %d pid %d", os.Getuid(), os.Getpid()) {
			t.Errorf("who is %q", r.Who)
		}
		if last := store.records[want-1]; last.Failed != tt.failed {
			t.Errorf("%s ends with %+v, want %q", tt.target, last, tt.failed)
		}
	}
	if log := h.log.String(); strings.Contains(log, "nobody logs") || strings.Contains(log, "very-private") {
		t.Errorf("the log tells too much:\n%s", log)
	}
}

func TestActThatCannotBeRecordedIsRefused(t *testing.T) {
	t.Parallel()
	h := open(t, func(o *admin.Options) {
		o.Store = &auditStore{DB: o.Store.(*boltstore.DB), err: errors.New("no room")}
	})
	h.say("s", "kept")
	for _, target := range []string{"POST /v1/sessions/s/reset", "GET /v1/sessions/s/items", "DELETE /v1/sessions/s", "GET /v1/backup"} {
		method, path, _ := strings.Cut(target, " ")
		status, answer, _ := h.raw(method, path, "")
		if status != 503 || !strings.Contains(answer, string(admin.CodeAudit)) || strings.Contains(answer, "kept") {
			t.Errorf("%s answers %d %s", target, status, answer)
		}
	}
	if h.items("s") != 1 {
		t.Error("the session was changed")
	}
	if status, _, _ := h.raw("GET", "/v1/stats", ""); status != 200 {
		t.Errorf("what needs no record answers %d", status)
	}
}

func TestWithoutAStoreForItTheAuditIsLogged(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.say("line:user:Uvery-private", "text that nobody logs")
	h.raw("GET", "/v1/sessions/line:user:Uvery-private/items", "")
	log := h.log.String()
	for _, want := range []string{"msg=audit", "act=session.read", "whom=" + admin.Hash("line:user:Uvery-private"), "who="} {
		if !strings.Contains(log, want) {
			t.Errorf("the log lacks %s:\n%s", want, log)
		}
	}
	if strings.Contains(log, "nobody logs") || strings.Contains(log, "very-private") {
		t.Errorf("the log tells too much:\n%s", log)
	}
}
