// Package memstore keeps sessions and the journal in memory: for tests, for demonstrations and for
// operators who want a bot that forgets. It is the plainest implementation of its contracts and the
// model that the durable ones are compared with.
//
// # Concurrency
//
// A Store is safe for concurrent use; one mutex guards everything.
//
// # Durability
//
// None: what a Store holds ends with the process.
package memstore
