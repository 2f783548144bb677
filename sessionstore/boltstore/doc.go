// Package boltstore keeps sessions and the journal in one bbolt file.
//
// # File
//
// Top-level buckets, no nesting, integers big-endian, so that keys sort as numbers do. Every record but
// those of sys and key begins with a version byte and a CRC-32C over its key and what follows.
//
//	sys  schema, clean                                   what the file is, how it was left
//	key  session ID                          → sid8      sessions in the order of their IDs
//	ses  sid8 0 epoch4 turn                  → –         turns appended; the newest are in the header
//	     sid8 1 epoch4 seq8                  → item      items shown in place of others
//	     sid8 2 epoch4 seq8                  → item      items as appended
//	     sid8 ff                             → header    last key of its session: beside the newest items
//	inb  seq8                                → event     accepted, not yet answered
//	ddp  len2 channel event ID               → expiry    events known; IDs of platforms grow with time
//	out  seq8                                → delivery  waiting or held
//	kep  seq8                                → delivery  unknown or dead, kept for the operator
//	dlq  seq8                                → event     dead letters
//	arc  sid8 epoch4                         → archive   epochs that were cleared and can be restored
//	swp  prefix in ses                       → –         what housekeeping still has to delete
//	tmb  sha256(session ID)[:16]             → tombstone generation of an erased session
//	rec  kind 0 key                          → record    small durable facts, see sessionstore.Recorder
//	rex  until8, key in rec                  → –         records that cease to exist, the earliest first
//	tly  key                                 → counts    counters, see sessionstore.Tallier
//	tlg  seq8                                → counts    what turns added to counters and is not added up yet
//	dek  number8                             → key       session ID, the session's key wrapped by the master key
//	dki  session ID                          → number8   the key that new records are encrypted with
//
// The items of a generation live under an epoch of their own. To clear a session is to give it another
// epoch: one small write, whatever the session's length. What no epoch leads to is deleted later, in
// small steps.
//
// # Encryption
//
// With Options.Key a new file is encrypted: the two buckets dek and dki are in such files alone. Items, and
// what inb, out, kep and dlq hold, are sealed with AES-256-GCM under a key of their session, what rec holds
// under a key of its own, each with a random nonce and bound to its bucket and key, so that a record can be
// neither read nor changed nor put in another's place. These keys are random and wrapped by Options.Key, which
// Rekey changes; Erase deletes a session's with what they sealed. Another key, or none, opens nothing and
// changes nothing.
//
// What is not hidden: session IDs, IDs of events and turns, kinds and keys of records, counters, times,
// counts, token usage and lengths. What is not guarded: an older state of the file, or of a record, can be put back by whoever can write the file.
// A backup holds the keys along with what they sealed, both closed to whoever lacks the master key.
//
// # Concurrency
//
// A DB is safe for concurrent use. Writes that wait for each other are committed together: the caller at
// the head of the queue commits for all that queued up behind it, so a lone caller waits for nobody and
// many callers share one flush of the disk. Each gets the result of its own write. Reads see the last
// commit, copy what they return, and hold no transaction while the caller works with it.
//
// One process at a time opens the file.
//
// # Durability
//
// A write that returned nil is on the disk. A write that returned an error has changed nothing, with one
// exception that says so: after ErrFailed the outcome of the writes in flight is unknown until the file
// is opened again.
package boltstore
