// Package obs sets up the program's own log.
//
// Messages of people and credentials never belong in a log. The first is everybody's duty where a line is
// written; for the second, a Redactor stands between the log and the place it is written to, and replaces
// every credential of the configuration that gets there in spite of all care.
//
// # Concurrency
//
// Loggers and writers made here are safe for concurrent use.
package obs
