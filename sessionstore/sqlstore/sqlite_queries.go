package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"botd/sessionstore"
)

// sqliteQueries are the statements of one pair of tables.
type sqliteQueries struct {
	rows, generation, sessions string

	outside, fence, addTurn, addSession, addMessage, addItem, touch, note string
	newest, dropMessage, dropItem, popped                                 string
	clearMessages, clearSession, clearItems, clearTurns, bump             string
}

func newSQLiteQueries(t tables) sqliteQueries {
	return sqliteQueries{
		rows: t.fill(`SELECT m.id, m.message_data, CAST(m.created_at AS TEXT), i.turn, i.origin, i.at
			FROM {messages} m LEFT JOIN {botd_items} i ON i.session_id = m.session_id AND i.message_id = m.id
			WHERE m.session_id = ?1 AND m.id < ?2 ORDER BY m.id DESC LIMIT ?3`),
		generation: t.fill(`SELECT b.generation + (b.seen IS NOT NULL AND b.seen IS NOT CAST(s.created_at AS TEXT))
			FROM {botd_sessions} b LEFT JOIN {sessions} s ON s.session_id = b.session_id WHERE b.session_id = ?1`),
		sessions: t.fill(`SELECT n.session_id,
				(SELECT count(*) FROM {messages} m WHERE m.session_id = n.session_id),
				b.generation + (b.seen IS NOT NULL AND b.seen IS NOT CAST(s.created_at AS TEXT)),
				CAST(s.created_at AS TEXT), CAST(s.updated_at AS TEXT), b.created, b.updated
			FROM (SELECT * FROM (SELECT session_id FROM {sessions} WHERE session_id > ?1 AND session_id >= ?2 ORDER BY session_id LIMIT ?3)
				UNION SELECT * FROM (SELECT session_id FROM {botd_sessions} WHERE session_id > ?1 AND session_id >= ?2 ORDER BY session_id LIMIT ?3)
				ORDER BY session_id LIMIT ?3) n
			LEFT JOIN {sessions} s ON s.session_id = n.session_id LEFT JOIN {botd_sessions} b ON b.session_id = n.session_id
			ORDER BY n.session_id`),

		outside: t.fill(`UPDATE {botd_sessions} SET generation = generation + 1, seen = NULL
			WHERE session_id = ?1 AND seen IS NOT NULL
			AND seen IS NOT (SELECT CAST(created_at AS TEXT) FROM {sessions} WHERE session_id = ?1)`),

		fence:      t.fill(`SELECT generation FROM {botd_sessions} WHERE session_id = ?1`),
		addTurn:    t.fill(`INSERT OR IGNORE INTO {botd_turns} (session_id, turn) VALUES (?1, ?2)`),
		addSession: t.fill(`INSERT OR IGNORE INTO {sessions} (session_id) VALUES (?1)`),
		addMessage: t.fill(`INSERT INTO {messages} (session_id, message_data) VALUES (?1, ?2)`),
		addItem:    t.fill(`INSERT OR REPLACE INTO {botd_items} (session_id, message_id, turn, origin, at) VALUES (?1, ?2, ?3, ?4, ?5)`),
		touch:      t.fill(`UPDATE {sessions} SET updated_at = CURRENT_TIMESTAMP WHERE session_id = ?1`),
		note: t.fill(`INSERT INTO {botd_sessions} (session_id, generation, seen, created, updated)
			VALUES (?1, 0, (SELECT CAST(created_at AS TEXT) FROM {sessions} WHERE session_id = ?1), ?2, ?2)
			ON CONFLICT (session_id) DO UPDATE SET seen = excluded.seen, updated = excluded.updated`),

		newest: t.fill(`SELECT m.id, m.message_data, CAST(m.created_at AS TEXT), i.turn, i.origin, i.at
			FROM {messages} m LEFT JOIN {botd_items} i ON i.session_id = m.session_id AND i.message_id = m.id
			WHERE m.session_id = ?1 ORDER BY m.id DESC LIMIT 1`),
		dropMessage: t.fill(`DELETE FROM {messages} WHERE id = ?1`),
		dropItem:    t.fill(`DELETE FROM {botd_items} WHERE session_id = ?1 AND message_id = ?2`),
		popped:      t.fill(`UPDATE {botd_sessions} SET updated = ?2 WHERE session_id = ?1`),

		clearMessages: t.fill(`DELETE FROM {messages} WHERE session_id = ?1`),
		clearSession:  t.fill(`DELETE FROM {sessions} WHERE session_id = ?1`),
		clearItems:    t.fill(`DELETE FROM {botd_items} WHERE session_id = ?1`),
		clearTurns:    t.fill(`DELETE FROM {botd_turns} WHERE session_id = ?1`),
		bump: t.fill(`INSERT INTO {botd_sessions} (session_id, generation, seen, created, updated) VALUES (?1, 1, NULL, ?2, ?2)
			ON CONFLICT (session_id) DO UPDATE SET generation = generation + 1, seen = NULL, updated = excluded.updated`),
	}
}

