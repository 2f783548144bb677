package app_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"botd/agent"
	"botd/agent/agenttest"
	"botd/cmd/botd/internal/app"
)

// childTools is the variable that makes the test program an MCP server on its standard input and output.
const childTools = "BOTD_TEST_CHILD_TOOLS"

func runToolServer() int {
	if err := toolShop().Run(context.Background(), &sdk.StdioTransport{}); err != nil {
		return 1
	}
	return 0
}

// toolShop is an MCP server: find and track answer, self tells of the process.
func toolShop() *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "shop", Version: "1"}, nil)
	add := func(name string, answer func() string) {
		s.AddTool(&sdk.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: answer()}}}, nil
		})
	}
	add("find", func() string { return "found it" })
	add("track", func() string { return "on its way" })
	add("delete.all", func() string { return "gone" })
	add("self", func() string {
		dir, _ := os.Getwd()
		return fmt.Sprintf("pid=%d dir=%s level=%s args=%s key=%s", os.Getpid(), dir, os.Getenv("LEVEL"), strings.Join(os.Args[1:], " "), os.Getenv("OPENAI_API_KEY"))
	})
	return s
}

// caller calls the tool that a person names, and says what came of it.
func caller() *agenttest.Model {
	return agenttest.ModelFunc(func(n int, req *agent.Request) agenttest.Step {
		last := string(req.Input[len(req.Input)-1])
		if strings.Contains(last, "function_call_output") {
			var item struct {
				Output string `json:"output"`
			}
			_ = json.Unmarshal([]byte(last), &item)
			return agenttest.Say(item.Output)
		}
		for _, spec := range req.Tools {
			if strings.Contains(last, "use "+spec.Name) {
				return agenttest.Use("c"+strconv.Itoa(n), spec.Name, "{}")
			}
		}
		return agenttest.Say("no such tool")
	})
}

func toolNames(req *agent.Request) []string {
	var names []string
	for _, spec := range req.Tools {
		names = append(names, spec.Name)
	}
	slices.Sort(names)
	return names
}

// statusOf is what /readyz says of the whole and of one check.
func (c *talk) statusOf(t *testing.T, name string) (whole, part string) {
	t.Helper()
	_, body := request(t, http.MethodGet, "http://"+c.Addr()+"/readyz", nil)
	var r app.Readiness
	if err := json.Unmarshal(body, &r); err != nil {
		t.Fatal(err)
	}
	return r.Status, r.Checks[name].Status
}

// A server that is dead when the gateway starts takes neither the start nor a turn with it, and its tools
// are there once it lives.
func TestToolsOfAServerOverHTTP(t *testing.T) {
	t.Parallel()
	var alive atomic.Bool
	shop := toolShop()
	handler := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return shop }, nil)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !alive.Load():
			http.Error(w, "down", http.StatusServiceUnavailable)
		case r.Header.Get("Authorization") != "Bearer planted-key":
			http.Error(w, "who are you?", http.StatusUnauthorized)
		default:
			handler.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(func() {
		for session := range shop.Sessions() {
			_ = session.Close() // one whose client could not take leave
		}
		server.CloseClientConnections()
		server.Close()
	})
	model := caller()
	c := converse(t, fmt.Sprintf(`
providers: {p: {type: offline}}
mcp:
  shop: {url: %q, headers: {Authorization: "Bearer ${KEY}"}, tools: [find, delete.all, track]}
agents:
  front: {models: [p/m], tools: [clock, mcp.shop.delete.all, mcp.shop.find], handoffs: [all]}
  all: {models: [p/m], tools: [mcp.shop], description: Has every tool.}
`, server.URL), map[string]string{"KEY": "planted-key"}, map[string]agent.Model{"p": model})

	if got := c.say(t, "use shop__find"); got != "no such tool" {
		t.Errorf("while the server is dead: %q", got)
	}
	if whole, part := c.statusOf(t, "mcp/shop"); whole != "degraded" || part != "connecting" {
		t.Errorf("while the server is dead: %s, %s", whole, part)
	}
	alive.Store(true)
	await(t, "the server to be connected", func() bool { whole, part := c.statusOf(t, "mcp/shop"); return whole == "ready" && part == "ok" })
	if got := c.say(t, "use shop__find"); got != "found it" {
		t.Errorf("once it lives: %q", got)
	}
	asked := model.Requests()
	if got, want := toolNames(asked[len(asked)-1]), []string{"clock", "shop__delete_all", "shop__find", "transfer_to_all"}; !slices.Equal(got, want) {
		t.Errorf("tools of an agent with two of the server's: %q, want %q", got, want)
	}
	c.say(t, "use transfer_to_all")
	asked = model.Requests()
	if got, want := toolNames(asked[len(asked)-1]), []string{"shop__delete_all", "shop__find", "shop__track"}; !slices.Equal(got, want) {
		t.Errorf("tools of an agent with all that are allowed: %q, want %q", got, want)
	}
}

func TestToolsOfACommand(t *testing.T) {
	t.Parallel()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	c := converse(t, fmt.Sprintf(`
providers: {p: {type: offline}}
mcp:
  shop: {command: %q, args: [-test.v=false], env: {%s: "1", LEVEL: "${LEVEL}"}, dir: %q}
  none: {command: /does/not/exist}
agents: {front: {models: [p/m], tools: [mcp.shop, mcp.none]}}
`, exe, childTools, dir), map[string]string{"LEVEL": "planted-level"}, map[string]agent.Model{"p": caller()})
	await(t, "the command to be connected", func() bool { _, part := c.statusOf(t, "mcp/shop"); return part == "ok" })
	if whole, part := c.statusOf(t, "mcp/none"); whole != "degraded" || part != "connecting" {
		t.Errorf("a command that does not exist: %s, %s", whole, part)
	}
	got := c.say(t, "use shop__self")
	var pid int
	if _, err := fmt.Sscanf(got, "pid=%d", &pid); err != nil || !strings.HasSuffix(got, "dir="+dir+" level=planted-level args=-test.v=false key=") {
		t.Fatalf("the command tells of itself: %q", got)
	}
	if err := c.end(); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("the command outlives the gateway: %v", err)
	}
}
