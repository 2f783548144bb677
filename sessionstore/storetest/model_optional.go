package storetest

import (
	"pgregory.net/rapid"

	"botd/sessionstore"
)

// both returns the model and the store as T, when both are.
func both[T any](m *machine) (model, store T, ok bool) {
	model, ok1 := any(m.model).(T)
	store, ok2 := any(m.store).(T)
	return model, store, ok1 && ok2
}

// optional returns the actions of the optional interfaces.
func (m *machine) optional() map[string]func(*rapid.T) {
	actions := map[string]func(*rapid.T){}
	if _, _, ok := both[sessionstore.Archiver](m); ok {
		actions["restore"] = m.restore
	}
	if _, _, ok := both[sessionstore.Eraser](m); ok {
		actions["erase"] = m.erase
	}
	if _, _, ok := both[sessionstore.Rewriter](m); ok {
		actions["rewrite"] = m.rewrite
	}
	if _, _, ok := both[sessionstore.Forker](m); ok {
		actions["fork"] = m.fork
	}
	return actions
}

func (m *machine) restore(r *rapid.T) {
	model, store, _ := both[sessionstore.Archiver](m)
	id, generation := modelSessions.Draw(r, "session"), rapid.Uint64Range(0, 5).Draw(r, "generation")
	same(r, "Restore", model.Restore(m.ctx, id, generation), store.Restore(m.ctx, id, generation))
}

func (m *machine) erase(r *rapid.T) {
	model, store, _ := both[sessionstore.Eraser](m)
	if rapid.IntRange(0, 3).Draw(r, "really") > 0 {
		r.Skip("seldom")
	}
	id := modelSessions.Draw(r, "session")
	same(r, "Erase", model.Erase(m.ctx, id), store.Erase(m.ctx, id))
}

func (m *machine) rewrite(r *rapid.T) {
	model, store, _ := both[sessionstore.Rewriter](m)
	id := modelSessions.Draw(r, "session")
	revision, err := model.Revision(m.ctx, id)
	if err != nil {
		r.Fatalf("Revision = %v", err)
	}
	rw := sessionstore.Rewrite{
		Revision: revision + rapid.SampledFrom([]uint64{0, 0, 0, 1}).Draw(r, "off"),
		Through:  rapid.Uint64Range(0, 8).Draw(r, "through"),
		Items:    itemsOf(modelRaws.Draw(r, "items")...),
	}
	same(r, "Rewrite", model.Rewrite(m.ctx, id, rw), store.Rewrite(m.ctx, id, rw))
}

func (m *machine) fork(r *rapid.T) {
	model, store, _ := both[sessionstore.Forker](m)
	from, to, through := modelSessions.Draw(r, "from"), modelSessions.Draw(r, "to"), rapid.Uint64Range(0, 8).Draw(r, "through")
	same(r, "Fork", model.Fork(m.ctx, from, to, through), store.Fork(m.ctx, from, to, through))
}

// compareOptional asks both for what the optional interfaces tell.
func (m *machine) compareOptional(r *rapid.T) {
	for _, id := range []sessionstore.ID{"a", "ab", "b", "日本"} {
		if model, store, ok := both[sessionstore.Archiver](m); ok {
			want, err1 := model.Archives(m.ctx, id)
			got, err2 := store.Archives(m.ctx, id)
			same(r, "Archives", err1, err2)
			sameValue(r, "Archives", want, got)
		}
		if model, store, ok := both[sessionstore.Rewriter](m); ok {
			want, err1 := model.History(m.ctx, id, 1, 5)
			got, err2 := store.History(m.ctx, id, 1, 5)
			same(r, "History", err1, err2)
			sameValue(r, "History", want, got)
			wantRevision, err1 := model.Revision(m.ctx, id)
			gotRevision, err2 := store.Revision(m.ctx, id)
			same(r, "Revision", err1, err2)
			sameValue(r, "Revision", wantRevision, gotRevision)
		}
	}
}
