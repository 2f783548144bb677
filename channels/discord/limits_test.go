package discord

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"botd/channels"
	"botd/channels/discord/discordfake"
)

func (s *scene) post(room, id string) error {
	_, err := s.a.Send(s.t.Context(), channels.Outbound{ID: id, To: channels.Address{Room: room}, Parts: []channels.Part{{Type: channels.Text, Text: "hi " + id}}})
	return err
}

// count returns how many requests went to a path.
func (s *scene) count(path string) (n int) {
	for _, r := range s.srv.Requests() {
		if r.Path == path {
			n++
		}
	}
	return n
}

func TestLimits_OfARoute(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := started(t)
		other := s.srv.Room(s.guild, "other")
		sent := 0
		for i := range 40 {
			for {
				err := s.post(s.room, string(rune('a'+i)))
				if err == nil {
					sent++
					break
				}
				if channels.KindOf(err) != channels.RateLimited || retryAfter(err) <= 0 || retryAfter(err) > 5*time.Second {
					t.Fatalf("send: %v after %v", err, retryAfter(err))
				}
				if sent == 5 {
					if err := s.post(other, "meanwhile"); err != nil {
						t.Errorf("the limit of one room holds another up: %v", err)
					}
				}
				time.Sleep(retryAfter(err))
			}
		}
		if n := s.srv.InvalidRequests(); n != 0 {
			t.Errorf("%d requests were refused by Discord", n)
		}
		if n := s.count("/channels/" + s.room + "/messages"); n != 40 {
			t.Errorf("%d requests for 40 messages", n)
		}
	})
}

// TestLimits_NeverSleeps: the outbox is told when to come back; nothing waits inside.
func TestLimits_NeverSleeps(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := started(t)
		began := time.Now()
		for i := range 20 {
			_ = s.post(s.room, string(rune('a'+i)))
		}
		if took := time.Since(began); took > 0 {
			t.Errorf("20 sends took %v of fake time", took)
		}
	})
}

func TestLimits_Global(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := started(t)
		s.srv.Inject(discordfake.GlobalLimit(2 * time.Second))
		if err := s.post(s.room, "a"); channels.KindOf(err) != channels.RateLimited {
			t.Fatalf("send: %v", err)
		}
		n := len(s.srv.Requests())
		time.Sleep(time.Second)
		if err := s.post(s.direct, "b"); channels.KindOf(err) != channels.RateLimited || retryAfter(err) != time.Second {
			t.Errorf("send in another room: %v after %v, want to be told to wait a second more", err, retryAfter(err))
		}
		if len(s.srv.Requests()) != n {
			t.Error("a request went out in spite of the global limit")
		}
		i, err := s.srv.Command(s.ada.ID, s.room, "help")
		if err != nil {
			t.Fatal(err)
		}
		s.wait()
		if !s.srv.Interaction(i.Token).Acknowledged {
			t.Error("an interaction waits for a limit that does not concern it")
		}
		time.Sleep(time.Second)
		if err := s.post(s.direct, "b"); err != nil {
			t.Errorf("send after the limit: %v", err)
		}
	})
}

func TestLimits_AddressBanned(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := started(t)
		s.srv.Inject(discordfake.CloudflareLimit(0))
		if err := s.post(s.room, "a"); channels.KindOf(err) != channels.RateLimited {
			t.Fatalf("send: %v", err)
		}
		n := len(s.srv.Requests())
		if _, err := s.srv.Command(s.ada.ID, s.room, "help"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(bannedPause - time.Second)
		if err := s.post(s.direct, "b"); channels.KindOf(err) != channels.RateLimited {
			t.Errorf("send: %v", err)
		}
		if len(s.srv.Requests()) != n {
			t.Error("a request went out from a banned address")
		}
		time.Sleep(time.Second)
		if err := s.post(s.direct, "b"); err != nil {
			t.Errorf("send after the ban: %v", err)
		}
	})
}

func TestLimits_TokenRefused(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := started(t)
		s.srv.Inject(discordfake.Fault{Status: 401, Body: `{"message":"401: Unauthorized","code":0}`})
		if err := s.post(s.room, "a"); channels.KindOf(err) != channels.Unauthorized {
			t.Fatalf("send: %v", err)
		}
		if err := s.post(s.room, "a"); err == nil {
			t.Error("a refused token was used again at once")
		}
		time.Sleep(refusedPause)
		if err := s.post(s.room, "a"); err != nil {
			t.Errorf("send after a while: %v", err)
		}
	})
}

