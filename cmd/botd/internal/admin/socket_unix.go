//go:build unix

package admin

import (
	"errors"
	"io/fs"
	"syscall"
)

// isDead reports whether a connection failed because nobody serves the socket.
func isDead(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, fs.ErrNotExist)
}
