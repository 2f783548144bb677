// Package offline is a model that needs no provider, no key and no network. It is no language model: it
// answers by a few fixed rules, and says so. What it shows is real, though: that the gateway remembers
// (it reads the history it is given), calls tools (it asks for the clock and uses the output), and
// streams.
//
// # Concurrency
//
// A Model is safe for concurrent use and keeps no state: the same request has the same answer.
package offline
