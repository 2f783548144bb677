package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"botd/agent"
	"botd/agent/agenttest"
	"botd/agent/mcp"
)

// serveEnv makes the test program itself an MCP server on its standard input and output.
const serveEnv = "BOTD_TEST_MCP_SERVER"

func TestMain(m *testing.M) {
	if os.Getenv(serveEnv) != "" {
		if err := shop().Run(context.Background(), &sdk.StdioTransport{}); err != nil {
			os.Exit(1)
		}
		return
	}
	code := m.Run()
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// shop is an MCP server with all kinds of tools.
func shop() *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "shop", Version: "1"}, nil)
	add := func(name string, call sdk.ToolHandler) {
		s.AddTool(&sdk.Tool{Name: name, Description: "Does " + name + ".", InputSchema: json.RawMessage(`{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object"}`)}, call)
	}
	text := func(s string) *sdk.CallToolResult {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: s}}}
	}
	add("echo", func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return text(string(r.Params.Arguments)), nil
	})
	add("env", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return text(strings.Join(os.Environ(), "\n")), nil
	})
	add("fails", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		res := text("no such order")
		res.IsError = true
		return res, nil
	})
	add("refuses", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return nil, errors.New("not today")
	})
	add("slow", func(ctx context.Context, _ *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	add("rich", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{
			&sdk.TextContent{Text: "see:"}, &sdk.ImageContent{MIMEType: "image/png", Data: []byte("1234")},
			&sdk.ResourceLink{Name: "bill", URI: "file:///bill"},
			&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "x:y", Text: "inside"}},
		}}, nil
	})
	add("structured", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{}, StructuredContent: map[string]any{"left": 3}}, nil
	})
	add("odd.name/"+strings.Repeat("x", 80), func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return text("long"), nil
	})
	return s
}

// run runs a server for the length of the test and waits for its end.
func run(t *testing.T, o mcp.Options) *mcp.Server {
	t.Helper()
	o.Name = "shop"
	if o.RetryMin == 0 {
		o.RetryMin, o.RetryMax = 10*time.Millisecond, 50*time.Millisecond
	}
	s, err := mcp.New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := s.Run(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("run ended with %v", err)
		}
	})
	t.Cleanup(func() {
		cancel()
		wg.Wait()
		if s.Connected() || s.Tools() != nil {
			t.Error("still connected after the end of Run")
		}
	})
	return s
}

// eventually waits for what happens over real sockets and processes.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func named(s *mcp.Server, name string) agent.Tool {
	for _, t := range s.Tools() {
		if t.Spec().Name == name {
			return t
		}
	}
	return nil
}

func call(t *testing.T, s *mcp.Server, name, args string) (string, error) {
	t.Helper()
	tool := named(s, name)
	if tool == nil {
		t.Fatalf("no tool %s", name)
	}
	res, err := tool.Call(t.Context(), json.RawMessage(args))
	return res.Text, err
}

func httpShop(t *testing.T) (*httptest.Server, *sdk.Server, *atomic.Bool) {
	t.Helper()
	s := shop()
	h := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, nil)
	down := new(atomic.Bool)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case down.Load():
			http.Error(w, "down", http.StatusServiceUnavailable)
		case r.Header.Get("Authorization") != "Bearer k":
			http.Error(w, "who are you?", http.StatusUnauthorized)
		default:
			h.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(func() {
		for session := range s.Sessions() {
			_ = session.Close() // one whose client could not take leave
		}
		srv.CloseClientConnections()
		srv.Close()
	})
	return srv, s, down
}

func overHTTP(srv *httptest.Server) mcp.Options {
	return mcp.Options{URL: srv.URL, Headers: map[string]string{"Authorization": "Bearer k"}}
}

func overStdio(t *testing.T) mcp.Options {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return mcp.Options{Command: []string{exe}, Env: []string{serveEnv + "=1"}}
}

