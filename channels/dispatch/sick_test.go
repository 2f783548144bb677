package dispatch_test

import (
	"context"
	"iter"
	"sync"
	"time"

	"botd/channels/dispatch"
	"botd/sessionstore/memstore"
)

// sickJournal is a store and journal that fails and dawdles as told.
type sickJournal struct {
	*memstore.Store
	mu                             sync.Mutex
	put, commit, settle, fail      error
	begin, pending                 error
	pendingDelay, putDelay         time.Duration
	putFirst                       time.Duration // before the put
	commitDelay, dueDelay          time.Duration
	committed                      func() // called after each commit
	puts, commits, settles, begins int
}

func (j *sickJournal) set(f func(*sickJournal)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	f(j)
}

func (j *sickJournal) get(count *int, err *error, delay *time.Duration) error {
	j.mu.Lock()
	if count != nil {
		*count++
	}
	wait := time.Duration(0)
	if delay != nil {
		wait = *delay
	}
	j.mu.Unlock()
	if wait > 0 {
		time.Sleep(wait)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return *err
}

func (j *sickJournal) Put(ctx context.Context, events []dispatch.Routed) ([]dispatch.Entry, error) {
	if err := j.get(&j.puts, &j.put, &j.putFirst); err != nil {
		return nil, err
	}
	fresh, err := j.Store.Put(ctx, events)
	if err == nil {
		_ = j.get(nil, &j.put, &j.putDelay)
	}
	return fresh, err
}

func (j *sickJournal) Pending(ctx context.Context) iter.Seq2[dispatch.Entry, error] {
	if err := j.get(nil, &j.pending, nil); err != nil {
		return func(yield func(dispatch.Entry, error) bool) { yield(dispatch.Entry{}, err) }
	}
	return func(yield func(dispatch.Entry, error) bool) {
		for e, err := range j.Store.Pending(ctx) {
			if !yield(e, err) {
				return
			}
		}
		_ = j.get(nil, &j.pending, &j.pendingDelay)
	}
}

func (j *sickJournal) Commit(ctx context.Context, r dispatch.TurnResult) error {
	if err := j.get(&j.commits, &j.commit, &j.commitDelay); err != nil {
		return err
	}
	err := j.Store.Commit(ctx, r)
	if j.committed != nil {
		j.committed()
	}
	return err
}

func (j *sickJournal) Due(ctx context.Context, now time.Time) iter.Seq2[dispatch.Delivery, error] {
	return func(yield func(dispatch.Delivery, error) bool) {
		for m, err := range j.Store.Due(ctx, now) {
			if !yield(m, err) {
				return
			}
		}
		_ = j.get(nil, &j.pending, &j.dueDelay)
	}
}

func (j *sickJournal) Fail(ctx context.Context, seqs []uint64, reason string) error {
	if err := j.get(nil, &j.fail, nil); err != nil {
		return err
	}
	return j.Store.Fail(ctx, seqs, reason)
}

func (j *sickJournal) Begin(ctx context.Context, id string) error {
	if err := j.get(&j.begins, &j.begin, nil); err != nil {
		return err
	}
	return j.Store.Begin(ctx, id)
}

func (j *sickJournal) Settle(ctx context.Context, id string, o dispatch.Outcome) error {
	if err := j.get(&j.settles, &j.settle, nil); err != nil {
		return err
	}
	return j.Store.Settle(ctx, id, o)
}

// withSickJournal puts a journal that can fail around the world's store, as its session store too.
func withSickJournal(sick **sickJournal) func(*setup) {
	return func(s *setup) {
		*sick = &sickJournal{Store: s.world.store}
		s.Store, s.Journal = *sick, *sick
	}
}
