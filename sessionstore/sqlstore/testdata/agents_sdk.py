"""The database statements of the OpenAI Agents SDK's SQLiteSession (openai-agents-python 0.22.0), without the SDK.

Reads one JSON request per line from standard input and writes one JSON answer per line:
{"op": "add", "session": "s", "items": [...]}, {"op": "get", "session": "s", "limit": n or null},
{"op": "pop", "session": "s"}, {"op": "clear", "session": "s"}, {"op": "raw", "session": "s", "data": "text"}.
"""
import json
import sqlite3
import sys

db = sqlite3.connect(sys.argv[1], check_same_thread=False)
db.execute("PRAGMA journal_mode=WAL")
db.execute(
    """CREATE TABLE IF NOT EXISTS agent_sessions (
        session_id TEXT PRIMARY KEY,
        created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
        updated_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP
    )"""
)
db.execute(
    """CREATE TABLE IF NOT EXISTS agent_messages (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        session_id TEXT NOT NULL,
        message_data TEXT NOT NULL,
        created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
        FOREIGN KEY (session_id) REFERENCES agent_sessions (session_id) ON DELETE CASCADE
    )"""
)
db.execute("CREATE INDEX IF NOT EXISTS idx_agent_messages_session_id ON agent_messages (session_id, id)")
db.commit()


def add(session, texts):
    db.execute("INSERT OR IGNORE INTO agent_sessions (session_id) VALUES (?)", (session,))
    db.executemany(
        "INSERT INTO agent_messages (session_id, message_data) VALUES (?, ?)",
        [(session, text) for text in texts],
    )
    db.execute("UPDATE agent_sessions SET updated_at = CURRENT_TIMESTAMP WHERE session_id = ?", (session,))
    db.commit()


def valid(text):
    try:
        item = json.loads(text)
    except json.JSONDecodeError:
        return None
    return item if isinstance(item, dict) else None


def get(session, limit):
    if limit is None:
        rows = db.execute(
            "SELECT message_data FROM agent_messages WHERE session_id = ? ORDER BY id ASC", (session,)
        ).fetchall()
        return [text for (text,) in rows if valid(text) is not None]
    window = limit
    while True:
        rows = db.execute(
            "SELECT message_data FROM agent_messages WHERE session_id = ? ORDER BY id DESC LIMIT ?",
            (session, window),
        ).fetchall()
        texts = [text for (text,) in reversed(rows) if valid(text) is not None]
        if len(texts) >= limit or len(rows) < window:
            return texts[-limit:]
        window *= 2


def pop(session):
    while True:
        row = db.execute(
            """DELETE FROM agent_messages WHERE id = (
                SELECT id FROM agent_messages WHERE session_id = ? ORDER BY id DESC LIMIT 1
            ) RETURNING message_data""",
            (session,),
        ).fetchone()
        db.commit()
        if row is None:
            return None
        if valid(row[0]) is not None:
            return row[0]


def clear(session):
    db.execute("DELETE FROM agent_messages WHERE session_id = ?", (session,))
    db.execute("DELETE FROM agent_sessions WHERE session_id = ?", (session,))
    db.commit()


for line in sys.stdin:
    request = json.loads(line)
    op, session = request["op"], request["session"]
    answer = None
    if op == "add":
        add(session, [json.dumps(item) for item in request["items"]])
    elif op == "raw":
        add(session, [request["data"]])
    elif op == "get":
        answer = get(session, request.get("limit"))
    elif op == "pop":
        answer = pop(session)
    elif op == "clear":
        clear(session)
    print(json.dumps(answer), flush=True)
