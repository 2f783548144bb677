//go:build !nomcp

package app

import (
	"maps"
	"slices"

	"botd/agent/mcp"
	"botd/config"
)

// HasMCP reports whether this program can use MCP servers. The build tag nomcp leaves them out, which makes
// the program smaller.
const HasMCP = true

func newToolServer(name string, c config.MCPServer, o Options) (toolServer, error) {
	opts := mcp.Options{
		Name: name, Dir: c.Dir, URL: c.URL, Headers: revealed(c.Headers), Allow: c.Tools, Version: o.Version, Logger: o.Logger,
	}
	if c.Command != "" {
		opts.Command = append([]string{c.Command}, c.Args...)
	}
	for _, variable := range slices.Sorted(maps.Keys(c.Env)) {
		opts.Env = append(opts.Env, variable+"="+c.Env[variable].Reveal())
	}
	return mcp.New(opts)
}
