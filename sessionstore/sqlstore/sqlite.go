package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"modernc.org/sqlite"

	"botd/sessionstore"
)

// errDiscard makes database/sql throw a connection away.
var errDiscard = driver.ErrBadConn

// sqliteDB is a SQLite file, or a database in memory.
type sqliteDB struct {
	readers *sql.DB
	writers *sql.DB // of one connection; the same as readers for a database in memory
	writer  *writer
	q       sqliteQueries
}

func openSQLite(ctx context.Context, u *url.URL, o Options) (database, error) {
	path, err := sqlitePath(u)
	if err != nil {
		return nil, err
	}
	db := &sqliteDB{q: newSQLiteQueries(newTables(o, `"`))}
	if err := db.connect(path, o); err != nil {
		return nil, err
	}
	if err := db.prepare(ctx, newTables(o, `"`)); err != nil {
		_ = db.closePools()
		return nil, err
	}
	db.writer = newWriter(db.writers, db.writers == db.readers, o.WriteTimeout)
	return db, nil
}

// sqlitePath returns the file that a URL names, "" for a database in memory.
func sqlitePath(u *url.URL) (string, error) {
	path := u.Opaque
	if path == "" {
		if u.Host != "" {
			return "", fmt.Errorf("%w: a SQLite file needs three slashes, sqlite:///%s", ErrURL, u.Host)
		}
		path = strings.TrimPrefix(u.Path, "/")
	}
	if path == "" || path == ":memory:" {
		return "", nil
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("find the database file: %w", err)
	}
	return abs, nil
}

// connect makes the pools; nothing is opened yet.
func (db *sqliteDB) connect(path string, o Options) error {
	if path == "" {
		pool, err := sqlitePool("file::memory:", 1)
		db.readers, db.writers = pool, pool
		return err
	}
	if err := makePrivate(path); err != nil {
		return err
	}
	// The order counts: the timeout must hold when the journal mode is set.
	dsn := (&url.URL{Scheme: "file", Path: path}).String() +
		"?_pragma=busy_timeout(" + strconv.FormatInt(o.BusyTimeout.Milliseconds(), 10) + ")"
	var err error
	if db.writers, err = sqlitePool(dsn+"&_pragma=journal_mode(wal)&_pragma=synchronous("+o.synchronous+")", 1); err != nil {
		return err
	}
	db.readers, err = sqlitePool(dsn+"&_pragma=query_only(1)", o.MaxConns)
	return err
}

func sqlitePool(dsn string, conns int) (*sql.DB, error) {
	c, err := sqlite.NewConnector(dsn)
	if err != nil {
		return nil, fmt.Errorf("configure SQLite: %w", err)
	}
	pool := sql.OpenDB(c)
	pool.SetMaxOpenConns(conns)
	pool.SetMaxIdleConns(conns)
	return pool, nil
}

// makePrivate makes a file that does not exist readable for its owner alone. SQLite gives its companions
// the same mode.
func makePrivate(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("open database file: %w", err)
	}
	return f.Close()
}

func (db *sqliteDB) checkID(sessionstore.ID) error { return nil }

func (db *sqliteDB) rows(ctx context.Context, id sessionstore.ID, before int64, n int) ([]row, error) {
	res, err := db.readers.QueryContext(ctx, db.q.rows, string(id), before, n)
	if err != nil {
		return nil, sqliteError(ctx, err)
	}
	defer func() { _ = res.Close() }()
	var rows []row
	for res.Next() {
		r, err := scanSQLiteRow(res.Scan)
		if err != nil {
			return nil, sqliteError(ctx, err)
		}
		rows = append(rows, r)
	}
	return rows, sqliteError(ctx, res.Err())
}

func scanSQLiteRow(scan func(...any) error) (row, error) {
	var (
		r            row
		turn, origin sql.NullString
		made         sql.NullString
		at           sql.NullInt64
	)
	err := scan(&r.id, &r.data, &made, &turn, &origin, &at)
	r.turn, r.origin = turn.String, origin.String
	if at.Valid {
		r.at = time.UnixMilli(at.Int64).UTC()
	} else {
		r.at = parseSQLiteTime(made.String)
	}
	return r, err
}

