package admin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"time"
)

// dialTimeout bounds a connection to a socket on this machine.
const dialTimeout = 2 * time.Second

// ErrServed is returned by Listen when somebody else serves the socket.
var ErrServed = errors.New("another process serves it")

// Listen opens the socket at path, which only this user can use, and makes its folder. A socket that a
// process has left behind is replaced; anything else at path is left alone. Closing the listener removes
// the socket.
func Listen(ctx context.Context, path string) (_ net.Listener, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("open admin socket %s: %w", path, err)
		}
	}()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	if err := removeStale(ctx, path); err != nil {
		return nil, err
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	// Until then its mode is what the umask leaves; requests of other users are refused in any case.
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

func removeStale(ctx context.Context, path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().Type() != fs.ModeSocket:
		return errors.New("there is a file of that name, which is no socket: remove it, or set another admin.socket")
	}
	c, err := (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, "unix", path)
	if err == nil {
		return errors.Join(ErrServed, c.Close())
	}
	if !isDead(err) {
		return err
	}
	return os.Remove(path)
}
