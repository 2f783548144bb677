package boltstore

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// tryLock locks f for this process without waiting; errHeld when another one has it. Closing f unlocks.
// Locks are mandatory on Windows: the byte locked lies far behind the text, which others may read.
func tryLock(f *os.File) error {
	err := windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY,
		0, 1, 0, &windows.Overlapped{Offset: 1 << 30})
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return errHeld
	}
	return err
}
