package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// sqliteSchema is what the SDK's SQLiteSession makes (memory/sqlite_session.py, openai-agents-python
// 0.22.0), word for word, and after it this package's own tables.
var sqliteSchema = []string{
	`CREATE TABLE IF NOT EXISTS {sessions} (
    session_id TEXT PRIMARY KEY,
    created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
    updated_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP
)`,
	`CREATE TABLE IF NOT EXISTS {messages} (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id TEXT NOT NULL,
    message_data TEXT NOT NULL,
    created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
    FOREIGN KEY (session_id) REFERENCES {sessions} (session_id)
        ON DELETE CASCADE
)`,
	`CREATE INDEX IF NOT EXISTS {idx_session_id} ON {messages} (session_id, id)`,
	`CREATE TABLE IF NOT EXISTS {botd_schema} (version INTEGER NOT NULL)`,
	`CREATE TABLE IF NOT EXISTS {botd_sessions} (
    session_id TEXT PRIMARY KEY,
    generation INTEGER NOT NULL,
    seen TEXT,
    created INTEGER NOT NULL,
    updated INTEGER NOT NULL
) WITHOUT ROWID`,
	`CREATE TABLE IF NOT EXISTS {botd_turns} (
    session_id TEXT NOT NULL,
    turn TEXT NOT NULL,
    PRIMARY KEY (session_id, turn)
) WITHOUT ROWID`,
	`CREATE TABLE IF NOT EXISTS {botd_items} (
    session_id TEXT NOT NULL,
    message_id INTEGER NOT NULL,
    turn TEXT NOT NULL,
    origin TEXT NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (session_id, message_id)
) WITHOUT ROWID`,
}

// prepare makes the tables that are missing, in one transaction, and refuses those that it must not use.
func (db *sqliteDB) prepare(ctx context.Context, t tables) error {
	st, err := openStatements(ctx, db.writers)
	if err != nil {
		return fmt.Errorf("open database: %w", err)
	}
	defer st.close()
	op := &write{do: func(ctx context.Context, st *statements) error { return prepareSQLite(ctx, st, t) }}
	if err := errors.Join(st.commit(ctx, []*write{op}), op.err); err != nil {
		return fmt.Errorf("prepare tables: %w", sqliteError(ctx, err))
	}
	return nil
}

func prepareSQLite(ctx context.Context, st *statements, t tables) error {
	var n int
	err := st.row(ctx, `SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'message_structure'`, nil, &n)
	if err != nil {
		return err
	}
	if n > 0 {
		return fmt.Errorf("%w: the file belongs to the SDK's AdvancedSQLiteSession, which does not see and may delete rows that others add", ErrSchema)
	}
	for _, statement := range t.all(sqliteSchema) {
		if _, err := st.conn.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	if err := checkSQLiteVersion(ctx, st, t); err != nil {
		return err
	}
	return indexSQLiteRows(ctx, st, t)
}

func checkSQLiteVersion(ctx context.Context, st *statements, t tables) error {
	var version int
	err := st.row(ctx, t.fill(`SELECT version FROM {botd_schema}`), nil, &version)
	if errors.Is(err, sql.ErrNoRows) {
		_, err = st.exec(ctx, t.fill(`INSERT INTO {botd_schema} (version) VALUES (?1)`), schemaVersion)
		return err
	}
	if err != nil {
		return err
	}
	return checkVersion(version)
}

// checkVersion refuses side tables of a newer release.
func checkVersion(version int) error {
	if version > schemaVersion {
		return fmt.Errorf("%w: the botd_ tables are of version %d, this program knows %d: use a newer one", ErrSchema, version, schemaVersion)
	}
	return nil
}

// indexSQLiteRows adds an index for the order of rows when the SDK's is an older one: early releases, and
// SQLAlchemySession, have (session_id, created_at), under the same or another name.
func indexSQLiteRows(ctx context.Context, st *statements, t tables) error {
	var n int
	err := st.row(ctx, `SELECT count(*) FROM pragma_index_list(?1) l
		WHERE (SELECT group_concat(name) FROM (SELECT name FROM pragma_index_info(l.name) ORDER BY seqno)) = 'session_id,id'`,
		[]any{t.messages}, &n)
	if err != nil || n > 0 {
		return err
	}
	_, err = st.conn.ExecContext(ctx, t.fill(`CREATE INDEX IF NOT EXISTS {idx_botd} ON {messages} (session_id, id)`))
	return err
}
