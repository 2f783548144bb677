package storetest

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"botd/channels/dispatch"
	"botd/sessionstore"
)

// Archiving is a store in which a clear can be undone.
type Archiving interface {
	sessionstore.Store
	sessionstore.Archiver
}

// Archiver checks the contract of sessionstore.Archiver. open makes an empty store that keeps archives
// for the given time.
func Archiver(t *testing.T, open func(t *testing.T, archiveFor time.Duration) Archiving) {
	const archiveFor = 24 * time.Hour
	for _, tt := range []struct {
		name string
		run  func(t *testing.T, s Archiving)
	}{
		{"ClearAndRestore", archiveRestore},
		{"SeveralArchives", archiveSeveral},
		{"RestoreBackAndForth", archiveBackAndForth},
		{"NothingToArchive", archiveNothing},
		{"NoSuchArchive", archiveUnknown},
		{"RestoreWins", archiveWins},
		{"TurnsComeBack", archiveTurns},
		{"Ends", archiveEnds},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := open(t, archiveFor)
				defer s.Close()
				tt.run(t, s)
			})
		})
	}
}

func wantArchives(t *testing.T, s Archiving, id sessionstore.ID, generations ...uint64) {
	t.Helper()
	archives, err := s.Archives(t.Context(), id)
	must(t, "Archives", err)
	var got []uint64
	for _, a := range archives {
		got = append(got, a.Generation)
	}
	if diff := cmp.Diff(generations, got); diff != "" {
		t.Fatalf("archives differ (-want +got):\n%s", diff)
	}
}

func archiveRestore(t *testing.T, s Archiving) {
	ses := session{t, s, "s"}
	ses.append("t1", hello, world)
	before := time.Now()
	ses.clear()
	archives, err := s.Archives(t.Context(), "s")
	must(t, "Archives", err)
	if len(archives) != 1 || archives[0].Generation != 0 || archives[0].Items != 2 ||
		archives[0].At.Before(before) || !archives[0].Until.Equal(archives[0].At.Add(24*time.Hour)) {
		t.Fatalf("archives after a clear = %+v", archives)
	}
	must(t, "Restore", s.Restore(t.Context(), "s", 0))
	ses.want(hello, world)
	if g := ses.generation(); g != 2 {
		t.Errorf("generation after clear and restore = %d, want 2", g)
	}
	wantArchives(t, s, "s")
	ses.append("t2", hello)
	ses.want(hello, world, hello)
	items := ses.items(sessionstore.All)
	if items[2].Seq <= items[1].Seq {
		t.Errorf("Seq %d follows %d after a restore", items[2].Seq, items[1].Seq)
	}
}

func archiveSeveral(t *testing.T, s Archiving) {
	ses := session{t, s, "s"}
	for n := range 4 {
		ses.append("t", numbered(n))
		ses.clear()
	}
	wantArchives(t, s, "s", 3, 2, 1, 0)
	must(t, "Restore", s.Restore(t.Context(), "s", 1))
	ses.want(numbered(1))
	wantArchives(t, s, "s", 3, 2, 0)
	wantArchives(t, s, "other")
}

func archiveBackAndForth(t *testing.T, s Archiving) {
	ses := session{t, s, "s"}
	ses.append("t1", hello)
	ses.clear()
	ses.append("t2", world)
	must(t, "Restore", s.Restore(t.Context(), "s", 0))
	ses.want(hello)
	wantArchives(t, s, "s", 1)
	must(t, "Restore", s.Restore(t.Context(), "s", 1))
	ses.want(world)
	wantArchives(t, s, "s", 2)
	must(t, "Restore", s.Restore(t.Context(), "s", 2))
	ses.want(hello)
	ses.append("t3", world)
	ses.clear()
	ses.wantEmpty()
	must(t, "Restore", s.Restore(t.Context(), "s", 4))
	ses.want(hello, world)
}

func archiveNothing(t *testing.T, s Archiving) {
	ses := session{t, s, "s"}
	ses.clear()
	ses.append("t1", hello)
	ses.pop()
	ses.clear()
	wantArchives(t, s, "s")
}

