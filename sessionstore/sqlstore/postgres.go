package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"botd/sessionstore"
	"botd/sessionstore/internal/attempt"
)

// postgresDB is a PostgreSQL database. It keeps no state in a connection, so that a pooler may give it
// another one for every transaction.
type postgresDB struct {
	pool    *pgxpool.Pool
	timeout time.Duration
	q       postgresQueries
}

func openPostgres(ctx context.Context, u *url.URL, o Options) (database, error) {
	cfg, err := postgresConfig(u, o)
	if err != nil {
		return nil, err
	}
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("connect to PostgreSQL: %w", err)
	}
	db := &postgresDB{pool: pool, timeout: o.WriteTimeout, q: newPostgresQueries(newTables(o, `"`))}
	if err := db.prepare(ctx, newTables(o, `"`)); err != nil {
		pool.Close()
		return nil, err
	}
	return db, nil
}

func postgresConfig(u *url.URL, o Options) (*pgxpool.Config, error) {
	q := u.Query()
	if !q.Has("default_query_exec_mode") {
		// Statements prepared by name belong to one connection, which a pooler may not give again.
		q.Set("default_query_exec_mode", "exec")
	}
	if !q.Has("application_name") {
		q.Set("application_name", "botd")
	}
	u.RawQuery = q.Encode()
	cfg, err := pgxpool.ParseConfig(u.String())
	if err != nil {
		return nil, fmt.Errorf("%w: PostgreSQL does not take these parameters", ErrURL) // the cause repeats the URL
	}
	cfg.MaxConns = int32(min(o.MaxConns, 1<<16))
	return cfg, nil
}

func (db *postgresDB) checkID(id sessionstore.ID) error {
	if !utf8.ValidString(string(id)) {
		return fmt.Errorf("%w: not UTF-8, which this database requires", sessionstore.ErrInvalidID)
	}
	return nil
}

// PostgreSQL has no text with a zero byte in it. The bytes 0 and 1 of an ID are stored as two, in a way
// that keeps the order of IDs.
var (
	escapeID   = strings.NewReplacer("\x00", "\x01\x01", "\x01", "\x01\x02")
	unescapeID = strings.NewReplacer("\x01\x01", "\x00", "\x01\x02", "\x01")
)

func (db *postgresDB) rows(ctx context.Context, id sessionstore.ID, before int64, n int) (rows []row, err error) {
	err = retry(ctx, true, judgePostgres, func() error {
		res, err := db.pool.Query(ctx, db.q.rows, escapeID.Replace(string(id)), before, n)
		if err != nil {
			return err
		}
		rows, err = pgx.CollectRows(res, func(r pgx.CollectableRow) (row, error) { return scanPostgresRow(r) })
		return err
	})
	return rows, contextError(ctx, err)
}

func scanPostgresRow(r pgx.Row) (row, error) {
	var (
		out          row
		data         string
		made         time.Time
		turn, origin []byte
		at           sql.NullInt64
	)
	err := r.Scan(&out.id, &data, &made, &turn, &origin, &at)
	out.data, out.turn, out.origin, out.at = []byte(data), string(turn), string(origin), made.UTC()
	if at.Valid {
		out.at = time.UnixMilli(at.Int64).UTC()
	}
	return out, err
}

func (db *postgresDB) generation(ctx context.Context, id sessionstore.ID) (g uint64, err error) {
	err = retry(ctx, true, judgePostgres, func() error {
		err := db.pool.QueryRow(ctx, db.q.generation, escapeID.Replace(string(id))).Scan(&g)
		if errors.Is(err, pgx.ErrNoRows) {
			g, err = 0, nil
		}
		return err
	})
	return g, contextError(ctx, err)
}

