package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/go-sql-driver/mysql"
)

// mysqlSDKSchema are the SDK's tables. SQLAlchemySession makes them with a VARCHAR(190) and a TEXT, or
// takes those that are there; these hold every session ID and every item. {c} is the collation.
var mysqlSDKSchema = []string{
	`CREATE TABLE IF NOT EXISTS {sessions} (
	session_id VARCHAR(512) CHARACTER SET utf8mb4 COLLATE {c} NOT NULL,
	created_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP,
	updated_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP,
	PRIMARY KEY (session_id)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARACTER SET utf8mb4`,
	`CREATE TABLE IF NOT EXISTS {messages} (
	id INTEGER NOT NULL AUTO_INCREMENT,
	session_id VARCHAR(512) CHARACTER SET utf8mb4 COLLATE {c} NOT NULL,
	message_data LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
	created_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP,
	PRIMARY KEY (id),
	KEY {idx_session_time} (session_id, created_at),
	KEY {idx_botd} (session_id, id),
	FOREIGN KEY (session_id) REFERENCES {sessions} (session_id) ON DELETE CASCADE
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARACTER SET utf8mb4`,
}

// mysqlSideSchema are this package's own tables, whose collation {c} is that of the SDK's. Turns and
// origins are bytes, for no character set may touch them.
var mysqlSideSchema = []string{
	`CREATE TABLE IF NOT EXISTS {botd_sessions} (
	session_id VARCHAR(512) CHARACTER SET utf8mb4 COLLATE {c} NOT NULL PRIMARY KEY,
	generation BIGINT NOT NULL,
	seen VARCHAR(32) CHARACTER SET ascii,
	created BIGINT NOT NULL,
	updated BIGINT NOT NULL
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC`,
	`CREATE TABLE IF NOT EXISTS {botd_turns} (
	session_id VARCHAR(512) CHARACTER SET utf8mb4 COLLATE {c} NOT NULL,
	turn VARBINARY(512) NOT NULL,
	PRIMARY KEY (session_id, turn)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC`,
	`CREATE TABLE IF NOT EXISTS {botd_items} (
	session_id VARCHAR(512) CHARACTER SET utf8mb4 COLLATE {c} NOT NULL,
	message_id BIGINT NOT NULL,
	turn VARBINARY(512) NOT NULL,
	origin BLOB NOT NULL,
	at BIGINT NOT NULL,
	PRIMARY KEY (session_id, message_id)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC`,
	`CREATE TABLE IF NOT EXISTS {botd_schema} (id INTEGER NOT NULL PRIMARY KEY, version INTEGER NOT NULL) ENGINE=InnoDB`,
	`INSERT IGNORE INTO {botd_schema} (id, version) VALUES (1, 1)`,
}

// prepareMySQL makes what is missing and finds out what the tables can hold. Every statement may be run by
// several at once. Where nothing is missing, it needs no right to make anything.
func prepareMySQL(ctx context.Context, pool *sql.DB, t tables) (mysqlIDs, error) {
	ids, err := prepareMySQLTables(ctx, pool, t)
	if err != nil {
		return ids, fmt.Errorf("prepare tables: %w", contextError(ctx, err))
	}
	return ids, nil
}

func prepareMySQLTables(ctx context.Context, pool *sql.DB, t tables) (ids mysqlIDs, err error) {
	var version int
	err = pool.QueryRowContext(ctx, t.fill(`SELECT version FROM {botd_schema}`)).Scan(&version)
	if me, ok := errors.AsType[*mysql.MySQLError](err); ok && me.Number == mysqlNoTable || errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	if err != nil {
		return ids, err
	}
	if err := checkVersion(version); err != nil {
		return ids, err
	}
	if version == 0 {
		if err := makeMySQL(ctx, pool, t, mysqlSDKSchema, bestCollation(ctx, pool)); err != nil {
			return ids, err
		}
	}
	ids, collation, err := mysqlColumns(ctx, pool, t)
	if err != nil || version > 0 {
		return ids, err
	}
	if err := indexMySQLRows(ctx, pool, t); err != nil {
		return ids, err
	}
	return ids, makeMySQL(ctx, pool, t, mysqlSideSchema, collation)
}

func makeMySQL(ctx context.Context, pool *sql.DB, t tables, schema []string, collation string) error {
	for _, statement := range schema {
		statement = strings.ReplaceAll(t.fill(statement), "{c}", collation)
		if _, err := pool.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// bestCollation returns one that tells every ID from every other: MariaDB's, MySQL 8's, or the SDK's,
// which does not see spaces at the end.
func bestCollation(ctx context.Context, pool *sql.DB) string {
	best := "utf8mb4_bin"
	_ = pool.QueryRowContext(ctx, `SELECT COLLATION_NAME FROM information_schema.COLLATIONS
		WHERE COLLATION_NAME IN ('utf8mb4_nopad_bin', 'utf8mb4_0900_bin') LIMIT 1`).Scan(&best)
	return best
}

// mysqlColumns looks at the columns for the session ID, which a migration of the operator's may have made.
func mysqlColumns(ctx context.Context, pool *sql.DB, t tables) (ids mysqlIDs, collation string, err error) {
	var kinds int
	err = pool.QueryRowContext(ctx, `SELECT coalesce(min(CHARACTER_MAXIMUM_LENGTH), 0), coalesce(min(COLLATION_NAME), ''), count(DISTINCT COLLATION_NAME)
		FROM information_schema.COLUMNS
		WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME IN (?, ?) AND COLUMN_NAME = 'session_id'`, t.sessions, t.messages).
		Scan(&ids.length, &collation, &kinds)
	if err != nil {
		return ids, "", err
	}
	if kinds != 1 || !strings.HasPrefix(collation, "utf8mb4_") {
		return ids, "", fmt.Errorf("%w: the columns session_id must both be utf8mb4 and of one collation", ErrSchema)
	}
	var blind bool
	c := " COLLATE " + collation
	err = pool.QueryRowContext(ctx, `SELECT _utf8mb4'a'`+c+` = _utf8mb4'a '`+c+`, _utf8mb4'a'`+c+` = _utf8mb4'A'`+c).Scan(&ids.pad, &blind)
	if err == nil && blind {
		err = fmt.Errorf("%w: the collation %s takes session IDs that differ in case alone for one: use utf8mb4_bin", ErrSchema, collation)
	}
	return ids, collation, err
}

// indexMySQLRows adds an index for the order of rows to a table that has none.
func indexMySQLRows(ctx context.Context, pool *sql.DB, t tables) error {
	var n int
	err := pool.QueryRowContext(ctx, `SELECT count(*) FROM information_schema.STATISTICS a JOIN information_schema.STATISTICS b
		ON b.TABLE_SCHEMA = a.TABLE_SCHEMA AND b.TABLE_NAME = a.TABLE_NAME AND b.INDEX_NAME = a.INDEX_NAME
		WHERE a.TABLE_SCHEMA = DATABASE() AND a.TABLE_NAME = ? AND a.SEQ_IN_INDEX = 1 AND a.COLUMN_NAME = 'session_id'
		AND b.SEQ_IN_INDEX = 2 AND b.COLUMN_NAME = 'id'`, t.messages).Scan(&n)
	if err != nil || n > 0 {
		return err
	}
	_, err = pool.ExecContext(ctx, t.fill(`CREATE INDEX {idx_botd} ON {messages} (session_id, id)`))
	if me, ok := errors.AsType[*mysql.MySQLError](err); ok && me.Number == mysqlIndexExists {
		return nil
	}
	return err
}
