package dbtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"botd/sessionstore"
)

// mostPieces is more than any operation sends or gets.
const mostPieces = 40

// Resilience cuts the connection of a store at every place in every write, and takes its server away. s
// must be reached through p; unknown is the store's error for a write whose outcome it does not know.
func Resilience(t *testing.T, p *Proxy, s sessionstore.Store, unknown error) {
	for _, cut := range []struct {
		name string
		kind Cut
	}{{"LostRequests", Request}, {"LostAnswers", Answer}} {
		t.Run(cut.name, func(t *testing.T) {
			for _, op := range []struct {
				name string
				run  func(*testing.T, sessionstore.Store, sessionstore.ID, func() bool) error
			}{{"Turn", turnUnderCuts}, {"NoTurn", noTurnUnderCuts(unknown)}, {"Pop", popUnderCuts(unknown)}, {"Clear", clearUnderCuts(unknown)}} {
				t.Run(op.name, func(t *testing.T) {
					for n := range mostPieces {
						id := sessionstore.ID(fmt.Sprint(cut.name, op.name, n))
						Append(t, s, id, "before", `{"n":0}`, `{"n":1}`)
						p.Arm(cut.kind, n)
						if err := op.run(t, s, id, p.Disarm); errors.Is(err, errNoCut) {
							return // the operation has fewer pieces than that
						}
					}
					t.Errorf("an operation of more than %d pieces", mostPieces)
				})
			}
			t.Run("Items", func(t *testing.T) {
				Append(t, s, "read", "turn"+cut.name, `{}`)
				for n := range 3 {
					p.Arm(cut.kind, n)
					if got := Raws(t, s, "read", 1); len(got) != 1 {
						t.Errorf("got %q", got)
					}
					p.Disarm()
				}
			})
		})
	}
	t.Run("ServerGoneAndBack", func(t *testing.T) { serverGone(t, p, s) })
	t.Run("ContextEndsWhileServerIsGone", func(t *testing.T) { contextWhileGone(t, p, s) })
}

// errNoCut ends the loop over the places.
var errNoCut = errors.New("nothing was cut")

func cutHappened(cut bool) error {
	if !cut {
		return errNoCut
	}
	return nil
}

// notContexts fails when an error claims to be the end of a context that has not ended.
func notContexts(t *testing.T, err error) {
	t.Helper()
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v: claims that nothing was written", err)
	}
}

// turnUnderCuts appends a turn, again until it is acknowledged: it is there once.
func turnUnderCuts(t *testing.T, s sessionstore.Store, id sessionstore.ID, disarm func() bool) error {
	b := sessionstore.Batch{Turn: "turn", Items: Items(`{"n":2}`, `{"n":3}`)}
	err := s.Append(t.Context(), id, b)
	cut := disarm()
	for range 3 {
		if err == nil {
			break
		}
		notContexts(t, err)
		err = s.Append(t.Context(), id, b)
	}
	if err != nil {
		t.Errorf("%s: append again: %v", id, err)
	}
	wantOneOf(t, s, id, []string{`{"n":0}`, `{"n":1}`, `{"n":2}`, `{"n":3}`})
	return cutHappened(cut)
}

func noTurnUnderCuts(unknown error) func(*testing.T, sessionstore.Store, sessionstore.ID, func() bool) error {
	return func(t *testing.T, s sessionstore.Store, id sessionstore.ID, disarm func() bool) error {
		err := s.Append(t.Context(), id, sessionstore.Batch{Items: Items(`{"n":2}`, `{"n":3}`)})
		cut := disarm()
		before, after := []string{`{"n":0}`, `{"n":1}`}, []string{`{"n":0}`, `{"n":1}`, `{"n":2}`, `{"n":3}`}
		wantOutcome(t, s, id, err, unknown, before, after)
		return cutHappened(cut)
	}
}

func popUnderCuts(unknown error) func(*testing.T, sessionstore.Store, sessionstore.ID, func() bool) error {
	return func(t *testing.T, s sessionstore.Store, id sessionstore.ID, disarm func() bool) error {
		it, err := s.Pop(t.Context(), id)
		cut := disarm()
		if err == nil && string(it.Raw) != `{"n":1}` {
			t.Errorf("%s: popped %s", id, it.Raw)
		}
		wantOutcome(t, s, id, err, unknown, []string{`{"n":0}`, `{"n":1}`}, []string{`{"n":0}`})
		return cutHappened(cut)
	}
}

func clearUnderCuts(unknown error) func(*testing.T, sessionstore.Store, sessionstore.ID, func() bool) error {
	return func(t *testing.T, s sessionstore.Store, id sessionstore.ID, disarm func() bool) error {
		err := s.Clear(t.Context(), id)
		cut := disarm()
		wantOutcome(t, s, id, err, unknown, []string{`{"n":0}`, `{"n":1}`}, nil)
		g := Generation(t, s, id)
		if empty := len(Raws(t, s, id, 1)) == 0; empty != (g == 1) {
			t.Errorf("%s: generation %d, empty: %v", id, g, empty)
		}
		return cutHappened(cut)
	}
}

// wantOutcome checks a session after a write that returned err.
func wantOutcome(t *testing.T, s sessionstore.Store, id sessionstore.ID, err, unknown error, before, after []string) {
	t.Helper()
	switch {
	case err == nil:
		wantOneOf(t, s, id, after)
	case errors.Is(err, unknown):
		notContexts(t, err)
		wantOneOf(t, s, id, before, after)
	default:
		notContexts(t, err)
		wantOneOf(t, s, id, before)
	}
}

func wantOneOf(t *testing.T, s sessionstore.Store, id sessionstore.ID, wants ...[]string) {
	t.Helper()
	got := Raws(t, s, id, sessionstore.All)
	for _, want := range wants {
		if slices.Equal(got, want) {
			return
		}
	}
	t.Errorf("%s holds %q, want one of %q", id, got, wants)
}

// serverGone takes the server away for a while: errors come soon and say something, and afterwards
// everything works again.
func serverGone(t *testing.T, p *Proxy, s sessionstore.Store) {
	Append(t, s, "gone", "turn-1", `{"n":1}`)
	p.Down(true)
	began := time.Now()
	_, readErr := s.Items(t.Context(), "gone", 1)
	writeErr := s.Append(t.Context(), "gone", sessionstore.Batch{Turn: "turn-2", Items: Items(`{"n":2}`)})
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("it took %v to notice that the server is gone", took)
	}
	for _, err := range []error{readErr, writeErr} {
		if err == nil || strings.Contains(err.Error(), `{"n"`) {
			t.Errorf("with the server gone: %v", err)
		}
		notContexts(t, err)
	}
	p.Down(false)
	Append(t, s, "gone", "turn-2", `{"n":2}`)
	wantOneOf(t, s, "gone", []string{`{"n":1}`, `{"n":2}`})
}

func contextWhileGone(t *testing.T, p *Proxy, s sessionstore.Store) {
	p.Down(true)
	defer p.Down(false)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := s.Items(ctx, "gone", 1); err == nil {
		t.Error("read while the server is gone: no error")
	}
	<-ctx.Done()
	if _, err := s.Items(ctx, "gone", 1); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("read with an ended context: %v", err)
	}
}
