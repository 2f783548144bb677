package conversations

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"modernc.org/sqlite"
)

// FileState is a State in a SQLite file.
type FileState struct{ db *sql.DB }

var _ State = (*FileState)(nil)

// OpenFileState opens a file, or makes one that its owner alone can read.
func OpenFileState(ctx context.Context, path string) (*FileState, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("open state: %w", err)
	}
	f, err := os.OpenFile(abs, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open state: %w", err)
	}
	if err := f.Close(); err != nil {
		return nil, fmt.Errorf("open state: %w", err)
	}
	dsn := (&url.URL{Scheme: "file", Path: abs}).String() +
		"?_pragma=busy_timeout(5000)&_pragma=journal_mode(wal)&_pragma=synchronous(full)"
	c, err := sqlite.NewConnector(dsn)
	if err != nil {
		return nil, fmt.Errorf("open state: %w", err)
	}
	s := &FileState{db: sql.OpenDB(c)}
	s.db.SetMaxOpenConns(1)
	if _, err := s.db.ExecContext(ctx, `CREATE TABLE IF NOT EXISTS state (key TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID`); err != nil {
		return nil, fmt.Errorf("open state: %w", errors.Join(err, s.db.Close()))
	}
	return s, nil
}

// Get implements State.
func (s *FileState) Get(ctx context.Context, key string) (value []byte, err error) {
	err = s.db.QueryRowContext(ctx, `SELECT value FROM state WHERE key = ?`, key).Scan(&value)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	return value, err
}

// Swap implements State.
func (s *FileState) Swap(ctx context.Context, key string, old, value []byte) (bool, error) {
	var res sql.Result
	var err error
	switch {
	case old == nil && value == nil:
		v, err := s.Get(ctx, key)
		return v == nil, err
	case old == nil:
		res, err = s.db.ExecContext(ctx, `INSERT OR IGNORE INTO state (key, value) VALUES (?, ?)`, key, value)
	case value == nil:
		res, err = s.db.ExecContext(ctx, `DELETE FROM state WHERE key = ? AND value = ?`, key, old)
	default:
		res, err = s.db.ExecContext(ctx, `UPDATE state SET value = ? WHERE key = ? AND value = ?`, value, key, old)
	}
	if err != nil {
		return false, err
	}
	n, err := res.RowsAffected()
	return n == 1, err
}

// Keys implements State.
func (s *FileState) Keys(ctx context.Context, prefix, after string, limit int) ([]string, error) {
	rows, err := s.db.QueryContext(ctx, `SELECT key FROM state WHERE key > ? AND key >= ? ORDER BY key LIMIT ?`, after, prefix, limit)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	var keys []string
	for rows.Next() {
		var key string
		if err := rows.Scan(&key); err != nil {
			return nil, err
		}
		if !strings.HasPrefix(key, prefix) {
			break // the keys with the prefix stand together
		}
		keys = append(keys, key)
	}
	return keys, rows.Err()
}

// Close releases the file.
func (s *FileState) Close() error { return s.db.Close() }
