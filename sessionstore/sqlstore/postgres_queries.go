package sqlstore

// postgresQueries are the statements of one pair of tables.
//
// An append and a clear are several statements of one transaction, sent together: register makes the
// session's row in {botd_sessions} if it may exist, lock waits for whoever holds it, and only the
// statements after it, each with a view of its own, read what the lock guards. A single statement would
// read a view older than its lock. For the same reason the time of a message is the clock's and not the
// transaction's, which began before it had the lock: the SDK orders by time.
type postgresQueries struct {
	rows, generation, sessions    string
	register, lock, outside       string
	append, clearMessages, clear  string
	newest, any                   string
	dropMessage, dropItem, popped string
}

// postgresSeen is the moment at which the SDK made a session's row, in a form that depends on no setting.
const postgresSeen = `to_char(s.created_at, 'YYYYMMDDHH24MISSUS')`

func newPostgresQueries(t tables) postgresQueries {
	// LIMIT makes each message's record a look-up of its own: on a young table, without statistics, the
	// planner would go through all records of the session for each message.
	const (
		columns = `SELECT m.id, m.message_data, m.created_at::timestamptz, i.turn, i.origin, i.at `
		records = ` LEFT JOIN LATERAL (SELECT turn, origin, at FROM {botd_items}
			WHERE session_id = $1::text AND message_id = m.id LIMIT 1) i ON true `
	)
	const current = `b.generation + CASE WHEN b.seen IS NOT NULL AND b.seen IS DISTINCT FROM ` + postgresSeen + ` THEN 1 ELSE 0 END`
	return postgresQueries{
		rows: t.fill(columns + `FROM (SELECT id, message_data, created_at FROM {messages}
				WHERE session_id = $1::text AND id < $2::bigint ORDER BY id DESC LIMIT $3::bigint) m` + records + `ORDER BY m.id DESC`),
		generation: t.fill(`SELECT ` + current + ` FROM {botd_sessions} b LEFT JOIN {sessions} s ON s.session_id = b.session_id
			WHERE b.session_id = $1::text`),
		sessions: t.fill(`SELECT n.id, (SELECT count(*) FROM {messages} m WHERE m.session_id = n.id), ` + current + `,
				s.created_at::timestamptz, s.updated_at::timestamptz, b.created, b.updated
			FROM ((SELECT session_id AS id FROM {sessions} WHERE session_id COLLATE "C" > $1::text AND session_id COLLATE "C" >= $2::text
					ORDER BY session_id COLLATE "C" LIMIT $3::bigint)
				UNION (SELECT session_id FROM {botd_sessions} WHERE session_id COLLATE "C" > $1::text AND session_id COLLATE "C" >= $2::text
					ORDER BY session_id COLLATE "C" LIMIT $3::bigint)) n
			LEFT JOIN {sessions} s ON s.session_id = n.id LEFT JOIN {botd_sessions} b ON b.session_id = n.id
			ORDER BY n.id COLLATE "C" LIMIT $3::bigint`),

		register: t.fill(`INSERT INTO {botd_sessions} (session_id, generation, created, updated) SELECT $1::text, 0, $3::bigint, $3::bigint WHERE $2::bigint = 0
			ON CONFLICT (session_id) DO NOTHING`),
		lock: t.fill(`SELECT FROM {botd_sessions} WHERE session_id = $1::text FOR UPDATE`),
		outside: t.fill(`WITH cleared AS (
				UPDATE {botd_sessions} b SET generation = generation + 1, seen = NULL
				WHERE session_id = $1::text AND seen IS NOT NULL
				AND seen IS DISTINCT FROM (SELECT ` + postgresSeen + ` FROM {sessions} s WHERE s.session_id = $1::text)
				RETURNING session_id)
			DELETE FROM {botd_turns} WHERE session_id IN (SELECT session_id FROM cleared)`),

		append: t.fill(`WITH fence AS (
				SELECT FROM {botd_sessions} WHERE session_id = $1::text AND generation = $2::bigint),
			turn AS (
				INSERT INTO {botd_turns} (session_id, turn) SELECT $1::text, $3::bytea FROM fence WHERE length($3::bytea) > 0
				ON CONFLICT DO NOTHING RETURNING 1),
			go AS (
				SELECT FROM fence WHERE length($3::bytea) = 0 OR EXISTS (SELECT FROM turn)),
			s AS (
				INSERT INTO {sessions} (session_id) SELECT $1::text FROM go
				ON CONFLICT (session_id) DO UPDATE SET updated_at = CURRENT_TIMESTAMP RETURNING created_at),
			m AS (
				INSERT INTO {messages} (session_id, message_data, created_at)
				SELECT $1::text, raw.data, clock_timestamp() FROM s, unnest($4::text[]) WITH ORDINALITY raw (data, n) ORDER BY raw.n
				RETURNING id),
			i AS (
				INSERT INTO {botd_items} (session_id, message_id, turn, origin, at)
				SELECT $1::text, numbered.id, $3::bytea, o.origin, $6::bigint
				FROM (SELECT id, row_number() OVER (ORDER BY id) AS n FROM m) numbered
				JOIN unnest($5::bytea[]) WITH ORDINALITY o (origin, n) ON o.n = numbered.n),
			note AS (
				UPDATE {botd_sessions} SET seen = (SELECT ` + postgresSeen + ` FROM s), updated = $6::bigint
				WHERE session_id = $1::text AND EXISTS (SELECT FROM s))
			SELECT EXISTS (SELECT FROM fence)`),

		clearMessages: t.fill(`DELETE FROM {messages} WHERE session_id = $1::text`),
		clear: t.fill(`WITH s AS (DELETE FROM {sessions} WHERE session_id = $1::text),
			i AS (DELETE FROM {botd_items} WHERE session_id = $1::text),
			t AS (DELETE FROM {botd_turns} WHERE session_id = $1::text)
			UPDATE {botd_sessions} SET generation = generation + 1, seen = NULL, updated = $2::bigint WHERE session_id = $1::text`),

		newest:      t.fill(columns + `FROM {messages} m` + records + `WHERE m.session_id = $1::text ORDER BY m.id DESC LIMIT 1 FOR UPDATE OF m`),
		any:         t.fill(`SELECT EXISTS (SELECT FROM {messages} WHERE session_id = $1::text)`),
		dropMessage: t.fill(`DELETE FROM {messages} WHERE id = $1::bigint`),
		dropItem:    t.fill(`DELETE FROM {botd_items} WHERE session_id = $1::text AND message_id = $2::bigint`),
		popped:      t.fill(`UPDATE {botd_sessions} SET updated = $2::bigint WHERE session_id = $1::text`),
	}
}
