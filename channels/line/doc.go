// Package line joins a LINE Official Account by the Messaging API: LINE posts events to a webhook, and
// answers go back with the event's reply token or, when that is not possible, as a push.
//
// # Receiving
//
// Handler verifies the signature over the raw body with the secret of the bot that the webhook is
// addressed to, turns each event into a channels.Inbound and answers 200 only after the sink has
// accepted them all: LINE gives up after 2 seconds, and repeats a webhook only if the operator has
// switched redelivery on, with the same webhookEventId. Events that are not understood are left out one
// by one; the others of their batch go on. The statuses:
//
//	200  everything was accepted, or there was nothing to accept (the console's Verify)
//	400  signed, but not a webhook
//	403  no or a wrong signature, or addressed to another bot
//	405  not POST
//	413  more than 1 MiB
//	503  the sink did not accept: a redelivery can help
//
// # Sending
//
// A reply is free and works once, within a minute of the webhook; a push counts against the month's
// quota and may be repeated safely under its retry key. Compose therefore puts up to five bubbles into
// one send with the event's token, marked Once, and only what does not fit into pushes. Send never lets
// a message be seen twice: after a reply whose outcome is unknown it tries the same token once more,
// which LINE takes only once, and never pushes; it pushes when LINE has refused the token, or when the
// token is too old to be tried. Every error kind but Ambiguous means that LINE has surely not shown the
// message by its reply token, so that trying again is safe.
//
// A retry key is good for 24 hours from the first attempt: a push must not be tried again after that.
//
// # Media
//
// An event refers to its media by the message ID; OpenMedia fetches the content as long as LINE keeps
// it. LINE prepares video and audio for some time (202), and a message may be unsent or its content
// expire at any moment (404, 410).
//
// # Guards around the SDK
//
// The SDK (line-bot-sdk-go v8) supplies the signature check, the request types and the calls. What it
// leaves open is closed here, and its test pins the facts: an empty secret verifies anything; a batch
// fails as a whole for one odd event, with the body in the error; errors are untyped and hold LINE's
// answer; WithContext changes the shared client; IDs go into paths unescaped; an empty 202 counts as
// content; the bodies of errors are not closed; there is no timeout, and redirects are followed.
//
// # Concurrency
//
// An Adapter is safe for concurrent use; Run is called once.
//
// # Privacy
//
// No token, secret, body or message text is put into an error or a log.
package line
