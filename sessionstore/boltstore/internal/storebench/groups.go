package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"golang.org/x/sys/unix"

	"botd/channels/dispatch"
	"botd/sessionstore"
	"botd/sessionstore/boltstore"
)

// beside measures f n times, each time beside a commit of the floor, and returns both medians.
func (b *bench) beside(n int, f func(i int) error) (p50, c time.Duration, err error) {
	took, floor := make([]time.Duration, n), make([]time.Duration, n)
	for i := range n {
		if floor[i], err = b.floor.commit(); err != nil {
			return 0, 0, err
		}
		began := time.Now()
		if err := f(i); err != nil {
			return 0, 0, err
		}
		took[i] = time.Since(began)
	}
	return percentile(took, 50), percentile(floor, 50), nil
}

// lone measures one caller at a time.
func (b *bench) lone() error {
	db, _, err := b.file()
	if err != nil {
		return err
	}
	defer db.Close()
	if err := b.fill(db, 1000, 10); err != nil {
		return err
	}
	p50, c, err := b.beside(2000, func(int) error { return b.append(db, random(1000)) })
	if err != nil {
		return err
	}
	line("append alone, p50", micros(p50), c, ratio(p50, c), "≤ 1.4 C")
	p50, c, err = b.beside(2000, func(i int) error {
		_, err := db.Put(ctx, []dispatch.Routed{event(random(1000), i)})
		return err
	})
	if err != nil {
		return err
	}
	line("accept alone, p50", micros(p50), c, ratio(p50, c), "≤ 1.4 C")
	p50, c, err = b.beside(1000, func(i int) error {
		_, err := b.message(db, random(1000), 1_000_000+i)
		return err
	})
	if err != nil {
		return err
	}
	line("whole message alone, p50 (3 commits)", micros(p50), c, ratio(p50, c), "")
	return nil
}

// rated runs n pieces of work by so many workers, in rounds between measurements of the floor, and returns
// the median rate with the median C.
func (b *bench) rated(rounds, n, workers int, f func(i int) error) (rate float64, c time.Duration, err error) {
	var rates, cs []time.Duration // as the time of one piece, to take the median of
	for r := range rounds {
		before, err := b.floor.c(200)
		if err != nil {
			return 0, 0, err
		}
		began := time.Now()
		if err := each(n, workers, func(i int) error { return f(r*n + i) }); err != nil {
			return 0, 0, err
		}
		rates = append(rates, time.Since(began)/time.Duration(n))
		after, err := b.floor.c(200)
		if err != nil {
			return 0, 0, err
		}
		cs = append(cs, (before+after)/2)
	}
	return 1 / percentile(rates, 50).Seconds(), percentile(cs, 50), nil
}

// busy measures many callers at once.
func (b *bench) busy() error {
	db, _, err := b.file()
	if err != nil {
		return err
	}
	defer db.Close()
	if err := b.fill(db, 1000, 10); err != nil {
		return err
	}
	for _, workers := range []int{8, 64} {
		rate, c, err := b.rated(5, 200*workers, workers, func(i int) error { return b.append(db, i%1000) })
		if err != nil {
			return err
		}
		goal := ""
		if workers == 64 {
			goal = "≥ 4 /C"
		}
		line(fmt.Sprintf("append, %d at once, turns/s", workers), fmt.Sprintf("%.0f/s", rate), c, fmt.Sprintf("%.2f /C", rate*c.Seconds()), goal)
	}
	const senders = 256
	accepts := make([]time.Duration, 5*8192)
	rate, c, err := b.rated(5, 8192, senders, func(i int) error {
		accepts[i], err = b.message(db, i%1000, 10_000_000+i)
		return err
	})
	if err != nil {
		return err
	}
	line("whole messages, 256 at once", fmt.Sprintf("%.0f/s", rate), c, fmt.Sprintf("%.2f /C", rate*c.Seconds()), "≥ 2.5 /C")
	line("  accept among them, p50", micros(percentile(accepts, 50)), 0, "", "")
	line("  accept among them, p99", micros(percentile(accepts, 99)), 0, "", "≤ 30 ms")
	accepts = accepts[:8192]
	if _, _, err = b.rated(1, len(accepts), senders, func(i int) error {
		began := time.Now()
		_, err := db.Put(ctx, []dispatch.Routed{event(i%1000, 20_000_000+i)})
		accepts[i] = time.Since(began)
		return err
	}); err != nil {
		return err
	}
	line("accept only, 256 at once, p99", micros(percentile(accepts, 99)), 0, "", "≤ 30 ms")
	return nil
}

// reads prints what reading the newest 40 items takes.
func (b *bench) reads(db *boltstore.DB, name string, pick func() int) error {
	took := make([]time.Duration, 20_000)
	for i := range took {
		id := sessionID(pick())
		began := time.Now()
		items, err := db.Items(ctx, id, 40)
		took[i] = time.Since(began)
		if err != nil || len(items) == 0 {
			return fmt.Errorf("read %s: %d items: %w", id, len(items), err)
		}
	}
	line(name+", p50", micros(percentile(took, 50)), 0, "", "≤ 30 µs")
	line(name+", p99", micros(percentile(took, 99)), 0, "", "≤ 300 µs")
	return nil
}

