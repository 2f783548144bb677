package conversations_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"botd/sessionstore"
	"botd/sessionstore/conversations"
	"botd/sessionstore/internal/dbtest"
)

func open(t testing.TB, f *fake, state conversations.State) *conversations.Store {
	t.Helper()
	s, err := conversations.Open(conversations.Options{State: state, APIKey: "key", BaseURL: "http://api.test/v1", HTTPClient: f.client()})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// user is a user's message.
func user(n int) string { return fmt.Sprintf(`{"role":"user","content":"%d"}`, n) }

func users(from, to int) (raws []string) {
	for n := from; n < to; n++ {
		raws = append(raws, user(n))
	}
	return raws
}

// texts returns the texts of the newest items.
func texts(t testing.TB, s sessionstore.Store, id sessionstore.ID, limit int) string {
	t.Helper()
	var out []string
	for _, raw := range dbtest.Raws(t, s, id, limit) {
		_, text, ok := strings.Cut(raw, `"text":"`)
		text, _, _ = strings.Cut(text, `"`)
		if !ok {
			text = raw
		}
		out = append(out, text)
	}
	return strings.Join(out, " ")
}

func count(from, to int) string {
	var out []string
	for n := from; n < to; n++ {
		out = append(out, fmt.Sprint(n))
	}
	return strings.Join(out, " ")
}

func TestOrderAndPages(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	s := open(t, f, &memState{})
	if got := texts(t, s, "s", 5); got != "" || len(f.requests) != 0 {
		t.Errorf("a session never written holds %q and took %d requests", got, len(f.requests))
	}
	next := 0
	for i, n := range []int{1, 19, 20, 21, 45, 100, 60} {
		dbtest.Append(t, s, "s", fmt.Sprint("turn-", i), users(next, next+n)...)
		next += n
	}
	for _, limit := range []int{1, 40, 100, 101, 250, next, next + 1, sessionstore.All} {
		if got, want := texts(t, s, "s", limit), count(max(0, next-limit), next); got != want {
			t.Errorf("the newest %d: got %s, want %s", limit, got, want)
		}
	}
	items, err := s.Items(t.Context(), "s", sessionstore.All)
	if err != nil {
		t.Fatal(err)
	}
	for i := range items {
		if items[i].Seq != uint64(i+1) || items[i].At.IsZero() {
			t.Fatalf("item %d has Seq %d and time %v", i, items[i].Seq, items[i].At)
		}
	}
	if items[0].Turn != "turn-0" || items[next-1].Turn != "turn-6" {
		t.Errorf("turns: %q … %q", items[0].Turn, items[next-1].Turn)
	}
	before := len(f.requests)
	if got := dbtest.Raws(t, s, "s", 0); len(got) != 0 || len(f.requests) != before {
		t.Errorf("a limit of 0 gave %q and took %d requests", got, len(f.requests)-before)
	}
}

func TestWhatIsSentAndWhatIsRead(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	s := open(t, f, &memState{})
	dbtest.Append(t, s, "s", "turn",
		`{"role":"user","content":"<b>"}`,
		`{"type":"reasoning","summary":[]}`, // cannot be stored
		`{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"gAAA"}`,
		`{"type":"function_call","id":"fc_1","call_id":"call_1","name":"f","arguments":"{}","provider_data":{"a":1},"status":"completed"}`,
		`{"type":"function_call_output","id":"fco_1","call_id":"call_1","output":"1"}`,
		`{"id":"msg_1","type":"message","role":"assistant","status":"completed","content":[{"type":"output_text","text":"hi","annotations":[],"logprobs":[]}]}`,
	)
	want := []string{`{"items":[` + strings.Join([]string{
		`{"role":"user","content":"<b>"}`,
		`{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"gAAA"}`,
		`{"type":"function_call","call_id":"call_1","name":"f","arguments":"{}","status":"completed"}`,
		`{"type":"function_call_output","call_id":"call_1","output":"1"}`,
		`{"type":"message","role":"assistant","status":"completed","content":[{"type":"output_text","text":"hi","annotations":[],"logprobs":[]}]}`,
	}, ",") + `]}`}
	if diff := cmp.Diff(want, f.bodies); diff != "" {
		t.Errorf("sent (-want +got):\n%s", diff)
	}
	raws := dbtest.Raws(t, s, "s", sessionstore.All)
	if len(raws) != 5 || !strings.Contains(raws[1], `"id":"rs_1"`) || strings.Contains(raws[4], `"id"`) || !strings.Contains(raws[2], `"id"`) {
		t.Errorf("read: %q", raws)
	}
}

func TestTurnsAndGenerations(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	s := open(t, f, &memState{})
	dbtest.Append(t, s, "s", "t1", users(0, 2)...)
	dbtest.Append(t, s, "s", "t1", users(0, 2)...)
	dbtest.Append(t, s, "s", "", user(2))
	dbtest.Append(t, s, "s", "", user(2))
	if got := texts(t, s, "s", 9); got != "0 1 2 2" {
		t.Errorf("got %s", got)
	}
	if err := s.Clear(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	if len(f.conversations) != 0 || texts(t, s, "s", 9) != "" || dbtest.Generation(t, s, "s") != 1 {
		t.Errorf("after Clear: %d conversations, generation %d", len(f.conversations), dbtest.Generation(t, s, "s"))
	}
	dbtest.WantStale(t, s, "s", sessionstore.Batch{Turn: "t2", Items: dbtest.Items(user(3))})
	dbtest.WantStale(t, s, "s", sessionstore.Batch{Turn: "t2"})
	dbtest.AppendAt(t, s, "s", 1, "t1", user(4))
	if got := texts(t, s, "s", 9); got != "4" || len(f.conversations) != 1 {
		t.Errorf("got %s in %d conversations", got, len(f.conversations))
	}
	if err := s.Clear(t.Context(), "never-seen"); err != nil || dbtest.Generation(t, s, "never-seen") != 1 {
		t.Errorf("clear of an unknown session: %v", err)
	}
}

func TestContract(t *testing.T) {
	t.Parallel()
	dbtest.Contract(t, open(t, newFake(t), &memState{}))
}

func TestPop(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	s := open(t, f, &memState{})
	dbtest.Append(t, s, "s", "t1", users(0, 3)...)
	last, err := s.Pop(t.Context(), "s")
	if err != nil || !strings.Contains(string(last.Raw), `"2"`) || last.Seq != 3 || last.Turn != "t1" {
		t.Errorf("got %+v, %v", last, err)
	}
	dbtest.Append(t, s, "s", "t2", user(3))
	items, err := s.Items(t.Context(), "s", 1)
	if err != nil || items[0].Seq <= last.Seq {
		t.Errorf("Seq %d is used again: %v", items[0].Seq, err)
	}
	for range 3 {
		if _, err := s.Pop(t.Context(), "s"); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range []sessionstore.ID{"s", "never-seen"} {
		if _, err := s.Pop(t.Context(), id); !errors.Is(err, sessionstore.ErrEmpty) {
			t.Errorf("pop of nothing: %v", err)
		}
	}
}

// Whatever request or answer of a batch is lost, the turn ends up in the conversation once and in order,
// also when it is a new process that goes on.
func TestLostRequestsAndAnswers(t *testing.T) {
	t.Parallel()
	for _, lost := range []string{"request", "answer"} {
		for _, restart := range []bool{false, true} {
			t.Run(fmt.Sprint(lost, " restart ", restart), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					for k := 0; ; k++ {
						f, state := newFake(t), &memState{}
						s := open(t, f, state)
						// From the kth on, everything is lost.
						stop := f.losing(func(n int, _ *http.Request) (bool, bool) {
							return n >= k && lost == "request", n == k && lost == "answer" || n > k
						})
						err := s.Append(t.Context(), "s", sessionstore.Batch{Turn: "t1", Items: dbtest.Items(users(0, 45)...)})
						requests := stop()
						if err == nil && requests <= k {
							return
						}
						if errors.Is(err, context.DeadlineExceeded) {
							t.Errorf("cut %d: %v", k, err)
						}
						if restart {
							s = open(t, f, state)
						}
						complete := errors.Is(err, conversations.ErrIncomplete)
						if complete && texts(t, s, "s", 99) != count(0, 45) {
							t.Errorf("cut %d: the next operation did not complete the batch: %s", k, texts(t, s, "s", 99))
						}
						dbtest.Append(t, s, "s", "t1", users(0, 45)...)
						dbtest.Append(t, s, "s", "t2", user(45))
						if got := texts(t, s, "s", 99); got != count(0, 46) {
							t.Errorf("cut %d: got %s", k, got)
						}
					}
				})
			})
		}
	}
}