// append sends the whole transaction at once. Its statements decide for themselves what to do, each on
// what the ones before it have locked and seen: see postgresQueries.
func (db *postgresDB) append(ctx context.Context, id sessionstore.ID, b sessionstore.Batch) error {
	var ok bool
	key, now := escapeID.Replace(string(id)), time.Now().UnixMilli()
	raws, origins := make([]string, len(b.Items)), make([][]byte, len(b.Items))
	for i, it := range b.Items {
		raws[i], origins[i] = string(it.Raw), []byte(it.Origin)
	}
	generation := int64(b.Generation)
	err := db.transact(ctx, b.Turn != "", func(tx *pgx.Batch) {
		tx.Queue(db.q.register, key, generation, now)
		tx.Queue(db.q.lock, key)
		tx.Queue(db.q.outside, key)
		tx.Queue(db.q.append, key, generation, []byte(b.Turn), raws, origins, now).
			QueryRow(func(r pgx.Row) error { return r.Scan(&ok) })
	})
	if err == nil && !ok {
		err = sessionstore.ErrStale
	}
	return err
}

func (db *postgresDB) clear(ctx context.Context, id sessionstore.ID) error {
	key, now := escapeID.Replace(string(id)), time.Now().UnixMilli()
	return db.transact(ctx, false, func(tx *pgx.Batch) {
		tx.Queue(db.q.register, key, int64(0), now)
		tx.Queue(db.q.lock, key)
		tx.Queue(db.q.outside, key)
		tx.Queue(db.q.clearMessages, key)
		tx.Queue(db.q.clear, key, now)
	})
}

// transact runs a transaction in one round trip.
func (db *postgresDB) transact(ctx context.Context, safe bool, queue func(*pgx.Batch)) error {
	return db.write(ctx, safe, func(ctx context.Context, conn *pgxpool.Conn) error {
		tx := &pgx.Batch{}
		tx.Queue(beginReadCommitted)
		queue(tx)
		tx.Queue("COMMIT")
		return conn.SendBatch(ctx, tx).Close()
	})
}

// beginReadCommitted asks for what the statements rely on, whatever the database's default: each sees
// what was committed before it began.
const beginReadCommitted = "BEGIN ISOLATION LEVEL READ COMMITTED"

// write runs a write on a connection. It waits for the connection under ctx, and for the outcome whatever
// becomes of ctx.
func (db *postgresDB) write(ctx context.Context, safe bool, do func(context.Context, *pgxpool.Conn) error) error {
	return retry(ctx, safe, judgePostgres, func() error {
		conn, err := db.pool.Acquire(ctx)
		if err != nil {
			return notSent(ctx, err)
		}
		defer conn.Release()
		ctx, cancel := begun(ctx, db.timeout)
		defer cancel()
		if !safe {
			// The connection may have died since; better to know before there is something to lose.
			if err := conn.Ping(ctx); err != nil {
				return &unsentError{err}
			}
		}
		err = do(ctx, conn)
		if err != nil && !conn.Conn().IsClosed() {
			_, _ = conn.Exec(ctx, "ROLLBACK") // a connection that cannot is closed by its pool
		}
		return err
	})
}

// pop takes the newest rows away up to the first valid one.
func (db *postgresDB) pop(ctx context.Context, id sessionstore.ID) (it sessionstore.Item, err error) {
	found := false
	key := escapeID.Replace(string(id))
	err = db.write(ctx, false, func(ctx context.Context, conn *pgxpool.Conn) error {
		var err error
		if it, found, err = db.takeNewest(ctx, conn, key); err != nil {
			return uncommitted(err)
		}
		tx := &pgx.Batch{}
		if found {
			tx.Queue(db.q.popped, key, time.Now().UnixMilli())
		}
		tx.Queue("COMMIT")
		return conn.SendBatch(ctx, tx).Close()
	})
	if err == nil && !found {
		err = sessionstore.ErrEmpty
	}
	return it, err
}

