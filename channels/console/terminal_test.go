package console_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"botd/channels"
	"botd/channels/console"
)

// screen is what the terminal shows.
type screen struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// session is a terminal with an adapter that runs.
type session struct {
	*console.Adapter
	in     *io.PipeWriter
	screen *screen
	sink   *recorder
}

func open(t *testing.T, o console.Options) *session {
	t.Helper()
	reader, writer := io.Pipe()
	s := &session{in: writer, screen: &screen{}, sink: newRecorder()}
	o.Channel, o.In, o.Out = "console", reader, s.screen
	var err error
	if s.Adapter, err = console.New(o); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx, s.sink) }()
	t.Cleanup(func() {
		writer.Close()
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	return s
}

// enter types a line and returns the event.
func (s *session) enter(t *testing.T, line string) channels.Inbound {
	t.Helper()
	if _, err := io.WriteString(s.in, line+"\n"); err != nil {
		t.Fatal(err)
	}
	select {
	case <-s.sink.grown:
	case <-time.After(10 * time.Second):
		t.Fatalf("no event for %q", line)
	}
	events := s.sink.all()
	return events[len(events)-1]
}

func (s *session) answer(t *testing.T, id string, to channels.Inbound, text string) {
	t.Helper()
	for _, m := range s.Compose(channels.Outbound{
		ID: id, To: to.Address, Reply: to.Reply, Parts: []channels.Part{{Type: channels.Markdown, Text: text}},
	}) {
		if _, err := s.Send(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTerminal(t *testing.T) {
	t.Parallel()
	s := open(t, console.Options{Prompt: "> "})
	in := s.enter(t, "hello")
	if !in.Mentioned || in.PlainText() != "hello" || in.Address.Kind != channels.Direct || in.Speaker.ID != "you" {
		t.Errorf("event %+v", in)
	}
	s.answer(t, "1", in, "**Hi!**")
	s.answer(t, "1", in, "**Hi!**")
	again := s.enter(t, "again")
	if again.ID == in.ID {
		t.Errorf("two lines under one ID, %q", in.ID)
	}
	s.answer(t, "2", again, "Yes?")
	if diff := cmp.Diff("> **Hi!**\n\n> Yes?\n\n> ", s.screen.String()); diff != "" {
		t.Errorf("screen (-want +got):\n%s", diff)
	}
}

func TestTerminalPreview(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		pieces []string
		final  string
		want   string
	}{
		"the answer as previewed":   {[]string{"Hello ", "there."}, "Hello there.", "Hello there.\n\n"},
		"an answer that goes on":    {[]string{"Hello"}, "Hello there.", "Hello there.\n\n"},
		"another answer":            {[]string{"Let me look."}, "It is noon.", "Let me look.\n\nIt is noon.\n\n"},
		"a preview with a line end": {[]string{"Hello\n"}, "Hello", "Hello\n\n\n"},
		"an answer without preview": {nil, "Hello", "Hello\n\n"},
		"a line end and then more":  {[]string{"a\n\n"}, "a\n\nb", "a\n\nb\n\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, console.Options{})
			in := s.enter(t, "hello")
			live, err := s.Stream(t.Context(), channels.Outbound{ID: "1", To: in.Address})
			if err != nil {
				t.Fatal(err)
			}
			for _, piece := range c.pieces {
				if err := live.Write(t.Context(), piece); err != nil {
					t.Fatal(err)
				}
			}
			if err := live.Close(); err != nil {
				t.Fatal(err)
			}
			s.answer(t, "1", in, c.final)
			if diff := cmp.Diff(c.want, s.screen.String()); diff != "" {
				t.Errorf("screen (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTerminalTyping(t *testing.T) {
	t.Parallel()
	s := open(t, console.Options{Rewrite: true})
	in := s.enter(t, "hello")
	for range 3 {
		if err := s.Typing(t.Context(), in.Address); err != nil {
			t.Fatal(err)
		}
	}
	s.answer(t, "1", in, "Hi")
	if diff := cmp.Diff("…\r\x1b[KHi\n\n", s.screen.String()); diff != "" {
		t.Errorf("screen (-want +got):\n%s", diff)
	}
}

func TestTerminalInputEnds(t *testing.T) {
	t.Parallel()
	s := open(t, console.Options{})
	in := s.enter(t, "\n  \nlast words")
	s.in.Close()
	select {
	case <-s.InputEnded():
	case <-time.After(10 * time.Second):
		t.Fatal("the end of the input is not told")
	}
	s.answer(t, "1", in, "Bye")
	if got := s.screen.String(); got != "Bye\n\n" {
		t.Errorf("screen %q: an answer after the end of the input is lost", got)
	}
	if n := len(s.sink.all()); n != 1 {
		t.Errorf("%d events, want 1: blank lines are none", n)
	}
}

func TestTerminalSinkFails(t *testing.T) {
	t.Parallel()
	s := open(t, console.Options{})
	s.sink.mu.Lock()
	s.sink.err = errors.New("broken")
	s.sink.mu.Unlock()
	if _, err := io.WriteString(s.in, "hello\n\n"); err != nil {
		t.Fatal(err)
	}
	// The pipe hands over the second line only once the first was dealt with, or is about to be.
	deadline := time.Now().Add(10 * time.Second)
	for !strings.Contains(s.screen.String(), "not taken") {
		if time.Now().After(deadline) {
			t.Fatalf("screen %q: the person is not told", s.screen.String())
		}
		time.Sleep(time.Millisecond)
	}
}

// TestRunEndsWithInterruptibleInput asserts that Run leaves no reader behind where reading can be
// interrupted.
func TestRunEndsWithInterruptibleInput(t *testing.T) {
	t.Parallel()
	ours, theirs := net.Pipe()
	defer theirs.Close()
	a, err := console.New(console.Options{Channel: "c", In: ours, Out: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := a.Run(ctx, newRecorder()); err != nil {
		t.Fatal(err)
	}
	select {
	case <-a.InputEnded():
	default:
		t.Error("the reader still reads after Run has returned")
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]console.Options{
		"no channel":        {},
		"half a terminal":   {Channel: "c", In: strings.NewReader("")},
		"a public address":  {Channel: "c", Listen: "0.0.0.0:8081"},
		"every address":     {Channel: "c", Listen: ":8081"},
		"a foreign address": {Channel: "c", Listen: "192.0.2.1:8081"},
	} {
		if _, err := console.New(o); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
