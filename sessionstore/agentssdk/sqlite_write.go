package agentssdk

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"botd/sessionstore"
)

// commitEvery is how many rows share a transaction.
const commitEvery = 5000

// schemas are the tables word for word as the SDK's classes make them (openai-agents-python 0.22.0,
// memory/sqlite_session.py and extensions/memory/sqlalchemy_session.py).
var schemas = map[Layout][]string{
	SQLiteSession: {
		`CREATE TABLE {sessions} (
    session_id TEXT PRIMARY KEY,
    created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
    updated_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP
)`,
		`CREATE TABLE {messages} (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id TEXT NOT NULL,
    message_data TEXT NOT NULL,
    created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
    FOREIGN KEY (session_id) REFERENCES {sessions} (session_id)
        ON DELETE CASCADE
)`,
		`CREATE INDEX "idx_{m}_session_id" ON {messages} (session_id, id)`,
	},
	SQLAlchemySession: {
		`CREATE TABLE {sessions} (
	session_id VARCHAR NOT NULL, 
	created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP NOT NULL, 
	updated_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP NOT NULL, 
	PRIMARY KEY (session_id)
)`,
		`CREATE TABLE {messages} (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	session_id VARCHAR NOT NULL, 
	message_data TEXT NOT NULL, 
	created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP NOT NULL, 
	FOREIGN KEY(session_id) REFERENCES {sessions} (session_id) ON DELETE CASCADE
)`,
		`CREATE INDEX "idx_{m}_session_time" ON {messages} (session_id, created_at)`,
	},
}

// WriteSQLite writes rows to a new file, which must not exist, with a mode for its owner alone. Times are
// kept to the second, as the SDK has them; a row without one gets the present. Turns and origins have no
// place in the SDK's tables.
func WriteSQLite(ctx context.Context, path string, layout Layout, t Tables, rows Rows, o Options) (Report, error) {
	rep, err := writeSQLite(ctx, path, layout, t, rows, o)
	if err != nil {
		return rep, fmt.Errorf("write SQLite file: %w", err)
	}
	return rep, nil
}

func writeSQLite(ctx context.Context, path string, layout Layout, t Tables, rows Rows, o Options) (rep Report, err error) {
	if err := t.complete(); err != nil {
		return rep, err
	}
	if exists(path) {
		return rep, fmt.Errorf("%s: %w", path, os.ErrExist)
	}
	// Made beside and renamed at the end, so that nobody finds half a file.
	dir, err := os.MkdirTemp(filepath.Dir(path), ".export-*")
	if err != nil {
		return rep, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	part := filepath.Join(dir, "part.db")
	if err := os.WriteFile(part, nil, 0o600); err != nil {
		return rep, err
	}
	uri, err := fileURI(part)
	if err != nil {
		return rep, err
	}
	db, err := openDB(uri + "?_pragma=synchronous(off)&_txlock=immediate")
	if err != nil {
		return rep, err
	}
	w := fileWriter{db: db, t: t, sessions: newApart()}
	err = w.write(ctx, layout, rows, o)
	if err = errors.Join(err, db.Close()); err != nil {
		return w.rep, err
	}
	if err := syncFile(part); err != nil {
		return w.rep, err
	}
	if err := os.Rename(part, path); err != nil {
		return w.rep, err
	}
	return w.rep, syncFile(filepath.Dir(path))
}

func syncFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// fileWriter fills a new file.
type fileWriter struct {
	db       *sql.DB
	t        Tables
	rep      Report
	sessions *apart

	tx               *sql.Tx
	message, session *sql.Stmt
	rows             int // in this transaction
	id               sessionstore.ID
	first, last      time.Time // of the rows of the session id
}

func (w *fileWriter) write(ctx context.Context, layout Layout, rows Rows, o Options) (err error) {
	for _, statement := range schemas[layout] {
		if _, err := w.db.ExecContext(ctx, w.t.fill(statement)); err != nil {
			return err
		}
	}
	defer func() {
		if w.tx != nil {
			err = errors.Join(err, w.tx.Rollback())
		}
	}()
	var failed error
	for r := range good(rows, o, &w.rep, &failed) {
		if err := w.add(ctx, r); err != nil {
			return err
		}
	}
	if failed != nil {
		return failed
	}
	if err := w.endSession(ctx); err != nil {
		return err
	}
	if err := w.commit(); err != nil {
		return err
	}
	_, err = w.db.ExecContext(ctx, "PRAGMA journal_mode=WAL") // as the SDK leaves it
	return err
}

func (w *fileWriter) add(ctx context.Context, r Row) error {
	if r.Session != w.id || !w.sessions.begun {
		if err := w.endSession(ctx); err != nil {
			return err
		}
		if _, err := w.sessions.next(r); err != nil {
			return err
		}
		w.id, w.first, w.last = r.Session, time.Time{}, time.Time{}
		w.rep.Sessions++
	}
	if err := w.begin(ctx); err != nil {
		return err
	}
	at := r.At
	if at.IsZero() {
		at = time.Now()
	}
	if at.Before(w.last) {
		at = w.last // SQLAlchemySession orders by it
	}
	if w.first.IsZero() {
		w.first = at
	}
	w.last = at
	if _, err := w.message.ExecContext(ctx, string(r.Session), string(r.Raw), stamp(at)); err != nil {
		return err
	}
	w.rep.Items++
	if w.rows++; w.rows == commitEvery {
		return w.commit()
	}
	return nil
}

// endSession writes the row of the session whose items are written.
func (w *fileWriter) endSession(ctx context.Context) error {
	if !w.sessions.begun {
		return nil
	}
	if err := w.begin(ctx); err != nil {
		return err
	}
	_, err := w.session.ExecContext(ctx, string(w.id), stamp(w.first), stamp(w.last))
	return err
}

// begin starts a transaction when none is open.
func (w *fileWriter) begin(ctx context.Context) (err error) {
	if w.tx != nil {
		return nil
	}
	if w.tx, err = w.db.BeginTx(ctx, nil); err != nil {
		return err
	}
	w.message, err = w.tx.PrepareContext(ctx, w.t.fill(`INSERT INTO {messages} (session_id, message_data, created_at) VALUES (?, ?, ?)`))
	if err != nil {
		return err
	}
	w.session, err = w.tx.PrepareContext(ctx, w.t.fill(`INSERT INTO {sessions} (session_id, created_at, updated_at) VALUES (?, ?, ?)`))
	return err
}

func (w *fileWriter) commit() error {
	if w.tx == nil {
		return nil
	}
	tx := w.tx
	w.tx, w.rows = nil, 0
	return tx.Commit()
}

// stamp is a time as CURRENT_TIMESTAMP writes it.
func stamp(t time.Time) string { return t.UTC().Format(time.DateTime) }
