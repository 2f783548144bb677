// Package linefake is the LINE Platform in one process: bots, people, groups and rooms, webhooks that are
// signed and posted as LINE posts them, and the part of the Messaging API that a chat gateway uses, as
// strict as the real one. Tests, the demo and the load generator share it, so that there is one truth
// about the platform. It speaks plain HTTP on loopback, or needs no socket at all: see Server.Transport.
//
// # Use
//
//	s := linefake.New(linefake.Options{})
//	defer s.Close()
//	if err := s.Listen("127.0.0.1:0"); err != nil { … }
//	bot := s.AddBot(linefake.BotConfig{WebhookURL: gateway + "/webhook/line"})
//	alice := s.AddUser(linefake.UserConfig{Name: "Alice"})
//	chat := bot.Direct(alice)
//	ev, res := chat.Say(ctx, alice, "hello") // posts the webhook and waits for the 200
//	answers, err := chat.Await(ctx, 1)       // what the bot has shown in the chat
//
// In botd's configuration the channel named line, whose webhook_path is /webhook/line unless it is given,
// then has api_base and data_api_base, which are both s.URL(), channel_secret, which is bot.Secret, and
// channel_access_token, which is bot.Token.
//
// # Rules
//
// Sources are the Messaging API reference and guides on developers.line.biz:
//
//   - webhooks: base64 HMAC-SHA256 over the raw body in x-line-signature, a 200 within 2 seconds,
//     redelivery (off unless configured) with the same webhookEventId and isRedelivery set;
//   - reply tokens: one use; one minute from the delivery of the webhook, or from its redelivery when
//     the event is not older than 20 minutes; a refused request does not use the token up;
//   - messages: 1 to 5 in a call, text of 1 to 5000 UTF-16 code units, no unknown types or properties,
//     quote tokens only in the chat where they were given;
//   - X-Line-Retry-Key: refused on reply; on push a UUID, valid for 24 hours, 409 with the first
//     request's sentMessages and x-line-accepted-request-id when it was accepted before;
//   - 429 with LINE's own texts for the rate limit and for the monthly limit, which counts recipients;
//   - loading animation: one-on-one chats only, 5 to 60 seconds in steps of 5;
//   - content: 202 while it is prepared, 410 when it is gone; transcoding is 400 for images and files;
//   - request bodies of at most 2 MB, case-sensitive IDs, a bearer token on everything.
//
// What LINE does with a retry key that comes again with another body is not documented: the fake
// answers 409 like for any accepted key, and notes it in Call.Note so that a test can tell.
//
// # Concurrency
//
// Everything is safe for concurrent use. Close waits for the goroutines that the server started.
package linefake
