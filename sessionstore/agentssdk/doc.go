// Package agentssdk moves conversations between a session store and the files of the OpenAI Agents SDK:
// the SQLite file of SQLiteSession, the same tables as SQLAlchemySession makes them, the envelopes of
// EncryptedSession in either, and JSON lines.
//
// Everything is a sequence of rows. A reader (ReadSQLite, ReadJSONL, ReadStore) yields them, a filter
// (Decrypt, Encrypt) changes them, a writer (WriteSQLite, WriteJSONL, WriteStore) takes them, one at a
// time, so that a file of any size fits. An item's bytes are the same at the end as at the beginning.
//
// A row that cannot be read does not end the sequence: it is yielded as a [*Fault], which names the row,
// the session and the reason, and writers pass it to Options.Fault. Any other error ends the sequence.
//
// # Durability
//
// WriteSQLite makes its file whole or not at all. WriteStore appends turn by turn; when it is cut short,
// running it again on the same rows appends what is missing and nothing twice.
package agentssdk
