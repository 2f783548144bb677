package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"botd/channels"
	"botd/channels/dispatch"
	"botd/sessionstore"
	"botd/sessionstore/boltstore"
)

// bench holds what the groups share.
type bench struct {
	dir      string
	floor    *floor
	sessions int
	files    int
	turns    atomic.Int64
}

var ctx = context.Background()

// A turn is what a person says and what the model answers, of common lengths.
var turnItems = []sessionstore.Item{
	{Raw: []byte(`{"role":"user","content":"` + strings.Repeat("u", 180) + `"}`)},
	{Raw: []byte(`{"id":"msg_1","type":"message","role":"assistant","status":"completed","content":[{"type":"output_text","annotations":[],"text":"` + strings.Repeat("a", 440) + `"}]}`)},
}

func (b *bench) file() (*boltstore.DB, string, error) {
	b.files++
	path := filepath.Join(b.dir, fmt.Sprintf("%d.db", b.files))
	db, err := boltstore.Open(boltstore.Options{Path: path, ArchiveFor: -1})
	return db, path, err
}

func sessionID(n int) sessionstore.ID { return sessionstore.ID(fmt.Sprintf("line-shop:user:U%08d", n)) }

// turnID is unique and, like those of the dispatcher, grows with time.
func (b *bench) turnID() string { return fmt.Sprintf("t%012d", b.turns.Add(1)) }

func (b *bench) append(db *boltstore.DB, session int) error {
	return db.Append(ctx, sessionID(session), sessionstore.Batch{Turn: b.turnID(), Items: turnItems})
}

// each runs f for 0…n-1 by as many workers.
func each(n, workers int, f func(i int) error) error {
	var wg sync.WaitGroup
	var next atomic.Int64
	errs := make([]error, workers)
	for w := range workers {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && errs[w] == nil; i = int(next.Add(1)) - 1 {
				errs[w] = f(i)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// fill gives each of n sessions so many turns, in rounds, as time does.
func (b *bench) fill(db *boltstore.DB, n, turns int) error {
	for range turns {
		if err := each(n, 256, func(i int) error { return b.append(db, i) }); err != nil {
			return err
		}
	}
	return nil
}

// fillAtOnce gives each of n sessions so many turns in one write, which is quicker.
func (b *bench) fillAtOnce(db *boltstore.DB, n, turns int) error {
	items := slices.Repeat(turnItems, turns)
	return each(n, 256, func(i int) error {
		return db.Append(ctx, sessionID(i), sessionstore.Batch{Turn: b.turnID(), Items: items})
	})
}

// fillOne gives one session so many items, turn by turn.
func (b *bench) fillOne(db *boltstore.DB, session, items int) error {
	return each(items/2, 256, func(int) error { return b.append(db, session) })
}

func event(session, n int) dispatch.Routed {
	user := fmt.Sprintf("U%08d", session)
	return dispatch.Routed{Session: sessionID(session), Event: channels.Inbound{
		ID: fmt.Sprintf("01JZ%022d", n), Kind: channels.Message,
		Address: channels.Address{Channel: "line-shop", Kind: channels.Direct, Room: user, User: user},
		Time:    time.Now(), Speaker: channels.Speaker{ID: user},
		Parts: []channels.Part{{Type: channels.Text, Text: strings.Repeat("u", 180)}}, Reply: []byte(strings.Repeat("r", 60)),
	}}
}

func reply(id string, to channels.Address) dispatch.Delivery {
	return dispatch.Delivery{Message: channels.Outbound{
		ID: id, To: to, Parts: []channels.Part{{Type: channels.Text, Text: strings.Repeat("a", 440)}},
	}}
}

// message carries one message from the webhook to the receipt and returns what accepting it took.
func (b *bench) message(db *boltstore.DB, session, n int) (accept time.Duration, err error) {
	r := event(session, n)
	began := time.Now()
	entries, err := db.Put(ctx, []dispatch.Routed{r})
	accept = time.Since(began)
	if err != nil {
		return accept, err
	}
	if len(entries) != 1 {
		return accept, errors.New("a fresh event was taken for a known one")
	}
	turn := b.turnID()
	err = db.Commit(ctx, dispatch.TurnResult{
		Session: r.Session, Turn: turn, Items: turnItems, Consumed: []uint64{entries[0].Seq},
		Replies: []dispatch.Delivery{reply(turn+"/0", r.Event.Address)},
	})
	if err != nil {
		return accept, err
	}
	return accept, db.Settle(ctx, turn+"/0", dispatch.Outcome{State: dispatch.Delivered})
}

func random(n int) int { return rand.IntN(n) }

func perSecond(n int, took time.Duration) float64 { return float64(n) / took.Seconds() }

func ratio(d, c time.Duration) string { return fmt.Sprintf("%.2f C", float64(d)/float64(c)) }

func micros(d time.Duration) string { return d.Round(100 * time.Nanosecond).String() }
