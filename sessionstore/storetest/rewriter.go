package storetest

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"botd/sessionstore"
)

// Rewriting is a store that can show a session in another form, and fork it.
type Rewriting interface {
	sessionstore.Store
	sessionstore.Archiver
	sessionstore.Rewriter
	sessionstore.Forker
}

// Rewriter checks the contracts of sessionstore.Rewriter and of sessionstore.Forker.
func Rewriter(t *testing.T, open func(t *testing.T) Rewriting) {
	runAll(t, open, []check[Rewriting]{
		{"ShowsOtherItems", rewriteShows},
		{"KeepsLaterItems", rewriteKeepsLater},
		{"Again", rewriteAgain},
		{"RefusesAfterChanges", rewriteRefuses},
		{"RefusesWhatDoesNotFit", rewriteBounds},
		{"PopsWhatIsShown", rewritePop},
		{"ClearAndRestore", rewriteArchive},
		{"HistoryInPages", historyPages},
		{"Fork", fork},
		{"ForkOfRewritten", forkRewritten},
		{"ForkRefuses", forkRefuses},
		{"ForkOfMany", forkMany},
	})
}

// filled is a session with the items 1…n, each a turn of its own, Seqs 1…n.
func filled(t *testing.T, s sessionstore.Store, n int) (session, []string) {
	t.Helper()
	ses := session{t, s, "s"}
	var raws []string
	for i := 1; i <= n; i++ {
		raws = append(raws, numbered(i))
		ses.append(fmt.Sprint("t", i), numbered(i))
	}
	return ses, raws
}

func revision(t *testing.T, s sessionstore.Rewriter) uint64 {
	t.Helper()
	rev, err := s.Revision(t.Context(), "s")
	must(t, "Revision", err)
	return rev
}

func rewrite(t *testing.T, s sessionstore.Rewriter, through uint64, raws ...string) {
	t.Helper()
	must(t, "Rewrite", s.Rewrite(t.Context(), "s", sessionstore.Rewrite{Revision: revision(t, s), Through: through, Items: itemsOf(raws...)}))
}

func wantHistory(t *testing.T, s sessionstore.Rewriter, raws ...string) {
	t.Helper()
	items, err := s.History(t.Context(), "s", 0, sessionstore.All)
	must(t, "History", err)
	if diff := cmp.Diff(raws, rawsOf(items)); diff != "" {
		t.Fatalf("history differs (-want +got):\n%s", diff)
	}
}

const summary = `{"role":"developer","content":"summary"}`

func rewriteShows(t *testing.T, s Rewriting) {
	ses, raws := filled(t, s, 6)
	rewrite(t, s, 4, summary, world)
	ses.want(summary, world, numbered(5), numbered(6))
	if diff := cmp.Diff([]string{world, numbered(5), numbered(6)}, rawsOf(ses.items(3))); diff != "" {
		t.Errorf("the newest 3 differ (-want +got):\n%s", diff)
	}
	var last uint64
	for _, it := range ses.items(sessionstore.All) {
		if it.Seq <= last || it.At.IsZero() {
			t.Errorf("item %d, at %v, follows %d", it.Seq, it.At, last)
		}
		last = it.Seq
	}
	wantHistory(t, s, raws...)
}

func rewriteKeepsLater(t *testing.T, s Rewriting) {
	ses, raws := filled(t, s, 6)
	rev := revision(t, s)
	ses.append("late", hello)
	must(t, "Rewrite", s.Rewrite(t.Context(), "s", sessionstore.Rewrite{Revision: rev, Through: 6, Items: itemsOf(summary)}))
	ses.want(summary, hello)
	ses.append("later", world)
	ses.append("late", hello)
	ses.want(summary, hello, world)
	wantHistory(t, s, append(raws, hello, world)...)
}

func rewriteAgain(t *testing.T, s Rewriting) {
	ses, raws := filled(t, s, 6)
	rewrite(t, s, 3, summary)
	rewrite(t, s, 5, world, summary)
	ses.want(world, summary, numbered(6))
	rewrite(t, s, 5)
	ses.want(numbered(6))
	rewrite(t, s, 6)
	ses.wantEmpty()
	wantHistory(t, s, raws...)
	ses.append("new", hello)
	ses.want(hello)
}

func rewriteRefuses(t *testing.T, s Rewriting) {
	ses, _ := filled(t, s, 6)
	ctx := t.Context()
	for name, change := range map[string]func(){
		"pop":     func() { ses.pop() },
		"rewrite": func() { rewrite(t, s, 2, summary) },
		"clear":   func() { ses.clear(); ses.append("x", hello, hello, hello) },
	} {
		rev := revision(t, s)
		change()
		err := s.Rewrite(ctx, "s", sessionstore.Rewrite{Revision: rev, Through: 3, Items: itemsOf(summary)})
		wantErr(t, "Rewrite after a "+name, err, sessionstore.ErrChanged)
	}
	err := s.Rewrite(ctx, "other", sessionstore.Rewrite{Through: 1})
	wantErr(t, "Rewrite of a session never written", err, sessionstore.ErrChanged)
	wantErr(t, "Rewrite of no ID", s.Rewrite(ctx, "", sessionstore.Rewrite{}), sessionstore.ErrInvalidID)
}