func archiveUnknown(t *testing.T, s Archiving) {
	ctx := t.Context()
	ses := session{t, s, "s"}
	wantErr(t, "Restore of a session never written", s.Restore(ctx, "s", 0), sessionstore.ErrNoArchive)
	ses.append("t1", hello)
	wantErr(t, "Restore of the present generation", s.Restore(ctx, "s", 0), sessionstore.ErrNoArchive)
	ses.clear()
	wantErr(t, "Restore of a generation to come", s.Restore(ctx, "s", 1), sessionstore.ErrNoArchive)
	must(t, "Restore", s.Restore(ctx, "s", 0))
	wantErr(t, "Restore a second time", s.Restore(ctx, "s", 0), sessionstore.ErrNoArchive)
	_, err := s.Archives(ctx, "")
	wantErr(t, "Archives of no ID", err, sessionstore.ErrInvalidID)
	wantErr(t, "Restore of no ID", s.Restore(ctx, "", 0), sessionstore.ErrInvalidID)
	ses.want(hello)
}

// archiveWins checks that a run begun before a restore is refused.
func archiveWins(t *testing.T, s Archiving) {
	ses := session{t, s, "s"}
	ses.append("t1", hello)
	ses.clear()
	began := ses.generation()
	must(t, "Restore", s.Restore(t.Context(), "s", 0))
	wantErr(t, "Append of a turn begun before the restore", s.Append(t.Context(), "s", batch("t2", began, world)), sessionstore.ErrStale)
	wantErr(t, "Append of a turn begun before the clear", s.Append(t.Context(), "s", batch("t2", 0, world)), sessionstore.ErrStale)
	ses.want(hello)
}

func archiveTurns(t *testing.T, s Archiving) {
	ses := session{t, s, "s"}
	var want []string
	for n := range 40 {
		want = append(want, numbered(n))
		ses.append(fmt.Sprint("t", n), numbered(n))
	}
	ses.clear()
	ses.append("t0", world)
	ses.want(world)
	must(t, "Restore", s.Restore(t.Context(), "s", 0))
	for n := range 40 {
		ses.append(fmt.Sprint("t", n), world)
	}
	ses.want(want...)
}

func archiveEnds(t *testing.T, s Archiving) {
	ses := session{t, s, "s"}
	ses.append("t1", hello)
	ses.clear()
	time.Sleep(24*time.Hour - 1)
	wantArchives(t, s, "s", 0)
	time.Sleep(1)
	wantArchives(t, s, "s")
	wantErr(t, "Restore of an archive that was kept long enough", s.Restore(t.Context(), "s", 0), sessionstore.ErrNoArchive)
	ses.wantEmpty()
}

// Erasing is a store with a journal in which a session can be made really gone.
type Erasing interface {
	Both
	sessionstore.Lister
	sessionstore.Eraser
	sessionstore.Archiver
}

// Eraser checks the contract of sessionstore.Eraser, but for the bytes in the files.
func Eraser(t *testing.T, open func(t *testing.T) Erasing) {
	for _, tt := range []struct {
		name string
		run  func(t *testing.T, s Erasing)
	}{
		{"AllIsGone", eraseAll},
		{"OthersStay", eraseOthersStay},
		{"LateWritesAreRefused", eraseLate},
		{"NothingToErase", eraseNothing},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			defer s.Close()
			tt.run(t, s)
		})
	}
}

// live gives a session something of every kind that a store keeps.
func live(t *testing.T, s Both, id sessionstore.ID, name string) {
	t.Helper()
	ses := session{t, s, id}
	ses.append(name+"-1", user("before "+name))
	ses.clear()
	ses.append(name+"-2", user("now "+name))
	var events []dispatch.Routed
	for n := range 3 {
		r := routed(fmt.Sprint(name, "-", n))
		r.Session = id
		events = append(events, r)
	}
	entries, err := s.Put(t.Context(), events)
	must(t, "Put", err)
	r := turn(name+"-3", entries[0])
	r.Session, r.Generation, r.Items, r.Dead = id, 1, nil, "dead letter"
	r.Replies = nil
	for _, state := range []string{"waiting", "held", "unknown", "dead"} {
		r.Replies = append(r.Replies, reply(name+"/"+state))
	}
	commit(t, s, r)
	settle(t, s, name+"/held", dispatch.Outcome{State: dispatch.Held, Reason: "quota"})
	settle(t, s, name+"/unknown", dispatch.Outcome{State: dispatch.Unknown, Reason: "lost"})
	settle(t, s, name+"/dead", dispatch.Outcome{State: dispatch.Dead, Reason: "blocked"})
}

