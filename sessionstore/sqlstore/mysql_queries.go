package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"time"

	"botd/sessionstore"
)

// mysqlQueries are the statements of one pair of tables.
type mysqlQueries struct {
	rows, generation, sessions                          string
	lock, fence, outside                                string
	addTurn, addSession, addMessage, addItem, note      string
	newest, dropMessage, dropItem, popped               string
	clearMessages, clearSession, clearItems, clearTurns string
	bump                                                string
}

// mysqlSeen is the moment at which the SDK made a session's row, whatever the connection's time zone.
const mysqlSeen = `CAST(UNIX_TIMESTAMP(s.created_at) AS CHAR CHARACTER SET ascii)`

func newMySQLQueries(t tables) mysqlQueries {
	const item = `SELECT m.id, m.message_data, UNIX_TIMESTAMP(m.created_at), i.turn, i.origin, i.at
		FROM {messages} m LEFT JOIN {botd_items} i ON i.session_id = m.session_id AND i.message_id = m.id `
	const current = `b.generation + (b.seen IS NOT NULL AND NOT (b.seen <=> ` + mysqlSeen + `))`
	return mysqlQueries{
		rows: t.fill(item + `WHERE m.session_id = ? AND m.id < ? ORDER BY m.id DESC LIMIT ?`),
		generation: t.fill(`SELECT ` + current + ` FROM {botd_sessions} b LEFT JOIN {sessions} s ON s.session_id = b.session_id
			WHERE b.session_id = ?`),
		sessions: t.fill(`SELECT n.id, (SELECT count(*) FROM {messages} m WHERE m.session_id = n.id), ` + current + `,
				UNIX_TIMESTAMP(s.created_at), UNIX_TIMESTAMP(s.updated_at), b.created, b.updated
			FROM ((SELECT session_id AS id FROM {sessions} WHERE session_id > ? AND session_id >= ? ORDER BY session_id LIMIT ?)
				UNION (SELECT session_id FROM {botd_sessions} WHERE session_id > ? AND session_id >= ? ORDER BY session_id LIMIT ?)) n
			LEFT JOIN {sessions} s ON s.session_id = n.id LEFT JOIN {botd_sessions} b ON b.session_id = n.id
			ORDER BY n.id LIMIT ?`),

		lock: t.fill(`INSERT INTO {botd_sessions} (session_id, generation, created, updated) VALUES (?, 0, ?, ?)
			ON DUPLICATE KEY UPDATE generation = generation`),
		fence: t.fill(`SELECT b.generation, b.seen IS NOT NULL AND NOT (b.seen <=> ` + mysqlSeen + `)
			FROM {botd_sessions} b LEFT JOIN {sessions} s ON s.session_id = b.session_id WHERE b.session_id = ?`),
		outside: t.fill(`UPDATE {botd_sessions} SET generation = generation + 1, seen = NULL WHERE session_id = ?`),

		addTurn:    t.fill(`INSERT IGNORE INTO {botd_turns} (session_id, turn) VALUES (?, ?)`),
		addSession: t.fill(`INSERT INTO {sessions} (session_id) VALUES (?) ON DUPLICATE KEY UPDATE updated_at = CURRENT_TIMESTAMP`),
		addMessage: t.fill(`INSERT INTO {messages} (session_id, message_data) VALUES (?, ?)`),
		addItem:    t.fill(`REPLACE INTO {botd_items} (session_id, message_id, turn, origin, at) VALUES `),
		note: t.fill(`UPDATE {botd_sessions} b JOIN {sessions} s ON s.session_id = b.session_id
			SET b.seen = ` + mysqlSeen + `, b.updated = ? WHERE b.session_id = ?`),

		newest:      t.fill(item + `WHERE m.session_id = ? ORDER BY m.id DESC LIMIT 1 FOR UPDATE`),
		dropMessage: t.fill(`DELETE FROM {messages} WHERE id = ?`),
		dropItem:    t.fill(`DELETE FROM {botd_items} WHERE session_id = ? AND message_id = ?`),
		popped:      t.fill(`UPDATE {botd_sessions} SET updated = ? WHERE session_id = ?`),

		clearMessages: t.fill(`DELETE FROM {messages} WHERE session_id = ?`),
		clearSession:  t.fill(`DELETE FROM {sessions} WHERE session_id = ?`),
		clearItems:    t.fill(`DELETE FROM {botd_items} WHERE session_id = ?`),
		clearTurns:    t.fill(`DELETE FROM {botd_turns} WHERE session_id = ?`),
		bump:          t.fill(`UPDATE {botd_sessions} SET generation = generation + 1, seen = NULL, updated = ? WHERE session_id = ?`),
	}
}

