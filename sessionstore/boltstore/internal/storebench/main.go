// Command storebench measures boltstore against the disk that it runs on.
//
//	go run ./sessionstore/boltstore/internal/storebench -dir /var/lib/botd/bench
//
// The unit is C: the time of a commit of bbolt's shape (four scattered pages and a flush, one page and a
// flush) made by plain system calls on the same disk. C is measured beside each figure, so that the
// ratios say what the store adds, whatever the disk and however busy it is.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

func main() {
	dir := flag.String("dir", "", "folder on the disk to measure (default: a temporary one)")
	sessions := flag.Int("sessions", 100_000, "sessions of the large file")
	only := flag.String("only", "", "run one group: lone, busy, read, grow, erase, open, work")
	flag.Parse()
	if err := run(*dir, *only, *sessions); err != nil {
		fmt.Fprintln(os.Stderr, "storebench:", err)
		os.Exit(1)
	}
}

func run(dir, only string, sessions int) (err error) {
	tmp, err := os.MkdirTemp(dir, "storebench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(tmp)) }()
	floor, err := newFloor(filepath.Join(tmp, "floor"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, floor.Close()) }()
	b := &bench{dir: tmp, floor: floor, sessions: sessions}
	fmt.Printf("%-46s %12s %9s %10s %8s\n", "figure", "measured", "C", "ratio", "goal")
	for _, group := range []struct {
		name string
		run  func() error
	}{
		{"lone", b.lone}, {"busy", b.busy}, {"read", b.read}, {"grow", b.grow}, {"erase", b.erase}, {"open", b.open}, {"work", b.work},
	} {
		if only != "" && only != group.name {
			continue
		}
		if err := group.run(); err != nil {
			return fmt.Errorf("%s: %w", group.name, err)
		}
	}
	return nil
}

// line prints one figure; a ratio or goal of "" has none.
func line(name, measured string, c time.Duration, ratio, goal string) {
	unit := ""
	if c > 0 {
		unit = c.Round(time.Microsecond).String()
	}
	fmt.Printf("%-46s %12s %9s %10s %8s\n", name, measured, unit, ratio, goal)
}
