package boltstore

import (
	"errors"
	"os"
	"time"

	bolt "go.etcd.io/bbolt"
)

// warm reads a file through that was not closed when it was last used. Opening it then looks at every page
// for the free ones, in the order of the tree: after a power cut, with nothing of the file in memory, that
// takes many times as long as reading it from end to end first. Whatever fails here is left to the opening
// itself to meet.
func warm(opts Options) {
	if clean, err := leftClean(opts.Path); clean || err != nil {
		return
	}
	f, err := os.Open(opts.Path)
	if err != nil {
		return
	}
	defer func() { _ = f.Close() }()
	if info, err := f.Stat(); err == nil {
		opts.Logger.Info("the file was not closed when it was last used: looking for its free pages", "path", opts.Path, "bytes", info.Size())
	}
	for buf := make([]byte, 1<<20); err == nil; {
		_, err = f.Read(buf)
	}
}

// leftClean reports whether a file bears the mark of a clean end.
func leftClean(path string) (clean bool, err error) {
	defer recovered(&err, ErrCorrupt)
	b, err := bolt.Open(path, 0o600, &bolt.Options{ReadOnly: true, Timeout: time.Nanosecond}) // does not wait for a lock
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	err = b.View(func(tx *bolt.Tx) error {
		sys := tx.Bucket([]byte(sysBucket.String()))
		clean = sys != nil && sys.Get(cleanKey) != nil
		return nil
	})
	return clean, err
}
