package app

import (
	"fmt"
	"maps"
	"slices"

	"botd/agent/mcp"
	"botd/config"
)

// buildToolServers makes every configured MCP server, by name. None is contacted.
func buildToolServers(cfg *config.Config, o Options) (map[string]*mcp.Server, error) {
	servers := make(map[string]*mcp.Server, len(cfg.MCP))
	for name, c := range cfg.MCP {
		s, err := newToolServer(name, c, o)
		if err != nil {
			return nil, fmt.Errorf("set up mcp.%s: %w", name, err)
		}
		servers[name] = s
	}
	return servers, nil
}

func newToolServer(name string, c config.MCPServer, o Options) (*mcp.Server, error) {
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
