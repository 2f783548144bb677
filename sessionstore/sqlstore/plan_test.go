package sqlstore

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"botd/sessionstore"
	"botd/sessionstore/internal/dbtest"
)

// A young database has no statistics; reading the newest items must not depend on them.
func TestPostgresReadsTheNewestItemsAlone(t *testing.T) {
	t.Parallel()
	s, err := Open(t.Context(), Options{URL: dbtest.Postgres(t).String()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for i := range 3 {
		b := sessionstore.Batch{Turn: fmt.Sprint(i)}
		for range 500 {
			b.Items = append(b.Items, dbtest.Items(`{}`)...)
		}
		if err := s.Append(t.Context(), "s", b); err != nil {
			t.Fatal(err)
		}
	}
	db := s.db.(*postgresDB)
	rows, err := db.pool.Query(t.Context(), "EXPLAIN ANALYZE "+db.q.rows, "s", int64(maxRow), 40)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	plan := strings.Join(lines, "\n")
	for _, bad := range []string{"Rows Removed", "Seq Scan", "Bitmap", "rows=1500"} {
		if strings.Contains(plan, bad) {
			t.Errorf("the plan has %q:\n%s", bad, plan)
		}
	}
}
