package storetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"botd/agent"
	"botd/channels/dispatch"
	"botd/sessionstore"
)

// Modelled is what Model compares.
type Modelled interface {
	Both
	sessionstore.Lister
	Usage(ctx context.Context, id sessionstore.ID) (agent.Usage, error)
}

// Model does the same random things to a store and to a model of it, and compares all that they tell. What
// both implement of the optional interfaces takes part.
// reopen, which may be nil, closes the store and opens it again. discard is called at the end of each
// round with the store.
func Model(t *testing.T, model func() Modelled, open func() Modelled, reopen func(Modelled) Modelled, discard func(Modelled)) {
	rapid.Check(t, func(r *rapid.T) {
		m := &machine{model: model(), store: open(), ctx: t.Context()}
		defer func() { discard(m.store) }()
		actions := map[string]func(*rapid.T){
			"append": m.append, "pop": m.pop, "clear": m.clear, "put": m.put, "fail": m.fail,
			"commit": m.commit, "begin": m.begin, "settle": m.settle, "": m.compare,
		}
		maps.Copy(actions, m.optional())
		if reopen != nil {
			actions["reopen"] = func(*rapid.T) { m.store = reopen(m.store) }
		}
		r.Repeat(actions)
	})
}

// machine is the state of one round. The names it draws are few, so that they meet again.
type machine struct {
	ctx          context.Context
	model, store Modelled
	// deliveries are the IDs ever committed.
	deliveries []string
	turns      int
}

var (
	modelSessions = rapid.SampledFrom([]sessionstore.ID{"a", "ab", "b", "日本"})
	modelTurns    = rapid.OneOf(rapid.SampledFrom([]string{"", "t1", "t2", "t3", "t33", "t4"}), rapid.StringMatching(`u[0-9]{1,2}`))
	modelEvents   = rapid.SampledFrom([]string{"e1", "e2", "e3", "e4", "e5", "e6", "e7", "e8", "e9"})
	modelRaws     = rapid.SliceOfN(rapid.SampledFrom([]string{hello, world, `{}`, `{"n":9007199254740993}`, ` {"s":"\u00e9 é"} `}), 0, 4)
	modelSeqs     = rapid.SliceOfNDistinct(rapid.Uint64Range(1, 12), 0, 3, rapid.ID[uint64])
)

// same fails when the store and the model differ in whether, or how, they refuse.
func same(r *rapid.T, call string, model, store error) {
	r.Helper()
	for _, target := range []error{
		sessionstore.ErrStale, sessionstore.ErrEmpty, sessionstore.ErrInvalidID, sessionstore.ErrInvalidItem,
		sessionstore.ErrNoArchive, sessionstore.ErrChanged, sessionstore.ErrNotEmpty,
		dispatch.ErrConsumed, dispatch.ErrNotFound,
	} {
		if errors.Is(model, target) != errors.Is(store, target) {
			r.Fatalf("%s: model gives %v, store gives %v", call, model, store)
		}
	}
	if (model == nil) != (store == nil) {
		r.Fatalf("%s: model gives %v, store gives %v", call, model, store)
	}
}

// sameValue fails when what they tell differs in more than the time of the day.
func sameValue[T any](r *rapid.T, call string, model, store T) {
	r.Helper()
	timeless(&model)
	timeless(&store)
	if reflect.DeepEqual(model, store) {
		return
	}
	if diff := cmp.Diff(model, store, cmpopts.EquateEmpty()); diff != "" {
		r.Fatalf("%s differs (-model +store):\n%s", call, diff)
	}
}

// timeless takes away what depends on when the call was made.
func timeless(v any) {
	switch v := v.(type) {
	case *[]sessionstore.Item:
		for i := range *v {
			(*v)[i].At = time.Time{}
		}
	case *[]sessionstore.Archive:
		for i := range *v {
			(*v)[i].At, (*v)[i].Until = time.Time{}, time.Time{}
		}
	case *sessionstore.Item:
		v.At = time.Time{}
	case *[]sessionstore.Info:
		for i := range *v {
			(*v)[i].Created, (*v)[i].Updated = time.Time{}, time.Time{}
		}
	case *[]dispatch.Entry:
		for i := range *v {
			(*v)[i].Received = time.Time{}
		}
	case *[]dispatch.Delivery:
		for i := range *v {
			(*v)[i].Created = time.Time{}
		}
	case *dispatch.Stats:
		v.Oldest = time.Time{}
	}
}

