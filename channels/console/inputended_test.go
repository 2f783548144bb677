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

func TestEachLineWaitsForTheAnswerToTheOneBefore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		answered, sink := make(chan struct{}), newRecorder()
		a, err := console.New(console.Options{
			Channel: "c", In: strings.NewReader("one\n\ntwo\nthree\n"), Out: io.Discard,
			Answered: func(ctx context.Context) {
				select {
				case <-answered:
				case <-ctx.Done():
				}
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- a.Run(ctx, sink) }()
		for n := range 3 {
			synctest.Wait()
			if got := len(sink.all()); got != n+1 {
				t.Fatalf("%d lines handed in after %d answers, want %d", got, n, n+1)
			}
			select {
			case <-a.InputEnded():
				t.Error("the input has ended before its last line was answered")
			default:
			}
			if n < 2 {
				answered <- struct{}{}
			}
		}
		cancel() // even while an answer is waited for
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
