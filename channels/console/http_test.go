package console_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"botd/channels"
	"botd/channels/console"
)

func newAdapter(t *testing.T, o console.Options) *console.Adapter {
	t.Helper()
	o.Channel = "console"
	a, err := console.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// request is a well-formed local request.
func request(method, target, body string) *http.Request {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	r.RemoteAddr, r.Host = "127.0.0.1:4000", "localhost:8081"
	r.Header.Set("Content-Type", "application/json")
	return r
}

func TestMessages(t *testing.T) {
	t.Parallel()
	const ok = `{"user":"ann","text":"hi"}`
	set := func(key, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(key, value) }
	}
	for _, c := range []struct {
		name   string
		body   string
		change func(*http.Request)
		want   int
	}{
		{"accepted", ok, nil, 202},
		{"by IPv6", ok, func(r *http.Request) { r.RemoteAddr, r.Host = "[::1]:4000", "[::1]:8081" }, 202},
		{"by the page itself", ok, set("Sec-Fetch-Site", "same-origin"), 202},

		{"from another machine", ok, func(r *http.Request) { r.RemoteAddr = "192.0.2.1:4000" }, 403},
		{"for another name", ok, func(r *http.Request) { r.Host = "evil.example" }, 403},
		{"for a name that begins alike", ok, func(r *http.Request) { r.Host = "127.0.0.1.evil.example:8081" }, 403},
		{"forwarded", ok, set("X-Forwarded-For", "192.0.2.1"), 403},
		{"by a page of another site", ok, set("Sec-Fetch-Site", "cross-site"), 403},
		{"by a page of another origin", ok, set("Origin", "https://evil.example"), 403},
		{"as a form", ok, set("Content-Type", "text/plain"), 415},

		{"no JSON", "hi", nil, 400},
		{"two objects", ok + ok, nil, 400},
		{"unknown field", `{"user":"ann","text":"hi","admin":true}`, nil, 400},
		{"no user", `{"text":"hi"}`, nil, 400},
		{"the user of the terminal", `{"user":"terminal","text":"hi"}`, nil, 400},
		{"blank text", `{"user":"ann","text":" \n"}`, nil, 400},
		{"control character", `{"user":"a\u0000","text":"hi"}`, nil, 400},
		{"long ID", `{"user":"ann","text":"hi","id":"` + strings.Repeat("x", 129) + `"}`, nil, 400},
		{"long body", `{"user":"ann","text":"` + strings.Repeat("x", 70_000) + `"}`, nil, 413},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			sink := newRecorder()
			r := request(http.MethodPost, "/console/messages", c.body)
			if c.change != nil {
				c.change(r)
			}
			w := httptest.NewRecorder()
			newAdapter(t, console.Options{}).Webhook(sink).ServeHTTP(w, r)
			if w.Code != c.want {
				t.Errorf("status %d, want %d: %s", w.Code, c.want, w.Body)
			}
			if n := len(sink.all()); (n == 1) != (c.want == 202) {
				t.Errorf("%d events", n)
			}
			if w.Header().Get("Access-Control-Allow-Origin") != "" {
				t.Error("other sites may read the answer")
			}
		})
	}
}

func TestEndpoints(t *testing.T) {
	t.Parallel()
	handler := newAdapter(t, console.Options{}).Webhook(newRecorder())
	for target, want := range map[string]int{
		"GET /messages": 405, "POST /events": 405, "GET /other": 404, "GET /": 404, "GET /events": 400,
	} {
		method, path, _ := strings.Cut(target, " ")
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, request(method, path, "{}"))
		if w.Code != want {
			t.Errorf("%s: status %d, want %d", target, w.Code, want)
		}
	}
}

func TestEventIDsBelongToTheirPeople(t *testing.T) {
	t.Parallel()
	sink := newRecorder()
	handler := newAdapter(t, console.Options{}).Webhook(sink)
	for _, body := range []string{
		`{"user":"ann","text":"a","id":"1"}`, `{"user":"bob","text":"b","id":"1"}`, `{"user":"a","text":"c","id":"nn-1"}`,
		`{"user":"ann","text":"a","id":"1"}`, `{"user":"ann","text":"a"}`, `{"user":"ann","text":"a"}`,
	} {
		handler.ServeHTTP(httptest.NewRecorder(), request(http.MethodPost, "/messages", body))
	}
	events := sink.all()
	if events[0].ID != events[3].ID {
		t.Errorf("the same message is event %q and then %q", events[0].ID, events[3].ID)
	}
	ids := map[string]bool{}
	for _, in := range events {
		ids[in.ID] = true
	}
	if len(ids) != 5 {
		t.Errorf("%d IDs for 5 messages", len(ids))
	}
}

