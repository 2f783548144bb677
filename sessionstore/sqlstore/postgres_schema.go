package sqlstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"botd/sessionstore/internal/attempt"
)

// postgresSchema is what the SDK's SQLAlchemySession makes (extensions/memory/sqlalchemy_session.py,
// openai-agents-python 0.22.0, with create_tables=True), and after it this package's own tables. Turns and
// origins are bytes, for PostgreSQL's text has no zero byte and must be UTF-8.
var postgresSchema = []string{
	`CREATE TABLE IF NOT EXISTS {sessions} (
	session_id VARCHAR NOT NULL,
	created_at TIMESTAMP WITHOUT TIME ZONE DEFAULT CURRENT_TIMESTAMP NOT NULL,
	updated_at TIMESTAMP WITHOUT TIME ZONE DEFAULT CURRENT_TIMESTAMP NOT NULL,
	PRIMARY KEY (session_id)
)`,
	`CREATE TABLE IF NOT EXISTS {messages} (
	id SERIAL NOT NULL,
	session_id VARCHAR NOT NULL,
	message_data TEXT NOT NULL,
	created_at TIMESTAMP WITHOUT TIME ZONE DEFAULT CURRENT_TIMESTAMP NOT NULL,
	PRIMARY KEY (id),
	FOREIGN KEY (session_id) REFERENCES {sessions} (session_id) ON DELETE CASCADE
)`,
	`CREATE INDEX IF NOT EXISTS {idx_session_time} ON {messages} (session_id, created_at)`,
	`CREATE INDEX IF NOT EXISTS {idx_botd} ON {messages} (session_id, id)`,
	`CREATE INDEX IF NOT EXISTS {idx_botd_ids} ON {sessions} (session_id COLLATE "C")`,
	`CREATE TABLE IF NOT EXISTS {botd_sessions} (
	session_id TEXT PRIMARY KEY,
	generation BIGINT NOT NULL,
	seen TEXT,
	created BIGINT NOT NULL,
	updated BIGINT NOT NULL
)`,
	`CREATE INDEX IF NOT EXISTS {idx_botd_own_ids} ON {botd_sessions} (session_id COLLATE "C")`,
	`CREATE TABLE IF NOT EXISTS {botd_turns} (
	session_id TEXT NOT NULL,
	turn BYTEA NOT NULL,
	PRIMARY KEY (session_id, turn)
)`,
	`CREATE TABLE IF NOT EXISTS {botd_items} (
	session_id TEXT NOT NULL,
	message_id BIGINT NOT NULL,
	turn BYTEA NOT NULL,
	origin BYTEA NOT NULL,
	at BIGINT NOT NULL,
	PRIMARY KEY (session_id, message_id)
)`,
	`CREATE TABLE IF NOT EXISTS {botd_schema} (version INTEGER NOT NULL)`,
	`INSERT INTO {botd_schema} (version) SELECT 1 WHERE NOT EXISTS (SELECT FROM {botd_schema})`,
}

// prepare makes what is missing. Where nothing is, it needs no right to make anything.
func (db *postgresDB) prepare(ctx context.Context, t tables) error {
	err := retry(ctx, true, judgePostgresSchema, func() error {
		version, err := postgresVersion(ctx, db.pool, t)
		if err != nil || version > 0 {
			return errors.Join(err, checkVersion(version))
		}
		return db.makeTables(ctx, t)
	})
	if err != nil {
		return fmt.Errorf("prepare tables: %w", contextError(ctx, err))
	}
	return nil
}

// postgresVersion returns that of the side tables, 0 when they are not there.
func postgresVersion(ctx context.Context, db interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}, t tables,
) (version int, err error) {
	var there bool
	// It reads pg_class for a reason: opening a table is what makes the server look at what others have
	// committed to its catalogue; to_regclass alone may answer from a cache that is older.
	err = db.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_catalog.pg_class WHERE oid = to_regclass($1::text))`, t.fill(`{botd_schema}`)).Scan(&there)
	if err != nil || !there {
		return 0, err
	}
	err = db.QueryRow(ctx, t.fill(`SELECT coalesce(max(version), 0) FROM {botd_schema}`)).Scan(&version)
	return version, err
}

// makeTables makes the tables in one transaction. The lock is the transaction's and keeps out others of
// this kind; SQLAlchemy may still be faster, which judgePostgresSchema forgives. Who comes second must
// make nothing: even an index that exists locks its table, and others write by then.
func (db *postgresDB) makeTables(ctx context.Context, t tables) error {
	return pgx.BeginTxFunc(ctx, db.pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock(hashtext('botd schema'))`); err != nil {
			return err
		}
		if version, err := postgresVersion(ctx, tx, t); err != nil || version > 0 {
			return errors.Join(err, checkVersion(version))
		}
		for _, statement := range t.all(postgresSchema) {
			if _, err := tx.Exec(ctx, statement); err != nil {
				return err
			}
		}
		return nil
	})
}

// judgePostgresSchema lets a race for the making of tables be run again.
func judgePostgresSchema(err error) attempt.Outcome {
	if pe, ok := errors.AsType[*pgconn.PgError](err); ok {
		switch pe.Code {
		case "23505", "42P07", "42710": // unique violation in the catalogue, duplicate table, duplicate object
			return attempt.Again
		}
	}
	return judgePostgres(err)
}
