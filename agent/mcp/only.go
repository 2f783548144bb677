package mcp

import (
	"slices"

	"botd/agent"
)

// Only returns the tools of these names, which are the server's own, as a toolset that comes and goes with
// the server as Tools does.
func (s *Server) Only(names ...string) agent.Toolset { return only{s, names} }

// only is some of a server's tools.
type only struct {
	server *Server
	names  []string
}

// Tools implements agent.Toolset.
func (o only) Tools() []agent.Tool {
	var tools []agent.Tool
	for _, t := range o.server.Tools() {
		if t, ok := t.(tool); ok && slices.Contains(o.names, t.name) {
			tools = append(tools, t)
		}
	}
	return tools
}