// generation draws the right generation mostly.
func (m *machine) generation(r *rapid.T, id sessionstore.ID) uint64 {
	g, err := m.model.Generation(m.ctx, id)
	if err != nil {
		r.Fatalf("Generation = %v", err)
	}
	return g + rapid.SampledFrom([]uint64{0, 0, 0, 0, 0, ^uint64(0), 1}).Draw(r, "off")
}

func (m *machine) append(r *rapid.T) {
	id := modelSessions.Draw(r, "session")
	b := batch(modelTurns.Draw(r, "turn"), m.generation(r, id), modelRaws.Draw(r, "items")...)
	for i := range b.Items {
		b.Items[i].Origin = rapid.SampledFrom([]string{"", "agent@openai/x", "agent@local/y"}).Draw(r, "origin")
	}
	same(r, "Append", m.model.Append(m.ctx, id, b), m.store.Append(m.ctx, id, b))
}

func (m *machine) pop(r *rapid.T) {
	id := modelSessions.Draw(r, "session")
	want, err1 := m.model.Pop(m.ctx, id)
	got, err2 := m.store.Pop(m.ctx, id)
	same(r, "Pop", err1, err2)
	sameValue(r, "Pop", want, got)
}

func (m *machine) clear(r *rapid.T) {
	id := modelSessions.Draw(r, "session")
	same(r, "Clear", m.model.Clear(m.ctx, id), m.store.Clear(m.ctx, id))
}

func (m *machine) put(r *rapid.T) {
	var events []dispatch.Routed
	for _, id := range rapid.SliceOfN(modelEvents, 0, 4).Draw(r, "events") {
		e := routed(id)
		e.Session = modelSessions.Draw(r, "session")
		events = append(events, e)
	}
	want, err1 := m.model.Put(m.ctx, events)
	got, err2 := m.store.Put(m.ctx, events)
	same(r, "Put", err1, err2)
	sameValue(r, "Put", want, got)
}

func (m *machine) fail(r *rapid.T) {
	seqs := modelSeqs.Draw(r, "entries")
	same(r, "Fail", m.model.Fail(m.ctx, seqs, "reason"), m.store.Fail(m.ctx, seqs, "reason"))
}

func (m *machine) commit(r *rapid.T) {
	id := modelSessions.Draw(r, "session")
	m.turns++
	res := dispatch.TurnResult{
		Session: id, Turn: modelTurns.Draw(r, "turn"), Generation: m.generation(r, id),
		Clear: rapid.SampledFrom([]bool{false, false, false, true}).Draw(r, "clear"),
		Items: itemsOf(modelRaws.Draw(r, "items")...),
		Dead:  rapid.SampledFrom([]string{"", "", "dead"}).Draw(r, "dead"),
	}
	if !res.Clear && rapid.IntRange(0, 3).Draw(r, "undoes") == 0 {
		res.Undo = m.newestTurn(r, id)
	}
	for _, e := range m.pending(r) {
		if len(res.Consumed) < 3 && rapid.Bool().Draw(r, "consume") {
			res.Consumed = append(res.Consumed, e)
		}
	}
	res.Consumed = append(res.Consumed, rapid.SampledFrom([][]uint64{nil, nil, nil, {1}, {2, 99}}).Draw(r, "bogus")...)
	for n := range rapid.IntRange(0, 3).Draw(r, "replies") {
		d := reply(fmt.Sprint(m.turns, "/", n))
		if len(m.deliveries) > 0 && rapid.IntRange(0, 9).Draw(r, "again") == 0 {
			d.Message.ID = rapid.SampledFrom(m.deliveries).Draw(r, "delivery")
		}
		d.NextAt = m.at(r)
		res.Replies = append(res.Replies, d)
	}
	if rapid.Bool().Draw(r, "usage") {
		res.Usage = agent.Usage{Requests: 1, InputTokens: 10, OutputTokens: 5, Estimated: rapid.Bool().Draw(r, "estimated")}
	}
	err := m.model.Commit(m.ctx, res)
	same(r, "Commit", err, m.store.Commit(m.ctx, res))
	if err == nil {
		for _, d := range res.Replies {
			if !slices.Contains(m.deliveries, d.Message.ID) {
				m.deliveries = append(m.deliveries, d.Message.ID)
			}
		}
	}
}