func TestToolsOfAServer(t *testing.T) {
	ways := map[string]func(t *testing.T) mcp.Options{
		"http":  func(t *testing.T) mcp.Options { srv, _, _ := httpShop(t); return overHTTP(srv) },
		"stdio": overStdio,
	}
	for way, options := range ways {
		t.Run(way, func(t *testing.T) {
			t.Setenv("OPENAI_API_KEY", "sk-must-not-leak")
			s := run(t, options(t))
			eventually(t, "connected", s.Connected)
			if n := len(s.Tools()); n != 8 {
				t.Errorf("%d tools", n)
			}
			spec := named(s, "shop__echo").Spec()
			if spec.Description != "Does echo." || string(spec.Parameters) != `{"properties":{},"type":"object"}` {
				t.Errorf("spec %+v: %s", spec, spec.Parameters)
			}
			for _, tool := range s.Tools() {
				if name := tool.Spec().Name; len(name) > 64 || strings.ContainsAny(name, "./ ") {
					t.Errorf("name %q", name)
				}
			}
			results := map[string]struct{ args, want, err string }{
				"shop__echo":       {`{"n":9007199254740993}`, `{"n":9007199254740993}`, ""},
				"shop__fails":      {`{}`, "", "no such order"},
				"shop__refuses":    {`{}`, "", "not today"},
				"shop__rich":       {`{}`, "see:\n[an image, image/png, 4 bytes, not shown]\n[a link to bill: file:///bill]\ninside", ""},
				"shop__structured": {`{}`, `{"left":3}`, ""},
			}
			for name, tt := range results {
				got, err := call(t, s, name, tt.args)
				if got != tt.want || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
					t.Errorf("%s: %q, %v; want %q, %q", name, got, err, tt.want, tt.err)
				}
			}
			if way == "stdio" {
				env, err := call(t, s, "shop__env", `{}`)
				if err != nil || strings.Contains(env, "sk-must-not-leak") || !strings.Contains(env, serveEnv) {
					t.Errorf("environment of the command: %s (%v)", env, err)
				}
			}
		})
	}
}

func TestOnlyAllowedToolsAreOffered(t *testing.T) {
	t.Parallel()
	srv, _, _ := httpShop(t)
	o := overHTTP(srv)
	o.Allow = []string{"echo", "absent"}
	s := run(t, o)
	eventually(t, "connected", s.Connected)
	if got := s.Tools(); len(got) != 1 || got[0].Spec().Name != "shop__echo" {
		t.Errorf("%d tools", len(got))
	}
}

func TestSomeToolsOfAServer(t *testing.T) {
	t.Parallel()
	srv, shop, _ := httpShop(t)
	s := run(t, overHTTP(srv))
	some := s.Only("rich", "echo", "absent")
	if got := some.Tools(); got != nil {
		t.Errorf("%d tools before the server is there", len(got))
	}
	eventually(t, "connected", s.Connected)
	var names []string
	for _, tool := range some.Tools() {
		names = append(names, tool.Spec().Name)
	}
	slices.Sort(names)
	if !slices.Equal(names, []string{"shop__echo", "shop__rich"}) {
		t.Errorf("tools %q", names)
	}
	shop.RemoveTools("echo")
	eventually(t, "the tool gone", func() bool { return len(some.Tools()) == 1 })
}

func TestToolsFollowTheServer(t *testing.T) {
	t.Parallel()
	srv, shop, _ := httpShop(t)
	s := run(t, overHTTP(srv))
	eventually(t, "connected", s.Connected)
	shop.AddTool(&sdk.Tool{Name: "new", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{}}, nil
	})
	eventually(t, "the new tool", func() bool { return named(s, "shop__new") != nil })
	shop.RemoveTools("echo")
	eventually(t, "the old tool gone", func() bool { return named(s, "shop__echo") == nil })
}

