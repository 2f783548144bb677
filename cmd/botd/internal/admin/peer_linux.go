package admin

import (
	"net"

	"golang.org/x/sys/unix"
)

// peerOf asks the kernel who has made the connection (SO_PEERCRED).
func peerOf(c net.Conn) peer {
	conn, ok := c.(*net.UnixConn)
	if !ok {
		return peer{}
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return peer{}
	}
	var cred *unix.Ucred
	var failed error
	err = raw.Control(func(fd uintptr) {
		cred, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	if err != nil || failed != nil {
		return peer{}
	}
	return peer{known: true, uid: int(cred.Uid), pid: int(cred.Pid)}
}
