package discord

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"botd/channels/discord/discordfake"
)

// TestGateway_OverTLS: the wire sees the frames although the line is encrypted, and the connection is one
// that the certificate vouches for.
func TestGateway_OverTLS(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cert, pool := selfSigned(t, "discord.test")
		s := newScene(t, func(f *discordfake.Options, o *Options) {
			f.Listener = tls.NewListener(f.Listener, &tls.Config{Certificates: []tls.Certificate{cert}})
			f.Secure = true
			o.APIBase = "https://discord.test:80"
		})
		trust := &tls.Config{RootCAs: pool}
		s.a.dialer.tls = trust
		s.a.rest.http.Transport.(*http.Transport).TLSClientConfig = trust
		s.run()
		s.wait()
		s.hear(discordfake.Saying{From: s.ada.ID, Room: s.direct, Text: "hello"})
		s.srv.AskReconnect()
		time.Sleep(10 * time.Second)
		s.hear(discordfake.Saying{From: s.ada.ID, Room: s.direct, Text: "again"})
		if st := s.srv.Gateway(); st.Identifies != 1 || st.Resumes != 1 {
			t.Errorf("gateway %+v, want one login and one resume", st)
		}

		s.a.dialer.tls = &tls.Config{RootCAs: x509.NewCertPool()}
		s.srv.DropGateway()
		time.Sleep(time.Minute)
		if err := s.a.Ready(); err == nil || !strings.Contains(err.Error(), "certificate") {
			t.Errorf("Ready with an unknown certificate: %v", err)
		}
	})
}

func selfSigned(t *testing.T, host string) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{host}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(parsed)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

// proxy is an HTTP proxy on the memory network.
type proxy struct {
	next   dialFunc
	status int
	mu     sync.Mutex
	seen   []string
}

func (p *proxy) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if addr != "proxy.test:3128" {
		return nil, errors.New("dialled past the proxy")
	}
	client, server := net.Pipe()
	go p.serve(server)
	return client, nil
}

func (p *proxy) serve(c net.Conn) {
	defer c.Close()
	r, err := http.ReadRequest(bufio.NewReader(c))
	if err != nil {
		return
	}
	p.mu.Lock()
	p.seen = append(p.seen, r.Method+" "+r.Host+" "+r.Header.Get("Proxy-Authorization"))
	p.mu.Unlock()
	if p.status != http.StatusOK {
		_, _ = io.WriteString(c, "HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
		return
	}
	up, err := p.next(context.Background(), "tcp", r.Host)
	if err != nil {
		return
	}
	defer up.Close()
	_, _ = io.WriteString(c, "HTTP/1.1 200 Connection established\r\n\r\n")
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{c, up}, {up, c}} {
		both.Go(func() {
			_, _ = io.Copy(way[0], way[1])
			_ = way[0].Close()
			_ = way[1].Close()
		})
	}
	both.Wait()
}

func TestGateway_ThroughAProxy(t *testing.T) {
	through := func(raw string, p *proxy, s *scene) {
		u, err := url.Parse(raw)
		if err != nil {
			t.Error(err)
		}
		p.next = s.net.Dial
		s.a.dialer.dial = p.dial
		s.a.dialer.proxy = func(*http.Request) (*url.URL, error) { return u, nil }
	}
	t.Run("that lets it through", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			s, p := newScene(t), &proxy{status: http.StatusOK}
			through("http://user:pass@proxy.test:3128", p, s)
			s.run()
			s.wait()
			s.hear(discordfake.Saying{From: s.ada.ID, Room: s.direct, Text: "hello"})
			p.mu.Lock()
			defer p.mu.Unlock()
			if want := "CONNECT discord.test:80 Basic dXNlcjpwYXNz"; len(p.seen) != 1 || p.seen[0] != want {
				t.Errorf("proxy saw %q, want %q", p.seen, want)
			}
		})
	})
	for name, tt := range map[string]struct{ url, says string }{
		"that refuses":          {"http://MARKER:MARKER@proxy.test:3128", "answered 407"},
		"of another kind":       {"socks5://MARKER@proxy.test:3128", "not supported"},
		"that is not there":     {"http://elsewhere.test", "reach proxy"},
		"over TLS, not trusted": {"https://proxy.test:3128", "tls handshake"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := newScene(t)
				through(tt.url, &proxy{}, s)
				s.run()
				time.Sleep(2 * time.Minute)
				if err := s.a.Ready(); err == nil || !strings.Contains(err.Error(), tt.says) || strings.Contains(err.Error(), "MARKER") {
					t.Errorf("Ready: %v, want to hear %q", err, tt.says)
				}
			})
		})
	}
}
