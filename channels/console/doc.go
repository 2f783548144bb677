// Package console is a channel that works without any account: a chat in the terminal, and a chat over
// loopback HTTP for demonstrations, scripts and end-to-end tests.
//
// # Terminal
//
// With Options.In and Out, each line read is a message of Options.User in a direct chat. Answers are
// written as they are made. They keep the model's Markdown, which reads well in a terminal.
//
// # HTTP
//
// The handler of Webhook, which Run also serves itself on Options.Listen, knows two endpoints below
// whatever path it is mounted on:
//
//	POST …/messages   {"user": "ann", "text": "hello", "room": "…", "id": "…", "mention": true, "reply_to": "…"}
//	                  answers 202 {"event_id": "…"} once the message is accepted, 503 when it is not.
//	GET  …/events     ?user=ann or ?room=…: the bot's answers as server-sent events.
//
// Only user and text are required. Without room it is a direct chat. In a room the bot is spoken to when
// mention is true, when it is absent and the text holds @ and the bot's name, or when reply_to is the ID
// of one of its messages. A message sent again with the same id is the same event.
//
// The events are "message" (an answer: id, text, reply_to, at), "preview" (the text so far of an answer
// being written) and "typing". Messages have an event ID; a client that comes back with Last-Event-ID, or
// last_id in the query, gets those after it, as far back as Options.Keep.
//
// There is no authentication. Requests that do not come from this machine, that were forwarded by a
// proxy, or that a page of another site makes are refused; anyone with an account on this machine can
// talk to the bot as anyone.
//
// # Concurrency
//
// An Adapter is safe for concurrent use, except Run, which is called once.
//
// # Durability
//
// What was shown is kept in memory only. Within one process a delivery is shown once under its ID; after a
// restart a delivery that was shown but not yet noted as such is shown again, to clients that are new.
package console