// takeNewest begins a transaction in which it deletes the newest rows up to the first valid one.
func (db *postgresDB) takeNewest(ctx context.Context, conn *pgxpool.Conn, key string) (it sessionstore.Item, found bool, err error) {
	if _, err := conn.Exec(ctx, beginReadCommitted); err != nil {
		return it, false, err
	}
	for !found {
		r, err := db.newest(ctx, conn, key)
		if errors.Is(err, pgx.ErrNoRows) {
			return it, false, nil
		}
		if err == nil && r.sealed() {
			err = ErrSealed
		}
		if err != nil {
			return it, false, err
		}
		tx := &pgx.Batch{}
		tx.Queue(db.q.dropMessage, r.id)
		tx.Queue(db.q.dropItem, key, r.id)
		if err := conn.SendBatch(ctx, tx).Close(); err != nil {
			return it, false, err
		}
		it, found = r.item(), r.valid()
	}
	return it, true, nil
}

// uncommitted marks the loss of a connection before anything was asked to commit.
func uncommitted(err error) error {
	pe, answered := errors.AsType[*pgconn.PgError](err)
	if answered && !strings.HasPrefix(pe.Code, "57P") || errors.Is(err, ErrSealed) {
		return err
	}
	return &unsentError{err}
}

// newest locks the newest row. When another took it away meanwhile, PostgreSQL gives none although there
// are more.
func (db *postgresDB) newest(ctx context.Context, conn *pgxpool.Conn, key string) (row, error) {
	for {
		r, err := scanPostgresRow(conn.QueryRow(ctx, db.q.newest, key))
		if !errors.Is(err, pgx.ErrNoRows) {
			return r, err
		}
		var more bool
		if err := conn.QueryRow(ctx, db.q.any, key).Scan(&more); err != nil {
			return row{}, err
		}
		if !more {
			return row{}, pgx.ErrNoRows
		}
	}
}

func (db *postgresDB) sessions(ctx context.Context, prefix string, after sessionstore.ID, limit int) (infos []sessionstore.Info, err error) {
	if !utf8.ValidString(prefix) || !utf8.ValidString(string(after)) {
		return nil, fmt.Errorf("%w: not UTF-8", sessionstore.ErrInvalidID)
	}
	err = retry(ctx, true, judgePostgres, func() error {
		res, err := db.pool.Query(ctx, db.q.sessions, escapeID.Replace(string(after)), escapeID.Replace(prefix), limit)
		if err != nil {
			return err
		}
		infos, err = pgx.CollectRows(res, scanPostgresInfo)
		return err
	})
	return withPrefix(infos, prefix), contextError(ctx, err)
}

func scanPostgresInfo(r pgx.CollectableRow) (sessionstore.Info, error) {
	var (
		info                         sessionstore.Info
		key                          string
		made, touched                sql.NullTime
		generation, created, updated sql.NullInt64
	)
	err := r.Scan(&key, &info.Items, &generation, &made, &touched, &created, &updated)
	info.ID, info.Generation = sessionstore.ID(unescapeID.Replace(key)), uint64(generation.Int64)
	info.Created, info.Updated = span(made.Time.UTC(), touched.Time.UTC(), created, updated)
	return info, err
}

// withPrefix cuts a sorted list where the IDs with the prefix end.
func withPrefix(infos []sessionstore.Info, prefix string) []sessionstore.Info {
	for i, info := range infos {
		if !strings.HasPrefix(string(info.ID), prefix) {
			return infos[:i]
		}
	}
	return infos
}

func (db *postgresDB) close() error {
	db.pool.Close()
	return nil
}

// judgePostgres tells what an error means for the transaction that it ended.
func judgePostgres(err error) attempt.Outcome {
	_, unsent := errors.AsType[*unsentError](err)
	_, unconnected := errors.AsType[*pgconn.ConnectError](err)
	if unsent || unconnected || pgconn.SafeToRetry(err) {
		return attempt.Again
	}
	if errors.Is(err, ErrSealed) {
		return attempt.Failed
	}
	if pe, ok := errors.AsType[*pgconn.PgError](err); ok {
		switch {
		case pe.Code == "40001" || pe.Code == "40P01": // serialization failure, deadlock
			return attempt.Again
		case strings.HasPrefix(pe.Code, "57P"): // the server is going down
			return attempt.Unknown
		}
		return attempt.Failed
	}
	return attempt.Unknown
}

// contextError prefers the context's own error to what a driver makes of it.
func contextError(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}