// parseSQLiteTime reads CURRENT_TIMESTAMP, or what SQLAlchemy writes for a time; zero when it is neither.
func parseSQLiteTime(s string) time.Time {
	t, err := time.Parse("2006-01-02 15:04:05.999999", s)
	if err != nil {
		return time.Time{}
	}
	return t
}

func (db *sqliteDB) generation(ctx context.Context, id sessionstore.ID) (uint64, error) {
	var g uint64
	err := db.readers.QueryRowContext(ctx, db.q.generation, string(id)).Scan(&g)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return g, sqliteError(ctx, err)
}

func (db *sqliteDB) append(ctx context.Context, id sessionstore.ID, b sessionstore.Batch) error {
	return db.write(ctx, func(ctx context.Context, st *statements) error { return db.q.append(ctx, st, id, b) })
}

func (db *sqliteDB) pop(ctx context.Context, id sessionstore.ID) (sessionstore.Item, error) {
	var it sessionstore.Item
	found := false
	// No valid item is no error inside the transaction: the corrupt rows that were removed stay removed.
	err := db.write(ctx, func(ctx context.Context, st *statements) (err error) {
		it, found, err = db.q.pop(ctx, st, id)
		return err
	})
	if err == nil && !found {
		err = sessionstore.ErrEmpty
	}
	return it, err
}

func (db *sqliteDB) clear(ctx context.Context, id sessionstore.ID) error {
	return db.write(ctx, func(ctx context.Context, st *statements) error { return db.q.clear(ctx, st, id) })
}

func (db *sqliteDB) write(ctx context.Context, do func(context.Context, *statements) error) error {
	return sqliteError(ctx, db.writer.write(ctx, do))
}

func (db *sqliteDB) sessions(ctx context.Context, prefix string, after sessionstore.ID, limit int) ([]sessionstore.Info, error) {
	res, err := db.readers.QueryContext(ctx, db.q.sessions, string(after), prefix, limit)
	if err != nil {
		return nil, sqliteError(ctx, err)
	}
	defer func() { _ = res.Close() }()
	var infos []sessionstore.Info
	for res.Next() {
		var (
			info                         sessionstore.Info
			made, touched                sql.NullString
			created, updated, generation sql.NullInt64
		)
		if err := res.Scan(&info.ID, &info.Items, &generation, &made, &touched, &created, &updated); err != nil {
			return nil, sqliteError(ctx, err)
		}
		info.Generation = uint64(generation.Int64)
		info.Created, info.Updated = span(parseSQLiteTime(made.String), parseSQLiteTime(touched.String), created, updated)
		infos = append(infos, info)
	}
	return withPrefix(infos, prefix), sqliteError(ctx, res.Err())
}

// span joins what the SDK's row and the side row say about when a session was made and last changed: the
// side row is more exact and outlives a clear.
func span(made, touched time.Time, created, updated sql.NullInt64) (time.Time, time.Time) {
	if created.Valid {
		made = time.UnixMilli(created.Int64).UTC()
	}
	if side := time.UnixMilli(updated.Int64).UTC(); updated.Valid && side.After(touched) {
		touched = side
	}
	return made, touched
}

func (db *sqliteDB) close() error {
	db.writer.stop()
	return db.closePools()
}

func (db *sqliteDB) closePools() error {
	err := db.readers.Close()
	if db.writers != db.readers {
		// The last connection to close is the one that may write, so that it can fold the log in.
		err = errors.Join(err, db.writers.Close())
	}
	return err
}

// sqliteError tells a context that ended from other errors (SQLite says "interrupted") and says what a
// lock that was not had means.
func sqliteError(ctx context.Context, err error) error {
	var se *sqlite.Error
	if err == nil || !errors.As(err, &se) {
		return err
	}
	switch code := se.Code() & 0xff; {
	case code == sqliteInterrupt && ctx.Err() != nil:
		return ctx.Err()
	case code == sqliteInterrupt:
		return fmt.Errorf("gave up after the write timeout: %w", err)
	case code == sqliteBusy:
		return fmt.Errorf("another process keeps the database locked for longer than the busy timeout: %w", err)
	}
	return err
}

// Result codes of SQLite (https://sqlite.org/rescode.html).
const (
	sqliteBusy      = 5
	sqliteInterrupt = 9
)
