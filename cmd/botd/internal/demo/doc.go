// Package demo is the whole gateway between the two platforms that stand in for LINE and Discord, with a
// page that shows their chats side by side and what the gateway remembers of them.
//
// Nothing in the gateway knows that this is a demonstration: it is configured as any other, gets signed
// webhooks from one platform and events of a web socket from the other, and answers through their APIs.
//
// # Concurrency
//
// A Demo is safe for concurrent use; Run is called once.
//
// # Security
//
// The page has no authentication. It is served on loopback, to pages of its own alone: requests for
// another host name and of other sites are refused. All text is put on the page as text.
package demo
