package mcp

import (
	"maps"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// terminateAfter is how long a command may take to end by itself when it is told to.
const terminateAfter = 3 * time.Second

// inherited are the variables of the environment that a command gets: what programs need to run, and no
// secret of this one.
var inherited = []string{"PATH", "HOME", "USER", "LANG", "LC_ALL", "TZ", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR"}

// transport is a new way to the server.
func (s *Server) transport() mcp.Transport {
	if s.opts.URL != "" {
		return &mcp.StreamableClientTransport{
			Endpoint:   s.opts.URL,
			HTTPClient: &http.Client{Transport: withHeaders{http.DefaultTransport, s.opts.Headers}},
		}
	}
	cmd := exec.Command(s.opts.Command[0], s.opts.Command[1:]...) //nolint:gosec,noctx // the operator configures the command; its transport ends it
	cmd.Dir = s.opts.Dir
	for _, name := range inherited {
		if v, ok := os.LookupEnv(name); ok {
			cmd.Env = append(cmd.Env, name+"="+v)
		}
	}
	cmd.Env = slices.Concat(cmd.Env, s.opts.Env)
	return &mcp.CommandTransport{Command: cmd, TerminateDuration: terminateAfter}
}

// withHeaders adds headers to requests.
type withHeaders struct {
	next    http.RoundTripper
	headers map[string]string
}

// RoundTrip implements http.RoundTripper.
func (w withHeaders) RoundTrip(req *http.Request) (*http.Response, error) {
	if len(w.headers) > 0 {
		req = req.Clone(req.Context())
		for k, v := range maps.All(w.headers) {
			req.Header.Set(k, v)
		}
	}
	return w.next.RoundTrip(req)
}