// TestLimits_StopsBeforeTheBan: an outbox gone wild must not get the machine's address banned.
func TestLimits_StopsBeforeTheBan(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := started(t, func(f *discordfake.Options, _ *Options) { f.NoLimits = true })
		s.srv.Deny(s.room, discordfake.Send)
		for range 2 * invalidLimit {
			if err := s.post(s.room, "a"); err == nil {
				t.Fatal("no error")
			}
		}
		if n := s.srv.InvalidRequests(); n > invalidLimit {
			t.Errorf("%d invalid requests", n)
		}
		if err := s.post(s.direct, "b"); channels.KindOf(err) != channels.RateLimited {
			t.Errorf("send elsewhere: %v", err)
		}
		time.Sleep(invalidMinutes * time.Minute)
		if err := s.post(s.direct, "b"); err != nil {
			t.Errorf("send ten minutes later: %v", err)
		}
	})
}

func TestLimits_BucketsAreForgotten(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLimits()
		header := http.Header{"X-Ratelimit-Bucket": {"b"}, "X-Ratelimit-Remaining": {"4"}, "X-Ratelimit-Reset-After": {"1.5"}}
		for i := range 3 * maxBuckets {
			l.learn(request{method: "POST", route: "/x", major: string(rune(i))}, &http.Response{StatusCode: 200, Header: header}, nil)
			time.Sleep(time.Millisecond)
		}
		if n := len(l.buckets); n > maxBuckets+1500 {
			t.Errorf("%d buckets are kept", n)
		}
	})
}

func TestLimits_OddHeaders(t *testing.T) {
	t.Parallel()
	for _, h := range []http.Header{
		{"X-Ratelimit-Bucket": {"b"}},
		{"X-Ratelimit-Bucket": {"b"}, "X-Ratelimit-Remaining": {"x"}, "X-Ratelimit-Reset-After": {"1"}},
		{"X-Ratelimit-Bucket": {"b"}, "X-Ratelimit-Remaining": {"0"}, "X-Ratelimit-Reset-After": {"NaN"}},
		{"X-Ratelimit-Bucket": {"b"}, "X-Ratelimit-Remaining": {"0"}, "X-Ratelimit-Reset-After": {"-5"}},
		{"X-Ratelimit-Bucket": {"b"}, "X-Ratelimit-Remaining": {"0"}, "X-Ratelimit-Reset-After": {"1e300"}},
	} {
		l := newLimits()
		r := request{method: "POST", route: "/x", major: "1"}
		l.learn(r, &http.Response{StatusCode: 200, Header: h}, nil)
		if wait := l.wait(r); wait != 0 {
			t.Errorf("%v: wait %v", h, wait)
		}
	}
}

func TestLimits_SharedLimitsAreNotCounted(t *testing.T) {
	t.Parallel()
	l := newLimits()
	for scope, want := range map[string]int{"shared": 0, "user": 1} {
		l.learn(request{method: "POST", route: "/x", major: scope}, &http.Response{StatusCode: 429, Header: http.Header{"X-Ratelimit-Scope": {scope}}}, nil)
		if n := l.countInvalid(time.Now()); scope == "shared" && n > 1 || scope == "user" && n < want {
			t.Errorf("%s: counted %d", scope, n)
		}
	}
	if n := l.countInvalid(time.Now()); n != 1 {
		t.Errorf("counted %d, want the one that is held against us", n)
	}
}

func TestRefusedFields(t *testing.T) {
	t.Parallel()
	tests := map[string][]string{
		``:   nil,
		`[]`: nil,
		`{"content":{"_errors":[{"code":"TOO_LONG","message":"MARKER"}]}}`:                          {"content: TOO_LONG"},
		`{"embeds":{"0":{"title":{"_errors":[{"code":"X"}]}}},"b":{"_errors":[{"code":"Y"}]}}`:      {"b: Y", "embeds.0.title: X"},
		`{"_errors":[{"code":"WHOLE"}]}`:                                                            {": WHOLE"},
		`{"a":{"_errors":"odd"},"b":5,"c":{"_errors":[]}}`:                                          nil,
		`{` + strings.Repeat(`"a":{`, 20) + `"_errors":[{"code":"DEEP"}]` + strings.Repeat(`}`, 21): nil,
	}
	for raw, want := range tests {
		if got := refusedFields([]byte(raw)); strings.Join(got, ",") != strings.Join(want, ",") {
			t.Errorf("%s: %q, want %q", raw, got, want)
		}
	}
}
