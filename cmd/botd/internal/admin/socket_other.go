//go:build !unix

package admin

import (
	"context"
	"errors"
)

// isDead reports whether a connection failed because nobody serves the socket; a busy server is waited for
// until the end of the time.
func isDead(err error) bool { return err != nil && !errors.Is(err, context.DeadlineExceeded) }
