package sqlstore

import (
	"context"
	"database/sql"
	"sync/atomic"
	"time"
)

// groupSize is the most writes that share a transaction.
const groupSize = 256

// writer is the one writer of a SQLite file. It runs the writes that wait in one transaction, so that a
// busy store pays for one flush of the disk and not for one each.
type writer struct {
	pool    *sql.DB // of one connection
	lend    bool    // the readers use the same connection: give it back after each transaction
	timeout time.Duration
	queue   chan *write
	done    chan struct{} // closed when run has returned
}

// write is one write on its way through the writer.
type write struct {
	do    func(context.Context, *statements) error
	state atomic.Int32
	err   error         // set before ready is closed
	ready chan struct{} // closed when the outcome is known
}

const (
	writeWaits int32 = iota
	writeBegun
	writeGivenUp
)

func newWriter(pool *sql.DB, lend bool, timeout time.Duration) *writer {
	w := &writer{pool: pool, lend: lend, timeout: timeout, queue: make(chan *write, groupSize), done: make(chan struct{})}
	go w.run()
	return w
}

// write runs do in a transaction and returns when it is committed. When ctx ends before the transaction
// has begun, do never runs. It must not be called after stop.
func (w *writer) write(ctx context.Context, do func(context.Context, *statements) error) error {
	op := &write{do: do, ready: make(chan struct{})}
	select {
	case w.queue <- op:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-op.ready:
	case <-ctx.Done():
		if op.state.CompareAndSwap(writeWaits, writeGivenUp) {
			return ctx.Err()
		}
		<-op.ready
	}
	return op.err
}

// stop ends the writer once everything queued is written.
func (w *writer) stop() {
	close(w.queue)
	<-w.done
}

func (w *writer) run() {
	defer close(w.done)
	var st *statements
	for op := range w.queue {
		group := w.gather(op)
		if len(group) == 0 {
			continue
		}
		err := w.commit(&st, group)
		for _, op := range group {
			if op.err == nil {
				op.err = err
			}
			close(op.ready)
		}
	}
	if st != nil {
		st.close()
	}
}

// commit runs a group on the connection that *st holds, which it opens and closes as needed.
func (w *writer) commit(st **statements, group []*write) error {
	ctx, cancel := context.WithTimeout(context.Background(), w.timeout)
	defer cancel()
	if *st == nil {
		opened, err := openStatements(ctx, w.pool)
		if err != nil {
			return err
		}
		*st = opened
	}
	err := (*st).commit(ctx, group)
	switch {
	case (*st).broken:
		(*st).discard()
		*st = nil
	case w.lend:
		(*st).close()
		*st = nil
	}
	return err
}

// gather takes what waits behind first, without waiting itself, and marks it as begun.
func (w *writer) gather(first *write) []*write {
	var group []*write
	for op := first; ; {
		if op.state.CompareAndSwap(writeWaits, writeBegun) {
			group = append(group, op)
		}
		if len(group) == groupSize {
			return group
		}
		select {
		case next, open := <-w.queue:
			if !open {
				return group
			}
			op = next
		default:
			return group
		}
	}
}

// statements is the writer's connection and what was prepared on it.
type statements struct {
	conn     *sql.Conn
	prepared map[string]*sql.Stmt
	broken   bool // a transaction could not be ended: the connection must not be used again
}

func openStatements(ctx context.Context, pool *sql.DB) (*statements, error) {
	conn, err := pool.Conn(ctx)
	if err != nil {
		return nil, err
	}
	return &statements{conn: conn, prepared: map[string]*sql.Stmt{}}, nil
}

func (st *statements) prepare(ctx context.Context, query string) (*sql.Stmt, error) {
	if s := st.prepared[query]; s != nil {
		return s, nil
	}
	s, err := st.conn.PrepareContext(ctx, query)
	if err == nil {
		st.prepared[query] = s
	}
	return s, err
}

func (st *statements) exec(ctx context.Context, query string, args ...any) (sql.Result, error) {
	s, err := st.prepare(ctx, query)
	if err != nil {
		return nil, err
	}
	return s.ExecContext(ctx, args...)
}

// row runs a query of one row; no row is sql.ErrNoRows.
func (st *statements) row(ctx context.Context, query string, args []any, dest ...any) error {
	s, err := st.prepare(ctx, query)
	if err != nil {
		return err
	}
	return s.QueryRowContext(ctx, args...).Scan(dest...)
}

// commit runs a group in one transaction. A write that fails leaves its error in op.err and nothing in
// the database; an error that is returned concerns the group, of which nothing was written.
func (st *statements) commit(ctx context.Context, group []*write) error {
	if _, err := st.exec(ctx, "BEGIN IMMEDIATE"); err != nil {
		return err
	}
	for _, op := range group {
		if err := st.one(ctx, op); err != nil {
			st.rollback()
			return err
		}
	}
	if _, err := st.exec(ctx, "COMMIT"); err != nil {
		st.rollback()
		return err
	}
	return nil
}

// one runs a write inside a savepoint, so that its failure is its own.
func (st *statements) one(ctx context.Context, op *write) error {
	if _, err := st.exec(ctx, "SAVEPOINT one"); err != nil {
		return err
	}
	if op.err = op.do(ctx, st); op.err != nil {
		if _, err := st.exec(ctx, "ROLLBACK TO one"); err != nil {
			return err
		}
	}
	_, err := st.exec(ctx, "RELEASE one")
	return err
}

// rollback ends the transaction whatever has happened. SQLite has rolled back by itself after some
// errors, a full disk among them; then there is nothing to do and it says so.
func (st *statements) rollback() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if _, err := st.conn.ExecContext(ctx, "ROLLBACK"); err != nil {
		st.broken = true
	}
}

func (st *statements) close() {
	for _, s := range st.prepared {
		_ = s.Close()
	}
	_ = st.conn.Close()
}

// discard closes the connection for good instead of giving it back to its pool.
func (st *statements) discard() {
	_ = st.conn.Raw(func(any) error { return errDiscard })
	st.close()
}
