// Package conversations keeps sessions in OpenAI's Conversations API, as OpenAIConversationsSession of the
// Agents SDK does: a session is a conversation, made when it is first written to.
//
// The API cannot keep all that a session is, so a [State] beside it remembers, durably, which conversation
// belongs to which session, its generation, the turns that were appended, and what was being written.
//
// # What is not kept byte for byte
//
// The API gives items back in its own spelling and under IDs of its own. The id and provider_data of an
// item are taken out before it is sent, except where its type needs its id; the id of an assistant's
// message is taken out when it is read, for a model would refuse it without the reasoning before it. A
// reasoning item with neither id nor encrypted_content cannot be stored and is left out.
//
// # Durability
//
// The API takes 20 items at a time and has no transaction. A batch is noted in the State before it is sent
// and completed, from where it came to, by the session's next operation if need be: after [ErrIncomplete]
// it is not lost, and appending the same turn again completes it. A batch that the API refuses is undone.
//
// # Concurrency
//
// A Store is safe for concurrent use and does one thing at a time for each session. Two Stores on one State
// notice each other and fail with [ErrConflict]; two with States of their own do not.
package conversations
