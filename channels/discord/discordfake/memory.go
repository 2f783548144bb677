package discordfake

import (
	"context"
	"net"
	"sync"
)

// Memory is a network of its own inside the process, for a Server that must not depend on real sockets:
// hand it to Options.Listener, and its Dial to the client.
type Memory struct {
	accept chan net.Conn
	closed chan struct{}
	once   sync.Once
}

// NewMemory returns a listener without an address on any network.
func NewMemory() *Memory {
	return &Memory{accept: make(chan net.Conn), closed: make(chan struct{})}
}

// Accept waits for the next Dial.
func (m *Memory) Accept() (net.Conn, error) {
	select {
	case c := <-m.accept:
		return c, nil
	case <-m.closed:
		return nil, net.ErrClosed
	}
}

// Close refuses what comes after it.
func (m *Memory) Close() error {
	m.once.Do(func() { close(m.closed) })
	return nil
}

// Addr returns an address that stands for the server in URLs.
func (m *Memory) Addr() net.Addr { return memoryAddr{} }

// Dial connects to the server, whatever the address.
func (m *Memory) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case m.accept <- server:
		return client, nil
	case <-m.closed:
		return nil, &net.OpError{Op: "dial", Net: "memory", Addr: m.Addr(), Err: net.ErrClosed}
	case <-ctx.Done():
		return nil, &net.OpError{Op: "dial", Net: "memory", Addr: m.Addr(), Err: ctx.Err()}
	}
}

type memoryAddr struct{}

func (memoryAddr) Network() string { return "memory" }
func (memoryAddr) String() string  { return "discord.test:80" }