func rewriteBounds(t *testing.T, s Rewriting) {
	ses, raws := filled(t, s, 3)
	rev := revision(t, s)
	for name, r := range map[string]sessionstore.Rewrite{
		"through nothing":          {Through: 0},
		"through what is to come":  {Through: 4},
		"more items than replaced": {Through: 1, Items: itemsOf(hello, world)},
		"what is no item":          {Through: 1, Items: itemsOf(`[]`)},
	} {
		r.Revision = rev
		if s.Rewrite(t.Context(), "s", r) == nil {
			t.Errorf("Rewrite %s = nil, want an error", name)
		}
	}
	ses.want(raws...)
	rewrite(t, s, 3, summary, world)
	if s.Rewrite(t.Context(), "s", sessionstore.Rewrite{Revision: revision(t, s), Through: 2}) == nil {
		t.Error("Rewrite within a rewrite = nil, want an error")
	}
	ses.want(summary, world)
}

func rewritePop(t *testing.T, s Rewriting) {
	ses, _ := filled(t, s, 4)
	rewrite(t, s, 3, summary, world)
	for _, want := range []string{numbered(4), world, summary} {
		if got := string(ses.pop().Raw); got != want {
			t.Errorf("Pop = %s, want %s", got, want)
		}
	}
	ses.wantEmpty()
	wantHistory(t, s, numbered(1), numbered(2), numbered(3))
}

func rewriteArchive(t *testing.T, s Rewriting) {
	ses, raws := filled(t, s, 4)
	rewrite(t, s, 3, summary)
	ses.clear()
	wantHistory(t, s)
	ses.append("new", hello)
	must(t, "Restore", s.Restore(t.Context(), "s", 0))
	ses.want(summary, numbered(4))
	wantHistory(t, s, raws...)
}

func historyPages(t *testing.T, s Rewriting) {
	_, raws := filled(t, s, 25)
	got := rawsOf(pages(t, "History", 10, func(it sessionstore.Item) uint64 { return it.Seq },
		func(ctx context.Context, after uint64, limit int) ([]sessionstore.Item, error) {
			return s.History(ctx, "s", after, limit)
		}))
	if diff := cmp.Diff(raws, got); diff != "" {
		t.Errorf("history in pages differs (-want +got):\n%s", diff)
	}
	for _, limit := range []int{0, -1} {
		if items, err := s.History(t.Context(), "s", 0, limit); err != nil || len(items) != 0 {
			t.Errorf("History with limit %d = %d items, %v, want none", limit, len(items), err)
		}
	}
}

func fork(t *testing.T, s Rewriting) {
	ses, raws := filled(t, s, 6)
	must(t, "Fork", s.Fork(t.Context(), "s", "f", 4))
	f := session{t, s, "f"}
	f.want(raws[:4]...)
	if diff := cmp.Diff(ses.items(sessionstore.All)[:4], f.items(sessionstore.All)); diff != "" {
		t.Errorf("items of the fork differ from their originals (-want +got):\n%s", diff)
	}
	if g := f.generation(); g != 1 {
		t.Errorf("generation of the fork = %d, want 1", g)
	}
	f.append("new", hello)
	f.want(append(raws[:4:4], hello)...)
	if got := f.items(1)[0].Seq; got <= 4 {
		t.Errorf("Seq after the fork = %d, want more than 4", got)
	}
	ses.append("own", world)
	ses.want(append(raws, world)...)
	ses.clear()
	f.want(append(raws[:4:4], hello)...)
}

func forkRewritten(t *testing.T, s Rewriting) {
	_, raws := filled(t, s, 6)
	rewrite(t, s, 4, summary)
	must(t, "Fork", s.Fork(t.Context(), "s", "f1", 5))
	session{t, s, "f1"}.want(summary, numbered(5))
	must(t, "Fork", s.Fork(t.Context(), "s", "f2", 3))
	session{t, s, "f2"}.want(raws[:3]...)
}

func forkRefuses(t *testing.T, s Rewriting) {
	ctx := t.Context()
	filled(t, s, 2)
	other := session{t, s, "other"}
	other.append("t", hello)
	wantErr(t, "Fork into a session with items", s.Fork(ctx, "s", "other", 1), sessionstore.ErrNotEmpty)
	wantErr(t, "Fork into itself", s.Fork(ctx, "s", "s", 1), sessionstore.ErrNotEmpty)
	wantErr(t, "Fork of no ID", s.Fork(ctx, "", "f", 1), sessionstore.ErrInvalidID)
	wantErr(t, "Fork into no ID", s.Fork(ctx, "s", "", 1), sessionstore.ErrInvalidID)
	other.want(hello)
	other.clear()
	must(t, "Fork into a cleared session", s.Fork(ctx, "s", "other", 1))
	other.want(numbered(1))
	wantErr(t, "Append of a run begun before the fork", s.Append(ctx, "other", batch("t2", 1, hello)), sessionstore.ErrStale)
}

func forkMany(t *testing.T, s Rewriting) {
	ses := session{t, s, "s"}
	var raws []string
	for i := range 1500 {
		raws = append(raws, numbered(i))
	}
	ses.append("t", raws...)
	must(t, "Fork", s.Fork(t.Context(), "s", "f", 1<<60))
	session{t, s, "f"}.want(raws...)
}
