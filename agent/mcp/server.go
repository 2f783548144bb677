package mcp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"botd/agent"
)

const (
	// connectTimeout bounds connecting, and one listing of the tools.
	connectTimeout = 30 * time.Second
	// pingEvery finds out that a server is gone, refreshEvery that its tools have changed should it not
	// tell so itself.
	pingEvery    = 30 * time.Second
	refreshEvery = 5 * time.Minute
	// stableAfter is how long a connection lives before the next failure counts as the first.
	stableAfter = time.Minute
)

// Defaults of Options.
const (
	DefaultRetryMin = time.Second
	DefaultRetryMax = time.Minute
)

// Options configures a Server: either Command or URL is set.
type Options struct {
	// Name is put before the names of the tools; it matches ^[a-zA-Z0-9_-]{1,32}$.
	Name string
	// Command is a program and its arguments that speaks MCP on its standard input and output.
	Command []string
	// Env is added to the few variables of the environment that a command gets, as NAME=value.
	Env []string
	// Dir is where the command runs; empty: where this program does.
	Dir string
	// URL is the endpoint of a server that speaks streamable HTTP.
	URL string
	// Headers are added to every HTTP request.
	Headers map[string]string
	// Allow are the tools offered, by the server's own names; empty: all.
	Allow []string
	// RetryMin and RetryMax bound the wait before connecting again; 0: the defaults.
	RetryMin, RetryMax time.Duration
	// Version is told to the server.
	Version string
	// Logger gets what happens to the connection; nil: nothing is logged.
	Logger *slog.Logger
}

// Server is the connection to one MCP server.
type Server struct {
	opts   Options
	log    *slog.Logger
	live   atomic.Pointer[connection]
	broken chan struct{}
}

var _ agent.Toolset = (*Server)(nil)

// connection is a session that works, with the tools it has.
type connection struct {
	session *mcp.ClientSession
	tools   []agent.Tool
}

var serverNameRE = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,32}$`)

// New returns a server that is not connected yet.
func New(o Options) (*Server, error) {
	switch {
	case !serverNameRE.MatchString(o.Name):
		return nil, fmt.Errorf("MCP server %q: a name is 1 to 32 of a-z, A-Z, 0-9, _ and -", o.Name)
	case (len(o.Command) == 0) == (o.URL == ""):
		return nil, fmt.Errorf("MCP server %q: either a command or a URL is needed", o.Name)
	case o.URL != "" && !strings.HasPrefix(o.URL, "http://") && !strings.HasPrefix(o.URL, "https://"):
		return nil, fmt.Errorf("MCP server %q: the URL must begin with http:// or https://", o.Name)
	}
	if o.RetryMin <= 0 {
		o.RetryMin = DefaultRetryMin
	}
	if o.RetryMax < o.RetryMin {
		o.RetryMax = max(DefaultRetryMax, o.RetryMin)
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Server{opts: o, log: o.Logger.With("mcp", o.Name), broken: make(chan struct{}, 1)}, nil
}

// Tools implements agent.Toolset: the tools of the connection that is up, none when there is none.
func (s *Server) Tools() []agent.Tool {
	if c := s.live.Load(); c != nil {
		return c.tools
	}
	return nil
}

// Connected reports whether the server can be called now.
func (s *Server) Connected() bool { return s.live.Load() != nil }

// Run keeps the server connected until ctx ends, and returns ctx's error.
func (s *Server) Run(ctx context.Context) error {
	wait := s.opts.RetryMin
	for {
		began := time.Now()
		err := s.serve(ctx)
		s.live.Store(nil)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if time.Since(began) > stableAfter {
			wait = s.opts.RetryMin
		}
		s.log.Warn("not connected", "err", s.redact(err), "retry_in", wait)
		if err := pause(ctx, wait/2+rand.N(wait/2+1)); err != nil {
			return err
		}
		wait = min(2*wait, s.opts.RetryMax)
	}
}

// serve connects and stays until the connection is lost or ctx ends.
func (s *Server) serve(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	changed := make(chan struct{}, 1)
	client := mcp.NewClient(&mcp.Implementation{Name: "botd", Version: s.opts.Version}, &mcp.ClientOptions{
		Capabilities:              &mcp.ClientCapabilities{}, // the default would offer the roots of a file system
		KeepAlive:                 pingEvery,
		KeepAliveFailureThreshold: 2,
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) {
			signal(changed)
		},
	})
	// The time limit is on connecting alone: the connection itself lives as long as ctx.
	limit := time.AfterFunc(connectTimeout, cancel)
	session, err := client.Connect(ctx, s.transport(), nil)
	if !limit.Stop() {
		if err == nil {
			_ = session.Close()
		}
		err = fmt.Errorf("no answer within %s", connectTimeout)
	}
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- session.Wait() }()
	stop := func() {
		s.live.Store(nil)
		_ = session.Close()
		<-ended //nolint:errcheck // why it has ended is told by what ended it
	}
	select {
	case <-s.broken: // told of an earlier connection
	default:
	}
	refresh := time.NewTicker(refreshEvery)
	defer refresh.Stop()
	for {
		tools, err := s.list(ctx, session)
		if err != nil {
			stop()
			return fmt.Errorf("list tools: %w", err)
		}
		if before := s.live.Swap(&connection{session: session, tools: tools}); before == nil || len(before.tools) != len(tools) {
			s.log.Info("connected", "tools", len(tools))
		}
		select {
		case <-ctx.Done():
			stop()
			return ctx.Err()
		case err := <-ended:
			_ = session.Close()
			return errors.Join(errors.New("the connection was lost"), err)
		case <-s.broken:
			stop()
			return errors.New("the server does not answer calls")
		case <-changed:
		case <-refresh.C:
		}
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// redact takes the URL out of an error: it may hold a credential.
func (s *Server) redact(err error) string {
	if err == nil {
		return ""
	}
	text := err.Error()
	if s.opts.URL != "" {
		text = strings.ReplaceAll(text, s.opts.URL, "(the URL)")
	}
	return text
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
