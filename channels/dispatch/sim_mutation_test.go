package dispatch_test

import (
	"context"
	"fmt"
	"iter"
	"testing"
	"time"

	"botd/channels"
	"botd/channels/dispatch"
	"botd/sessionstore"
)

// mutationSeeds bounds the worlds in which a broken protocol has to be found out.
const mutationSeeds = 800

// TestSimulation_FindsBrokenProtocols proves that the simulator can fail: with each step of the protocol
// broken, some world ends with a broken promise.
func TestSimulation_FindsBrokenProtocols(t *testing.T) {
	t.Parallel()
	for name, broken := range map[string]breakage{
		"events are not deduplicated":         {journal: func(j simJournal) dispatch.Journal { return forgetful{simJournal: j, n: new(int)} }},
		"the inbox is not replayed":           {journal: func(j simJournal) dispatch.Journal { return amnesiac{j} }},
		"replies are committed by themselves": {journal: func(j simJournal) dispatch.Journal { return twoCommits{j} }},
		"items are committed by themselves":   {journal: func(j simJournal) dispatch.Journal { return itemsFirst{j} }},
		"events are consumed after all":       {journal: func(j simJournal) dispatch.Journal { return consumedLast{j} }},
		"the generation is not checked":       {journal: func(j simJournal) dispatch.Journal { return anyGeneration{j} }},
		"what was taken back is not known":    {journal: func(j simJournal) dispatch.Journal { return noTombstones{j} }},
		"a send without key is not noted":     {journal: func(j simJournal) dispatch.Journal { return noBegin{j} }},
		"uncertainty is always taken back":    {journal: func(j simJournal) dispatch.Journal { return alwaysCertain{j} }},
		"appends are not known by their turn": {store: func(s simStore) sessionstore.Store { return nameless{s} }},
		"appends ignore the generation":       {store: func(s simStore) sessionstore.Store { return anyGenerationStore{s} }},
		"ambiguous sends are tried again":     {adapter: func(a *simAdapter) channels.Adapter { return &optimist{a} }},
		"uncertain sends are sent":            {adapter: func(a *simAdapter) channels.Adapter { return &careless{a} }},
		"retries have keys of their own":      {adapter: func(a *simAdapter) channels.Adapter { return &keyless{simAdapter: a} }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(mutationSeeds) {
				if faults := simulate(t, seed, broken); len(faults) > 0 {
					t.Logf("found in world %d: %s", seed, faults[0])
					return
				}
			}
			t.Errorf("not found in %d worlds", mutationSeeds)
		})
	}
}

// forgetful takes every event for a new one.
type forgetful struct {
	simJournal
	n *int
}

func (j forgetful) Put(ctx context.Context, events []dispatch.Routed) ([]dispatch.Entry, error) {
	known := map[string]string{}
	renamed := make([]dispatch.Routed, len(events))
	for i, e := range events {
		j.world.mu.Lock()
		*j.n++
		name := fmt.Sprintf("%s#%d/%p", e.Event.ID, *j.n, j.n)
		j.world.mu.Unlock()
		known[name], renamed[i] = e.Event.ID, e
		renamed[i].Event.ID = name
	}
	fresh, err := j.simJournal.Put(ctx, renamed)
	j.world.mu.Lock()
	defer j.world.mu.Unlock()
	for _, e := range fresh {
		e.Event.ID = known[e.Event.ID]
		j.world.entries[e.Seq] = e
	}
	return fresh, err
}

// amnesiac keeps nothing for the next process.
type amnesiac struct{ simJournal }

func (amnesiac) Pending(context.Context) iter.Seq2[dispatch.Entry, error] {
	return func(func(dispatch.Entry, error) bool) {}
}

// twoCommits commits the replies after everything else.
type twoCommits struct{ simJournal }

func (j twoCommits) Commit(ctx context.Context, r dispatch.TurnResult) error {
	first, second := r, r
	first.Replies = nil
	second.Consumed, second.Items, second.Clear, second.Undo = nil, nil, false, ""
	if err := j.simJournal.Commit(ctx, first); err != nil {
		return err
	}
	second.Generation, _ = j.world.journal.Generation(ctx, r.Session)
	return j.simJournal.Commit(ctx, second)
}

