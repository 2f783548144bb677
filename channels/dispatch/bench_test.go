package dispatch_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"botd/channels"
	"botd/channels/dispatch"
	"botd/sessionstore/memstore"
)

// discard is a platform that accepts and forgets, and says when it has accepted n messages.
type discard struct {
	platform
	accepted chan struct{}
}

func (p *discard) Send(context.Context, channels.Outbound) (channels.Receipt, error) {
	p.accepted <- struct{}{}
	return channels.Receipt{}, nil
}

func benchDispatcher(b *testing.B, run bool) (*dispatch.Dispatcher, *discard) {
	b.Helper()
	store := memstore.New()
	p := &discard{platform: platform{name: "ch"}, accepted: make(chan struct{}, 1024)}
	d, err := dispatch.New(dispatch.Options{
		Channels: []dispatch.Channel{{Adapter: p}}, Engine: engine(echo), Store: store, Journal: store, MaxHistory: 20,
	})
	if err != nil {
		b.Fatal(err)
	}
	if !run {
		return d, p
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	for d.Ready() != nil {
		time.Sleep(time.Millisecond)
	}
	b.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			b.Error(err)
		}
	})
	return d, p
}

// BenchmarkAccept measures the way to a durable event, without the turn.
func BenchmarkAccept(b *testing.B) {
	d, _ := benchDispatcher(b, false)
	e := direct("ann", "", "hi")
	for i := 0; b.Loop(); i++ {
		e.ID = fmt.Sprint(i)
		if err := d.Accept(b.Context(), e); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkTurn measures the whole way of a message, from Accept to its answer's delivery, with an engine
// that answers at once.
func BenchmarkTurn(b *testing.B) {
	d, p := benchDispatcher(b, true)
	for i := 0; b.Loop(); i++ {
		if err := d.Accept(b.Context(), direct(fmt.Sprint("u", i%1000), fmt.Sprint(i), "hi")); err != nil {
			b.Fatal(err)
		}
		<-p.accepted
	}
}

// BenchmarkTurns measures the same with 64 messages on the way at a time.
func BenchmarkTurns(b *testing.B) {
	d, p := benchDispatcher(b, true)
	onTheWay := 0
	for i := 0; b.Loop(); i++ {
		if err := d.Accept(b.Context(), direct(fmt.Sprint("u", i%1000), fmt.Sprint(i), "hi")); err != nil {
			b.Fatal(err)
		}
		if onTheWay++; onTheWay == 64 {
			<-p.accepted
			onTheWay--
		}
	}
	for range onTheWay {
		<-p.accepted
	}
}
