package boltstore

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// lockPoll is how often a lock that is held is tried again.
const lockPoll = 25 * time.Millisecond

// errHeld is returned by tryLock when another process holds the lock.
var errHeld = errors.New("lock is held")

// fileLock is a lock file held by this process. Its text names the holder. It is a file of its own, so
// that the lock outlives the renaming of the file that it protects; it is never deleted, because a
// process that waits for a deleted file's lock would get it beside the next one.
type fileLock struct{ f *os.File }

// acquire locks the file at path, waiting up to timeout for another process to release it.
func acquire(path string, timeout time.Duration) (*fileLock, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	for deadline := time.Now().Add(timeout); ; time.Sleep(lockPoll) {
		err := tryLock(f)
		if err == nil {
			break
		}
		if !errors.Is(err, errHeld) {
			return nil, fmt.Errorf("lock %s: %w", path, errors.Join(err, f.Close()))
		}
		if !time.Now().Before(deadline) {
			return nil, fmt.Errorf("%w by %w", ErrLocked, errors.Join(holder(f), f.Close()))
		}
	}
	l := &fileLock{f}
	if err := l.sign(); err != nil {
		return nil, fmt.Errorf("sign %s: %w", path, errors.Join(err, l.release()))
	}
	return l, nil
}

func (l *fileLock) sign() error {
	if err := l.f.Truncate(0); err != nil {
		return err
	}
	_, err := l.f.WriteAt(fmt.Appendf(nil, "process %d since %s\n", os.Getpid(), time.Now().UTC().Format(time.RFC3339)), 0)
	return err
}

func (l *fileLock) release() error {
	return errors.Join(l.f.Truncate(0), l.f.Close())
}

// holder says who holds the lock, as an error to be joined.
func holder(f *os.File) error {
	text, err := io.ReadAll(io.NewSectionReader(f, 0, 200))
	if who := strings.TrimSpace(string(text)); err == nil && who != "" {
		return errors.New(who)
	}
	return errors.New("another process")
}