// read measures readers.
func (b *bench) read() error {
	db, _, err := b.file()
	if err != nil {
		return err
	}
	defer db.Close()
	if err := errors.Join(b.fillOne(db, 1_000_000, 100), b.fillOne(db, 1_000_001, 100_000), b.fillAtOnce(db, 1000, 20)); err != nil {
		return err
	}
	if err := b.reads(db, "newest 40 of 100", func() int { return 1_000_000 }); err != nil {
		return err
	}
	if err := b.reads(db, "newest 40 of 100,000", func() int { return 1_000_001 }); err != nil {
		return err
	}
	if err := b.reads(db, "newest 40 of 40, 1,000 sessions", func() int { return random(1000) }); err != nil {
		return err
	}
	large, _, err := b.file()
	if err != nil {
		return err
	}
	defer large.Close()
	if err := b.fillAtOnce(large, b.sessions, 20); err != nil {
		return err
	}
	return b.reads(large, fmt.Sprintf("newest 40 of 40, %d sessions", b.sessions), func() int { return random(b.sessions) })
}

// grow compares a long session with a short one.
func (b *bench) grow() error {
	db, _, err := b.file()
	if err != nil {
		return err
	}
	defer db.Close()
	if err := errors.Join(b.fill(db, 1000, 10), b.fillOne(db, 1_000_001, 100_000)); err != nil {
		return err
	}
	const n = 2000
	short, long := make([]time.Duration, n), make([]time.Duration, n)
	for i := range n {
		began := time.Now()
		if err := b.append(db, 2_000_000+i/5); err != nil {
			return err
		}
		short[i] = time.Since(began)
		began = time.Now()
		if err := b.append(db, 1_000_001); err != nil {
			return err
		}
		long[i] = time.Since(began)
	}
	s, l := percentile(short, 50), percentile(long, 50)
	line("append at up to 10 items, p50", micros(s), 0, "", "")
	line("append at 100,000 items, p50", micros(l), 0, fmt.Sprintf("%.2f ×", float64(l)/float64(s)), "≤ 1.1 ×")
	return nil
}

// erase compares commits before and after most of the file was deleted.
func (b *bench) erase() error {
	const sessions = 20_000
	db, _, err := b.file()
	if err != nil {
		return err
	}
	defer db.Close()
	if err := b.fillAtOnce(db, sessions, 10); err != nil {
		return err
	}
	before, c, err := b.beside(1000, func(int) error { return b.append(db, random(sessions/10)) })
	if err != nil {
		return err
	}
	line("append before erasing 90 %, p50", micros(before), c, ratio(before, c), "")
	if err := each(sessions*9/10, 64, func(i int) error { return db.Clear(ctx, sessionID(sessions/10+i)) }); err != nil {
		return err
	}
	if err := db.Tidy(ctx); err != nil {
		return err
	}
	after, c2, err := b.beside(1000, func(int) error { return b.append(db, random(sessions/10)) })
	if err != nil {
		return err
	}
	norm := (float64(after) / float64(c2)) / (float64(before) / float64(c))
	line("append after erasing 90 %, p50", micros(after), c2, fmt.Sprintf("%.2f ×", norm), "≤ 1 ×")
	return nil
}

// open measures opening a file that was closed, and one that was not.
func (b *bench) open() error {
	db, path, err := b.file()
	if err != nil {
		return err
	}
	if err := errors.Join(b.fillAtOnce(db, b.sessions, 10), db.Close()); err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	began := time.Now()
	if db, err = boltstore.Open(boltstore.Options{Path: path}); err != nil {
		return err
	}
	took := time.Since(began)
	size := fmt.Sprintf("%.2f GB", float64(info.Size())/(1<<30))
	line("open "+size+", closed before", micros(took), 0, "", "≤ 10 ms")
	// A copy of the file as it is while it is open is what a crash leaves.
	crashed := path + ".crashed"
	if err := db.Append(ctx, "s", sessionstore.Batch{Items: turnItems}); err != nil {
		return err
	}
	if out, err := exec.Command("cp", "--sparse=always", path, crashed).CombinedOutput(); err != nil {
		return fmt.Errorf("copy: %w: %s", err, out)
	}
	if err := db.Close(); err != nil {
		return err
	}
	cold := path + ".cold"
	if out, err := exec.Command("cp", "--sparse=always", crashed, cold).CombinedOutput(); err != nil {
		return fmt.Errorf("copy: %w: %s", err, out)
	}
	if err := errors.Join(openCrashed(crashed, "open "+size+", after a crash"), forget(cold)); err != nil {
		return err
	}
	return openCrashed(cold, "open "+size+", after a power cut")
}

// openCrashed opens a file that was not closed.
func openCrashed(path, name string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	began := time.Now()
	db, err := boltstore.Open(boltstore.Options{Path: path})
	if err != nil {
		return err
	}
	took := time.Since(began)
	line(name, took.Round(time.Millisecond).String(), 0,
		fmt.Sprintf("%.2f s/GB", took.Seconds()/(float64(info.Size())/(1<<30))), "≤ 1 s/GB")
	return db.Close()
}

// forget makes the system read a file from the disk when it is next used, as after a power cut.
func forget(path string) (err error) {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := f.Sync(); err != nil {
		return err
	}
	return unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)
}
