package storetest

import (
	"fmt"
	"testing"

	"botd/sessionstore"
)

func emptyBatch(t *testing.T, s sessionstore.Store) {
	ses := session{t, s, "s"}
	ses.append("t1")
	ses.append("")
	ses.wantEmpty()
	ses.append("t1", hello)
	ses.want(hello)
}

func turnOnce(t *testing.T, s sessionstore.Store) {
	ses := session{t, s, "s"}
	ses.append("t1", hello)
	ses.append("t2", world)
	ses.append("t1", hello)
	ses.append("t1", world, world)
	ses.want(hello, world)
	ses.pop()
	ses.append("t2", world)
	ses.want(hello)
	ses.clear()
	ses.append("t1", world)
	ses.want(world)
}

func manyTurns(t *testing.T, s sessionstore.Store) {
	ses := session{t, s, "s"}
	var want []string
	for range 2 {
		want = want[:0]
		for n := range 60 {
			want = append(want, numbered(n))
			ses.append(fmt.Sprint("t", n), numbered(n))
		}
		ses.want(want...)
	}
	ses.clear()
	ses.append("t3", hello)
	ses.want(hello)
}

func turnsOfOthers(t *testing.T, s sessionstore.Store) {
	a, b := session{t, s, "a"}, session{t, s, "b"}
	a.append("t1", hello)
	b.append("t1", world)
	b.append("t11", hello)
	b.append("t", hello)
	a.want(hello)
	b.want(world, hello, hello)
}

func batchesWithoutTurn(t *testing.T, s sessionstore.Store) {
	ses := session{t, s, "s"}
	ses.append("", hello)
	ses.append("", hello)
	ses.want(hello, hello)
}

func clearForgets(t *testing.T, s sessionstore.Store) {
	ses := session{t, s, "s"}
	ses.append("t1", hello, world)
	ses.clear()
	ses.wantEmpty()
	ses.append("t2", world)
	ses.want(world)
}

func clearCounts(t *testing.T, s sessionstore.Store) {
	ses := session{t, s, "s"}
	for want := range uint64(3) {
		if got := ses.generation(); got != want {
			t.Fatalf("generation after %d clears = %d", want, got)
		}
		ses.clear()
	}
	ses.append("t1", hello)
	ses.pop()
	ses.clear()
	if got := ses.generation(); got != 4 {
		t.Errorf("generation after 4 clears = %d", got)
	}
}

func clearWins(t *testing.T, s sessionstore.Store) {
	ses := session{t, s, "s"}
	ses.append("t1", hello)
	began := ses.generation()
	ses.clear()
	wantErr(t, "Append of a turn that began before the clear",
		s.Append(t.Context(), ses.id, batch("t2", began, world)), sessionstore.ErrStale)
	wantErr(t, "Append of nothing from before the clear",
		s.Append(t.Context(), ses.id, batch("t2", began)), sessionstore.ErrStale)
	wantErr(t, "Append for a generation to come",
		s.Append(t.Context(), ses.id, batch("t2", began+2, world)), sessionstore.ErrStale)
	wantErr(t, "Append to a session never written, for a generation it has not",
		s.Append(t.Context(), "other", batch("t2", 1, world)), sessionstore.ErrStale)
	ses.wantEmpty()
}

func staleTurnAgain(t *testing.T, s sessionstore.Store) {
	ses := session{t, s, "s"}
	ses.append("t1", hello)
	ses.clear()
	wantErr(t, "Append of a turn that was written before the clear",
		s.Append(t.Context(), ses.id, batch("t1", 0, hello)), sessionstore.ErrStale)
	ses.wantEmpty()
}
