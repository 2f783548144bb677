package console_test

import (
	"context"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"botd/channels"
	"botd/channels/console"
)

// slowSink takes an event only once release is closed.
type slowSink struct{ release chan struct{} }

func (s slowSink) Accept(context.Context, ...channels.Inbound) error {
	<-s.release
	return nil
}

func TestInputEndsOnceTheLastLineIsHandedIn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, err := console.New(console.Options{Channel: "c", In: strings.NewReader("last words\n"), Out: io.Discard})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		sink := slowSink{make(chan struct{})}
		done := make(chan error, 1)
		go func() { done <- a.Run(ctx, sink) }()
		synctest.Wait()
		select {
		case <-a.InputEnded():
			t.Error("the input has ended before its last line was accepted")
		default:
		}
		close(sink.release)
		<-a.InputEnded()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
