package line

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"syscall"

	"botd/channels"
)

var (
	errNotPublic = errors.New("address is not public")
	errNotHTTPS  = errors.New("URL is not a plain https URL")
)

// newExternalClient returns a client for URLs that people choose: it connects to public addresses only,
// whatever a name resolves to, so that nobody can have this host ask its own network. It uses no proxy,
// which would connect for it.
func newExternalClient() *http.Client {
	dialer := &net.Dialer{Timeout: dialTimeout, Control: func(_, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil || !isPublic(at.Addr().Unmap()) {
			return errNotPublic
		}
		return nil
	}}
	return &http.Client{
		Transport: bounded{errorsOnly: true, next: &http.Transport{
			DialContext: dialer.DialContext, TLSHandshakeTimeout: dialTimeout, MaxIdleConnsPerHost: -1, ForceAttemptHTTP2: true,
		}},
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			if len(via) > 3 || !isPlainHTTPS(r.URL) {
				return errNotHTTPS
			}
			return nil
		},
	}
}

// reserved are ranges that netip does not know as private: shared and protocol addresses, and those that
// stand for other addresses (IANA special-purpose address registries).
var reserved = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("198.18.0.0/15"), netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("64:ff9b::/96"), netip.MustParsePrefix("64:ff9b:1::/48"), netip.MustParsePrefix("2002::/16"),
}

func isPublic(a netip.Addr) bool {
	for _, p := range reserved {
		if p.Contains(a) {
			return false
		}
	}
	return a.IsGlobalUnicast() && !a.IsPrivate()
}

func isPlainHTTPS(u *url.URL) bool { return u.Scheme == "https" && u.Host != "" && u.User == nil }

// openExternal fetches content from a URL.
func (a *Adapter) openExternal(ctx context.Context, address string) (io.ReadCloser, error) {
	const what = "get external content"
	fault := func(kind channels.ErrorKind, err error) (io.ReadCloser, error) {
		return nil, &channels.Error{Kind: kind, Err: fmt.Errorf("%s: %w", what, err)}
	}
	if u, err := url.Parse(address); err != nil || !isPlainHTTPS(u) {
		return fault(channels.Permanent, errNotHTTPS)
	}
	w, ctx := watch(ctx)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		w.end()
		return fault(channels.Permanent, errNotHTTPS)
	}
	res, err := a.external.Do(req)
	switch {
	case errors.Is(err, errNotPublic):
		w.end()
		return fault(channels.Permanent, errNotPublic)
	case errors.Is(err, errNotHTTPS):
		w.end()
		return fault(channels.Permanent, errNotHTTPS)
	case err != nil:
		return fault(channels.Transient, w.explain(err))
	case res.StatusCode != http.StatusOK:
		defer w.end()
		defer res.Body.Close()
		r := result{what: what, status: res.StatusCode}
		return nil, r.error(kindOf(r))
	}
	w.ReadCloser, w.length = res.Body, res.ContentLength
	return a.deliver(what, w)
}
