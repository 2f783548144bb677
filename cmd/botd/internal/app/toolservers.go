package app

import (
	"context"
	"fmt"

	"botd/agent"
	"botd/config"
)

// toolServer is an MCP server. Its tools are there while Run runs and the server lives.
type toolServer interface {
	agent.Toolset
	// Run returns when ctx ends.
	Run(ctx context.Context) error
	Connected() bool
	// Only is the toolset of some tools, by the server's own names.
	Only(names ...string) agent.Toolset
}

// buildToolServers makes every configured MCP server, by name. None is contacted.
func buildToolServers(cfg *config.Config, o Options) (map[string]toolServer, error) {
	servers := make(map[string]toolServer, len(cfg.MCP))
	for name, c := range cfg.MCP {
		s, err := newToolServer(name, c, o)
		if err != nil {
			return nil, fmt.Errorf("set up mcp.%s: %w", name, err)
		}
		servers[name] = s
	}
	return servers, nil
}
