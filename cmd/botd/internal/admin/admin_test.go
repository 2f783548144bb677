package admin_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"botd/channels/dispatch"
	"botd/cmd/botd/internal/admin"
	"botd/sessionstore"
	"botd/sessionstore/agentssdk"
	"botd/sessionstore/boltstore"
	"botd/sessionstore/memstore"
)

// TestProblems holds every error to its status, its code and its form.
func TestProblems(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.say("line:user:U1", "hello")
	waiting := h.deliver("line:user:U1", "w", "x", dispatch.Waiting)
	dead := h.deliver("line:user:U1", "d", "x", dispatch.Dead)
	for _, tt := range []struct {
		name, method, target, body string
		header                     []string
		status                     int
		code                       admin.Code
	}{
		{"an unknown path", "GET", "/v1/nothing", "", nil, 404, admin.CodeNoPath},
		{"the root", "GET", "/", "", nil, 404, admin.CodeNoPath},
		{"another version", "GET", "/v2/sessions", "", nil, 404, admin.CodeNoPath},
		{"a method that the path lacks", "DELETE", "/v1/sessions", "", nil, 405, admin.CodeMethod},
		{"a read where there is only an act", "GET", "/v1/sessions/line:user:U1/reset", "", nil, 405, admin.CodeMethod},
		{"an unknown parameter", "GET", "/v1/sessions?limits=1", "", nil, 400, admin.CodeInvalidRequest},
		{"a parameter given twice", "GET", "/v1/sessions?limit=1&limit=2", "", nil, 400, admin.CodeInvalidRequest},
		{"a parameter of an act", "POST", "/v1/sessions/line:user:U1/reset?force=1", "", nil, 400, admin.CodeInvalidRequest},
		{"a limit of none", "GET", "/v1/sessions?limit=0", "", nil, 400, admin.CodeInvalidRequest},
		{"a limit beyond the largest page", "GET", "/v1/sessions?limit=1001", "", nil, 400, admin.CodeInvalidRequest},
		{"a limit that is no number", "GET", "/v1/sessions/line:user:U1/items?limit=all", "", nil, 400, admin.CodeInvalidRequest},
		{"a cursor of nobody's", "GET", "/v1/sessions?cursor=%21", "", nil, 400, admin.CodeInvalidRequest},
		{"a cursor of another list", "GET", "/v1/deliveries?state=dead&cursor=eHh4", "", nil, 400, admin.CodeInvalidRequest},
		{"a prefix of another channel", "GET", "/v1/sessions?channel=line&prefix=discord:", "", nil, 400, admin.CodeInvalidRequest},
		{"a session ID that is too long", "GET", "/v1/sessions/" + strings.Repeat("x", 513), "", nil, 400, admin.CodeInvalidRequest},
		{"a session that does not exist", "GET", "/v1/sessions/line:user:U2", "", nil, 404, admin.CodeNoSession},
		{"the beginning of a session ID", "GET", "/v1/sessions/line:user:U", "", nil, 404, admin.CodeNoSession},
		{"items of a session that does not exist", "GET", "/v1/sessions/line:user:U2/items", "", nil, 404, admin.CodeNoSession},
		{"an export of a session that does not exist", "GET", "/v1/sessions/line:user:U2/export", "", nil, 404, admin.CodeNoSession},
		{"nothing to restore", "POST", "/v1/sessions/line:user:U1/restore", "", nil, 404, admin.CodeNoArchive},
		{"an archive that does not exist", "POST", "/v1/sessions/line:user:U1/restore", `{"generation": 9}`, nil, 404, admin.CodeNoArchive},
		{"an unknown field", "POST", "/v1/sessions/line:user:U1/restore", `{"gen": 9}`, nil, 400, admin.CodeInvalidRequest},
		{"a body that is no JSON", "POST", "/v1/sessions/line:user:U1/restore", `generation`, nil, 400, admin.CodeInvalidRequest},
		{"two bodies", "POST", "/v1/sessions/line:user:U1/restore", `{}{}`, nil, 400, admin.CodeInvalidRequest},
		{"a body of another type", "POST", "/v1/sessions/line:user:U1/restore", `{}`, []string{"Content-Type", "text/plain"}, 415, admin.CodeMediaType},
		{"a body that is too large", "POST", "/v1/sessions/line:user:U1/restore", strings.Repeat(" ", 64<<10+1), nil, 413, admin.CodeTooLarge},
		{"a state that is none", "GET", "/v1/deliveries?state=delivered", "", nil, 400, admin.CodeInvalidRequest},
		{"no state", "GET", "/v1/deliveries", "", nil, 400, admin.CodeInvalidRequest},
		{"a flag that is neither", "GET", "/v1/deliveries?state=dead&text=yes", "", nil, 400, admin.CodeInvalidRequest},
		{"a retry of a delivery that does not exist", "POST", "/v1/deliveries/99/retry", "", nil, 404, admin.CodeNoDelivery},
		{"a retry of a delivery that waits anyway", "POST", fmt.Sprintf("/v1/deliveries/%d/retry", waiting), "", nil, 404, admin.CodeNoDelivery},
		{"a number that is none", "POST", "/v1/deliveries/x/retry", "", nil, 400, admin.CodeInvalidRequest},
		{"the number zero", "POST", "/v1/deliveries/0/drop", "", nil, 400, admin.CodeInvalidRequest},
		{"a drop of a delivery that does not exist", "POST", "/v1/deliveries/99/drop", "", nil, 404, admin.CodeNoDelivery},
		{"a drop of a delivery that is about to be sent", "POST", fmt.Sprintf("/v1/deliveries/%d/drop", waiting), "", nil, 409, admin.CodeInHand},
		{"a drop of a delivery that is dead", "POST", fmt.Sprintf("/v1/deliveries/%d/drop", dead), "", nil, 409, admin.CodeInHand},
		{"a dead event that does not exist", "POST", "/v1/dead-events/7/revive", "", nil, 404, admin.CodeNoEvent},
		{"a level that is none", "PUT", "/v1/log-level", `{"level": "loud"}`, nil, 400, admin.CodeInvalidRequest},
		{"a page of another site", "POST", "/v1/sessions/line:user:U1/reset", "", []string{"Origin", "https://evil.example"}, 403, admin.CodeForbidden},
		{"a page of another site, in a browser of today", "DELETE", "/v1/sessions/line:user:U1", "", []string{"Sec-Fetch-Site", "cross-site"}, 403, admin.CodeForbidden},
	} {
		t.Run(tt.name, func(t *testing.T) {
			status, answer, res := h.raw(tt.method, tt.target, tt.body, tt.header...)
			var p admin.Problem
			if err := json.Unmarshal([]byte(answer), &p); err != nil {
				t.Fatalf("answer %d %q: %v", status, answer, err)
			}
			if status != tt.status || p.Code != tt.code || p.Status != status || p.Title == "" || p.Detail == "" {
				t.Errorf("answer %d %s, want %d with code %s", status, answer, tt.status, tt.code)
			}
			if got := res.Header.Get("Content-Type"); got != "application/problem+json" {
				t.Errorf("Content-Type %q", got)
			}
			if (status == 405) != (res.Header.Get("Allow") != "") {
				t.Errorf("status %d with Allow: %q", status, res.Header.Get("Allow"))
			}
		})
	}
	if got := h.items("line:user:U1"); got != 1 {
		t.Errorf("after requests that were all refused the session holds %d items", got)
	}
}

