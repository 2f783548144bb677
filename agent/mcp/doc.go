// Package mcp gives agents the tools of MCP servers (Model Context Protocol), started as a command or
// reached over HTTP.
//
// A server is somebody else's program. It gets no more of the environment than it needs, only the tools
// that the operator allows are offered, and a server that is slow, dead or gone takes nothing down: its
// tools are missing until it is back.
//
// # Concurrency
//
// A Server is safe for concurrent use. It is connected while Run runs; Run waits for all that it started.
package mcp