func TestPopWhoseAnswersAreLost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		s := open(t, f, &memState{})
		dbtest.Append(t, s, "s", "t1", users(0, 3)...)
		// One lost answer is made good by asking again.
		stop := f.losing(func(n int, r *http.Request) (bool, bool) { return false, r.Method == http.MethodDelete && n < 2 })
		if it, err := s.Pop(t.Context(), "s"); err != nil || !strings.Contains(string(it.Raw), `"2"`) {
			t.Errorf("got %s, %v", it.Raw, err)
		}
		stop()
		stop = f.losing(func(_ int, r *http.Request) (bool, bool) { return false, r.Method == http.MethodDelete })
		if _, err := s.Pop(t.Context(), "s"); !errors.Is(err, conversations.ErrOutcomeUnknown) {
			t.Errorf("all answers lost: %v", err)
		}
		stop()
		if got := texts(t, s, "s", 9); got != "0" {
			t.Errorf("left: %s", got)
		}
	})
}

func TestConversationInUse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		s := open(t, f, &memState{})
		dbtest.Append(t, s, "s", "t0", user(0))
		f.locked = 3
		began := time.Now()
		dbtest.Append(t, s, "s", "t1", user(1))
		if took := time.Since(began); took != 7*time.Second {
			t.Errorf("waited %v, want 1+2+4 seconds", took)
		}
		f.locked = 4
		err := s.Append(t.Context(), "s", sessionstore.Batch{Turn: "t2", Items: dbtest.Items(user(2))})
		if !errors.Is(err, conversations.ErrIncomplete) || !strings.Contains(err.Error(), "conversation_locked") {
			t.Errorf("got %v", err)
		}
		if got := texts(t, s, "s", 9); got != "0 1 2" {
			t.Errorf("got %s", got)
		}
	})
}

