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
//
// The items of a generation live under an epoch of their own. To clear a session is to give it another
// epoch: one small write, whatever the session's length. What no epoch leads to is deleted later, in
// small steps.
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
