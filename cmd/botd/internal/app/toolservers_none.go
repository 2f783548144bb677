//go:build nomcp

package app

import (
	"errors"

	"botd/config"
)

// HasMCP reports whether this program can use MCP servers. The build tag nomcp leaves them out, which makes
// the program smaller.
const HasMCP = false

func newToolServer(string, config.MCPServer, Options) (toolServer, error) {
	return nil, errors.New("this program was built without MCP servers")
}
