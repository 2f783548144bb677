"""The reference workload on the database statements of the OpenAI Agents SDK's SQLiteSession, without the SDK.

Arguments: file, threads, the two items. Each line of standard input is "first count"; the answer is the
seconds that these turns took. As in the SDK, each thread keeps a connection of its own, and one lock of the
process is held during an operation.
"""
import json
import sqlite3
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

path, threads, items = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
SESSIONS, WINDOW = 1000, 40
lock = threading.RLock()
local = threading.local()


def connection():
    if not hasattr(local, "db"):
        local.db = sqlite3.connect(path, check_same_thread=False)
        local.db.execute("PRAGMA journal_mode=WAL")
    return local.db


def get(session):
    with lock:
        rows = connection().execute(
            "SELECT message_data FROM agent_messages WHERE session_id = ? ORDER BY id DESC LIMIT ?",
            (session, WINDOW),
        ).fetchall()
    return [json.loads(text) for (text,) in reversed(rows)]


def add(session, new):
    with lock:
        db = connection()
        db.execute("INSERT OR IGNORE INTO agent_sessions (session_id) VALUES (?)", (session,))
        db.executemany(
            "INSERT INTO agent_messages (session_id, message_data) VALUES (?, ?)",
            [(session, json.dumps(item, separators=(",", ":"))) for item in new],
        )
        db.execute("UPDATE agent_sessions SET updated_at = CURRENT_TIMESTAMP WHERE session_id = ?", (session,))
        db.commit()


def turn(n):
    session = "line-shop:user:U%08d" % (n % SESSIONS)
    got = len(get(session))
    if got != min(WINDOW, n // SESSIONS * len(items)):
        raise RuntimeError("turn %d read %d items" % (n, got))
    add(session, decoded)


decoded = [json.loads(text) for text in items]
db = connection()
db.execute(
    """CREATE TABLE agent_sessions (
        session_id TEXT PRIMARY KEY,
        created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
        updated_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP
    )"""
)
db.execute(
    """CREATE TABLE agent_messages (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        session_id TEXT NOT NULL,
        message_data TEXT NOT NULL,
        created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
        FOREIGN KEY (session_id) REFERENCES agent_sessions (session_id) ON DELETE CASCADE
    )"""
)
db.execute("CREATE INDEX idx_agent_messages_session_id ON agent_messages (session_id, id)")
db.commit()

with ThreadPoolExecutor(threads) as pool:
    for line in sys.stdin:
        first, count = map(int, line.split())
        began = time.perf_counter()
        if threads == 1:
            for n in range(first, first + count):
                turn(n)
        else:
            for _ in pool.map(turn, range(first, first + count)):
                pass
        print(time.perf_counter() - began, flush=True)
