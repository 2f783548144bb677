// Package app is the whole gateway as a library: it builds everything from a configuration, runs it, and
// drains it.
//
// # Life
//
// New opens the store and the listener, so that a gateway that cannot work fails before it says anything.
// Run starts the dispatcher, then the channels, then the HTTP server. When its context ends, Run goes the
// other way round: readiness turns false, webhooks and admin requests under way are finished and new ones
// refused, channels stop, the dispatcher drains within the configured grace, MCP servers are let go, and the store is closed. What was accepted and
// not answered by then is answered after the next start.
//
// # Concurrency
//
// Each channel has a supervisor: a channel that fails is shown by /readyz and the log, and the others go
// on. An App is safe for concurrent use; Run is called once.
package app
