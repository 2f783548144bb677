package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"botd/sessionstore"
	"botd/sessionstore/internal/dbtest"
	"botd/sessionstore/redisstore"
	"botd/sessionstore/storetest"
)

// connect returns a plain client, a prefix of the test's own and the URL; the keys are removed at the end.
func connect(t testing.TB) (*redis.Client, string, *url.URL) {
	t.Helper()
	u, prefix := dbtest.Redis(t)
	opts, err := redis.ParseURL(u.String())
	if err != nil {
		t.Fatal(err)
	}
	c := redis.NewClient(opts)
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		it := c.Scan(ctx, 0, "*"+prefix+"*", 1000).Iterator()
		for it.Next(ctx) {
			c.Del(ctx, it.Val())
		}
		if err := it.Err(); err != nil {
			t.Error(err)
		}
		c.Close()
	})
	return c, prefix, u
}

func open(t testing.TB, o redisstore.Options) *redisstore.Store {
	t.Helper()
	s, err := redisstore.Open(t.Context(), o)
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

func TestConformance(t *testing.T) {
	t.Parallel()
	for name, ttl := range map[string]time.Duration{"ForEver": 0, "WithTTL": time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fresh := func(t *testing.T) *redisstore.Store {
				_, prefix, u := connect(t)
				return open(t, redisstore.Options{URL: u.String(), KeyPrefix: prefix, TTL: ttl})
			}
			t.Run("Store", func(t *testing.T) {
				t.Parallel()
				storetest.Store(t, func(t *testing.T) sessionstore.Store { return fresh(t) })
			})
			t.Run("Contract", func(t *testing.T) {
				t.Parallel()
				dbtest.Contract(t, fresh(t))
			})
			t.Run("Lister", func(t *testing.T) {
				t.Parallel()
				storetest.Lister(t, func(t *testing.T) storetest.Listing { return fresh(t) })
			})
		})
	}
}

// python does what RedisSession does (extensions/memory/redis_session.py, openai-agents-python 0.22.0).
type python struct {
	t      *testing.T
	c      *redis.Client
	prefix string
}

func (p python) key(id string) string { return p.prefix + ":" + id }

func (p python) add(id string, raws ...string) {
	p.t.Helper()
	ctx, now := p.t.Context(), fmt.Sprint(time.Now().Unix())
	_, err := p.c.TxPipelined(ctx, func(tx redis.Pipeliner) error {
		tx.HSet(ctx, p.key(id), "session_id", id)
		tx.HSetNX(ctx, p.key(id), "created_at", now)
		for _, raw := range raws {
			tx.RPush(ctx, p.key(id)+":messages", raw)
		}
		tx.HSet(ctx, p.key(id), "updated_at", now)
		return nil
	})
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p python) get(id string) []string {
	p.t.Helper()
	raws, err := p.c.LRange(p.t.Context(), p.key(id)+":messages", 0, -1).Result()
	if err != nil {
		p.t.Fatal(err)
	}
	return raws
}

func (p python) pop(id string) {
	p.t.Helper()
	if err := p.c.RPop(p.t.Context(), p.key(id)+":messages").Err(); err != nil {
		p.t.Fatal(err)
	}
}

func (p python) clear(id string) {
	p.t.Helper()
	if err := p.c.Del(p.t.Context(), p.key(id), p.key(id)+":messages", p.key(id)+":counter").Err(); err != nil {
		p.t.Fatal(err)
	}
}

func shared(t *testing.T) (*redisstore.Store, python) {
	t.Helper()
	c, prefix, u := connect(t)
	return open(t, redisstore.Options{URL: u.String(), KeyPrefix: prefix}), python{t, c, prefix}
}

