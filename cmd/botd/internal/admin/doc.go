// Package admin is the operator's way into a running gateway: an HTTP API on a Unix socket, and a client
// for it.
//
// # API
//
// Every path begins with /v1. Answers are JSON; errors are problem+json (RFC 9457) with a code that stays
// the same for ever, see the Code constants. Lists come in pages: as long as an answer has next, its value
// is the cursor of the page after. docs/admin.md describes each path.
//
// # Trust
//
// Whoever may write to the socket may do everything. The socket has mode 0600, and where the system tells
// who is at its other end (Linux), anybody but root and the gateway's own user is refused.
//
// # Audit
//
// Each act that concerns people, reading included, is recorded before it is done: who, what, and a hash
// of whom. The record goes to the store if that keeps one (Auditor), and to the log otherwise. An act that
// cannot be recorded is refused. No message text is logged.
//
// # Concurrency
//
// A Server is safe for concurrent use. It reads the store in pages that are copies, so that a client that
// reads slowly holds up nothing but itself.
package admin
