package boltstore

import (
	"errors"
	"fmt"
	"strings"
	"syscall"

	bolterrors "go.etcd.io/bbolt/errors"

	"botd/sessionstore"
)

// Errors of this package, wrapped with what was being done.
var (
	// ErrLocked is returned by Open when another process holds the file; the text names it.
	ErrLocked = errors.New("file is in use")
	// ErrNetwork is returned by Open for a file on a network file system, where a lock does not keep other
	// machines out; see Options.AllowNetwork.
	ErrNetwork = errors.New("file is on a network file system")
	// ErrSchema is returned by Open for a file written by a newer version of this program.
	ErrSchema = errors.New("file was written by a newer version")
	// ErrCorrupt is returned for a file, or a record of it, that is not what was written. The file is left
	// as it is.
	ErrCorrupt = errors.New("file is damaged")
	// ErrFull is returned by a write for which there is no room on the disk or under Options.MaxSize.
	// Nothing was written, and smaller writes and deletions may still succeed.
	ErrFull = errors.New("no room for the write")
	// ErrFailed is returned by the writes in flight when the disk failed in the middle of a commit, and by
	// every write afterwards. Reads go on. Whether those in flight were written is known once the file is
	// opened again.
	ErrFailed = errors.New("store has failed, open it again")
	// ErrGone is returned by writes while the path does not lead to the open file, because somebody deleted,
	// moved or replaced it under the running process. Nothing is written; reads go on.
	ErrGone = errors.New("file is no longer in its place")
)

// isFull reports whether a commit failed for want of room. bbolt flattens the error of growing the file
// to text, hence the comparison of texts.
func isFull(err error) bool {
	if errors.Is(err, bolterrors.ErrMaxSizeReached) {
		return true
	}
	for _, errno := range fullErrnos {
		if errors.Is(err, errno) || strings.HasSuffix(err.Error(), errno.Error()) {
			return true
		}
	}
	return false
}

func isClosed(err error) bool { return errors.Is(err, sessionstore.ErrClosed) }

// recovered turns a panic into an error; bbolt panics on damaged pages.
func recovered(err *error, doing error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("%w: %v", doing, p)
	}
}

var fullErrnos = []syscall.Errno{syscall.ENOSPC, syscall.EFBIG, syscall.EDQUOT}