func TestTheSDKAndGoShareKeys(t *testing.T) {
	t.Parallel()
	s, py := shared(t)
	raw := "{ \"こん\":\t\"\\ud83d\\ude00 😀\",\n\"n\":1.0, \"f\":9007199254740993 }"
	py.add("s", `{"n":0}`)
	dbtest.Append(t, s, "s", "turn-1", raw, `{"n":2}`)
	py.add("s", `{"n":3}`, "{bad", "null")
	dbtest.Append(t, s, "s", "turn-2", `{"n":4}`)
	if diff := cmp.Diff([]string{`{"n":0}`, raw, `{"n":2}`, `{"n":3}`, "{bad", "null", `{"n":4}`}, py.get("s")); diff != "" {
		t.Errorf("the SDK sees something else (-want +got):\n%s", diff)
	}
	hash := py.c.HGetAll(t.Context(), py.key("s")).Val()
	if hash["session_id"] != "s" || hash["created_at"] == "" || hash["updated_at"] == "" || len(hash) != 3 {
		t.Errorf("the session's hash: %v", hash)
	}
	if diff := cmp.Diff([]string{raw, `{"n":2}`, `{"n":3}`, `{"n":4}`}, dbtest.Raws(t, s, "s", 4)); diff != "" {
		t.Errorf("Go sees something else (-want +got):\n%s", diff)
	}

	// Python takes the newest two away and puts others in their places.
	py.pop("s")
	py.pop("s")
	py.add("s", `{"n":5}`, `{"n":6}`, `{"n":7}`)
	items, err := s.Items(t.Context(), "s", 5)
	if err != nil {
		t.Fatal(err)
	}
	want := []struct{ turn, raw string }{{"turn-1", `{"n":2}`}, {"", `{"n":3}`}, {"", `{"n":5}`}, {"", `{"n":6}`}, {"", `{"n":7}`}}
	for i, w := range want {
		if items[i].Turn != w.turn || string(items[i].Raw) != w.raw {
			t.Errorf("item %d: %s of %q, want %s of %q", i, items[i].Raw, items[i].Turn, w.raw, w.turn)
		}
		if i > 0 && items[i].Seq <= items[i-1].Seq {
			t.Errorf("item %d: Seq %d follows %d", i, items[i].Seq, items[i-1].Seq)
		}
	}
	dbtest.Append(t, s, "s", "turn-2", `{"n":4}`) // known, though Python popped it
	dbtest.Append(t, s, "s", "turn-3", `{"n":8}`)
	after, err := s.Items(t.Context(), "s", 6)
	if err != nil {
		t.Fatal(err)
	}
	for i := range items {
		if after[i].Seq != items[i].Seq {
			t.Errorf("item %d: Seq was %d and is %d after a write", i, items[i].Seq, after[i].Seq)
		}
	}
	if it, err := s.Pop(t.Context(), "s"); err != nil || string(it.Raw) != `{"n":8}` || it.Turn != "turn-3" {
		t.Errorf("pop: %s of %q, %v", it.Raw, it.Turn, err)
	}
}

func TestPopPassesOverCorruptMessages(t *testing.T) {
	t.Parallel()
	s, py := shared(t)
	py.add("s", `{"n":1}`, "{bad", "null", "[1]", "\xff")
	if it, err := s.Pop(t.Context(), "s"); err != nil || string(it.Raw) != `{"n":1}` {
		t.Errorf("got %s, %v", it.Raw, err)
	}
	if got := py.get("s"); len(got) != 0 {
		t.Errorf("left: %q", got)
	}
}

// Ciphertext must not reach a model, and must not be thrown away as corrupt.
func TestItemsOfEncryptedSession(t *testing.T) {
	t.Parallel()
	s, py := shared(t)
	const sealed = `{"__enc__":1,"v":1,"kid":"hkdf-v1","payload":"gAAA"}`
	py.add("s", `{"n":1}`, sealed, `{"__enc__":2}`, sealed)
	if got := dbtest.Raws(t, s, "s", 9); !cmp.Equal(got, []string{`{"n":1}`, `{"__enc__":2}`}) {
		t.Errorf("got %q", got)
	}
	if _, err := s.Pop(t.Context(), "s"); !errors.Is(err, redisstore.ErrSealed) {
		t.Errorf("pop: %v", err)
	}
	if got := py.get("s"); len(got) != 4 {
		t.Errorf("left: %q", got)
	}
}