func TestABatchThatTheAPIRefusesIsUndone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, whileUndoing := range []string{"", "unreachable"} {
			f := newFake(t)
			s := open(t, f, &memState{})
			dbtest.Append(t, s, "s", "t0", user(0))
			f.refuse = func(it map[string]any) bool { return it["content"] == "41" }
			stop := f.losing(func(_ int, r *http.Request) (bool, bool) {
				return r.Method == http.MethodDelete && whileUndoing != "", false
			})
			for range 2 {
				err := s.Append(t.Context(), "s", sessionstore.Batch{Turn: "t1", Items: dbtest.Items(users(1, 50)...)})
				if err == nil || !strings.Contains(err.Error(), "invalid_value") && whileUndoing == "" || strings.Contains(err.Error(), "hush-hush") {
					t.Errorf("got %v", err)
				}
			}
			stop()
			if got := texts(t, s, "s", 99); got != "0" {
				t.Errorf("left: %s", got)
			}
			dbtest.Append(t, s, "s", "t2", user(1))
			if got := texts(t, s, "s", 99); got != "0 1" {
				t.Errorf("after it: %s", got)
			}
		}
	})
}

func TestAConversationDeletedElsewhereCountsAsCleared(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, first := range []string{"read", "append", "pop"} {
			f := newFake(t)
			s := open(t, f, &memState{})
			dbtest.Append(t, s, "s", "t1", user(0))
			clear(f.conversations)
			switch first {
			case "read":
				if got := texts(t, s, "s", 9); got != "" {
					t.Errorf("got %s", got)
				}
			case "append":
				dbtest.WantStale(t, s, "s", sessionstore.Batch{Turn: "t2", Items: dbtest.Items(user(1))})
			case "pop":
				if _, err := s.Pop(t.Context(), "s"); !errors.Is(err, sessionstore.ErrEmpty) {
					t.Errorf("pop: %v", err)
				}
			}
			if g := dbtest.Generation(t, s, "s"); g != 1 {
				t.Errorf("%s: generation %d", first, g)
			}
			dbtest.AppendAt(t, s, "s", 1, "t1", user(2))
			if got := texts(t, s, "s", 9); got != "2" {
				t.Errorf("%s: got %s", first, got)
			}
		}
	})
}

