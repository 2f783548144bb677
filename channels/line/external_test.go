package line

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"botd/channels"
)

func TestExternalContentComesFromPublicAddressesOnly(t *testing.T) {
	t.Parallel()
	a, err := New(Options{Channel: "line-shop", Secret: "s", Token: "t"})
	if err != nil {
		t.Fatal(err)
	}
	asked := false
	inside := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	defer inside.Close()
	for name, url := range map[string]string{
		"this host":         inside.URL,
		"this host by name": strings.Replace(inside.URL, "127.0.0.1", "localhost", 1),
		"in the clear":      "http://192.0.2.1/a.jpg",
		"with a password":   "https://user:password@192.0.2.1/a.jpg",
		"a file":            "file:///etc/passwd",
		"no URL":            "::",
		"no host":           "https:///a",
	} {
		_, err := a.OpenMedia(t.Context(), channels.MediaRef{ID: "1", URL: url})
		if channels.KindOf(err) != channels.Permanent || strings.Contains(err.Error(), url) {
			t.Errorf("%s: got %v, want a permanent error that does not repeat the URL", name, err)
		}
	}
	if asked {
		t.Error("this host was asked")
	}
	for address, want := range map[string]bool{
		"8.8.8.8": true, "2606:4700::1111": true,
		"127.0.0.1": false, "10.0.0.1": false, "172.16.0.1": false, "192.168.1.1": false, "169.254.169.254": false,
		"0.0.0.0": false, "100.64.0.1": false, "224.0.0.1": false, "255.255.255.255": false, "198.18.0.1": false,
		"::1": false, "::": false, "fe80::1": false, "fd00::1": false, "ff02::1": false, "64:ff9b::7f00:1": false, "2002:7f00:1::": false,
	} {
		if got := isPublic(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s is public: %v, want %v", address, got, want)
		}
	}
}

// TestExternalContentIsFetchedWithoutTheToken replaces the guarded connection by one to this host.
func TestExternalContentIsFetchedWithoutTheToken(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	mux.HandleFunc("/a.jpg", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			t.Error("the access token was sent")
		}
		_, _ = io.WriteString(w, "jpeg")
	})
	mux.Handle("/moved", http.RedirectHandler("/a.jpg", http.StatusFound))
	mux.Handle("/away", http.RedirectHandler("http://192.0.2.1/a.jpg", http.StatusFound))
	mux.Handle("/loop", http.RedirectHandler("/loop", http.StatusFound))
	mux.HandleFunc("/empty", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("/long", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "a long one") })
	server := httptest.NewTLSServer(mux)
	defer server.Close()
	a, err := New(Options{Channel: "line-shop", Secret: "s", Token: "t", MaxMedia: 4})
	if err != nil {
		t.Fatal(err)
	}
	transport := a.external.Transport.(bounded).next.(*http.Transport)
	transport.DialContext = (&net.Dialer{}).DialContext
	transport.TLSClientConfig = &tls.Config{RootCAs: server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs}
	for path, want := range map[string]any{
		"/a.jpg": "jpeg", "/moved": "jpeg",
		"/away": channels.Permanent, "/loop": channels.Permanent, "/long": channels.Permanent,
		"/empty": channels.Transient, "/missing": channels.Gone,
	} {
		r, err := a.OpenMedia(t.Context(), channels.MediaRef{ID: "1", URL: server.URL + path})
		if kind, fails := want.(channels.ErrorKind); fails {
			if err == nil || channels.KindOf(err) != kind {
				t.Errorf("%s: got %v, want kind %v", path, err, kind)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		got, err := io.ReadAll(r)
		if string(got) != want || err != nil || r.Close() != nil {
			t.Errorf("%s: got %q, %v", path, got, err)
		}
	}
}