func TestLongHistoryOfPythons(t *testing.T) {
	t.Parallel()
	s, py := shared(t)
	var want []string
	for n := range 2500 {
		want = append(want, fmt.Sprintf(`{"n":%d}`, n))
		if n%3 == 0 {
			want[n] = "corrupt"
		}
	}
	py.add("s", want...)
	valid := func(n int) (raws []string) {
		for i := len(want) - 1; i >= 0 && len(raws) < n; i-- {
			if want[i] != "corrupt" {
				raws = append([]string{want[i]}, raws...)
			}
		}
		return raws
	}
	for range 2 {
		for _, n := range []int{1, 1200, 2500} {
			if diff := cmp.Diff(valid(n), dbtest.Raws(t, s, "s", n)); diff != "" {
				t.Errorf("the newest %d differ (-want +got):\n%s", n, diff)
			}
		}
		dbtest.Append(t, s, "s", "turn", `{"last":true}`)
		if len(want) == 2500 {
			want = append(want, `{"last":true}`)
		}
	}
}

func TestAClearByPythonCounts(t *testing.T) {
	t.Parallel()
	s, py := shared(t)
	dbtest.Append(t, s, "s", "turn-1", `{"n":1}`)
	py.clear("s")
	if g := dbtest.Generation(t, s, "s"); g != 1 {
		t.Errorf("generation: %d, want 1", g)
	}
	dbtest.WantStale(t, s, "s", sessionstore.Batch{Turn: "turn-2", Items: dbtest.Items(`{}`)})
	dbtest.AppendAt(t, s, "s", 1, "turn-1", `{"n":2}`)
	if err := s.Clear(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	if got := py.get("s"); len(got) != 0 || dbtest.Generation(t, s, "s") != 2 {
		t.Errorf("after Clear Python sees %q", got)
	}
}

// Early releases of the SDK wrote created_at anew with each add.
func TestAnAddByAnEarlyReleaseIsNoClear(t *testing.T) {
	t.Parallel()
	s, py := shared(t)
	dbtest.Append(t, s, "s", "turn-1", `{"n":1}`)
	py.add("s", `{"n":2}`)
	py.c.HSet(t.Context(), py.key("s"), "created_at", "1")
	dbtest.Append(t, s, "s", "turn-2", `{"n":3}`)
	if got := len(py.get("s")); got != 3 {
		t.Errorf("got %d items, want 3", got)
	}
}

func TestTimeToLive(t *testing.T) {
	t.Parallel()
	c, prefix, u := connect(t)
	s := open(t, redisstore.Options{URL: u.String() + "?ttl=1h&key_prefix=" + prefix})
	key := prefix + ":s"
	dbtest.Append(t, s, "s", "turn-1", `{"n":1}`, `{"n":2}`)
	all := []string{key, key + ":messages", "botd:items:" + key, "botd:turns:" + key}
	lives := func(want time.Duration) {
		t.Helper()
		for _, k := range all {
			if d := c.PTTL(t.Context(), k).Val(); d > want || d < want-time.Minute {
				t.Errorf("%s lives for %v, want about %v", k, d, want)
			}
		}
	}
	lives(time.Hour)
	if d := c.PTTL(t.Context(), "botd:meta:"+key).Val(); d < 24*time.Hour {
		t.Errorf("the generation lives for %v, want a day more than the session", d)
	}
	for _, k := range all {
		c.PExpire(t.Context(), k, 10*time.Minute)
	}
	dbtest.Raws(t, s, "s", 5)
	if _, err := s.Pop(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	lives(10 * time.Minute) // neither reading nor popping prolongs it
	dbtest.Append(t, s, "s", "turn-2", `{"n":3}`)
	lives(time.Hour)

	// What has come to the end of its time is forgotten, but was not cleared.
	c.Del(t.Context(), all...)
	c.HSet(t.Context(), "botd:meta:"+key, "expires", "1")
	dbtest.Append(t, s, "s", "turn-1", `{"n":4}`)
	if got := dbtest.Raws(t, s, "s", 5); !cmp.Equal(got, []string{`{"n":4}`}) {
		t.Errorf("got %q", got)
	}
}

func TestKeysOfAnotherKindAreRefused(t *testing.T) {
	t.Parallel()
	s, py := shared(t)
	py.c.Set(t.Context(), py.key("s")+":messages", "a string", 0)
	err := s.Append(t.Context(), "s", sessionstore.Batch{Turn: "turn", Items: dbtest.Items(`{}`)})
	if err == nil || !strings.Contains(err.Error(), "is a string, want a list") {
		t.Errorf("got %v", err)
	}
	if n := py.c.Exists(t.Context(), py.key("s"), "botd:turns:"+py.key("s"), "botd:meta:"+py.key("s")).Val(); n != 0 {
		t.Errorf("%d keys were written before the refusal", n)
	}
}

// The SDK's keys of two such sessions would be the same.
func TestIDsWhoseKeysAreTakenAreRefused(t *testing.T) {
	t.Parallel()
	s, _ := shared(t)
	for _, id := range []sessionstore.ID{"a:messages", "a:counter"} {
		err := s.Append(t.Context(), id, sessionstore.Batch{Items: dbtest.Items(`{}`)})
		if !errors.Is(err, sessionstore.ErrInvalidID) {
			t.Errorf("%s: got %v", id, err)
		}
	}
}

func TestSessionsOfPythonAreListed(t *testing.T) {
	t.Parallel()
	s, py := shared(t)
	for _, id := range []string{"b", "a*", "a"} {
		py.add(id, `{}`)
	}
	dbtest.Append(t, s, "c", "turn", `{}`)
	py.c.HSet(t.Context(), py.key("other"), "colour", "red") // no session
	var got []string
	infos, err := s.Sessions(t.Context(), "", "", 10)
	if err != nil {
		t.Fatal(err)
	}
	for _, info := range infos {
		got = append(got, fmt.Sprint(info.ID, " ", info.Items))
		if info.Created.IsZero() || info.Updated.IsZero() {
			t.Errorf("%s: created %v, updated %v", info.ID, info.Created, info.Updated)
		}
	}
	if want := []string{"a 1", "a* 1", "b 1", "c 1"}; !cmp.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	py.clear("b")
	if infos, err = s.Sessions(t.Context(), "b", "", 10); err != nil || len(infos) != 0 {
		t.Errorf("a session that Python made and cleared: %v, %v", infos, err)
	}
}

func TestResilience(t *testing.T) {
	t.Parallel()
	_, prefix, u := connect(t)
	p := dbtest.NewProxy(t, u.Host)
	through := *u
	through.Host = p.Addr()
	dbtest.Resilience(t, p, open(t, redisstore.Options{URL: through.String(), KeyPrefix: prefix}), redisstore.ErrOutcomeUnknown)
}

func TestInvalidURLs(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		url  string
		kind error
		want string
	}{
		{"memcached://h", redisstore.ErrURL, `unknown scheme "memcached"`},
		{"redis://u:hunter2@[::1", redisstore.ErrURL, ""},
		{"redis://u:hunter2@h:1/?colour=red", redisstore.ErrURL, "does not take these parameters"},
		{"redis://u:hunter2@h:1/?ttl=soon", redisstore.ErrURL, "neither a duration"},
		{"redis+cluster://u:hunter2@h:1", redisstore.ErrCluster, "{agents:session}"},
		{"redis+cluster://u:hunter2@h:1?key_prefix=a{}b", redisstore.ErrCluster, ""},
	} {
		_, err := redisstore.Open(t.Context(), redisstore.Options{URL: tt.url})
		if !errors.Is(err, tt.kind) || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: got %v", tt.url, err)
		}
	}
	_, err := redisstore.Open(t.Context(), redisstore.Options{URL: "redis://u:hunter2@127.0.0.1:1"})
	if err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("no server: %v", err)
	}
}