func eraseAll(t *testing.T, s Erasing) {
	live(t, s, "s", "x")
	wantStats(t, s, dispatch.Stats{Pending: 2, Waiting: 1, Held: 1, Unknown: 1, Dead: 1, DeadEvents: 1})
	must(t, "Erase", s.Erase(t.Context(), "s"))
	wantStats(t, s, dispatch.Stats{})
	wantPending(t, s)
	wantDue(t, s, farFuture)
	session{t, s, "s"}.wantEmpty()
	if ids := list(t, s, "", 10); len(ids) != 0 {
		t.Errorf("sessions after Erase = %q, want none", ids)
	}
	wantArchives(t, s, "s")
	wantErr(t, "Settle of what was erased", s.Settle(t.Context(), "x/waiting", dispatch.Outcome{State: dispatch.Delivered}), dispatch.ErrNotFound)
}

func eraseOthersStay(t *testing.T, s Erasing) {
	live(t, s, "s", "x")
	live(t, s, "s2", "y")
	must(t, "Erase", s.Erase(t.Context(), "s"))
	wantStats(t, s, dispatch.Stats{Pending: 2, Waiting: 1, Held: 1, Unknown: 1, Dead: 1, DeadEvents: 1})
	wantPending(t, s, "y-1", "y-2")
	wantDue(t, s, farFuture, "y/waiting")
	session{t, s, "s2"}.want(user("now y"))
	wantArchives(t, s, "s2", 0)
}

func eraseLate(t *testing.T, s Erasing) {
	ctx := t.Context()
	ses := session{t, s, "s"}
	entries := put(t, s, "e1")
	session{t, s, journalSession}.append("t0", hello)
	ses.append("t1", hello)
	ses.clear()
	began := ses.generation()
	must(t, "Erase", s.Erase(ctx, "s"))
	must(t, "Erase", s.Erase(ctx, journalSession))
	wantErr(t, "Append of a run begun before the erasure", s.Append(ctx, "s", batch("t2", began, world)), sessionstore.ErrStale)
	wantErr(t, "Commit of a run begun before the erasure", s.Commit(ctx, turn("t2", entries...)), sessionstore.ErrStale)
	if g := ses.generation(); g <= began {
		t.Errorf("generation after Erase = %d, want more than %d", g, began)
	}
	ses.append("t3", world)
	ses.want(world)
	must(t, "Erase", s.Erase(ctx, "s"))
	wantErr(t, "Append of a run begun before the second erasure", s.Append(ctx, "s", batch("t4", began+1, world)), sessionstore.ErrStale)
}

func eraseNothing(t *testing.T, s Erasing) {
	must(t, "Erase of what never was", s.Erase(t.Context(), "s"))
	must(t, "Erase of what never was", s.Erase(t.Context(), "s"))
	session{t, s, "s"}.append("t1", hello)
	session{t, s, "s"}.want(hello)
	wantErr(t, "Erase of no ID", s.Erase(t.Context(), ""), sessionstore.ErrInvalidID)
}

// Rewriting is a store that can show a session in another form, and fork it.
type Rewriting interface {
	sessionstore.Store
	sessionstore.Archiver
	sessionstore.Rewriter
	sessionstore.Forker
}

// Rewriter checks the contracts of sessionstore.Rewriter and of sessionstore.Forker.
func Rewriter(t *testing.T, open func(t *testing.T) Rewriting) {
	for _, tt := range []struct {
		name string
		run  func(t *testing.T, s Rewriting)
	}{
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
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			defer s.Close()
			tt.run(t, s)
		})
	}
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
	var got []string
	var after uint64
	for {
		items, err := s.History(t.Context(), "s", after, 10)
		must(t, "History", err)
		if len(items) == 0 {
			break
		}
		got = append(got, rawsOf(items)...)
		after = items[len(items)-1].Seq
	}
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
