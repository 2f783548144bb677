package admin

import (
	"context"
	"fmt"
	"net"
	"os"
)

// peer is who is at the other end of a connection.
type peer struct {
	// known is false where the system does not tell.
	known    bool
	uid, pid int
}

type peerKey struct{}

// withPeer notes who has made a connection, for http.Server.ConnContext.
func withPeer(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, peerKey{}, peerOf(c))
}

// self is the peer of requests made within the process.
func self() peer { return peer{known: true, uid: os.Getuid(), pid: os.Getpid()} }

func peerFrom(ctx context.Context) peer {
	p, _ := ctx.Value(peerKey{}).(peer)
	return p
}

// permitted reports whether a peer may use the API.
func (p peer) permitted() bool { return !p.known || p.uid == 0 || p.uid == os.Getuid() }

// who tells the caller in the audit.
func who(ctx context.Context) string {
	p := peerFrom(ctx)
	if !p.known {
		return "unknown"
	}
	return fmt.Sprintf("uid %d pid %d", p.uid, p.pid)
}
