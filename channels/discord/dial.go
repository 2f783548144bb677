package discord

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"
)

// dialFunc opens a connection.
type dialFunc = func(ctx context.Context, network, addr string) (net.Conn, error)

// dialer opens the gateway's connections, as http.Transport does those of the REST API: through the proxy
// that the environment names, and with TLS. The web socket library could do neither beneath the wire.
type dialer struct {
	dial  dialFunc
	proxy func(*http.Request) (*url.URL, error)
	tls   *tls.Config
}

// open connects to addr, with TLS when secure is set.
func (d dialer) open(ctx context.Context, network, addr string, secure bool) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, helloWait)
	defer cancel()
	scheme := "http"
	if secure {
		scheme = "https"
	}
	proxy, err := d.proxy(&http.Request{URL: &url.URL{Scheme: scheme, Host: addr}})
	if err != nil {
		return nil, errors.New("find proxy: the environment names none that can be read")
	}
	var c net.Conn
	if proxy == nil {
		c, err = d.dial(ctx, network, addr)
	} else {
		c, err = d.tunnel(ctx, network, addr, proxy)
	}
	if err != nil || !secure {
		return c, err
	}
	return d.handshake(ctx, c, addr)
}

func (d dialer) handshake(ctx context.Context, c net.Conn, addr string) (net.Conn, error) {
	cfg := d.tls.Clone()
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		_ = c.Close()
		return nil, fmt.Errorf("split address: %w", err)
	}
	cfg.ServerName = host
	t := tls.Client(c, cfg)
	if err := t.HandshakeContext(ctx); err != nil {
		_ = c.Close()
		return nil, fmt.Errorf("tls handshake: %w", err)
	}
	return t, nil
}

// tunnel asks an HTTP proxy for a connection to addr.
func (d dialer) tunnel(ctx context.Context, network, addr string, proxy *url.URL) (net.Conn, error) {
	port := proxy.Port()
	switch {
	case proxy.Scheme != "http" && proxy.Scheme != "https":
		return nil, fmt.Errorf("proxy of kind %q is not supported for the gateway", proxy.Scheme)
	case port == "" && proxy.Scheme == "https":
		port = "443"
	case port == "":
		port = "80"
	}
	at := net.JoinHostPort(proxy.Hostname(), port)
	c, err := d.dial(ctx, network, at)
	if err == nil && proxy.Scheme == "https" {
		c, err = d.handshake(ctx, c, at)
	}
	if err != nil {
		return nil, fmt.Errorf("reach proxy: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
	err = connect(c, addr, proxy.User)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		_ = c.Close()
		return nil, fmt.Errorf("open tunnel through proxy: %w", err)
	}
	return c, nil
}

// connect sends CONNECT and reads its answer. Nothing follows that before the client has spoken.
func connect(c net.Conn, addr string, who *url.Userinfo) error {
	r := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: addr}, Host: addr, Header: http.Header{}}
	if who != nil {
		password, _ := who.Password()
		r.Header.Set("Proxy-Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(who.Username()+":"+password)))
	}
	if err := r.Write(c); err != nil {
		return err
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), r)
	if err != nil {
		return err
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("answered %d", resp.StatusCode)
	}
	return nil
}