func TestCallsEndWithContext(t *testing.T) {
	t.Parallel()
	srv, _, _ := httpShop(t)
	s := run(t, overHTTP(srv))
	eventually(t, "connected", s.Connected)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := named(s, "shop__slow").Call(ctx, json.RawMessage(`{}`)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	if _, err := call(t, s, "shop__echo", `{}`); err != nil || !s.Connected() {
		t.Errorf("a call that was ended took the connection down: %v", err)
	}
}

// A server that is down when the bot starts, or goes down, is missing until it is back, and no longer.
func TestServersComeAndGo(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	var mu sync.Mutex
	srv, _, down := httpShop(t)
	down.Store(true)
	o := overHTTP(srv)
	o.Logger = slog.New(slog.NewTextHandler(lockedWriter{&mu, &log}, nil))
	s := run(t, o)
	eventually(t, "tried", func() bool { mu.Lock(); defer mu.Unlock(); return strings.Contains(log.String(), "not connected") })
	if s.Tools() != nil {
		t.Error("tools of a server that is down")
	}
	down.Store(false)
	eventually(t, "connected", s.Connected)
	echo := named(s, "shop__echo")
	down.Store(true)
	if _, err := echo.Call(t.Context(), json.RawMessage(`{}`)); err == nil {
		t.Error("a call of a server that is down succeeded")
	}
	eventually(t, "found out", func() bool { return !s.Connected() })
	if _, err := echo.Call(t.Context(), json.RawMessage(`{}`)); err == nil || !strings.Contains(err.Error(), "not connected") {
		t.Errorf("got %v", err)
	}
	down.Store(false)
	eventually(t, "connected again", s.Connected)
	if _, err := echo.Call(t.Context(), json.RawMessage(`{}`)); err != nil {
		t.Errorf("after it came back: %v", err)
	}
	mu.Lock()
	defer mu.Unlock()
	if strings.Contains(log.String(), srv.URL) {
		t.Errorf("the log tells the URL: %s", log.String())
	}
}

type lockedWriter struct {
	mu *sync.Mutex
	w  *bytes.Buffer
}

func (l lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

// A command that is no server, or does not exist, is tried again and harms nobody.
func TestCommandsThatAreNoServers(t *testing.T) {
	t.Parallel()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, command := range map[string][]string{"ends at once": {exe, "-test.run=^$"}, "does not exist": {"/does/not/exist"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			var mu sync.Mutex
			s := run(t, mcp.Options{Command: command, Logger: slog.New(slog.NewTextHandler(lockedWriter{&mu, &log}, nil))})
			eventually(t, "tried three times", func() bool {
				mu.Lock()
				defer mu.Unlock()
				return strings.Count(log.String(), "not connected") >= 3
			})
			if s.Connected() {
				t.Error("connected")
			}
		})
	}
}

func TestAnEngineUsesAServer(t *testing.T) {
	t.Parallel()
	srv, _, _ := httpShop(t)
	s := run(t, overHTTP(srv))
	eventually(t, "connected", s.Connected)
	m := agenttest.NewModel(agenttest.Use("c", "shop__echo", `{"q":1}`), agenttest.Say("done"))
	e, err := agent.New(agent.Options{Agents: []agent.Agent{{
		Name: "a", Toolsets: []agent.Toolset{s}, Models: []agent.ModelRef{{Model: m, Name: "m", Provider: "p"}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	for ev, err := range e.Run(t.Context(), agent.Turn{ID: "t", Session: "s", Input: []agent.Message{{Parts: []agent.Part{{Text: "go"}}}}}) {
		if err != nil {
			t.Fatal(err)
		}
		if ev.Final != nil && !strings.Contains(string(ev.Final.Items[2].Raw), `{\"q\":1}`) {
			t.Errorf("output %s", ev.Final.Items[2].Raw)
		}
	}
}

func TestNewChecksItsOptions(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]mcp.Options{
		"no name":       {URL: "http://127.0.0.1"},
		"bad name":      {Name: "a b", URL: "http://127.0.0.1"},
		"neither":       {Name: "a"},
		"both":          {Name: "a", URL: "http://127.0.0.1", Command: []string{"x"}},
		"another thing": {Name: "a", URL: "ftp://127.0.0.1"},
	} {
		if _, err := mcp.New(o); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
