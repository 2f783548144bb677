package boltstore

import (
	"encoding/json"
	"testing"

	"botd/sessionstore"
)

// say appends a turn to a session.
func say(t *testing.T, db *DB, id sessionstore.ID, turn, text string) {
	t.Helper()
	generation, err := db.Generation(t.Context(), id)
	must(t, err)
	raw, err := json.Marshal(map[string]string{"role": "user", "content": text})
	must(t, err)
	must(t, db.Append(t.Context(), id, sessionstore.Batch{Turn: turn, Generation: generation, Items: []sessionstore.Item{{Raw: raw}}}))
}
