package dbtest

import (
	"context"
	"net"
	"sync"
	"testing"
)

// Proxy stands between a store and its server and cuts connections.
type Proxy struct {
	target string
	ln     net.Listener
	wg     sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]bool
	down  bool
	cut   Cut
	left  int // pieces that still pass before the cut
	cuts  int // that happened
}

// Cut is where a connection is cut.
type Cut int

// Cuts.
const (
	// Request loses what the store sends: the server never sees it.
	Request Cut = iota + 1
	// Answer loses what the server sends: it has done what it was asked, and the store does not know.
	Answer
)

// NewProxy starts a proxy to a server, stopped when the test ends.
func NewProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	ln, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{target: target, ln: ln, conns: map[net.Conn]bool{}}
	p.wg.Go(p.accept)
	t.Cleanup(func() {
		ln.Close()
		p.CutAll()
		p.wg.Wait()
	})
	return p
}

// Addr is where the proxy listens.
func (p *Proxy) Addr() string { return p.ln.Addr().String() }

// CutAll closes every connection.
func (p *Proxy) CutAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.Close()
	}
}

// Down makes the server look dead, or alive again.
func (p *Proxy) Down(down bool) {
	p.mu.Lock()
	p.down = down
	p.mu.Unlock()
	if down {
		p.CutAll()
	}
}

// Arm lets n more pieces pass in the direction of the cut and loses the next one, with its connection.
func (p *Proxy) Arm(cut Cut, n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut, p.left, p.cuts = cut, n, 0
}

// Disarm stops that and reports whether a piece was lost.
func (p *Proxy) Disarm() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = 0
	return p.cuts > 0
}

func (p *Proxy) accept() {
	for {
		client, err := p.ln.Accept()
		if err != nil {
			return
		}
		p.wg.Go(func() { p.serve(client) })
	}
}

func (p *Proxy) serve(client net.Conn) {
	defer client.Close()
	p.mu.Lock()
	down := p.down
	p.mu.Unlock()
	if down {
		return
	}
	server, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", p.target)
	if err != nil {
		return
	}
	defer server.Close()
	p.mu.Lock()
	p.conns[client], p.conns[server] = true, true
	p.mu.Unlock()
	var both sync.WaitGroup
	both.Go(func() { p.pass(client, server, Request) })
	both.Go(func() { p.pass(server, client, Answer) })
	both.Wait()
	p.mu.Lock()
	delete(p.conns, client)
	delete(p.conns, server)
	p.mu.Unlock()
}

// pass copies one direction until either end is closed.
func (p *Proxy) pass(from, to net.Conn, direction Cut) {
	defer from.Close()
	defer to.Close()
	buf := make([]byte, 256<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			if p.lose(direction) {
				return
			}
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// lose reports whether the piece at hand is the one to lose.
func (p *Proxy) lose(direction Cut) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cut != direction {
		return false
	}
	if p.left--; p.left >= 0 {
		return false
	}
	p.cut = 0
	p.cuts++
	return true
}