// settle counts a clear that happened outside.
func (q sqliteQueries) settle(ctx context.Context, st *statements, id sessionstore.ID) error {
	res, err := st.exec(ctx, q.outside, string(id))
	if err != nil {
		return err
	}
	if n, err := res.RowsAffected(); err != nil || n == 0 {
		return err
	}
	_, err = st.exec(ctx, q.clearTurns, string(id))
	return err
}

func (q sqliteQueries) append(ctx context.Context, st *statements, id sessionstore.ID, b sessionstore.Batch) error {
	if err := q.settle(ctx, st, id); err != nil {
		return err
	}
	var generation uint64
	if err := st.row(ctx, q.fence, []any{string(id)}, &generation); err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	if generation != b.Generation {
		return sessionstore.ErrStale
	}
	if b.Turn != "" {
		res, err := st.exec(ctx, q.addTurn, string(id), b.Turn)
		if err != nil {
			return err
		}
		if n, err := res.RowsAffected(); err != nil || n == 0 {
			return err // appended before
		}
	}
	if _, err := st.exec(ctx, q.addSession, string(id)); err != nil {
		return err
	}
	now := time.Now().UnixMilli()
	for _, it := range b.Items {
		res, err := st.exec(ctx, q.addMessage, string(id), string(it.Raw))
		if err != nil {
			return err
		}
		n, err := res.LastInsertId()
		if err != nil {
			return err
		}
		if _, err := st.exec(ctx, q.addItem, string(id), n, b.Turn, it.Origin, now); err != nil {
			return err
		}
	}
	if _, err := st.exec(ctx, q.touch, string(id)); err != nil {
		return err
	}
	_, err := st.exec(ctx, q.note, string(id), now)
	return err
}

// pop removes the newest rows up to the first valid one, which it returns.
func (q sqliteQueries) pop(ctx context.Context, st *statements, id sessionstore.ID) (it sessionstore.Item, found bool, err error) {
	for !found {
		var r row
		r, err = q.newestRow(ctx, st, id)
		if errors.Is(err, sql.ErrNoRows) {
			return it, false, nil
		}
		if err == nil && r.sealed() {
			err = ErrSealed
		}
		if err != nil {
			return it, false, err
		}
		if _, err := st.exec(ctx, q.dropMessage, r.id); err != nil {
			return it, false, err
		}
		if _, err := st.exec(ctx, q.dropItem, string(id), r.id); err != nil {
			return it, false, err
		}
		it, found = r.item(), r.valid()
	}
	_, err = st.exec(ctx, q.popped, string(id), time.Now().UnixMilli())
	return it, true, err
}

func (q sqliteQueries) newestRow(ctx context.Context, st *statements, id sessionstore.ID) (row, error) {
	s, err := st.prepare(ctx, q.newest)
	if err != nil {
		return row{}, err
	}
	return scanSQLiteRow(s.QueryRowContext(ctx, string(id)).Scan)
}

func (q sqliteQueries) clear(ctx context.Context, st *statements, id sessionstore.ID) error {
	if err := q.settle(ctx, st, id); err != nil {
		return err
	}
	for _, statement := range []string{q.clearMessages, q.clearSession, q.clearItems, q.clearTurns} {
		if _, err := st.exec(ctx, statement, string(id)); err != nil {
			return err
		}
	}
	_, err := st.exec(ctx, q.bump, string(id), time.Now().UnixMilli())
	return err
}
