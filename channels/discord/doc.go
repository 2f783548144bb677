// Package discord joins one bot account on Discord: it receives messages and slash commands over the
// gateway, and sends by the REST API.
//
// # Gateway
//
// The library discordgo speaks the gateway's protocol; it is used nowhere else, and not trusted to
// reconnect. A supervisor owns one connection at a time, opens it, and decides from what Discord said last
// whether to resume, to begin anew, or to give up because only the operator can help. Beneath the library
// a wire watches every frame (see type wire) and ends a connection that is silent, unacknowledged or told
// to reconnect, in a way that leaves the session resumable. New sessions are begun only while the daily
// budget of logins lasts. v0.29.0 of the library does not use resume_gateway_url; a resume goes to the
// general address.
//
// # Receiving
//
// Events keep their order on the way through a bounded intake to the Sink, and are handed in until it
// accepts them. When it does not, the connection is cut and Discord keeps what follows for a resume.
// Messages are decoded by small structs of the package's own, so that a component or field of a new kind
// costs no message. Slash commands are acknowledged at once, beside the intake.
//
// # Catching up
//
// A new gateway session has a gap before it. At its READY the adapter reads, by REST, what was said since:
// in the direct chats that it knows, and in each guild's rooms and active threads with something new in
// them. Direct messages and mentions among it are handed in, oldest first and before what is said from then
// on, bounded in age and number. How far was read is kept by a Cursor; slash commands, which must be answered
// in three seconds, and threads archived meanwhile are not caught up on.
//
// # Sending
//
// Each message carries a nonce made from its ID, by which Discord refuses to show it twice for some
// minutes; for a later attempt the room's recent messages are looked through first. An answer never
// notifies anybody. Rate limits are remembered and reported, never slept through: repetition is the
// outbox's.
//
// # Concurrency
//
// An Adapter is safe for concurrent use; Run is called once. All goroutines end before Run returns, but
// for one that the library never lets go: that is given up after a grace and counted in the log.
//
// # Durability
//
// Inbound.Reply and Outbound.Reply hold JSON whose field names are stored for ever. An event that the sink
// has not accepted is known to Discord alone: the Cursor moves only past what was accepted.
package discord
