package config

import (
	"maps"
	"slices"
	"strings"
)

// mcpPrefix begins the names of tools of MCP servers.
const mcpPrefix = "mcp."

// maxMCPName leaves room for the server's name in those of its tools.
const maxMCPName = 32

// MCPRef splits mcp.<server> or mcp.<server>.<tool>, whose tool is in the server's own words and may hold
// dots; ok is false for the name of any other tool.
func MCPRef(tool string) (server, name string, ok bool) {
	rest, ok := strings.CutPrefix(tool, mcpPrefix)
	server, name, _ = strings.Cut(rest, ".")
	return server, name, ok
}

// mcpTool checks the name of a tool of an MCP server.
func (v *validator) mcpTool(path, tool string) {
	name, of, _ := MCPRef(tool)
	server, known := v.cfg.MCP[name]
	switch {
	case name == "" || strings.HasSuffix(tool, "."):
		v.problem(path, "write mcp.<name> for all tools of a server, or mcp.<name>.<tool>", "%s is not the name of a tool", quote(tool))
	case len(v.cfg.MCP) == 0:
		v.problem(path, "define it under mcp", "there is no MCP server named %s", quote(name))
	case !known:
		v.unknownName(path, "MCP server", name, slices.Sorted(maps.Keys(v.cfg.MCP)))
	case of != "" && len(server.Tools) > 0 && !slices.Contains(server.Tools, of):
		v.unknownName(path, "tool in mcp."+name+".tools", of, server.Tools)
	}
}

func (v *validator) mcpServer(name string, s MCPServer) {
	path := "mcp." + name
	if len(name) > maxMCPName {
		v.problem(path, "use a shorter name", "the name is %d characters long, and an MCP server's may have %d", len(name), maxMCPName)
	}
	_, command := v.marks[path+".command"]
	_, url := v.marks[path+".url"]
	switch {
	case command && url:
		v.problem(path+".url", "keep one of the two", "%s has both command and url", path)
	case command:
		v.onlyWith(path, "url", "headers")
	case url:
		v.onlyWith(path, "command", "args", "env", "dir")
		v.mcpURL(path, s)
	default:
		v.problem(path, "add command: with the program to start, or url: with the address of the server", "%s has neither command nor url", path)
	}
}

// onlyWith reports keys that mean nothing without another one.
func (v *validator) onlyWith(path, other string, keys ...string) {
	for _, key := range keys {
		if _, given := v.marks[path+"."+key]; given {
			v.problem(path+"."+key, "remove it", "%s.%s is only for servers with %s", path, key, other)
		}
	}
}

func (v *validator) mcpURL(path string, s MCPServer) {
	v.headers(path, s.Headers)
	u, ok := v.url(path+".url", s.URL)
	if ok && u.Scheme == "http" && !isLoopback(u.Hostname()) {
		v.warning(path+".url", "use https:// unless the network between is trusted", "%s.url sends headers and conversations unencrypted", path)
	}
}
