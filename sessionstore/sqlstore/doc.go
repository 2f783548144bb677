// Package sqlstore keeps sessions in a SQL database of one's own: SQLite, PostgreSQL, MySQL or MariaDB.
//
// The tables are those of the OpenAI Agents SDK (SQLiteSession on SQLite, SQLAlchemySession on the servers),
// so a Python program can read and write the same conversations at the same time. What the SDK has no
// place for is kept beside, in tables of its own whose names begin with botd_: the generation of a session,
// the turns that were appended, and each item's turn, origin and time to the millisecond. Rows that Python
// added have no such record and need none; records of rows that Python deleted do no harm.
//
// # Clears from outside
//
// A session that Python cleared counts as cleared here too, from the first time this package appended to
// it: the store notes when the SDK's session row was created and sees that it is gone or another one.
//
// # Concurrency
//
// A Store is safe for concurrent use, and so are several Stores, in several processes, on one database.
// SQLite has one writer per process, which commits what waits in one transaction.
//
// # Durability
//
// A write that returned nil is committed: on SQLite to the disk (journal mode WAL, synchronous FULL), on a
// server to whatever the server promises. A write whose answer was lost on the way is tried again when
// that is safe, which it is for a batch with a turn; else its error is [ErrOutcomeUnknown].
package sqlstore
