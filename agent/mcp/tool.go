package mcp

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"botd/agent"
)

const (
	// maxToolName is what providers take (OpenAI API reference, tools).
	maxToolName = 64
	// maxDescription bounds what a server may tell the model about a tool, in characters.
	maxDescription = 1024
)

// tool is one tool of a server.
type tool struct {
	server *Server
	// name is the server's own.
	name string
	spec agent.ToolSpec
}

var _ agent.Tool = tool{}

// list asks a session for its tools.
func (s *Server) list(ctx context.Context, session *mcp.ClientSession) ([]agent.Tool, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	var tools []agent.Tool
	taken := make(map[string]bool)
	for t, err := range session.Tools(ctx, nil) {
		if err != nil {
			return nil, err
		}
		if len(s.opts.Allow) > 0 && !slices.Contains(s.opts.Allow, t.Name) {
			continue
		}
		spec, err := s.spec(t)
		switch {
		case err != nil:
			s.log.Warn("leaving out a tool", "err", err)
			continue
		case taken[spec.Name]:
			s.log.Warn("leaving out a tool whose name is taken", "tool", spec.Name)
			continue
		case len(tools) == agent.MaxTools:
			s.log.Warn("too many tools, leaving out the rest", "limit", agent.MaxTools)
			return tools, nil
		}
		taken[spec.Name] = true
		tools = append(tools, tool{server: s, name: t.Name, spec: spec})
	}
	return tools, nil
}

var notNameRE = regexp.MustCompile(`[^a-zA-Z0-9_-]+`)

// spec describes a tool to the model, in the limits of the providers.
func (s *Server) spec(t *mcp.Tool) (agent.ToolSpec, error) {
	if t.Name == "" {
		return agent.ToolSpec{}, errors.New("a tool has no name")
	}
	full := s.opts.Name + "__" + t.Name
	name := notNameRE.ReplaceAllString(full, "_")
	if len(name) > maxToolName {
		sum := sha256.Sum256([]byte(full))
		name = name[:maxToolName-9] + "_" + hex.EncodeToString(sum[:4])
	}
	schema, err := inputSchema(t.InputSchema)
	if err != nil {
		return agent.ToolSpec{}, fmt.Errorf("schema of tool %s: %w", name, err)
	}
	return agent.ToolSpec{Name: name, Description: clean(t.Description, maxDescription), Parameters: schema}, nil
}

// inputSchema is a server's schema in the form that all providers take.
func inputSchema(v any) (json.RawMessage, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	schema := make(map[string]json.RawMessage)
	if err := json.Unmarshal(raw, &schema); err != nil {
		return nil, err
	}
	if schema == nil {
		schema = make(map[string]json.RawMessage) // there was none
	}
	delete(schema, "$schema")
	schema["type"] = json.RawMessage(`"object"`)
	if _, ok := schema["properties"]; !ok {
		schema["properties"] = json.RawMessage(`{}`)
	}
	return json.Marshal(schema)
}

// clean takes what cannot be seen from a server's text, and bounds it.
func clean(text string, limit int) string {
	text = strings.Map(func(r rune) rune {
		if r != '\n' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r)) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, ""))
	if runes := []rune(text); len(runes) > limit {
		text = string(runes[:limit-1]) + "…"
	}
	return strings.TrimSpace(text)
}

// Spec implements agent.Tool.
func (t tool) Spec() agent.ToolSpec { return t.spec }

// Call implements agent.Tool. It is never made twice: nobody knows what a call that failed has done.
func (t tool) Call(ctx context.Context, args json.RawMessage) (agent.ToolResult, error) {
	c := t.server.live.Load()
	if c == nil {
		return agent.ToolResult{}, errors.New("the tool's server is not connected")
	}
	res, err := c.session.CallTool(ctx, &mcp.CallToolParams{Name: t.name, Arguments: args})
	if err != nil {
		return agent.ToolResult{}, t.failure(ctx, err)
	}
	text, err := resultText(res)
	if err != nil {
		return agent.ToolResult{}, err
	}
	if res.IsError {
		return agent.ToolResult{}, errors.New(text)
	}
	return agent.ToolResult{Text: text}, nil
}

// undelivered are the codes by which the client library says that a call did not reach the server: the
// client is closing, the server is closing, the transport rejects it.
var undelivered = []int64{-32003, -32004, -32005}

// failure sorts what a call ended with: the server's word, the end of ctx, or a connection that is lost.
func (t tool) failure(ctx context.Context, err error) error {
	if e, ok := errors.AsType[*jsonrpc.Error](err); ok && !slices.Contains(undelivered, e.Code) {
		return fmt.Errorf("the server refuses the call: %s", e.Message)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	t.server.log.Warn("call failed", "tool", t.name, "err", t.server.redact(err))
	signal(t.server.broken)
	return errors.New("the tool's server did not answer")
}

// resultText is a result in words. What is not text is named, not shown.
func resultText(res *mcp.CallToolResult) (string, error) {
	var parts []string
	for _, c := range res.Content {
		switch c := c.(type) {
		case *mcp.TextContent:
			parts = append(parts, c.Text)
		case *mcp.ImageContent:
			parts = append(parts, fmt.Sprintf("[an image, %s, %d bytes, not shown]", c.MIMEType, len(c.Data)))
		case *mcp.AudioContent:
			parts = append(parts, fmt.Sprintf("[a sound, %s, %d bytes, not shown]", c.MIMEType, len(c.Data)))
		case *mcp.ResourceLink:
			parts = append(parts, fmt.Sprintf("[a link to %s: %s]", c.Name, c.URI))
		case *mcp.EmbeddedResource:
			if c.Resource != nil && c.Resource.Text != "" {
				parts = append(parts, c.Resource.Text)
			} else {
				parts = append(parts, "[a resource, not shown]")
			}
		default:
			parts = append(parts, "[content of an unknown kind, not shown]")
		}
	}
	if len(parts) == 0 && res.StructuredContent != nil {
		raw, err := json.Marshal(res.StructuredContent)
		if err != nil {
			return "", fmt.Errorf("read result: %w", err)
		}
		return string(raw), nil
	}
	return strings.Join(parts, "\n"), nil
}