// itemsFirst appends the items before everything else, each time anew.
type itemsFirst struct{ simJournal }

func (j itemsFirst) Commit(ctx context.Context, r dispatch.TurnResult) error {
	if len(r.Items) > 0 {
		if err := j.Append(ctx, r.Session, sessionstore.Batch{Generation: r.Generation, Items: r.Items}); err != nil {
			return err
		}
		r.Items = nil
	}
	time.Sleep(300 * time.Millisecond)
	return j.simJournal.Commit(ctx, r)
}

// consumedLast consumes the events after everything else.
type consumedLast struct{ simJournal }

func (j consumedLast) Commit(ctx context.Context, r dispatch.TurnResult) error {
	first, second := r, r
	first.Consumed = nil
	second.Replies, second.Items, second.Clear, second.Undo = nil, nil, false, ""
	if err := j.simJournal.Commit(ctx, first); err != nil {
		return err
	}
	second.Generation, _ = j.world.journal.Generation(ctx, r.Session)
	return j.simJournal.Commit(ctx, second)
}

// anyGeneration writes whatever has happened to the session meanwhile.
type anyGeneration struct{ simJournal }

func (j anyGeneration) Commit(ctx context.Context, r dispatch.TurnResult) error {
	if j.world.atomic {
		r.Generation, _ = j.world.journal.Generation(ctx, r.Session)
	}
	return j.simJournal.Commit(ctx, r)
}

// anyGenerationStore does so too.
type anyGenerationStore struct{ simStore }

func (s anyGenerationStore) Append(ctx context.Context, id sessionstore.ID, b sessionstore.Batch) error {
	b.Generation, _ = s.world.sessions.Generation(ctx, id)
	return s.simStore.Append(ctx, id, b)
}

// noTombstones tells of no event that it knows it.
type noTombstones struct{ simJournal }

func (noTombstones) Known(context.Context, string, string) (bool, error) { return false, nil }

// noBegin does not note the beginning of sends.
type noBegin struct{ simJournal }

func (noBegin) Begin(context.Context, string) error { return nil }

// alwaysCertain takes every failed attempt for surely not accepted, and every earlier one with it, and
// tries all of them again.
type alwaysCertain struct{ simJournal }

func (j alwaysCertain) Due(ctx context.Context, now time.Time) iter.Seq2[dispatch.Delivery, error] {
	return func(yield func(dispatch.Delivery, error) bool) {
		for d, err := range j.simJournal.Due(ctx, now) {
			d.Message.Uncertain = false
			if !yield(d, err) {
				return
			}
		}
	}
}

// nameless appends without saying for which turn.
type nameless struct{ simStore }

func (s nameless) Append(ctx context.Context, id sessionstore.ID, b sessionstore.Batch) error {
	b.Turn = ""
	return s.simStore.Append(ctx, id, b)
}

// optimist takes every failure for one that changes nothing.
type optimist struct{ *simAdapter }

func (a *optimist) Send(ctx context.Context, m channels.Outbound) (channels.Receipt, error) {
	r, err := a.simAdapter.Send(ctx, m)
	if err != nil && channels.KindOf(err) == channels.Ambiguous {
		err = sendError(channels.Transient)
	}
	return r, err
}

// careless sends without looking at Uncertain.
type careless struct{ *simAdapter }

func (a *careless) Send(ctx context.Context, m channels.Outbound) (channels.Receipt, error) {
	m.Uncertain = false
	return a.simAdapter.Send(ctx, m)
}

// keyless sends without the idempotency key.
type keyless struct{ *simAdapter }

func (a *keyless) Send(ctx context.Context, m channels.Outbound) (channels.Receipt, error) {
	m.Once, m.Uncertain = true, false
	r, err := a.simAdapter.Send(ctx, m)
	if err != nil && channels.KindOf(err) == channels.Ambiguous {
		err = sendError(channels.Transient)
	}
	return r, err
}