func TestClearWhileTheAPIIsDown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		s := open(t, f, &memState{})
		dbtest.Append(t, s, "s", "t1", user(0))
		f.down = true
		if err := s.Clear(t.Context(), "s"); err != nil {
			t.Fatal(err)
		}
		if got := texts(t, s, "s", 9); got != "" {
			t.Errorf("got %s", got)
		}
		f.down = false
		dbtest.AppendAt(t, s, "s", 1, "t1", user(1))
		if len(f.conversations) != 1 || texts(t, s, "s", 9) != "1" {
			t.Errorf("%d conversations; %s", len(f.conversations), texts(t, s, "s", 9))
		}
	})
}

func TestItemsOfAnotherProgram(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	s := open(t, f, &memState{})
	dbtest.Append(t, s, "s", "t1", user(0))
	for id := range f.conversations {
		for n := 1; n < 3; n++ {
			f.conversations[id] = append(f.conversations[id], f.normalise(map[string]any{"role": "user", "content": fmt.Sprint(n)}))
		}
	}
	before, err := s.Items(t.Context(), "s", 9)
	if err != nil {
		t.Fatal(err)
	}
	dbtest.Append(t, s, "s", "t2", user(3))
	after, err := s.Items(t.Context(), "s", 9)
	if err != nil {
		t.Fatal(err)
	}
	for i, it := range after {
		if it.Seq != uint64(i+1) || i < 3 && it.Seq != before[i].Seq {
			t.Errorf("item %d: Seq %d", i, it.Seq)
		}
	}
	if got := texts(t, s, "s", 9); got != "0 1 2 3" || after[2].Turn != "" || after[3].Turn != "t2" {
		t.Errorf("got %s", got)
	}
}

