package dbtest

import (
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql" // to make and drop databases
	"github.com/jackc/pgx/v5"
)

// Addresses of the servers when the environment names none.
const (
	postgresURL = "postgres://postgres@127.0.0.1:5432/test?sslmode=disable"
	mysqlURL    = "mysql://root@127.0.0.1:3306/test"
	redisURL    = "redis://127.0.0.1:6379/0"
)

// server returns the URL of a server that answers, from the environment or the default.
func server(t testing.TB, variable, standard string) *url.URL {
	t.Helper()
	raw := os.Getenv(variable)
	if raw == "" {
		raw = standard
	}
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatalf("%s is no URL", variable)
	}
	d := net.Dialer{Timeout: 2 * time.Second}
	conn, err := d.DialContext(t.Context(), "tcp", u.Host)
	if err != nil {
		Absent(t, fmt.Sprintf("no server at %s (set %s to use another)", u.Host, variable))
	}
	conn.Close()
	return u
}

// Name returns a name that no other test has.
func Name() string { return "botd_test_" + strings.ToLower(rand.Text()[:16]) }

// Postgres makes a database of the test's own, dropped when it ends, and returns its URL.
func Postgres(t testing.TB) *url.URL {
	t.Helper()
	u := server(t, "BOTD_TEST_POSTGRES", postgresURL)
	name := Name()
	admin := func(ctx context.Context, statement string) error {
		conn, err := pgx.Connect(ctx, u.String())
		if err != nil {
			return err
		}
		defer conn.Close(ctx)
		_, err = conn.Exec(ctx, statement)
		return err
	}
	if err := admin(t.Context(), "CREATE DATABASE "+name); err != nil {
		t.Fatalf("make a PostgreSQL database: %v", err)
	}
	t.Cleanup(func() {
		if err := admin(context.WithoutCancel(t.Context()), "DROP DATABASE "+name+" WITH (FORCE)"); err != nil {
			t.Errorf("drop the PostgreSQL database: %v", err)
		}
	})
	own := *u
	own.Path = "/" + name
	return &own
}

// MySQL makes a database of the test's own, dropped when it ends, and returns its URL.
func MySQL(t testing.TB) *url.URL {
	t.Helper()
	u := server(t, "BOTD_TEST_MYSQL", mysqlURL)
	name := Name()
	password, _ := u.User.Password()
	db, err := sql.Open("mysql", fmt.Sprintf("%s:%s@tcp(%s)%s", u.User.Username(), password, u.Host, u.Path))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), "CREATE DATABASE "+name); err != nil {
		t.Fatalf("make a MySQL database: %v", err)
	}
	t.Cleanup(func() {
		if _, err := db.ExecContext(context.WithoutCancel(t.Context()), "DROP DATABASE "+name); err != nil {
			t.Errorf("drop the MySQL database: %v", err)
		}
		db.Close()
	})
	own := *u
	own.Path = "/" + name
	return &own
}

// Redis returns the URL of a server and a key prefix of the test's own.
func Redis(t testing.TB) (u *url.URL, prefix string) {
	t.Helper()
	return server(t, "BOTD_TEST_REDIS", redisURL), Name()
}
