package storetest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"iter"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"botd/channels/dispatch"
	"botd/sessionstore"
	"botd/sessionstore/memstore"
	"botd/sessionstore/storetest"
)

// defective is a store that is right but for one thing.
type defective struct {
	*memstore.Store
	defect string
}

func (s *defective) is(defect string) bool { return s.defect == defect }

func (s *defective) Items(ctx context.Context, id sessionstore.ID, limit int) ([]sessionstore.Item, error) {
	if s.is("all for no limit") && limit <= 0 {
		limit = sessionstore.All
	}
	items, err := s.Store.Items(ctx, id, limit)
	switch {
	case s.is("newest first"):
		slices.Reverse(items)
	case s.is("oldest for a limit") && err == nil:
		if all, err := s.Store.Items(ctx, id, sessionstore.All); err == nil {
			return all[:len(items)], nil
		}
	}
	return items, err
}

func (s *defective) Append(ctx context.Context, id sessionstore.ID, b sessionstore.Batch) error {
	switch s.defect {
	case "turns are not remembered":
		b.Turn = ""
	case "late writes are taken":
		b.Generation, _ = s.Store.Generation(ctx, id)
	case "IDs are folded":
		id = sessionstore.ID(strings.ToLower(string(id)))
	case "ends of contexts are ignored":
		ctx = context.WithoutCancel(ctx)
	case "JSON is made pretty":
		b.Items = slices.Clone(b.Items)
		for i, it := range b.Items {
			var buf bytes.Buffer
			if json.Compact(&buf, it.Raw) == nil {
				b.Items[i].Raw = buf.Bytes()
			}
		}
	case "batches are torn apart":
		for _, it := range b.Items {
			if err := s.Store.Append(ctx, id, sessionstore.Batch{Generation: b.Generation, Items: []sessionstore.Item{it}}); err != nil {
				return err
			}
		}
		return nil
	}
	return s.Store.Append(ctx, id, b)
}

func (s *defective) Clear(ctx context.Context, id sessionstore.ID) error {
	if s.is("clear of nothing does not count") {
		if items, err := s.Store.Items(ctx, id, 1); err != nil || len(items) == 0 {
			return err
		}
	}
	return s.Store.Clear(ctx, id)
}

func (s *defective) Pop(ctx context.Context, id sessionstore.ID) (sessionstore.Item, error) {
	it, err := s.Store.Pop(ctx, id)
	if s.is("no error for an empty session") {
		return it, nil
	}
	return it, err
}

func (s *defective) Put(ctx context.Context, events []dispatch.Routed) ([]dispatch.Entry, error) {
	if s.is("events are not deduplicated") {
		events = slices.Clone(events)
		for i := range events {
			events[i].Event.MessageID = events[i].Event.ID
			events[i].Event.ID += time.Now().String()
		}
	}
	if s.is("channels are mixed up") {
		events = slices.Clone(events)
		for i := range events {
			events[i].Event.Address.Channel = ""
		}
	}
	return s.Store.Put(ctx, events)
}

func (s *defective) Commit(ctx context.Context, r dispatch.TurnResult) error {
	switch s.defect {
	case "what was consumed may be missing":
		pending := map[uint64]bool{}
		for e := range s.Store.Pending(ctx) {
			pending[e.Seq] = true
		}
		r.Consumed = slices.DeleteFunc(slices.Clone(r.Consumed), func(seq uint64) bool { return !pending[seq] })
	case "late commits are taken":
		r.Generation, _ = s.Store.Generation(ctx, r.Session)
	case "items are appended before the checks":
		_ = s.Store.Append(ctx, r.Session, sessionstore.Batch{Turn: r.Turn, Generation: r.Generation, Items: r.Items})
	case "dead letters vanish":
		r.Dead = ""
	case "counted before the checks":
		if err := s.Store.AddTallies(ctx, r.Tallies...); err != nil {
			return err
		}
		r.Tallies = nil
	}
	return s.Store.Commit(ctx, r)
}

func (s *defective) Due(ctx context.Context, now time.Time) iter.Seq2[dispatch.Delivery, error] {
	if s.is("due out of order") {
		return func(yield func(dispatch.Delivery, error) bool) {
			var list []dispatch.Delivery
			for d, err := range s.Store.Due(ctx, now) {
				if err != nil {
					yield(d, err)
					return
				}
				list = append(list, d)
			}
			slices.SortStableFunc(list, func(a, b dispatch.Delivery) int { return strings.Compare(a.Message.ID, b.Message.ID) })
			for _, d := range list {
				if !yield(d, nil) {
					return
				}
			}
		}
	}
	return s.Store.Due(ctx, now)
}

func (s *defective) Begin(ctx context.Context, id string) error {
	if s.is("begin is not noted") {
		return s.Store.Settle(ctx, id, dispatch.Outcome{State: dispatch.Waiting, Certain: true})
	}
	return s.Store.Begin(ctx, id)
}

func (s *defective) Settle(ctx context.Context, id string, o dispatch.Outcome) error {
	if s.is("the unknown is sent again") && o.State == dispatch.Unknown {
		o.State = dispatch.Waiting
	}
	return s.Store.Settle(ctx, id, o)
}

func (s *defective) Erase(ctx context.Context, id sessionstore.ID) error {
	if s.is("erase is a clear") {
		return s.Clear(ctx, id)
	}
	return s.Store.Erase(ctx, id)
}