// enter locks the session's row, counts a clear that happened outside, and returns the generation.
func (q mysqlQueries) enter(ctx context.Context, tx *sql.Tx, id sessionstore.ID, now int64) (uint64, error) {
	if _, err := tx.ExecContext(ctx, q.lock, string(id), now, now); err != nil {
		return 0, err
	}
	// The transaction's view begins with this read, after the lock was had.
	var generation uint64
	var outside bool
	if err := tx.QueryRowContext(ctx, q.fence, string(id)).Scan(&generation, &outside); err != nil {
		return 0, err
	}
	if !outside {
		return generation, nil
	}
	return generation + 1, execAll(ctx, tx, string(id), q.outside, q.clearTurns)
}

// execAll runs statements whose parameter is the same.
func execAll(ctx context.Context, tx *sql.Tx, arg any, statements ...string) error {
	for _, s := range statements {
		if _, err := tx.ExecContext(ctx, s, arg); err != nil {
			return err
		}
	}
	return nil
}

func (q mysqlQueries) append(ctx context.Context, tx *sql.Tx, id sessionstore.ID, b sessionstore.Batch) error {
	now := time.Now().UnixMilli()
	generation, err := q.enter(ctx, tx, id, now)
	if err != nil {
		return err
	}
	if generation != b.Generation {
		return sessionstore.ErrStale
	}
	if b.Turn != "" {
		res, err := tx.ExecContext(ctx, q.addTurn, string(id), []byte(b.Turn))
		if err != nil {
			return err
		}
		if n, err := res.RowsAffected(); err != nil || n == 0 {
			return err // appended before
		}
	}
	if _, err := tx.ExecContext(ctx, q.addSession, string(id)); err != nil {
		return err
	}
	if err := q.addMessages(ctx, tx, id, b, now); err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, q.note, now, string(id))
	return err
}

// addMessages inserts one row at a time: the numbers of rows inserted together follow on each other only
// on some settings of the server.
func (q mysqlQueries) addMessages(ctx context.Context, tx *sql.Tx, id sessionstore.ID, b sessionstore.Batch, now int64) error {
	var args []any
	for _, it := range b.Items {
		res, err := tx.ExecContext(ctx, q.addMessage, string(id), string(it.Raw))
		if err != nil {
			return err
		}
		n, err := res.LastInsertId()
		if err != nil {
			return err
		}
		args = append(args, string(id), n, []byte(b.Turn), []byte(it.Origin), now)
	}
	values := strings.TrimSuffix(strings.Repeat("(?, ?, ?, ?, ?), ", len(b.Items)), ", ")
	_, err := tx.ExecContext(ctx, q.addItem+values, args...)
	return err
}

// pop removes the newest rows up to the first valid one, which it returns.
func (q mysqlQueries) pop(ctx context.Context, tx *sql.Tx, id sessionstore.ID) (it sessionstore.Item, found bool, err error) {
	for !found {
		r, err := scanMySQLRow(tx.QueryRowContext(ctx, q.newest, string(id)))
		if errors.Is(err, sql.ErrNoRows) {
			return it, false, nil
		}
		if err == nil && r.sealed() {
			err = ErrSealed
		}
		if err != nil {
			return it, false, err
		}
		if _, err := tx.ExecContext(ctx, q.dropMessage, r.id); err != nil {
			return it, false, err
		}
		if _, err := tx.ExecContext(ctx, q.dropItem, string(id), r.id); err != nil {
			return it, false, err
		}
		it, found = r.item(), r.valid()
	}
	_, err = tx.ExecContext(ctx, q.popped, time.Now().UnixMilli(), string(id))
	return it, true, err
}

func (q mysqlQueries) clear(ctx context.Context, tx *sql.Tx, id sessionstore.ID) error {
	now := time.Now().UnixMilli()
	if _, err := q.enter(ctx, tx, id, now); err != nil {
		return err
	}
	if err := execAll(ctx, tx, string(id), q.clearMessages, q.clearSession, q.clearItems, q.clearTurns); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, q.bump, now, string(id))
	return err
}
