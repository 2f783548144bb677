// Package agenttest stands in for models and tools in tests: a Model that answers by a script and
// records what it was asked, and a Tool made of a function.
//
// # Concurrency
//
// Model and Tool are safe for concurrent use. Requests are numbered in the order in which they arrive.
package agenttest