func (s *defective) Rewrite(ctx context.Context, id sessionstore.ID, r sessionstore.Rewrite) error {
	if s.is("rewrites are not checked") {
		r.Revision, _ = s.Store.Revision(ctx, id)
	}
	return s.Store.Rewrite(ctx, id, r)
}

func (s *defective) Restore(ctx context.Context, id sessionstore.ID, generation uint64) error {
	if s.is("restore leaves the generation") {
		_, err := s.Store.Archives(ctx, id)
		return err
	}
	return s.Store.Restore(ctx, id, generation)
}

func (s *defective) ChangeRecords(ctx context.Context, changes ...sessionstore.RecordChange) error {
	switch s.defect {
	case "versions are not checked":
		changes = slices.Clone(changes)
		for i := range changes {
			changes[i].Version = sessionstore.AnyVersion
		}
	case "records never end":
		changes = slices.Clone(changes)
		for i := range changes {
			changes[i].Until = time.Time{}
		}
	case "changes are torn apart":
		for _, c := range changes {
			if err := s.Store.ChangeRecords(ctx, c); err != nil {
				return err
			}
		}
		return nil
	}
	return s.Store.ChangeRecords(ctx, changes...)
}

func (s *defective) Records(ctx context.Context, kind, prefix, after string, limit int) ([]sessionstore.Record, error) {
	if s.is("prefixes are ignored") {
		prefix = ""
	}
	return s.Store.Records(ctx, kind, prefix, after, limit)
}

func (s *defective) Tallies(ctx context.Context, prefix, after string, limit int) ([]sessionstore.Tally, error) {
	if s.is("counters in one page") {
		limit = sessionstore.All
	}
	return s.Store.Tallies(ctx, prefix, after, limit)
}

func (s *defective) AddTallies(ctx context.Context, add ...sessionstore.Tally) error {
	if s.is("counters begin anew") {
		for _, t := range add {
			if err := s.Store.DropTallies(ctx, t.Key); err != nil {
				return err
			}
		}
	}
	return s.Store.AddTallies(ctx, add...)
}

// defects are the things that may be wrong, each with the suite that has to notice.
var defects = map[string]string{
	"all for no limit": "Store", "newest first": "Store", "oldest for a limit": "Store", "turns are not remembered": "Store",
	"late writes are taken": "Store", "IDs are folded": "Store", "ends of contexts are ignored": "Store",
	"JSON is made pretty": "Store", "batches are torn apart": "Store", "clear of nothing does not count": "Store",
	"no error for an empty session": "Store",
	"events are not deduplicated":   "Journal", "channels are mixed up": "Journal", "what was consumed may be missing": "Journal",
	"late commits are taken": "Journal", "items are appended before the checks": "Journal", "dead letters vanish": "Journal",
	"due out of order": "Journal", "begin is not noted": "Journal", "the unknown is sent again": "Journal",
	"erase is a clear": "Eraser", "rewrites are not checked": "Rewriter", "restore leaves the generation": "Archiver",
	"versions are not checked": "Recorder", "records never end": "Recorder", "changes are torn apart": "Recorder", "prefixes are ignored": "Recorder",
	"counters in one page": "Tallier", "counters begin anew": "Tallier", "counted before the checks": "Tallier",
}

const defectVariable = "BOTD_STORE_DEFECT"

// TestSuites runs every suite on a store that is right; in a child process, on one that is not.
func TestSuites(t *testing.T) {
	defect := os.Getenv(defectVariable)
	open := func() *defective { return &defective{memstore.New(), defect} }
	t.Run("Store", func(t *testing.T) {
		storetest.Store(t, func(*testing.T) sessionstore.Store { return open() })
	})
	t.Run("Journal", func(t *testing.T) {
		storetest.Journal(t, func(*testing.T) storetest.Both { return open() })
	})
	t.Run("Archiver", func(t *testing.T) {
		storetest.Archiver(t, func(_ *testing.T, archiveFor time.Duration) storetest.Archiving {
			s := open()
			s.ArchiveFor = archiveFor
			return s
		})
	})
	t.Run("Eraser", func(t *testing.T) {
		storetest.Eraser(t, func(*testing.T) storetest.Erasing { return open() })
	})
	t.Run("Rewriter", func(t *testing.T) {
		storetest.Rewriter(t, func(*testing.T) storetest.Rewriting { return open() })
	})
	t.Run("Recorder", func(t *testing.T) {
		storetest.Recorder(t, func(*testing.T) storetest.Recording { return open() })
	})
	t.Run("Tallier", func(t *testing.T) {
		storetest.Tallier(t, func(*testing.T) storetest.Counting { return open() })
	})
}

// TestSuitesNotice checks that the suites fail on stores that are wrong in one thing.
func TestSuitesNotice(t *testing.T) {
	t.Parallel()
	for defect, suite := range defects {
		t.Run(defect, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestSuites$/^"+suite+"$")
			cmd.Env = append(os.Environ(), defectVariable+"="+defect)
			out, err := cmd.CombinedOutput()
			if err == nil {
				t.Fatalf("the suite %s passes", suite)
			}
			if !strings.Contains(string(out), "--- FAIL: TestSuites/"+suite+"/") {
				t.Errorf("the suite %s ends otherwise: %v\n%s", suite, err, out)
			}
		})
	}
}