func TestPathsCannotBeTricked(t *testing.T) {
	t.Parallel()
	h := open(t)
	for _, id := range []sessionstore.ID{
		"line:user:U1", "a/b", "a%2Fb", "../stats", "..", ".", "a b?c#d", "//", "//x", "名前", "x\x1b[31m", "\xff\xfe", "%", "a+b", `"quoted"`,
	} {
		h.say(id, "kept")
		var s admin.Session
		if err := h.client.Get(t.Context(), admin.SessionPath(string(id)), nil, &s); err != nil {
			t.Errorf("look at %q: %v", id, err)
		}
		if s.Items != 1 {
			t.Errorf("session %q shows %d items", id, s.Items)
		}
		var r admin.ResetResult
		if err := h.client.Do(t.Context(), http.MethodPost, admin.SessionPath(string(id), "reset"), nil, &r); err != nil || h.items(id) != 0 {
			t.Errorf("reset %q: %v; %d items", id, err, h.items(id))
		}
	}
	if status, answer, _ := h.raw("GET", "/v1/sessions/../stats", ""); status == http.StatusOK {
		t.Errorf("a way up is followed: %s", answer)
	}
}

func TestListPagesThroughSessions(t *testing.T) {
	t.Parallel()
	h := open(t)
	var all, line []sessionstore.ID
	for i := range 7 {
		id := sessionstore.ID(fmt.Sprintf("line:user:U%d", i))
		h.say(id, "x")
		line = append(line, id)
	}
	h.say("aline:user:U1", "x")
	h.say("line2:user:U1", "x")
	h.say("line%3A:user:U1", "x")
	all = append(all, "aline:user:U1", "line%3A:user:U1", "line2:user:U1")
	all = append(all, line...)
	for _, tt := range []struct {
		name  string
		query url.Values
		want  []sessionstore.ID
	}{
		{"everything", url.Values{}, all},
		{"in small pages", url.Values{"limit": {"2"}}, all},
		{"a page that ends with the list", url.Values{"limit": {"5"}}, all},
		{"by channel", url.Values{"channel": {"line"}, "limit": {"3"}}, line},
		{"by a channel whose name is escaped", url.Values{"channel": {"line:"}}, all[1:2]},
		{"by prefix", url.Values{"prefix": {"line:user:U3"}}, line[3:4]},
		{"by channel and prefix", url.Values{"channel": {"line"}, "prefix": {"line:user:U3"}}, line[3:4]},
		{"by channel and a shorter prefix", url.Values{"channel": {"line"}, "prefix": {"li"}}, line},
		{"a channel without sessions", url.Values{"channel": {"discord"}}, nil},
	} {
		var got []sessionstore.ID
		for s, err := range admin.Pages[admin.Session](t.Context(), h.client, "/v1/sessions", tt.query) {
			if err != nil {
				t.Fatalf("%s: %v", tt.name, err)
			}
			got = append(got, s.ID)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

func TestItemsAreTheNewestByteForByte(t *testing.T) {
	t.Parallel()
	h := open(t)
	for i := range 60 {
		h.say("line:user:U1", fmt.Sprint("say ", i))
	}
	for limit, want := range map[string]int{"": 50, "?limit=3": 3, "?limit=1000": 60} {
		_, answer, _ := h.raw("GET", "/v1/sessions/line:user:U1/items"+limit, "")
		var page admin.Page[admin.Item]
		if err := json.Unmarshal([]byte(answer), &page); err != nil {
			t.Fatal(err)
		}
		if len(page.Data) != want {
			t.Errorf("%q shows %d items, want %d", limit, len(page.Data), want)
		}
		if last := page.Data[len(page.Data)-1]; !strings.Contains(string(last.Raw), "say 59") || last.Seq == 0 || last.At.IsZero() {
			t.Errorf("%q ends with %+v", limit, last)
		}
	}
}

func TestResetCanBeUndone(t *testing.T) {
	t.Parallel()
	h := open(t)
	const id = "line:user:U1"
	h.say(id, "one", "two")
	var reset admin.ResetResult
	do := func(out any, in any, below string) error {
		return h.client.Do(t.Context(), http.MethodPost, admin.SessionPath(id, below), in, out)
	}
	if err := do(&reset, nil, "reset"); err != nil {
		t.Fatal(err)
	}
	if reset.Archive == nil || reset.Archive.Items != 2 || reset.Generation != 1 || h.items(id) != 0 {
		t.Fatalf("reset: %+v; %d items left", reset, h.items(id))
	}
	if got := h.dispatcher.asked; len(got) != 1 || got[0] != "reset "+id {
		t.Errorf("the dispatcher was asked %v", got)
	}

	// A reset of nothing has nothing to be undone, although an older archive is there.
	var again admin.ResetResult
	if err := do(&again, nil, "reset"); err != nil || again.Archive != nil {
		t.Errorf("second reset: %+v, %v", again, err)
	}
	h.say(id, "three")
	var third admin.ResetResult
	if err := do(&third, struct{}{}, "reset"); err != nil || third.Archive == nil || third.Archive.Items != 1 {
		t.Fatalf("third reset: %+v, %v", third, err)
	}

	var s admin.Session
	if err := h.client.Get(t.Context(), admin.SessionPath(id), nil, &s); err != nil || len(s.Archives) != 2 || s.Archives[0].Items != 1 {
		t.Fatalf("session: %+v, %v", s, err)
	}
	var restored admin.RestoreResult
	if err := do(&restored, admin.RestoreRequest{Generation: &reset.Archive.Generation}, "restore"); err != nil || h.items(id) != 2 {
		t.Fatalf("restore the older: %+v, %v; %d items", restored, err, h.items(id))
	}
	if err := do(&reset, nil, "reset"); err != nil {
		t.Fatal(err)
	}
	if err := do(&restored, nil, "restore"); err != nil || h.items(id) != 2 || restored.Restored.Items != 2 {
		t.Fatalf("restore the latest: %+v, %v; %d items", restored, err, h.items(id))
	}
}

func TestResetWithoutADispatcherCoversWhatWaits(t *testing.T) {
	t.Parallel()
	h := open(t, func(o *admin.Options) { o.Dispatcher = nil })
	h.say("line:user:U1", "one")
	h.put("line:user:U1", "e1", "unanswered")
	h.put("line:user:U2", "e2", "somebody else's")
	var reset admin.ResetResult
	if err := h.client.Do(t.Context(), http.MethodPost, admin.SessionPath("line:user:U1", "reset"), nil, &reset); err != nil {
		t.Fatal(err)
	}
	if reset.Archive == nil || h.items("line:user:U1") != 0 {
		t.Errorf("reset: %+v", reset)
	}
	var left []string
	for e, err := range h.db.Pending(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		left = append(left, e.Event.ID)
	}
	if diff := cmp.Diff([]string{"e2"}, left); diff != "" {
		t.Errorf("pending (-want +got):\n%s", diff)
	}
}

func TestEraseRevokesTheRunningTurnFirst(t *testing.T) {
	t.Parallel()
	h := open(t)
	const id = "line:user:U1"
	h.say(id, "one", "two")
	h.put(id, "e1", "pending")
	h.deliver(id, "d1", "held", dispatch.Held)
	if err := h.db.Clear(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	h.say(id, "three")
	generation, err := h.db.Generation(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	h.dispatcher.before = func(context.Context) error {
		if h.items(id) == 0 {
			t.Error("the session was erased before its turn was revoked")
		}
		return nil
	}
	var erased admin.EraseResult
	if err := h.client.Do(t.Context(), http.MethodDelete, admin.SessionPath(id), nil, &erased); err != nil {
		t.Fatal(err)
	}
	if erased.Items != 1 || erased.Archived != 2 || erased.ErasedAt.IsZero() {
		t.Errorf("erased: %+v", erased)
	}
	err = h.db.Append(t.Context(), id, sessionstore.Batch{Generation: generation, Items: []sessionstore.Item{{Raw: item("late")}}})
	if !errors.Is(err, sessionstore.ErrStale) {
		t.Errorf("a late write gives %v, want ErrStale", err)
	}
	if status, _, _ := h.raw("GET", "/v1/sessions/"+id, ""); status != 404 {
		t.Errorf("status %d of an erased session", status)
	}
	stats, err := h.db.Stats(t.Context())
	if err != nil || stats.Pending != 0 || stats.Held != 0 {
		t.Errorf("left in the journal: %+v, %v", stats, err)
	}
	// An erasure that was interrupted can be repeated.
	h.dispatcher.before = nil
	if err := h.client.Do(t.Context(), http.MethodDelete, admin.SessionPath(id), nil, &erased); err != nil || erased.Items != 0 {
		t.Errorf("erased again: %+v, %v", erased, err)
	}
}

func TestActsTellWhyTheDispatcherRefuses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		err    error
		status int
		code   admin.Code
	}{
		{dispatch.ErrNotReady, 503, admin.CodeNotReady},
		{dispatch.ErrDraining, 503, admin.CodeDraining},
		{context.DeadlineExceeded, 504, admin.CodeTimeout},
		{boltstore.ErrFull, 507, admin.CodeStoreFull},
		{errors.New("disk on fire"), 500, admin.CodeInternal},
	} {
		t.Run(string(tt.code), func(t *testing.T) {
			t.Parallel()
			h := open(t)
			h.say("s", "one")
			held := h.deliver("s", "d", "x", dispatch.Held)
			h.dispatcher.before = func(context.Context) error { return fmt.Errorf("reset session: %w", tt.err) }
			h.dispatcher.ready = tt.err
			for _, target := range []string{"POST /v1/sessions/s/reset", "DELETE /v1/sessions/s", fmt.Sprintf("POST /v1/deliveries/%d/retry", held)} {
				method, path, _ := strings.Cut(target, " ")
				status, answer, _ := h.raw(method, path, "")
				if status != tt.status || !strings.Contains(answer, `"`+string(tt.code)+`"`) {
					t.Errorf("%s answers %d %s, want %d with %s", target, status, answer, tt.status, tt.code)
				}
			}
			if h.items("s") != 1 {
				t.Error("the session was changed")
			}
		})
	}
}

func TestAPanicIsThatRequestsFailure(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.dispatcher.before = func(context.Context) error { panic("message text in a panic") }
	if status, answer, _ := h.raw("POST", "/v1/sessions/s/reset", ""); status != 500 || strings.Contains(answer, "message text") {
		t.Errorf("answer %d %s", status, answer)
	}
	if status, _, _ := h.raw("GET", "/v1/stats", ""); status != 200 {
		t.Errorf("the next request answers %d", status)
	}
	if strings.Contains(h.log.String(), "message text") {
		t.Errorf("the log quotes the panic:\n%s", h.log)
	}
}

func TestExportIsReadByWhatReadsTheSDKsFiles(t *testing.T) {
	t.Parallel()
	h := open(t)
	const id, n = `line:user:"U1"<`, 600 // more than two pages
	want := make([]json.RawMessage, n)
	for i := range want {
		switch want[i] = item(fmt.Sprint("text <", i, "> 名前")); i % 3 {
		case 1:
			want[i] = json.RawMessage("{\n\"role\": \"user\",\r\n\"content\": \"two lines\"}")
		case 2:
			want[i] = json.RawMessage(`  {"role":"user"} `)
		}
		b := sessionstore.Batch{Turn: fmt.Sprint("turn ", i), Items: []sessionstore.Item{{Raw: want[i], Origin: "a@p/m"}}}
		if err := h.db.Append(t.Context(), id, b); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	if err := h.client.Stream(t.Context(), admin.SessionPath(id, "export"), &out); err != nil {
		t.Fatal(err)
	}
	i := 0
	for row, err := range agentssdk.ReadJSONL(t.Context(), &out) {
		if err != nil {
			t.Fatal(err)
		}
		if row.Session != id || row.Turn != fmt.Sprint("turn ", i) || row.Origin != "a@p/m" || row.At.IsZero() || !bytes.Equal(row.Raw, want[i]) {
			t.Fatalf("row %d is %+v", i, row)
		}
		i++
	}
	if i != n {
		t.Errorf("%d rows, want %d", i, n)
	}
}

// resetBetweenPages resets a session once its second page is read.
type resetBetweenPages struct {
	*boltstore.DB
	reset bool
}

func (s *resetBetweenPages) History(ctx context.Context, id sessionstore.ID, after uint64, limit int) ([]sessionstore.Item, error) {
	if after > 0 && !s.reset {
		s.reset = true
		if err := s.Clear(ctx, id); err != nil {
			return nil, err
		}
	}
	return s.DB.History(ctx, id, after, limit)
}

func TestExportThatAResetOvertakesIsNotTakenForWhole(t *testing.T) {
	t.Parallel()
	for _, local := range []bool{false, true} {
		h := open(t, func(o *admin.Options) { o.Store = &resetBetweenPages{DB: o.Store.(*boltstore.DB)} })
		texts := make([]string, 400)
		for i := range texts {
			texts[i] = strings.Repeat("long ", 100)
		}
		h.say("s", texts...)
		c := h.client
		if local {
			c = admin.New(admin.Options{Store: &resetBetweenPages{DB: h.db}, Journal: h.db}).Local()
		}
		var out bytes.Buffer
		if err := c.Stream(t.Context(), admin.SessionPath("s", "export"), &out); err == nil {
			t.Errorf("local %v: no error after %d bytes", local, out.Len())
		}
	}
}

func TestDeliveries(t *testing.T) {
	t.Parallel()
	h := open(t)
	seqs := map[dispatch.State]uint64{}
	for _, state := range []dispatch.State{dispatch.Waiting, dispatch.Held, dispatch.Unknown, dispatch.Dead} {
		seqs[state] = h.deliver("line:user:U1", string(state), "text of "+string(state), state)
	}
	list := func(state dispatch.State, text bool) (all []admin.Delivery) {
		t.Helper()
		for d, err := range admin.Pages[admin.Delivery](t.Context(), h.client, "/v1/deliveries",
			url.Values{"state": {string(state)}, "text": {fmt.Sprint(text)}, "limit": {"1"}}) {
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, d)
		}
		return all
	}
	for state, seq := range seqs {
		got := list(state, false)
		if len(got) != 1 || got[0].Seq != seq || got[0].Text != "" || got[0].Session != "line:user:U1" || got[0].To.User != "U1" {
			t.Errorf("%s: %+v", state, got)
		}
		if got := list(state, true); got[0].Text != "text of "+string(state) {
			t.Errorf("%s with text: %+v", state, got)
		}
	}
	post := func(seq uint64, act string) error {
		var out struct{ Seq uint64 }
		return h.client.Do(t.Context(), http.MethodPost, fmt.Sprintf("/v1/deliveries/%d/%s", seq, act), nil, &out)
	}
	for _, state := range []dispatch.State{dispatch.Unknown, dispatch.Dead} {
		if err := post(seqs[state], "retry"); err != nil {
			t.Errorf("retry %s: %v", state, err)
		}
	}
	if got := len(list(dispatch.Waiting, false)); got != 3 {
		t.Errorf("%d deliveries wait, want 3", got)
	}
	if diff := cmp.Diff([]string{"wake", "wake"}, h.dispatcher.asked); diff != "" {
		t.Errorf("the dispatcher was asked (-want +got):\n%s", diff)
	}
	if err := post(seqs[dispatch.Held], "drop"); err != nil {
		t.Errorf("drop held: %v", err)
	}
	if got := list(dispatch.Dead, false); len(got) != 1 || got[0].Reason != "dropped by an operator" {
		t.Errorf("dead after the drop: %+v", got)
	}
	_, answer, _ := h.raw("GET", "/v1/deliveries?state=waiting&text=true", "")
	if strings.Contains(answer, "secret") || strings.Contains(answer, "c2VjcmV0") {
		t.Errorf("the answer tells a reply token: %s", answer)
	}
}

func TestDeadEventsComeBack(t *testing.T) {
	t.Parallel()
	h := open(t)
	e := h.put("line:user:U1", "e1", "hard question")
	if err := h.db.Commit(t.Context(), dispatch.TurnResult{Session: "line:user:U1", Turn: "t", Consumed: []uint64{e.Seq}, Dead: "failed three times"}); err != nil {
		t.Fatal(err)
	}
	var page admin.Page[admin.DeadEvent]
	if err := h.client.Get(t.Context(), "/v1/dead-events", nil, &page); err != nil {
		t.Fatal(err)
	}
	if len(page.Data) != 1 || page.Data[0].Reason != "failed three times" || page.Data[0].Name != "Alice" || page.Data[0].Text != "" {
		t.Fatalf("dead events: %+v", page.Data)
	}
	var out struct{ Seq uint64 }
	path := fmt.Sprintf("/v1/dead-events/%d/revive", page.Data[0].Seq)
	if err := h.client.Do(t.Context(), http.MethodPost, path, nil, &out); err != nil || out.Seq == 0 {
		t.Fatalf("revive: %v, %+v", err, out)
	}
	var stats admin.Stats
	if err := h.client.Get(t.Context(), "/v1/stats", nil, &stats); err != nil {
		t.Fatal(err)
	}
	if stats.Pending != 1 || stats.DeadEvents != 0 || stats.File == nil || stats.File.Size == 0 {
		t.Errorf("stats: %+v", stats)
	}
	if diff := cmp.Diff([]string{"wake"}, h.dispatcher.asked); diff != "" {
		t.Errorf("the dispatcher was asked (-want +got):\n%s", diff)
	}
}

func TestOperations(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.say("s", "kept")
	var channels admin.Page[admin.Channel]
	if err := h.client.Get(t.Context(), "/v1/channels", nil, &channels); err != nil || len(channels.Data) != 2 || channels.Data[1].Detail != "token refused" {
		t.Errorf("channels: %+v, %v", channels, err)
	}
	var level admin.LogLevel
	if err := h.client.Do(t.Context(), http.MethodPut, "/v1/log-level", admin.LogLevel{Level: "warn"}, &level); err != nil || h.level.Level() != slog.LevelWarn {
		t.Errorf("log level: %v, %v", h.level, err)
	}
	if err := h.client.Get(t.Context(), "/v1/log-level", nil, &level); err != nil || level.Level != "warn" {
		t.Errorf("log level is told as %+v, %v", level, err)
	}
	var verified admin.VerifyResult
	if err := h.client.Do(t.Context(), http.MethodPost, "/v1/verify", nil, &verified); err != nil || !verified.OK {
		t.Errorf("verify: %+v, %v", verified, err)
	}
	var copied bytes.Buffer
	if err := h.client.Stream(t.Context(), "/v1/backup", &copied); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "copy.db")
	writeFile(t, path, copied.Bytes())
	db, err := boltstore.Open(boltstore.Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if items, err := db.Items(t.Context(), "s", 10); err != nil || len(items) != 1 {
		t.Errorf("the backup holds %d items, %v", len(items), err)
	}
}

// bare is a store with nothing optional.
type bare struct{ sessionstore.Store }

func TestAStoreThatCannotSaysSo(t *testing.T) {
	t.Parallel()
	h := open(t, func(o *admin.Options) { o.Store = bare{memstore.New()}; o.Level = nil })
	for _, target := range []string{
		"GET /v1/sessions", "GET /v1/sessions/s", "POST /v1/sessions/s/restore", "DELETE /v1/sessions/s", "GET /v1/backup", "POST /v1/verify", "GET /v1/log-level",
	} {
		method, path, _ := strings.Cut(target, " ")
		if status, answer, _ := h.raw(method, path, ""); status != 501 || !strings.Contains(answer, string(admin.CodeUnsupported)) {
			t.Errorf("%s answers %d %s", target, status, answer)
		}
	}
}

func TestAReaderThatStopsHoldsUpNobody(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.say("s", slices.Repeat([]string{strings.Repeat("long ", 2000)}, 2000)...)
	for _, path := range []string{"/v1/sessions/s/export", "/v1/sessions/s/items?limit=1000", "/v1/backup"} {
		c, err := (&net.Dialer{}).DialContext(t.Context(), "unix", h.socket)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: botd\r\n\r\n", path)
		if _, err := io.ReadFull(c, make([]byte, 1000)); err != nil {
			t.Fatal(err)
		}
		// Compact waits for every transaction to end; the client has read a thousand bytes of twenty million.
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		if err := h.db.Compact(ctx); err != nil {
			t.Errorf("while a client has stopped to read %s: %v", path, err)
		}
		c.Close()
	}
}

func TestShutdownCutsOffWhatDoesNotEnd(t *testing.T) {
	t.Parallel()
	db, err := boltstore.Open(boltstore.Options{Path: filepath.Join(t.TempDir(), "botd.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	path := socketPath(t)
	l, err := admin.Listen(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	begun, over := make(chan struct{}), make(chan struct{})
	d := &dispatcher{store: db, before: func(ctx context.Context) error {
		close(begun)
		<-ctx.Done()
		close(over)
		return ctx.Err()
	}}
	s := admin.New(admin.Options{Store: db, Journal: db, Dispatcher: d})
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	c, err := admin.Dial(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	answered := make(chan error, 1)
	go func() {
		answered <- c.Do(context.Background(), http.MethodPost, admin.SessionPath("s", "reset"), nil, new(admin.ResetResult))
	}()
	<-begun
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Shutdown(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("shutdown gives %v, want that its time was over", err)
	}
	select {
	case <-over:
	default:
		t.Error("the request still works on the store")
	}
	if err := <-answered; err == nil {
		t.Error("the request was answered as if all were well")
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
}
