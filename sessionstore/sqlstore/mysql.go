package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-sql-driver/mysql"

	"botd/sessionstore"
	"botd/sessionstore/internal/attempt"
)

// mysqlDB is a MySQL or MariaDB database.
type mysqlDB struct {
	pool    *sql.DB
	timeout time.Duration
	q       mysqlQueries
	ids     mysqlIDs
}

func openMySQL(ctx context.Context, u *url.URL, o Options) (database, error) {
	cfg, err := mysqlConfig(u)
	if err != nil {
		return nil, err
	}
	c, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, fmt.Errorf("%w: MySQL does not take these parameters", ErrURL)
	}
	db := &mysqlDB{pool: sql.OpenDB(c), timeout: o.WriteTimeout, q: newMySQLQueries(newTables(o, "`"))}
	db.pool.SetMaxOpenConns(o.MaxConns)
	db.pool.SetMaxIdleConns(o.MaxConns)
	if db.ids, err = prepareMySQL(ctx, db.pool, newTables(o, "`")); err != nil {
		return nil, errors.Join(err, db.pool.Close())
	}
	return db, nil
}

// mysqlConfig turns a URL into the driver's settings. The parameter unix_socket names a socket instead of
// a host, as drivers of Python's have it.
func mysqlConfig(u *url.URL) (*mysql.Config, error) {
	q := u.Query()
	network, addr := "tcp", cmp.Or(u.Host, "127.0.0.1")
	if u.Port() == "" {
		addr += ":3306"
	}
	if socket := q.Get("unix_socket"); socket != "" {
		network, addr = "unix", socket
		q.Del("unix_socket")
	}
	cfg, err := mysql.ParseDSN("tcp(127.0.0.1)/?" + q.Encode())
	if err != nil {
		return nil, fmt.Errorf("%w: MySQL does not take these parameters", ErrURL)
	}
	cfg.Net, cfg.Addr, cfg.DBName = network, addr, strings.TrimPrefix(u.Path, "/")
	cfg.User = u.User.Username()
	cfg.Passwd, _ = u.User.Password()
	cfg.Logger = &mysql.NopLogger{}
	cfg.InterpolateParams = true // one round trip for a statement, not three
	cfg.MaxAllowedPacket = 0     // ask the server
	if cfg.Params == nil {
		cfg.Params = map[string]string{}
	}
	cfg.Params["sql_mode"] = "'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION'" // never cut text short in silence
	return cfg, nil
}

// mysqlIDs are the session IDs that the tables can hold apart.
type mysqlIDs struct {
	length int  // of the column, in characters
	pad    bool // the collation takes "a" and "a " for the same
}

func (db *mysqlDB) checkID(id sessionstore.ID) error {
	switch {
	case !utf8.ValidString(string(id)):
		return fmt.Errorf("%w: not UTF-8, which this database requires", sessionstore.ErrInvalidID)
	case utf8.RuneCountInString(string(id)) > db.ids.length:
		return fmt.Errorf("%w: longer than the %d characters of the column session_id", sessionstore.ErrInvalidID, db.ids.length)
	case db.ids.pad && strings.HasSuffix(string(id), " "):
		return fmt.Errorf("%w: ends in a space, which the collation of the column session_id does not see", sessionstore.ErrInvalidID)
	}
	return nil
}

func (db *mysqlDB) rows(ctx context.Context, id sessionstore.ID, before int64, n int) (rows []row, err error) {
	err = db.read(ctx, func() error {
		rows = nil
		res, err := db.pool.QueryContext(ctx, db.q.rows, string(id), before, n)
		if err != nil {
			return err
		}
		defer func() { _ = res.Close() }()
		for res.Next() {
			r, err := scanMySQLRow(res)
			if err != nil {
				return err
			}
			rows = append(rows, r)
		}
		return res.Err()
	})
	return rows, err
}

// read runs a read, again when its connection was lost.
func (db *mysqlDB) read(ctx context.Context, do func() error) error {
	return mysqlError(contextError(ctx, retry(ctx, true, judgeMySQL, do)))
}

// scanner is a row of a result.
type scanner interface{ Scan(dest ...any) error }

func scanMySQLRow(s scanner) (row, error) {
	var (
		r            row
		made         sql.NullFloat64
		turn, origin []byte
		at           sql.NullInt64
	)
	err := s.Scan(&r.id, &r.data, &made, &turn, &origin, &at)
	r.turn, r.origin, r.at = string(turn), string(origin), unixTime(made)
	if at.Valid {
		r.at = time.UnixMilli(at.Int64).UTC()
	}
	return r, err
}

func unixTime(seconds sql.NullFloat64) time.Time {
	if !seconds.Valid {
		return time.Time{}
	}
	return time.UnixMilli(int64(seconds.Float64 * 1000)).UTC()
}

func (db *mysqlDB) generation(ctx context.Context, id sessionstore.ID) (g uint64, err error) {
	err = db.read(ctx, func() error {
		err := db.pool.QueryRowContext(ctx, db.q.generation, string(id)).Scan(&g)
		if errors.Is(err, sql.ErrNoRows) {
			g, err = 0, nil
		}
		return err
	})
	return g, err
}

