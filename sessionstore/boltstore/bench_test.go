package boltstore

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"botd/channels"
	"botd/channels/dispatch"
	"botd/sessionstore"
)

// benchItems is a turn of common length.
var benchItems = []sessionstore.Item{
	{Raw: []byte(`{"role":"user","content":"` + strings.Repeat("u", 180) + `"}`)},
	{Raw: []byte(`{"id":"msg_1","type":"message","role":"assistant","status":"completed","content":[{"type":"output_text","annotations":[],"text":"` + strings.Repeat("a", 440) + `"}]}`)},
}

// benchDB is a file with 1,000 sessions of 20 items.
func benchDB(b *testing.B) *DB { return benchFile(b, Options{}) }

func benchFile(b *testing.B, opts Options) *DB {
	db := openTest(b, opts)
	for n := range 10_000 {
		id := sessionstore.ID(fmt.Sprint("user-", n%1000))
		if n == 0 {
			unsynced(db)
		}
		if err := db.Append(b.Context(), id, sessionstore.Batch{Turn: fmt.Sprintf("fill-%06d", n), Items: benchItems}); err != nil {
			b.Fatal(err)
		}
	}
	db.bolt.NoSync = false
	before := transactions(b, db)
	b.Cleanup(func() {
		b.ReportMetric(float64(b.N)/float64(transactions(b, db)-before), "ops/commit")
	})
	b.ResetTimer()
	return db
}

// transactions is the number of the last transaction.
func transactions(b *testing.B, db *DB) (id int) {
	b.Helper()
	if err := db.view(context.Background(), func(tx *readTx) error { id = tx.bolt.ID(); return nil }); err != nil {
		b.Fatal(err)
	}
	return id
}

func benchAppend(b *testing.B, db *DB, n int64) {
	id := sessionstore.ID(fmt.Sprint("user-", n*7%1000))
	if err := db.Append(b.Context(), id, sessionstore.Batch{Turn: fmt.Sprintf("turn-%09d", n), Items: benchItems}); err != nil {
		b.Error(err)
	}
}

func BenchmarkAppend(b *testing.B)          { benchAppendAlone(b, Options{}) }
func BenchmarkAppendEncrypted(b *testing.B) { benchAppendAlone(b, Options{Key: testKey}) }

func benchAppendAlone(b *testing.B, opts Options) {
	db := benchFile(b, opts)
	for n := int64(0); b.Loop(); n++ {
		benchAppend(b, db, n)
	}
}

func BenchmarkAppend8(b *testing.B)  { benchAppends(b, 8) }
func BenchmarkAppend64(b *testing.B) { benchAppends(b, 64) }

// benchAppends appends from about so many goroutines at once.
func benchAppends(b *testing.B, callers int) {
	db := benchDB(b)
	var n atomic.Int64
	b.SetParallelism(max(1, callers/runtime.GOMAXPROCS(0)))
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			benchAppend(b, db, n.Add(1))
		}
	})
}

// BenchmarkMessage256 carries messages from acceptance to receipt.
func BenchmarkMessage256(b *testing.B) {
	db := benchDB(b)
	var next atomic.Int64
	b.SetParallelism(max(1, 256/runtime.GOMAXPROCS(0)))
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			n := next.Add(1)
			id := sessionstore.ID(fmt.Sprint("user-", n*7%1000))
			address := channels.Address{Channel: "line-shop", Kind: channels.Direct, Room: string(id), User: string(id)}
			entries, err := db.Put(b.Context(), []dispatch.Routed{{Session: id, Event: channels.Inbound{
				ID: fmt.Sprintf("%026d", n), Kind: channels.Message, Address: address, Time: time.Now(),
				Parts: []channels.Part{{Type: channels.Text, Text: strings.Repeat("u", 180)}},
			}}})
			if err != nil {
				b.Error(err)
				return
			}
			turn := fmt.Sprintf("turn-%09d", n)
			err = db.Commit(b.Context(), dispatch.TurnResult{
				Session: id, Turn: turn, Items: benchItems, Consumed: []uint64{entries[0].Seq},
				Replies: []dispatch.Delivery{{Message: channels.Outbound{
					ID: turn + "/0", To: address, Parts: []channels.Part{{Type: channels.Text, Text: strings.Repeat("a", 440)}},
				}}},
			})
			if err != nil {
				b.Error(err)
				return
			}
			if err := db.Settle(b.Context(), turn+"/0", dispatch.Outcome{State: dispatch.Delivered}); err != nil {
				b.Error(err)
			}
		}
	})
}

func BenchmarkItems40(b *testing.B)          { benchItems40(b, Options{}) }
func BenchmarkItems40Encrypted(b *testing.B) { benchItems40(b, Options{Key: testKey}) }

func benchItems40(b *testing.B, opts Options) {
	db := benchFile(b, opts)
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		if _, err := db.Items(b.Context(), sessionstore.ID(fmt.Sprint("user-", n%1000)), 40); err != nil {
			b.Fatal(err)
		}
	}
}
