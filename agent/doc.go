// Package agent is the engine that all channels share: it runs one turn of a conversation over its
// history, calls the model and the tools until there is an answer, and returns the items to remember.
//
// # Contract
//
// The engine writes nothing. The caller loads the history, commits the items of Final, and delivers the
// text; a run that is interrupted at any moment therefore leaves no trace, and may be run again.
//
// # Concurrency
//
// Engine, Model and Tool are safe for concurrent use and keep no state between runs.
package agent
