// Package channels is the vocabulary shared by everything that carries messages between people on a
// chat platform and the agent engine: addresses, events, parts, deliveries, errors, and the Adapter
// contract that each platform fulfils.
//
// # Contract
//
// An adapter speaks one platform's protocol and nothing else. It turns what the platform reports into
// Inbound events and hands them to a Sink; it composes and sends Outbound messages. It holds no policy
// (who may talk, which agent answers, when to retry): that is the dispatcher's.
//
// # Concurrency
//
// All types here are values, safe to copy. An Adapter's methods are safe for concurrent use, except
// Run, which is called once.
//
// # Durability
//
// Address, Inbound and Outbound are written to the journal as JSON. Their field names and the values of
// Kind, RoomKind and PartType are therefore stored for ever: add, never rename or reuse.
package channels
