package dispatch_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"botd/agent"
	"botd/channels"
)

// typist is a platform that can show typing.
type typist struct {
	*platform
	mu    sync.Mutex
	signs []time.Time
	err   error
}

func (p *typist) Typing(ctx context.Context, to channels.Address) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.signs = append(p.signs, time.Now())
	return p.err
}

func TestTurn_TypingIsKeptUpUntilTheAnswer(t *testing.T) {
	t.Parallel()
	for name, failure := range map[string]error{"shown": nil, "failing": errors.New("no")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var p *typist
				w := begin(t, withEngine(slow(12*time.Second)), func(s *setup) {
					p = &typist{platform: s.world.platform, err: failure}
					s.Adapter = p
				})
				began := time.Now()
				w.accept(direct("ann", "1", "hi"))
				pass(time.Hour)
				w.shows("re hi")
				var got []time.Duration
				for _, at := range p.signs {
					got = append(got, at.Sub(began))
				}
				if want := []time.Duration{0, 5 * time.Second, 10 * time.Second}; !slices.Equal(got, want) {
					t.Errorf("typing shown after %v, want %v", got, want)
				}
			})
		})
	}
}

// sluggish takes a second for each sign of typing, whatever its context says.
type sluggish struct{ *typist }

func (p sluggish) Typing(ctx context.Context, to channels.Address) error {
	time.Sleep(time.Second)
	return p.typist.Typing(ctx, to)
}

func TestTurn_NoTypingAfterTheAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var p *typist
		w := begin(t, withEngine(slow(500*time.Millisecond)), func(s *setup) {
			p = &typist{platform: s.world.platform}
			s.Adapter = sluggish{p}
		}, withSends(func(context.Context, channels.Outbound) error {
			p.mu.Lock()
			defer p.mu.Unlock()
			if len(p.signs) != 1 {
				t.Error("the answer is sent while a sign of typing is on its way")
			}
			return nil
		}))
		w.accept(direct("ann", "1", "hi"))
		pass(time.Minute)
		w.shows("re hi")
	})
}

// register is a platform that knows people.
type register struct {
	*platform
	delay time.Duration
	asked int
}

func (p *register) Profile(ctx context.Context, to channels.Address) (channels.Speaker, error) {
	p.asked++
	select {
	case <-time.After(p.delay):
		return channels.Speaker{ID: to.User, Name: "Name of " + to.User, Locale: "th-TH"}, nil
	case <-ctx.Done():
		return channels.Speaker{}, ctx.Err()
	}
}

func TestTurn_UnnamedSpeakerIsLookedUp(t *testing.T) {
	t.Parallel()
	unnamed := group("g", "ann", "1", "hi")
	unnamed.Speaker.Name, unnamed.Speaker.Locale = "", ""
	alone := direct("ann", "1", "hi")
	alone.Speaker.Name = ""
	for _, tt := range []struct {
		name  string
		event channels.Inbound
		delay time.Duration
		want  string
		asked int
	}{
		{"in a group", unnamed, time.Second, "Name of ann", 1},
		{"platform too slow", unnamed, time.Minute, "", 1},
		{"named already", group("g", "ann", "1", "hi"), time.Second, "ANN", 0},
		{"alone with the bot", alone, time.Second, "", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var p *register
				name := "nobody"
				w := begin(t, withEngine(func(ctx context.Context, turn agent.Turn) (string, error) {
					name = turn.Input[0].Speaker.Name
					return echo(ctx, turn)
				}), func(s *setup) {
					p = &register{platform: s.world.platform, delay: tt.delay}
					s.Adapter = p
				})
				w.accept(tt.event)
				pass(10 * time.Second)
				w.shows("re hi")
				if name != tt.want || p.asked != tt.asked {
					t.Errorf("speaker %q after %d look-ups, want %q after %d", name, p.asked, tt.want, tt.asked)
				}
			})
		})
	}
}

// screen is a platform with live previews.
type screen struct {
	*platform
	views []*view
	err   error
}

type view struct {
	m      channels.Outbound
	text   string
	closed bool
	err    error
}

func (p *screen) Stream(_ context.Context, m channels.Outbound) (channels.Live, error) {
	v := &view{m: m, err: p.err}
	p.views = append(p.views, v)
	return v, nil
}

func (v *view) Write(_ context.Context, text string) error {
	v.text += text
	return v.err
}

func (v *view) Close() error {
	v.closed = true
	return nil
}

// teletype writes its answer in pieces.
type teletype []string

func (p teletype) Run(_ context.Context, t agent.Turn) iter.Seq2[agent.Event, error] {
	return func(yield func(agent.Event, error) bool) {
		for _, text := range p {
			if !yield(agent.Event{Delta: text}, nil) {
				return
			}
		}
		yield(agent.Event{Final: final(t, strings.Join(p, ""))}, nil)
	}
}

func TestTurn_PreviewShowsTheAnswerAsItIsWritten(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		off   bool
		err   error
		views int
		text  string
	}{
		{name: "shown", views: 1, text: "one two"},
		{name: "failing", views: 1, err: errors.New("no"), text: "one "},
		{name: "turned off", off: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var p *screen
				w := begin(t, func(s *setup) {
					p = &screen{platform: s.world.platform, err: tt.err}
					s.Engine, s.Adapter, s.NoPreview = teletype{"one ", "two"}, p, tt.off
				})
				w.accept(group("g", "ann", "1", "hi"))
				w.shows("one two")
				if len(p.views) != tt.views {
					t.Fatalf("%d previews, want %d", len(p.views), tt.views)
				}
				for _, v := range p.views {
					if v.text != tt.text || !v.closed {
						t.Errorf("preview = %+v, want it closed with %q", v, tt.text)
					}
					if sent := w.platform.messages()[0]; v.m.ID != sent.ID || string(v.m.Reply) != "token-1" || !v.m.Quote {
						t.Errorf("preview is of %+v, want of what is sent, %+v", v.m, sent)
					}
				}
			})
		})
	}
}
