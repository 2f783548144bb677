// Package sessionstore defines how conversations are remembered: many sessions, each an ordered list of
// items, with the semantics of the OpenAI Agents SDK's Sessions (get, add, pop, clear).
//
// An item is the raw JSON of an OpenAI Responses item (message, function_call, function_call_output,
// reasoning, …). It is any JSON object, stored and returned byte for byte; nothing in this package or
// below it models an item's fields.
//
// # Concurrency
//
// A Store is safe for concurrent use. Order is by a sequence number given at append, never by time.
//
// # Durability
//
// A write that returned nil survives the death of the process, unless the store says otherwise
// (memstore keeps nothing).
package sessionstore
