package sqlstore

import (
	"context"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"time"
)

// Default values of Options.
const (
	DefaultSessionsTable = "agent_sessions"
	DefaultMessagesTable = "agent_messages"
	DefaultBusyTimeout   = 5 * time.Second
	DefaultWriteTimeout  = 30 * time.Second
	DefaultMaxConns      = 8
)

// Options are the settings of Open. The zero value of every field but URL is its default.
type Options struct {
	// URL names the database, as SQLAlchemy users write it; a driver behind a plus sign is ignored:
	//
	//	sqlite:///relative.db  sqlite:////absolute.db  sqlite::memory:
	//	postgres://user:password@host:5432/database?sslmode=verify-full
	//	mysql://user:password@host:3306/database?tls=true  mariadb://…
	//
	// Its query may hold sessions_table, messages_table and max_conns; busy_timeout (a duration such as
	// 5s) and synchronous (full or normal) for SQLite; for servers, what the driver understands.
	URL string
	// SessionsTable and MessagesTable are the names of the SDK's tables.
	SessionsTable, MessagesTable string
	// BusyTimeout is how long SQLite waits for another process's transaction.
	BusyTimeout time.Duration
	// WriteTimeout bounds a write that has begun, which no longer heeds its context.
	WriteTimeout time.Duration
	// MaxConns bounds the connections to a server, or the readers of a SQLite file.
	MaxConns int

	synchronous string
}

// tableName is what may be interpolated into a statement; 40 leaves room for the names made from it.
var tableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,39}$`)

// Open opens the database that o.URL names and creates the tables that are missing. Errors: ErrURL,
// ErrSchema, and those of the driver; none holds a password.
func Open(ctx context.Context, o Options) (*Store, error) {
	u, err := o.parse()
	if err != nil {
		return nil, fmt.Errorf("open SQL store: %w", err)
	}
	db, err := opener(u.Scheme)(ctx, u, o)
	if err != nil {
		return nil, fmt.Errorf("open SQL store: %w", err)
	}
	return &Store{db: db}, nil
}

// opener returns what opens the databases of a URL's scheme, nil when there are none.
func opener(scheme string) func(context.Context, *url.URL, Options) (database, error) {
	switch scheme {
	case "sqlite":
		return openSQLite
	case "postgres", "postgresql":
		return openPostgres
	case "mysql", "mariadb":
		return openMySQL
	}
	return nil
}

// parse fills o from its URL and its defaults, and returns the URL without what was meant for o.
func (o *Options) parse() (*url.URL, error) {
	u, err := url.Parse(o.URL)
	if err != nil {
		return nil, ErrURL // url.Error repeats the URL, which may hold a password
	}
	u.Scheme, _, _ = strings.Cut(u.Scheme, "+")
	if opener(u.Scheme) == nil {
		return nil, fmt.Errorf("%w: unknown scheme %q (sqlite, postgres, mysql)", ErrURL, u.Scheme)
	}
	q, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, fmt.Errorf("%w: malformed parameters", ErrURL)
	}
	take := func(key string) string {
		v := q.Get(key)
		q.Del(key)
		return v
	}
	setDefault(&o.SessionsTable, take("sessions_table"), DefaultSessionsTable)
	setDefault(&o.MessagesTable, take("messages_table"), DefaultMessagesTable)
	for _, name := range []string{o.SessionsTable, o.MessagesTable} {
		if !tableName.MatchString(name) {
			return nil, fmt.Errorf("%w: table name %q (letters, digits and _, at most 40)", ErrURL, name)
		}
	}
	if v := take("max_conns"); v != "" && o.MaxConns == 0 {
		if _, err := fmt.Sscanf(v, "%d", &o.MaxConns); err != nil || o.MaxConns < 1 {
			return nil, fmt.Errorf("%w: max_conns %q is not a positive number", ErrURL, v)
		}
	}
	if u.Scheme == "sqlite" {
		if err := o.parseSQLite(take); err != nil {
			return nil, err
		}
		for key := range q {
			return nil, fmt.Errorf("%w: unknown parameter %q (sessions_table, messages_table, max_conns, busy_timeout, synchronous)", ErrURL, key)
		}
	}
	setDefault(&o.MaxConns, 0, DefaultMaxConns)
	setDefault(&o.BusyTimeout, 0, DefaultBusyTimeout)
	setDefault(&o.WriteTimeout, 0, DefaultWriteTimeout)
	u.RawQuery = q.Encode()
	return u, nil
}

func (o *Options) parseSQLite(take func(string) string) error {
	if v := take("busy_timeout"); v != "" && o.BusyTimeout == 0 {
		d, err := time.ParseDuration(v)
		if err != nil || d < 0 {
			return fmt.Errorf("%w: busy_timeout %q is not a duration such as 5s", ErrURL, v)
		}
		o.BusyTimeout = d
	}
	o.synchronous = strings.ToLower(take("synchronous"))
	setDefault(&o.synchronous, "", "full")
	if o.synchronous != "full" && o.synchronous != "normal" {
		return fmt.Errorf("%w: synchronous %q is neither full nor normal", ErrURL, o.synchronous)
	}
	return nil
}

// setDefault gives *p the first of its own value, fromURL and def that is not zero.
func setDefault[T comparable](p *T, fromURL, def T) {
	var zero T
	switch {
	case *p != zero:
	case fromURL != zero:
		*p = fromURL
	default:
		*p = def
	}
}
