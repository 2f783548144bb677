package main

import (
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"botd/sessionstore"
	"botd/sessionstore/sqlstore"
)

// The reference workload: so many sessions in turn, each turn reads the newest items and appends two.
const (
	workSessions = 1000
	workTurns    = 20
	workWindow   = 40
	workRounds   = 10
)

// contestant is one store with so many callers.
type contestant struct {
	name  string
	turns func(first, n int) (time.Duration, error)
	took  []time.Duration // of each round
}

// work runs the reference workload on all contestants in rounds, one after the other, so that what else
// the machine does hits all alike.
func (b *bench) work() (err error) {
	contestants, closers, err := b.contestants()
	defer func() {
		for _, c := range closers {
			err = errors.Join(err, c.Close())
		}
	}()
	if err != nil {
		return err
	}
	const n = workSessions * workTurns / workRounds
	var cs []time.Duration
	for round := range workRounds {
		c, err := b.floor.c(200)
		if err != nil {
			return err
		}
		cs = append(cs, c)
		for _, c := range contestants {
			took, err := c.turns(round*n, n)
			if err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			c.took = append(c.took, took)
		}
	}
	printWork(contestants, n, percentile(cs, 50))
	return nil
}

// printWork prints the rate of each contestant, and how boltstore's compares round by round.
func printWork(contestants []*contestant, n int, c time.Duration) {
	for _, x := range contestants {
		rate := perSecond(n, percentile(slices.Clone(x.took), 50))
		line("work, "+x.name, fmt.Sprintf("%.0f/s", rate), c, fmt.Sprintf("%.2f /C", rate*c.Seconds()), "")
	}
	// The first two are boltstore's; others follow in pairs of the same numbers of callers.
	for i, x := range contestants[2:] {
		bolt := contestants[i%2]
		ratios := make([]float64, len(x.took))
		for r := range ratios {
			ratios[r] = float64(x.took[r]) / float64(bolt.took[r])
		}
		slices.Sort(ratios)
		goal := []string{"≥ 0.9 ×", "≥ 4 ×", "≥ 2 ×", "≥ 20 ×"}[i]
		line(fmt.Sprintf("  %s to %s", bolt.name, x.name), fmt.Sprintf("%.2f–%.2f", ratios[0], ratios[len(ratios)-1]), 0,
			fmt.Sprintf("%.2f ×", ratios[len(ratios)/2]), goal)
	}
}

// contestants opens every store twice, for one caller and for 64. What it opened is to be closed even
// when it fails.
func (b *bench) contestants() (list []*contestant, closers []io.Closer, err error) {
	callers := []int{1, 64}
	add := func(name string, callers int, s sessionstore.Store) {
		closers = append(closers, s)
		list = append(list, &contestant{name: fmt.Sprintf("%s, %d", name, callers), turns: func(first, n int) (time.Duration, error) {
			began := time.Now()
			err := each(n, callers, func(i int) error { return b.turn(s, first+i) })
			return time.Since(began), err
		}})
	}
	for _, callers := range callers {
		db, _, err := b.file()
		if err != nil {
			return list, closers, err
		}
		add("boltstore", callers, db)
	}
	for _, callers := range callers {
		file := filepath.Join(b.dir, fmt.Sprintf("work-%d.sqlite", callers))
		s, err := sqlstore.Open(ctx, sqlstore.Options{URL: "sqlite:///" + file + "?synchronous=full"})
		if err != nil {
			return list, closers, err
		}
		add("SQLite in Go", callers, s)
	}
	interpreter, err := exec.LookPath("python3")
	if err != nil {
		fmt.Println("work: no comparison with Python, python3 is not installed")
		return list, closers, nil
	}
	for _, callers := range callers {
		p, err := startPython(interpreter, filepath.Join(b.dir, fmt.Sprintf("work-%d.python", callers)), callers)
		if err != nil {
			return list, closers, err
		}
		closers = append(closers, p)
		list = append(list, &contestant{name: fmt.Sprintf("SQLite in Python, %d", callers), turns: p.turns})
	}
	return list, closers, nil
}

// turn reads the newest items and appends two, as the nth piece of the workload.
func (b *bench) turn(s sessionstore.Store, n int) error {
	id := sessionID(n % workSessions)
	items, err := s.Items(ctx, id, workWindow)
	if err != nil {
		return err
	}
	if want := min(workWindow, n/workSessions*len(turnItems)); len(items) != want {
		return fmt.Errorf("turn %d read %d items, want %d", n, len(items), want)
	}
	return s.Append(ctx, id, sessionstore.Batch{Turn: b.turnID(), Items: turnItems})
}
