package agentssdk

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"modernc.org/sqlite"
)

// ErrLayout is returned for a file that is not one of the SDK's, or of a kind that is not supported.
var ErrLayout = errors.New("not a file of SQLiteSession or SQLAlchemySession")

// Layout is how a SQLite file's tables are made. Both have the same columns.
type Layout int

// Layouts.
const (
	// SQLiteSession is that of SQLiteSession and AsyncSQLiteSession.
	SQLiteSession Layout = iota
	// SQLAlchemySession is that of SQLAlchemySession on SQLite.
	SQLAlchemySession
)

// Tables are the names of the SDK's tables; empty for the SDK's own defaults.
type Tables struct{ Sessions, Messages string }

var tableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,62}$`)

func (t *Tables) complete() error {
	if t.Sessions == "" {
		t.Sessions = "agent_sessions"
	}
	if t.Messages == "" {
		t.Messages = "agent_messages"
	}
	for _, name := range []string{t.Sessions, t.Messages} {
		if !tableName.MatchString(name) {
			return fmt.Errorf("table name %q: letters, digits and _ only", name)
		}
	}
	return nil
}

func (t *Tables) fill(statement string) string {
	return strings.NewReplacer("{sessions}", `"`+t.Sessions+`"`, "{messages}", `"`+t.Messages+`"`, "{m}", t.Messages).Replace(statement)
}

// ReadSQLite reads a file of either layout as it is at one moment; the program that owns it may go on
// writing. Items come in the order in which the SDK's class gives them: of the rows' numbers, or for
// SQLAlchemySession first of their times.
func ReadSQLite(ctx context.Context, path string, t Tables) Rows {
	return func(yield func(Row, error) bool) {
		fail := func(err error) { yield(Row{}, fmt.Errorf("read SQLite file: %w", err)) }
		if err := t.complete(); err != nil {
			fail(err)
			return
		}
		db, layout, err := openRead(ctx, path, t)
		if err != nil {
			fail(err)
			return
		}
		defer func() { _ = db.Close() }()
		order := "session_id, id"
		if layout == SQLAlchemySession {
			order = "session_id, created_at, id"
		}
		rows, err := db.QueryContext(ctx, t.fill(`SELECT id, session_id, message_data, CAST(created_at AS TEXT) FROM {messages} ORDER BY `+order))
		if err != nil {
			fail(err)
			return
		}
		defer func() { _ = rows.Close() }()
		for rows.Next() {
			row, err := scanRow(rows)
			if !yield(row, err) {
				return
			}
		}
		if err := rows.Err(); err != nil {
			fail(err)
		}
	}
}

func scanRow(rows *sql.Rows) (Row, error) {
	var (
		r    Row
		made sql.NullString
		raw  []byte
	)
	if err := rows.Scan(&r.Number, &r.Session, &raw, &made); err != nil {
		return r, fmt.Errorf("read SQLite file: %w", err)
	}
	r.Raw = raw
	r.At, _ = time.Parse("2006-01-02 15:04:05.999999", made.String) // zero when it is something else
	if f := check(r); f != nil {
		return Row{}, f
	}
	return r, nil
}

// openRead opens a file and finds out its layout.
func openRead(ctx context.Context, path string, t Tables) (*sql.DB, Layout, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, 0, err
	}
	uri, err := fileURI(path)
	if err != nil {
		return nil, 0, err
	}
	// Not mode=ro, with which SQLite leaves the log of a WAL file behind; query_only writes as little.
	db, layout, err := openReadAs(ctx, uri+"?mode=rw&_pragma=busy_timeout(5000)&_pragma=query_only(1)", t)
	if err == nil || errors.Is(err, ErrLayout) || exists(path+"-wal") {
		return db, layout, err
	}
	// A file in WAL mode on a medium that cannot be written to; nobody is writing, for there is no log.
	return openReadAs(ctx, uri+"?mode=ro&immutable=1", t)
}

func openReadAs(ctx context.Context, dsn string, t Tables) (*sql.DB, Layout, error) {
	db, err := openDB(dsn)
	if err != nil {
		return nil, 0, err
	}
	layout, err := findLayout(ctx, db, t)
	if err != nil {
		_ = db.Close()
	}
	return db, layout, err
}

func findLayout(ctx context.Context, db *sql.DB, t Tables) (Layout, error) {
	var columns, advanced int
	var idType string
	err := db.QueryRowContext(ctx, `SELECT
		(SELECT count(*) FROM pragma_table_info(?1) WHERE name IN ('id', 'session_id', 'message_data', 'created_at')),
		(SELECT count(*) FROM sqlite_master WHERE name = 'message_structure'),
		coalesce((SELECT type FROM pragma_table_info(?1) WHERE name = 'session_id'), '')`, t.Messages).Scan(&columns, &advanced, &idType)
	switch {
	case err != nil:
		return 0, err
	case columns != 4:
		return 0, fmt.Errorf("%w: table %s is missing or has other columns", ErrLayout, t.Messages)
	case advanced > 0:
		return 0, fmt.Errorf("%w: it is one of AdvancedSQLiteSession, whose branches have no counterpart here", ErrLayout)
	case strings.HasPrefix(strings.ToUpper(idType), "VARCHAR"):
		return SQLAlchemySession, nil
	}
	return SQLiteSession, nil
}

func openDB(dsn string) (*sql.DB, error) {
	c, err := sqlite.NewConnector(dsn)
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(c)
	db.SetMaxOpenConns(1)
	return db, nil
}

func fileURI(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	return (&url.URL{Scheme: "file", Path: abs}).String(), nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
