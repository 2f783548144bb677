package storetest

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

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
	if got := s.ArchiveTime(); got != 24*time.Hour {
		t.Errorf("ArchiveTime() = %v, want what the store was opened with", got)
	}
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
	time.Sleep(1 * time.Nanosecond)
	wantArchives(t, s, "s")
	wantErr(t, "Restore of an archive that was kept long enough", s.Restore(t.Context(), "s", 0), sessionstore.ErrNoArchive)
	ses.wantEmpty()
}
