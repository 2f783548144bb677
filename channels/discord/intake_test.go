package discord

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"botd/channels"
	"botd/channels/discord/discordfake"
)

// numbered says n messages at once and returns their texts.
func (s *scene) numbered(prefix string, n int) []string {
	s.t.Helper()
	texts := make([]string, n)
	for i := range texts {
		texts[i] = fmt.Sprintf("%s %d", prefix, i)
		if _, err := s.srv.Say(discordfake.Saying{From: s.ada.ID, Room: s.direct, Text: texts[i]}); err != nil {
			s.t.Fatal(err)
		}
	}
	return texts
}

func TestIntake_KeepsOrder(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := started(t)
		want := s.numbered("message", 500)
		s.wait()
		if diff := cmp.Diff(want, s.sink.texts()); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	})
}

// TestIntake_SinkFails: what the sink refuses is handed in again until it takes it, and nothing overtakes it.
func TestIntake_SinkFails(t *testing.T) {
	for name, failure := range map[string]func([]channels.Inbound) error{
		"with an error": func([]channels.Inbound) error { return errSink },
		"with a panic":  func(in []channels.Inbound) error { panic("MARKER " + in[0].PlainText()) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := started(t)
				s.sink.refuse(failure)
				want := s.numbered("MARKER", 100)
				time.Sleep(10 * time.Minute)
				want = append(want, s.numbered("later", 3)...)
				s.sink.refuse(nil)
				time.Sleep(maxAcceptRetry)
				if diff := cmp.Diff(want, s.sink.texts()); diff != "" {
					t.Errorf("events (-want +got):\n%s", diff)
				}
				if n := strings.Count(s.logs.String(), "events not accepted"); n != 1 {
					t.Errorf("the same failure was logged %d times", n)
				}
				if st := s.srv.Gateway(); st.Connections != 1 {
					t.Errorf("a slow sink cost %d connections", st.Connections)
				}
			})
		})
	}
}

// TestIntake_Full: a sink that is away for long while much is said. The reader never stands still, memory
// is bounded, and Discord keeps the rest.
func TestIntake_Full(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := started(t)
		s.sink.refuse(func([]channels.Inbound) error { return errSink })
		var want []string
		for i := range 5 {
			want = append(want, s.numbered(fmt.Sprint("round ", i), intakeEvents/2)...)
			time.Sleep(10 * time.Second)
		}
		if s.a.Ready() == nil {
			t.Error("Ready although nothing more is taken in")
		}
		s.a.intake.mu.Lock()
		if n := len(s.a.intake.items); n > intakeEvents+1 {
			t.Errorf("%d events wait in memory", n)
		}
		s.a.intake.mu.Unlock()
		s.sink.refuse(nil)
		time.Sleep(time.Minute)
		if diff := cmp.Diff(want, s.sink.texts()); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
		if st := s.srv.Gateway(); st.Identifies != 1 || st.Resumes == 0 || slices.Contains(st.Closes, 1000) {
			t.Errorf("the session was not kept: %+v", st)
		}
	})
}

func TestIntake_BoundsBytes(t *testing.T) {
	q := newIntake()
	big := make([]byte, intakeBytes/4)
	for i := range 5 {
		if full := q.push(arrival{raw: big}); full != (i == 4) {
			t.Errorf("after %d quarters of the bytes: full %v", i+1, full)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if q.waitDrained(ctx) == nil {
		t.Error("drained although all of it waits")
	}
	if n := len(q.take(t.Context())); n != 5 {
		t.Errorf("%d events taken", n)
	}
	if err := q.waitDrained(t.Context()); err != nil {
		t.Errorf("wait for room: %v", err)
	}
	if q.bytes != 0 {
		t.Errorf("%d bytes in an empty intake", q.bytes)
	}
}

// TestIntake_DrainsAtTheEnd: what was received before the end is handed in, if the sink takes it at once.
func TestIntake_DrainsAtTheEnd(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := started(t)
		s.sink.refuse(func([]channels.Inbound) error { return errSink })
		want := s.numbered("message", 200)
		s.wait()
		s.stop()
		s.sink.refuse(nil)
		if err := s.end(); err != nil {
			t.Errorf("Run: %v", err)
		}
		if diff := cmp.Diff(want, s.sink.texts()); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	})
	t.Run("but does not wait for a sink that refuses", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			s := started(t)
			s.sink.refuse(func([]channels.Inbound) error { return errSink })
			s.numbered("message", 200)
			s.wait()
			began := time.Now()
			if err := s.end(); err != nil {
				t.Errorf("Run: %v", err)
			}
			if took := time.Since(began); took > drainWait {
				t.Errorf("Run took %v to end", took)
			}
		})
	})
}

func TestIntake_DuplicatesKeepTheirID(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := started(t)
		s.srv.DuplicateDispatches(1)
		s.say(discordfake.Saying{From: s.ada.ID, Room: s.direct, Text: "hello"})
		all := s.sink.all()
		if len(all) != 2 || all[0].ID != all[1].ID {
			t.Errorf("events %+v, want one twice", all)
		}
	})
}

func TestIntake_LostDispatchesComeWithAResume(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := started(t)
		s.srv.LoseDispatches(2)
		want := s.numbered("message", 2)
		s.wait()
		if n := len(s.sink.all()); n != 0 {
			t.Fatalf("%d events arrived", n)
		}
		s.srv.DropGateway()
		time.Sleep(5 * time.Second)
		if diff := cmp.Diff(want, s.sink.texts()); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	})
}
