// Package discordfake is an in-process Discord: the REST API (v9 and v10 paths) and the gateway, over real
// HTTP and a real web socket, with one application ("the bot") and any number of people, guilds, rooms and
// threads. It is as strict as Discord where strictness decides whether a bot works: tokens, intents, close
// codes, limits of length and rate, permissions, interaction deadlines, the emptying of content without the
// MESSAGE_CONTENT intent. And it fails on request in the ways Discord and the way to it fail.
//
// Tests, the demo page and the load generator share it, so it does not import testing. A "room" here is
// what Discord calls a channel.
//
// # Use
//
//	s, err := discordfake.New(discordfake.Options{})
//	if err != nil { … }
//	defer s.Close()
//	guild, _ := s.Guild("Book club")
//	room, alice := s.Room(guild, "general"), s.Person("Alice")
//	s.Say(discordfake.Saying{From: alice.ID, Room: room, Text: "hello"}) // tells the bot by the gateway
//	posts := s.BotPosts(room)                                            // what the bot has said there
//
// In botd's configuration the channel then has api_base, which is s.URL(), and token, which is DefaultToken
// unless Options.Token is another.
//
// # Concurrency
//
// All methods of a Server are safe for concurrent use. Close ends every connection and waits for all
// goroutines. Events reach each gateway connection in the order in which they happened.
//
// # Time
//
// Time is the time package's own. Given an in-memory Options.Listener, a Server works inside a
// testing/synctest bubble.
package discordfake
