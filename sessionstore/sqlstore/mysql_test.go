package sqlstore_test

import (
	"errors"
	"strings"
	"testing"

	"botd/sessionstore"
	"botd/sessionstore/internal/dbtest"
	"botd/sessionstore/sqlstore"
)

const mysqlTables = `CREATE TABLE agent_sessions (session_id %ID NOT NULL PRIMARY KEY, created_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP, updated_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP);
CREATE TABLE agent_messages (id INTEGER NOT NULL AUTO_INCREMENT PRIMARY KEY, session_id %ID NOT NULL, message_data TEXT %DATA NOT NULL, created_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP, FOREIGN KEY (session_id) REFERENCES agent_sessions (session_id))`

// made opens a store on tables that others have made.
func made(t *testing.T, id, data string) (*sqlstore.Store, error) {
	t.Helper()
	u := dbtest.MySQL(t)
	py := connect(t, "mysql", mysqlDSN(u), question)
	py.exec(py.db, strings.NewReplacer("%ID", id, "%DATA", data).Replace(mysqlTables))
	s, err := sqlstore.Open(t.Context(), sqlstore.Options{URL: "mysql+aiomysql" + strings.TrimPrefix(u.String(), "mysql")})
	if err == nil {
		t.Cleanup(func() { s.Close() })
	}
	return s, err
}

func TestMySQLTablesThatCannotTellIDsApartAreRefused(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]string{
		"VARCHAR(190) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci": "differ in case alone",
		"VARCHAR(190) CHARACTER SET latin1":                             "must both be utf8mb4",
	} {
		if _, err := made(t, id, ""); !errors.Is(err, sqlstore.ErrSchema) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", id, err, want)
		}
	}
}

func TestMySQLTextThatTheColumnCannotSpell(t *testing.T) {
	t.Parallel()
	s, err := made(t, "VARCHAR(190) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin", "CHARACTER SET utf8mb3")
	if err != nil {
		t.Fatal(err)
	}
	err = s.Append(t.Context(), "s", sessionstore.Batch{Items: dbtest.Items(`{"text":"hush 😀"}`)})
	if !errors.Is(err, sqlstore.ErrSchema) || strings.Contains(err.Error(), `\xF0`) || !strings.Contains(err.Error(), "utf8mb4") {
		t.Errorf("got %v", err)
	}
}

func TestMySQLTablesOfTheSDKHaveLimits(t *testing.T) {
	t.Parallel()
	s, err := made(t, "VARCHAR(190) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin", "")
	if err != nil {
		t.Fatal(err)
	}
	for id, want := range map[sessionstore.ID]string{
		sessionstore.ID(strings.Repeat("k", 191)): "longer than the 190 characters",
		"a ": "ends in a space",
	} {
		err := s.Append(t.Context(), id, sessionstore.Batch{Items: dbtest.Items(`{}`)})
		if !errors.Is(err, sessionstore.ErrInvalidID) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.5q…: %v, want %q", id, err, want)
		}
	}
	big := `{"text":"` + strings.Repeat("x", 1<<16) + `"}`
	err = s.Append(t.Context(), "s", sessionstore.Batch{Items: dbtest.Items(`{}`, big)})
	if !errors.Is(err, sessionstore.ErrTooLarge) || !strings.Contains(err.Error(), "LONGTEXT") {
		t.Errorf("an item that the column cannot hold: %v", err)
	}
	if got := dbtest.Raws(t, s, "s", 5); len(got) != 0 {
		t.Errorf("half the batch was written: %d items", len(got))
	}
}