func TestAtOnce(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	s := open(t, f, &memState{})
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			if err := s.Append(t.Context(), "s", sessionstore.Batch{Turn: fmt.Sprint(i / 2), Items: dbtest.Items(user(i/2), user(i/2))}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	got := strings.Fields(texts(t, s, "s", 99))
	if len(got) != 8 || len(f.conversations) != 1 {
		t.Fatalf("got %q in %d conversations", got, len(f.conversations))
	}
	for i := 0; i < len(got); i += 2 {
		if got[i] != got[i+1] {
			t.Errorf("a turn was torn apart: %q", got)
		}
	}
}

// intruder changes the session's record once, in between.
type intruder struct {
	*memState
	armed bool
}

func (s *intruder) Swap(ctx context.Context, key string, old, value []byte) (bool, error) {
	if s.armed && strings.HasPrefix(key, "session/") {
		s.armed = false
		v, _ := s.Get(ctx, key)
		_, _ = s.memState.Swap(ctx, key, v, []byte(`{"generation":7}`))
	}
	return s.memState.Swap(ctx, key, old, value)
}

func TestTwoStoresOnOneStateNotice(t *testing.T) {
	t.Parallel()
	f, state := newFake(t), &intruder{memState: &memState{}}
	s := open(t, f, state)
	dbtest.Append(t, s, "s", "t1", user(0))
	state.armed = true
	err := s.Append(t.Context(), "s", sessionstore.Batch{Turn: "t2", Items: dbtest.Items(user(1))})
	if !errors.Is(err, conversations.ErrConflict) || len(f.bodies) != 1 {
		t.Errorf("got %v, after %d creations", err, len(f.bodies))
	}
}

func TestSessionsAreListed(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	s := open(t, f, &memState{})
	for _, id := range []sessionstore.ID{"b", "a/1", "a/2", "a"} {
		dbtest.Append(t, s, id, "t1", user(0), user(1))
	}
	var got []string
	for after := sessionstore.ID(""); ; {
		infos, err := s.Sessions(t.Context(), "a", after, 2)
		if err != nil {
			t.Fatal(err)
		}
		if len(infos) == 0 {
			break
		}
		for _, info := range infos {
			got = append(got, fmt.Sprint(info.ID, info.Items))
			after = info.ID
		}
	}
	if want := []string{"a2", "a/12", "a/22"}; !cmp.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestClosedAndCancelled(t *testing.T) {
	t.Parallel()
	s := open(t, newFake(t), &memState{})
	check := func(ctx context.Context, want error) {
		t.Helper()
		_, e1 := s.Items(ctx, "s", 1)
		_, e2 := s.Generation(ctx, "s")
		e3 := s.Append(ctx, "s", sessionstore.Batch{Items: dbtest.Items(user(0))})
		_, e4 := s.Pop(ctx, "s")
		e5 := s.Clear(ctx, "s")
		_, e6 := s.Sessions(ctx, "", "", 1)
		e7 := s.Append(ctx, "s", sessionstore.Batch{})
		for i, err := range []error{e1, e2, e3, e4, e5, e6, e7} {
			if !errors.Is(err, want) {
				t.Errorf("operation %d: %v, want %v", i, err, want)
			}
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	check(ctx, context.Canceled)
	for range 2 {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	check(t.Context(), sessionstore.ErrClosed)
	if _, err := conversations.Open(conversations.Options{}); err == nil {
		t.Error("opened without a State")
	}
}

func TestStates(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "state ?.db")
	openFile := func() *conversations.FileState {
		s, err := conversations.OpenFileState(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	file := openFile()
	for name, s := range map[string]conversations.State{"FileState": file, "the tests' own": &memState{}} {
		swap := func(key, old, value string, want bool) {
			t.Helper()
			b := func(s string) []byte {
				if s == "" {
					return nil
				}
				return []byte(s)
			}
			if got, err := s.Swap(t.Context(), key, b(old), b(value)); got != want || err != nil {
				t.Errorf("%s: Swap(%q, %q, %q) = %v, %v", name, key, old, value, got, err)
			}
		}
		swap("a", "", "1", true)
		swap("a", "", "2", false)
		swap("a", "3", "2", false)
		swap("a", "1", "2", true)
		swap("b", "1", "", false)
		swap("ab", "", "1", true)
		swap("abc\xff", "", "1", true)
		swap("ab", "2", "", false)
		if v, err := s.Get(t.Context(), "a"); string(v) != "2" || err != nil {
			t.Errorf("%s: Get = %q, %v", name, v, err)
		}
		if keys, err := s.Keys(t.Context(), "a", "a", 9); !cmp.Equal(keys, []string{"ab", "abc\xff"}) || err != nil {
			t.Errorf("%s: Keys = %q, %v", name, keys, err)
		}
		swap("ab", "1", "", true)
		if v, err := s.Get(t.Context(), "ab"); v != nil || err != nil {
			t.Errorf("%s: Get of what was taken away = %q, %v", name, v, err)
		}
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	file = openFile()
	defer file.Close()
	f := newFake(t)
	s := open(t, f, file)
	dbtest.Append(t, s, "s", "t1", user(0))
	dbtest.Append(t, s, "s", "t1", user(0))
	if v, err := file.Get(t.Context(), "a"); string(v) != "2" || err != nil || texts(t, s, "s", 9) != "0" {
		t.Errorf("reopened: %q, %v; session %s", v, err, texts(t, s, "s", 9))
	}
}
