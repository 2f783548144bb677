// Package dispatch stands between the chat platforms and the agent engine. It takes events from
// adapters, decides which are answered and by which session, runs one turn after another for each
// session, and delivers the answers.
//
// # Contract
//
// Every admitted event gets exactly one answer or one honest notice, whatever is killed when. An event
// is durable before Accept returns nil. A turn leaves its items, the events it answers and its replies
// in the journal in one commit, and nothing is said before that commit. Replies wait in the outbox
// until the platform has accepted them, has refused them for good, or they are given up visibly.
//
// Where the journal keeps the sessions too (Options.Store and Options.Journal are the same value),
// memory and journal change in one transaction. With any other store the items are appended first,
// under the turn's ID; a turn that finds its own items in the history answers with what they hold
// instead of running again. Likewise a turn that /undo or /retry takes back leaves memory in the commit that
// says so; from any other store its items are popped first, each known by the turn's ID, and the journal
// notes beforehand which turn is meant.
//
// A message that its sender takes back before it is answered is consumed without a word, and one that
// comes after it was taken back too. What was answered already stays in memory.
//
// # Rights
//
// Anybody may ask for help and stop what is being answered. What changes a memory (/reset, /restore,
// /undo, /retry) is for everybody where each person has one of their own; where several people share it,
// it takes somebody whom the platform reports to be in charge of the place, or one of Channel.Admins.
//
// # Concurrency
//
// A Dispatcher is safe for concurrent use. A session has a lane: its turns run in the order in which
// their events were accepted, one at a time. Lanes run side by side up to Options.MaxConcurrent and
// take turns: a lane that has had one waits behind the others. A place, which is a conversation on a
// platform, has its own queue of deliveries, sent in the order of commit. Goroutines exist only while
// there is work, and all have ended when Run returns.
//
// One mutex guards lanes and places; it is never held during I/O.
package dispatch
