package dbtest_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/redis/go-redis/v9"

	"botd/sessionstore"
	"botd/sessionstore/boltstore"
	"botd/sessionstore/internal/dbtest"
	"botd/sessionstore/memstore"
	"botd/sessionstore/redisstore"
	"botd/sessionstore/sqlstore"
)

// BenchmarkStores compares all stores in one run:
//
//	go test -run '^$' -bench Stores -benchtime 20000x ./sessionstore/internal/dbtest
func BenchmarkStores(b *testing.B) {
	sql := func(url func(b *testing.B) string) func(*testing.B) sessionstore.Store {
		return func(b *testing.B) sessionstore.Store {
			s, err := sqlstore.Open(b.Context(), sqlstore.Options{URL: url(b), MaxConns: 16})
			if err != nil {
				b.Fatal(err)
			}
			return s
		}
	}
	file := func(parameters string) func(*testing.B) string {
		return func(b *testing.B) string { return "sqlite:///" + filepath.Join(b.TempDir(), "x.db") + parameters }
	}
	for _, bench := range []struct {
		name string
		open func(*testing.B) sessionstore.Store
	}{
		{"memory", func(*testing.B) sessionstore.Store { return memstore.New() }},
		{"bbolt", func(b *testing.B) sessionstore.Store {
			s, err := boltstore.Open(boltstore.Options{Path: filepath.Join(b.TempDir(), "x.db")})
			if err != nil {
				b.Fatal(err)
			}
			return s
		}},
		{"sqlite", sql(file(""))},
		{"sqlite-normal", sql(file("?synchronous=normal"))},
		{"postgres", sql(func(b *testing.B) string { return dbtest.Postgres(b).String() })},
		{"postgres-prepared", sql(func(b *testing.B) string {
			return dbtest.Postgres(b).String() + "&default_query_exec_mode=cache_statement"
		})},
		{"mysql", sql(func(b *testing.B) string { return dbtest.MySQL(b).String() })},
		{"redis", openRedis},
	} {
		b.Run(bench.name, func(b *testing.B) { dbtest.Workload(b, bench.open) })
	}
}

func openRedis(b *testing.B) sessionstore.Store {
	u, prefix := dbtest.Redis(b)
	opts, err := redis.ParseURL(u.String())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		c := redis.NewClient(opts)
		defer c.Close()
		ctx := context.WithoutCancel(b.Context())
		for it := c.Scan(ctx, 0, "*"+prefix+"*", 1000).Iterator(); it.Next(ctx); {
			c.Del(ctx, it.Val())
		}
	})
	s, err := redisstore.Open(b.Context(), redisstore.Options{URL: u.String(), KeyPrefix: prefix})
	if err != nil {
		b.Fatal(err)
	}
	return s
}
