package main

import (
	"errors"
	"os"
	"slices"
	"syscall"
	"time"
)

// floor makes commits of bbolt's shape by plain system calls.
type floor struct {
	f    *os.File
	page []byte
	n    int
}

const (
	floorPages = 8000
	pageSize   = 4096
)

// newFloor makes a file of real blocks, so that later writes only overwrite.
func newFloor(path string) (*floor, error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	page := make([]byte, pageSize)
	for i := range page {
		page[i] = byte(i*7 + 1)
	}
	for i := range floorPages {
		if _, err := f.WriteAt(page, int64(i)*pageSize); err != nil {
			return nil, errors.Join(err, f.Close())
		}
	}
	return &floor{f: f, page: page}, f.Sync()
}

// commit makes one commit and returns what it took.
func (fl *floor) commit() (time.Duration, error) {
	began := time.Now()
	fl.n++
	var errs [4]error
	for j := range errs {
		_, errs[j] = fl.f.WriteAt(fl.page, int64(2+(fl.n*7+j*1999)%(floorPages-2))*pageSize)
	}
	err1 := syscall.Fdatasync(int(fl.f.Fd()))
	_, err2 := fl.f.WriteAt(fl.page, int64(fl.n%2)*pageSize)
	err3 := syscall.Fdatasync(int(fl.f.Fd()))
	return time.Since(began), errors.Join(errs[0], errs[1], errs[2], errs[3], err1, err2, err3)
}

// c is the median of n commits.
func (fl *floor) c(n int) (time.Duration, error) {
	d := make([]time.Duration, n)
	for i := range d {
		var err error
		if d[i], err = fl.commit(); err != nil {
			return 0, err
		}
	}
	return percentile(d, 50), nil
}

func (fl *floor) Close() error { return fl.f.Close() }

// percentile sorts d.
func percentile(d []time.Duration, p float64) time.Duration {
	slices.Sort(d)
	return d[int(float64(len(d)-1)*p/100)]
}
