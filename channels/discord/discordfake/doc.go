// Package discordfake is an in-process Discord: the REST API (v9 and v10 paths) and the gateway, over real
// HTTP and a real web socket, with one application ("the bot") and any number of people, guilds, rooms and
// threads. It is as strict as Discord where strictness decides whether a bot works: tokens, intents, close
// codes, limits of length and rate, permissions, interaction deadlines, the emptying of content without the
// MESSAGE_CONTENT intent. And it fails on request in the ways Discord and the way to it fail.
//
// Tests, the demo page and the load generator share it, so it does not import testing. A "room" here is
// what Discord calls a channel.
//
// # Concurrency
//
// All methods of a Server are safe for concurrent use. Close ends every connection and waits for all
// goroutines. Events reach each gateway connection in the order in which they happened.
//
// # Time
//
// Time is the time package's own. Given an in-memory Options.Listener, a Server works inside a
// testing/synctest bubble.
package discordfake
