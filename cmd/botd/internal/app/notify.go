package app

import (
	"fmt"
	"net"
)

// SystemdNotify returns a function that tells systemd of the state of the service, such as READY=1, over
// the datagram socket named by NOTIFY_SOCKET (sd_notify(3)). It is nil when socket is empty: there is
// nobody to tell. warn is told of failures, which have no other consequence.
func SystemdNotify(socket string, warn func(error)) func(state string) {
	if socket == "" {
		return nil
	}
	if socket[0] != '/' && socket[0] != '@' {
		warn(fmt.Errorf("notify the service manager: unsupported socket address %q", socket))
		return nil
	}
	// The net package takes a leading @ for Linux's abstract namespace, as systemd does.
	addr := &net.UnixAddr{Name: socket, Net: "unixgram"}
	return func(state string) {
		conn, err := net.DialUnix("unixgram", nil, addr)
		if err != nil {
			warn(fmt.Errorf("notify the service manager: %w", err))
			return
		}
		defer func() { _ = conn.Close() }()
		if _, err := conn.Write([]byte(state)); err != nil {
			warn(fmt.Errorf("notify the service manager: %w", err))
		}
	}
}