// newestTurn draws the turn of the newest item mostly, where it has one.
func (m *machine) newestTurn(r *rapid.T, id sessionstore.ID) string {
	items, err := m.model.Items(m.ctx, id, 1)
	if err != nil {
		r.Fatalf("Items = %v", err)
	}
	if len(items) == 0 || rapid.IntRange(0, 4).Draw(r, "another") == 0 {
		return modelTurns.Draw(r, "undone")
	}
	return items[0].Turn
}

func (m *machine) pending(r *rapid.T) (seqs []uint64) {
	for e, err := range m.model.Pending(m.ctx) {
		if err != nil {
			r.Fatalf("Pending = %v", err)
		}
		seqs = append(seqs, e.Seq)
	}
	return seqs
}

// at draws a time to be tried at.
func (m *machine) at(r *rapid.T) time.Time {
	return rapid.SampledFrom([]time.Time{{}, farFuture.Add(-time.Hour), farFuture, farFuture.Add(time.Hour)}).Draw(r, "next")
}

func (m *machine) delivery(r *rapid.T) string {
	return rapid.SampledFrom(append([]string{"none"}, m.deliveries...)).Draw(r, "delivery")
}

func (m *machine) begin(r *rapid.T) {
	id := m.delivery(r)
	same(r, "Begin", m.model.Begin(m.ctx, id), m.store.Begin(m.ctx, id))
}

func (m *machine) settle(r *rapid.T) {
	id := m.delivery(r)
	o := dispatch.Outcome{
		State: rapid.SampledFrom([]dispatch.State{
			dispatch.Waiting, dispatch.Waiting, dispatch.Delivered, dispatch.Held, dispatch.Unknown, dispatch.Dead, "nonsense",
		}).Draw(r, "state"),
		NextAt: m.at(r), Certain: rapid.Bool().Draw(r, "certain"), Reason: "reason",
	}
	same(r, "Settle", m.model.Settle(m.ctx, id, o), m.store.Settle(m.ctx, id, o))
}

// compare asks both for everything.
func (m *machine) compare(r *rapid.T) {
	for _, id := range []sessionstore.ID{"a", "ab", "b", "日本"} {
		for _, limit := range []int{sessionstore.All, 2, 0} {
			want, err1 := m.model.Items(m.ctx, id, limit)
			got, err2 := m.store.Items(m.ctx, id, limit)
			same(r, "Items", err1, err2)
			sameValue(r, fmt.Sprintf("Items(%q, %d)", id, limit), want, got)
		}
		want, err1 := m.model.Generation(m.ctx, id)
		got, err2 := m.store.Generation(m.ctx, id)
		same(r, "Generation", err1, err2)
		sameValue(r, "Generation", want, got)
		wantUsage, err1 := m.model.Usage(m.ctx, id)
		gotUsage, err2 := m.store.Usage(m.ctx, id)
		same(r, "Usage", err1, err2)
		sameValue(r, "Usage", wantUsage, gotUsage)
	}
	m.compareOptional(r)
	wantInfos, err1 := m.model.Sessions(m.ctx, "", "", sessionstore.All)
	gotInfos, err2 := m.store.Sessions(m.ctx, "", "", sessionstore.All)
	same(r, "Sessions", err1, err2)
	sameValue(r, "Sessions", wantInfos, gotInfos)
	sameValue(r, "Pending", collect(r, m.model.Pending(m.ctx)), collect(r, m.store.Pending(m.ctx)))
	for _, now := range []time.Time{time.Now(), farFuture} {
		sameValue(r, "Due", collect(r, m.model.Due(m.ctx, now)), collect(r, m.store.Due(m.ctx, now)))
	}
	wantStats, err1 := m.model.Stats(m.ctx)
	gotStats, err2 := m.store.Stats(m.ctx)
	same(r, "Stats", err1, err2)
	sameValue(r, "Stats", wantStats, gotStats)
	wantNext, err1 := m.model.Next(m.ctx)
	gotNext, err2 := m.store.Next(m.ctx)
	same(r, "Next", err1, err2)
	if now := time.Now(); wantNext.After(now) || gotNext.After(now) {
		sameValue(r, "Next", wantNext, gotNext)
	} else {
		sameValue(r, "whether Next is now", wantNext.IsZero(), gotNext.IsZero())
	}
}

func collect[T any](r *rapid.T, seq func(func(T, error) bool)) (list []T) {
	for v, err := range seq {
		if err != nil {
			r.Fatalf("iteration gives %v", err)
		}
		list = append(list, v)
	}
	return list
}