func (db *mysqlDB) append(ctx context.Context, id sessionstore.ID, b sessionstore.Batch) error {
	return db.write(ctx, b.Turn != "", func(ctx context.Context, tx *sql.Tx) error {
		return db.q.append(ctx, tx, id, b)
	})
}

func (db *mysqlDB) pop(ctx context.Context, id sessionstore.ID) (it sessionstore.Item, err error) {
	found := false
	err = db.write(ctx, false, func(ctx context.Context, tx *sql.Tx) (err error) {
		it, found, err = db.q.pop(ctx, tx, id)
		return err
	})
	if err == nil && !found {
		err = sessionstore.ErrEmpty
	}
	return it, err
}

func (db *mysqlDB) clear(ctx context.Context, id sessionstore.ID) error {
	return db.write(ctx, false, func(ctx context.Context, tx *sql.Tx) error { return db.q.clear(ctx, tx, id) })
}

// write runs a transaction. It waits for a connection under ctx, and for the outcome whatever becomes of
// ctx. Only a failure to commit leaves an outcome unknown: what was not asked to commit is rolled back.
func (db *mysqlDB) write(ctx context.Context, safe bool, do func(context.Context, *sql.Tx) error) error {
	return mysqlError(retry(ctx, safe, judgeMySQL, func() error {
		conn, err := db.pool.Conn(ctx)
		if err != nil {
			return notSent(ctx, err)
		}
		defer func() { _ = conn.Close() }()
		ctx, cancel := begun(ctx, db.timeout)
		defer cancel()
		tx, err := conn.BeginTx(ctx, nil)
		if err != nil {
			return &unsentError{err}
		}
		if err := do(ctx, tx); err != nil {
			_ = tx.Rollback()
			if lost(err) {
				err = &unsentError{err}
			}
			return err
		}
		return tx.Commit()
	}))
}

// lost reports whether an error is of the connection and not of the server or this package.
func lost(err error) bool {
	_, answered := errors.AsType[*mysql.MySQLError](err)
	return !answered && !errors.Is(err, sessionstore.ErrStale) && !errors.Is(err, ErrSealed) && !errors.Is(err, mysql.ErrPktTooLarge)
}

func (db *mysqlDB) sessions(ctx context.Context, prefix string, after sessionstore.ID, limit int) (infos []sessionstore.Info, err error) {
	if !utf8.ValidString(prefix) || !utf8.ValidString(string(after)) {
		return nil, fmt.Errorf("%w: not UTF-8", sessionstore.ErrInvalidID)
	}
	err = db.read(ctx, func() error {
		infos = nil
		a, p := string(after), prefix
		res, err := db.pool.QueryContext(ctx, db.q.sessions, a, p, limit, a, p, limit, limit)
		if err != nil {
			return err
		}
		defer func() { _ = res.Close() }()
		for res.Next() {
			info, err := scanMySQLInfo(res)
			if err != nil {
				return err
			}
			infos = append(infos, info)
		}
		return res.Err()
	})
	return withPrefix(infos, prefix), err
}

func scanMySQLInfo(s scanner) (sessionstore.Info, error) {
	var (
		info                         sessionstore.Info
		made, touched                sql.NullFloat64
		generation, created, updated sql.NullInt64
	)
	err := s.Scan(&info.ID, &info.Items, &generation, &made, &touched, &created, &updated)
	info.Generation = uint64(generation.Int64)
	info.Created, info.Updated = span(unixTime(made), unixTime(touched), created, updated)
	return info, err
}

func (db *mysqlDB) close() error { return db.pool.Close() }

// Error numbers of MySQL and MariaDB.
const (
	mysqlDeadlock     = 1213
	mysqlLockTimeout  = 1205
	mysqlDataTooLong  = 1406
	mysqlBadText      = 1366
	mysqlPacketTooBig = 1153
	mysqlIndexExists  = 1061
	mysqlNoTable      = 1146
)

// judgeMySQL tells what an error means for the transaction that it ended.
func judgeMySQL(err error) attempt.Outcome {
	if _, ok := errors.AsType[*unsentError](err); ok {
		return attempt.Again
	}
	if me, ok := errors.AsType[*mysql.MySQLError](err); ok {
		if me.Number == mysqlDeadlock || me.Number == mysqlLockTimeout {
			return attempt.Again
		}
		return attempt.Failed
	}
	if !lost(err) {
		return attempt.Failed
	}
	return attempt.Unknown
}

// mysqlError says how to mend what an operator can mend, without the piece of the text that MySQL puts
// into some of its messages.
func mysqlError(err error) error {
	if errors.Is(err, mysql.ErrPktTooLarge) {
		return fmt.Errorf("%w: beyond the server's max_allowed_packet", sessionstore.ErrTooLarge)
	}
	me, ok := errors.AsType[*mysql.MySQLError](err)
	if !ok {
		return err
	}
	switch me.Number {
	case mysqlDataTooLong:
		return fmt.Errorf("%w: the column message_data is too small: ALTER TABLE … MODIFY message_data LONGTEXT NOT NULL", sessionstore.ErrTooLarge)
	case mysqlBadText:
		return fmt.Errorf("%w: the column message_data is not utf8mb4: ALTER TABLE … CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_bin", ErrSchema)
	case mysqlPacketTooBig:
		return fmt.Errorf("%w: beyond the server's max_allowed_packet", sessionstore.ErrTooLarge)
	}
	return err
}
