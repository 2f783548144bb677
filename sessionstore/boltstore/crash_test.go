package boltstore

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"botd/channels"
	"botd/channels/dispatch"
	"botd/sessionstore"
	"botd/sessionstore/memstore"
	"botd/sessionstore/storetest"
)

var crashRounds = flag.Int("crash.rounds", 5, "how often TestCrash kills a process that writes")

// Environment of the child processes of these tests.
const (
	crashPath  = "BOTD_CRASH_PATH"
	crashSteps = "BOTD_CRASH_STEPS"
)

const crashPeople = 6

func TestMain(m *testing.M) {
	if path := os.Getenv(crashPath); path != "" {
		if err := crashChild(path, os.Getenv(crashSteps)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// TestCrash kills a process at a random moment while it writes for several people at once, again and
// again on one file. Each person's steps are a fixed script, and the child tells of each step that was
// acknowledged: what the file holds for a person must be the result of the steps acknowledged or of one
// more, the one in flight, and of nothing in between.
func TestCrash(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "botd.db")
	models := make([]*memstore.Store, crashPeople)
	steps := make([]int, crashPeople)
	for p := range models {
		models[p] = memstore.New()
	}
	for round := range *crashRounds {
		acked := runAndKill(t, path, steps)
		if _, err := os.Stat(path); err == nil {
			checkFile(t, path)
		}
		db := mustOpen(t, Options{Path: path})
		for p, model := range models {
			for ; steps[p] < acked[p]; steps[p]++ {
				must(t, crashStep(t.Context(), model, p, steps[p]))
			}
			got := crashState(t, db, p)
			want := crashState(t, model, p)
			if !reflect.DeepEqual(want, got) { // then the step in flight must have been written, as a whole
				must(t, crashStep(t.Context(), model, p, steps[p]))
				steps[p]++
				want = crashState(t, model, p)
			}
			if !reflect.DeepEqual(want, got) {
				diff := cmp.Diff(want, got)
				t.Fatalf("round %d: person %d after %d steps acknowledged (-want +got):\n%s", round, p, acked[p], diff)
			}
		}
		must(t, db.bolt.Close()) // not db.Close: the next child finds a crashed file, too
		must(t, db.lock.release())
	}
	t.Logf("%d rounds, steps %v", *crashRounds, steps)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// runAndKill starts a child that goes on from the given steps, kills it, and returns the steps that it
// told of.
func runAndKill(t *testing.T, path string, steps []int) []int {
	t.Helper()
	from, err := json.Marshal(steps)
	must(t, err)
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), crashPath+"="+path, crashSteps+"="+string(from))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	acked := append([]int(nil), steps...)
	lines := bufio.NewScanner(out)
	kill := func(within time.Duration) *time.Timer {
		return time.AfterFunc(rand.N(within), func() { _ = cmd.Process.Kill() })
	}
	var timer *time.Timer
	if rand.IntN(4) == 0 { // perhaps while it opens the file
		timer = kill(50 * time.Millisecond)
	}
	for lines.Scan() {
		if timer == nil { // it is open and writes
			timer = kill(60 * time.Millisecond)
		}
		person, step, ok := strings.Cut(lines.Text(), " ")
		p, err1 := strconv.Atoi(person)
		n, err2 := strconv.Atoi(step)
		if !ok || err1 != nil || err2 != nil {
			break // the last line may be cut short
		}
		acked[p] = n + 1
	}
	if timer != nil {
		defer timer.Stop()
	}
	if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() == 1 {
		t.Fatalf("the child ended by itself: %v", err)
	}
	return acked
}

// crashChild writes until it is killed.
func crashChild(path, from string) error {
	var steps []int
	if err := json.Unmarshal([]byte(from), &steps); err != nil {
		return err
	}
	db, err := Open(Options{Path: path})
	if err != nil {
		return err
	}
	var wg sync.WaitGroup
	errs := make([]error, len(steps))
	for p := range steps {
		wg.Go(func() {
			for n := steps[p]; errs[p] == nil; n++ {
				if errs[p] = crashStep(context.Background(), db, p, n); errs[p] == nil {
					_, errs[p] = fmt.Fprintf(os.Stdout, "%d %d\n", p, n)
				}
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

func crashSession(p int) sessionstore.ID { return sessionstore.ID(fmt.Sprint("person-", p)) }

// crashing is what the steps need.
type crashing interface {
	storetest.Both
	sessionstore.Archiver
	sessionstore.Rewriter
	sessionstore.Forker
}

// crashStep is step n of person p: five for each turn, and one of several other things.
func crashStep(ctx context.Context, s crashing, p, n int) error {
	id, turn := crashSession(p), n/6
	name := fmt.Sprintf("%d-%d", p, turn)
	generation, err := s.Generation(ctx, id)
	if err != nil {
		return err
	}
	raw := fmt.Appendf(nil, `{"turn":%d,"x":"%s"}`, turn, strings.Repeat("x", turn*37%2000))
	items := []sessionstore.Item{{Raw: raw}, {Raw: raw}}
	switch n % 6 {
	case 0:
		_, err = s.Put(ctx, []dispatch.Routed{{Session: id, Event: channels.Inbound{ID: name}}, {Session: id, Event: channels.Inbound{ID: name + "b"}}})
	case 1:
		r := dispatch.TurnResult{
			Session: id, Turn: name, Generation: generation, Items: items,
			Replies: []dispatch.Delivery{{Message: channels.Outbound{ID: name + "/0"}}, {Message: channels.Outbound{ID: name + "/1"}}},
		}
		for e, err := range s.Pending(ctx) {
			if err != nil {
				return err
			}
			if e.Session == id {
				r.Consumed = append(r.Consumed, e.Seq)
			}
		}
		err = s.Commit(ctx, r)
	case 2:
		err = s.Begin(ctx, name+"/1")
	case 3:
		err = s.Settle(ctx, name+"/0", dispatch.Outcome{State: dispatch.Delivered})
	case 4:
		err = s.Settle(ctx, name+"/1", dispatch.Outcome{State: []dispatch.State{dispatch.Delivered, dispatch.Held, dispatch.Dead}[turn%3]})
	case 5:
		switch turn % 7 {
		case 2:
			var revision uint64
			if revision, err = s.Revision(ctx, id); err == nil {
				err = s.Rewrite(ctx, id, sessionstore.Rewrite{Revision: revision, Through: 2, Items: items[:1]})
			}
		case 4:
			err = s.Clear(ctx, id)
		case 5:
			err = s.Restore(ctx, id, generation-1)
		case 6:
			err = s.Fork(ctx, id, sessionstore.ID(fmt.Sprint(id, "-fork-", turn)), 1<<60)
		default:
			err = s.Append(ctx, id, sessionstore.Batch{Turn: name + "+", Generation: generation, Items: items[:1]})
		}
	}
	return err
}

// personState is what can be told of one person, but for the times of day.
type personState struct {
	Generation uint64
	Items      []string
	Pending    []channels.Inbound
	Due        []dispatch.Delivery
}

func crashState(t *testing.T, s crashing, p int) (st personState) {
	t.Helper()
	id := crashSession(p)
	generation, err1 := s.Generation(t.Context(), id)
	items, err2 := s.Items(t.Context(), id, sessionstore.All)
	must(t, errors.Join(err1, err2))
	st.Generation = generation
	for _, it := range items {
		st.Items = append(st.Items, fmt.Sprint(it.Seq, " ", it.Turn, " ", string(it.Raw)))
	}
	for e, err := range s.Pending(t.Context()) {
		must(t, err)
		if e.Session == id {
			st.Pending = append(st.Pending, e.Event)
		}
	}
	for d, err := range s.Due(t.Context(), time.Now()) {
		must(t, err)
		if d.Session == id {
			d.Created = time.Time{}
			st.Due = append(st.Due, d)
		}
	}
	return st
}