func TestMentionInARoom(t *testing.T) {
	t.Parallel()
	a := newAdapter(t, console.Options{Name: "Helper"})
	sink := newRecorder()
	room := channels.Address{Channel: "console", Kind: channels.Group, Room: "r"}
	receipt, err := a.Send(t.Context(), channels.Outbound{ID: "1", To: room, Parts: []channels.Part{{Type: channels.Text, Text: "x"}}})
	if err != nil {
		t.Fatal(err)
	}
	for fields, want := range map[string]bool{
		`"text":"hello"`:                                            false,
		`"text":"@helper hello"`:                                    true,
		`"text":"hello","mention":true`:                             true,
		`"text":"@helper hello","mention":false`:                    false,
		`"text":"hello","reply_to":"` + receipt.MessageIDs[0] + `"`: true,
		`"text":"hello","reply_to":"nothing"`:                       false,
	} {
		a.Webhook(sink).ServeHTTP(httptest.NewRecorder(), request(http.MethodPost, "/messages", `{"user":"ann","room":"r",`+fields+`}`))
		events := sink.all()
		if in := events[len(events)-1]; in.Mentioned != want {
			t.Errorf("%s: Mentioned is %v", fields, in.Mentioned)
		}
	}
}

// read reads server-sent events until n messages have come, and returns their texts and the last ID.
func read(t *testing.T, url, last string, n int) (texts []string, lastID string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Last-Event-ID", last)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	for len(texts) < n && lines.Scan() {
		if id, ok := strings.CutPrefix(lines.Text(), "id: "); ok {
			lastID = id
		}
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			_, text, _ := strings.Cut(data, `"text":"`)
			text, _, _ = strings.Cut(text, `"`)
			texts = append(texts, text)
		}
	}
	return texts, lastID
}

func TestEventsAreReplayed(t *testing.T) {
	t.Parallel()
	a := newAdapter(t, console.Options{Keep: 3})
	server := httptest.NewServer(a.Webhook(newRecorder()))
	defer server.Close()
	ann := channels.Address{Channel: "console", Kind: channels.Direct, Room: "ann", User: "ann"}
	bob := channels.Address{Channel: "console", Kind: channels.Direct, Room: "bob", User: "bob"}
	send := func(id string, to channels.Address) {
		if _, err := a.Send(t.Context(), channels.Outbound{ID: id, To: to, Parts: []channels.Part{{Type: channels.Text, Text: id}}}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 5 {
		send(fmt.Sprintf("a%d", i), ann)
		send(fmt.Sprintf("b%d", i), bob)
	}
	url := server.URL + "/events?user=ann"
	texts, last := read(t, url, "", 3)
	if diff := cmp.Diff([]string{"a2", "a3", "a4"}, texts); diff != "" {
		t.Errorf("without an ID (-want +got):\n%s", diff)
	}
	send("a5", ann)
	send("a6", ann)
	if texts, _ = read(t, url, last, 2); cmp.Diff([]string{"a5", "a6"}, texts) != "" {
		t.Errorf("after the last ID: %q", texts)
	}
	if texts, _ = read(t, url, "of-another-process", 3); cmp.Diff([]string{"a4", "a5", "a6"}, texts) != "" {
		t.Errorf("after an unknown ID: %q", texts)
	}
}

// TestSlowClient asserts that a client that does not read holds up nobody.
func TestSlowClient(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAdapter(t, console.Options{})
		ours, theirs := net.Pipe()
		r := request(http.MethodGet, "/events?user=ann", "")
		done := make(chan struct{})
		go func() {
			defer close(done)
			a.Webhook(newRecorder()).ServeHTTP(&stuck{header: http.Header{}, conn: ours}, r)
		}()
		ann := channels.Address{Channel: "console", Kind: channels.Direct, Room: "ann", User: "ann"}
		for i := range 1000 {
			if _, err := a.Send(t.Context(), channels.Outbound{ID: fmt.Sprint(i), To: ann, Parts: []channels.Part{{Type: channels.Text, Text: "x"}}}); err != nil {
				t.Fatal(err)
			}
		}
		<-done // the write deadline passes
		theirs.Close()
	})
}

// stuck is a response whose client does not read.
type stuck struct {
	header http.Header
	conn   net.Conn
}

func (s *stuck) Header() http.Header                 { return s.header }
func (s *stuck) WriteHeader(int)                     {}
func (s *stuck) Write(p []byte) (int, error)         { return s.conn.Write(p) }
func (s *stuck) FlushError() error                   { return nil }
func (s *stuck) SetWriteDeadline(at time.Time) error { return s.conn.SetWriteDeadline(at) }
func (s *stuck) SetReadDeadline(at time.Time) error  { return s.conn.SetReadDeadline(at) }

// TestListen asserts that Run serves the endpoints, and ends the streams of those who listen.
func TestListen(t *testing.T) {
	t.Parallel()
	free, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := free.Addr().String()
	free.Close()
	a := newAdapter(t, console.Options{Listen: addr})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx, newRecorder()) }()
	var res *http.Response
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		if res, err = http.Get("http://" + addr + "/events?user=ann"); err == nil || time.Now().After(deadline) {
			break
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	cancel()
	if err := <-done; err != nil {
		t.Errorf("Run: %v", err)
	}
	lines := bufio.NewScanner(res.Body)
	for lines.Scan() {
	}
	if err := lines.Err(); err != nil {
		t.Errorf("the stream broke off: %v", err)
	}
}

func TestListenFails(t *testing.T) {
	t.Parallel()
	taken, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	a := newAdapter(t, console.Options{Listen: taken.Addr().String()})
	if err := a.Run(t.Context(), newRecorder()); err == nil {
		t.Error("Run: no error although the address is taken")
	}
}
