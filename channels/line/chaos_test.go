package line_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"botd/channels"
	"botd/channels/line"
	"botd/channels/line/linefake"
)

// outbox sends as the dispatcher does: what may be tried again is, and a send that was cut off is
// uncertain from then on. It reports whether the message counts as delivered for sure.
func outbox(ctx context.Context, a *line.Adapter, m channels.Outbound, cutOff bool) (sure bool, err error) {
	if cutOff {
		// The process died during the first attempt.
		ctx, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
		_, err = a.Send(ctx, m)
		cancel()
		m.Uncertain = m.Once
	}
	for range 20 {
		_, err = a.Send(ctx, m)
		if err == nil {
			return true, nil
		}
		switch channels.KindOf(err) {
		case channels.Transient, channels.RateLimited:
			time.Sleep(2 * time.Second)
		default:
			return false, err
		}
	}
	return false, err
}

// TestNoAnswerTwiceUnderRandomFaults: whatever goes wrong at LINE, on the way, or in this process, a
// person never sees an answer twice, and one that is called delivered was seen.
func TestNoAnswerTwiceUnderRandomFaults(t *testing.T) {
	t.Parallel()
	odds := linefake.Odds{
		Refused: 0.15, Accepted: 0.1, Limited: 0.1, Dropped: 0.1, AnswerLost: 0.1,
		Slow: 0.2, MaxDelay: 15 * time.Second,
	}
	for seed := range uint64(12) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				var wg sync.WaitGroup
				var mu sync.Mutex
				sure := map[string]bool{}
				var said []channels.Inbound
				for i := range 40 {
					said = append(said, w.say(fmt.Sprint("question ", i)))
				}
				w.fake.SetPlan(linefake.RandomPlan(seed, odds, linefake.Reply, linefake.Push))
				for i, in := range said {
					wg.Go(func() {
						time.Sleep(time.Duration(i) * 2 * time.Second)
						m := w.one(in, "answer to "+in.ID)
						m.ID = in.ID + "/0"
						ok, err := outbox(t.Context(), w.a, m, i%4 == 0)
						if err != nil && channels.KindOf(err) != channels.Ambiguous {
							t.Errorf("gave up: %v", err)
						}
						mu.Lock()
						defer mu.Unlock()
						sure[m.Parts[0].Text] = ok
					})
				}
				wg.Wait()
				shown := map[string]int{}
				for _, b := range w.chat.Answers() {
					shown[b.Text]++
				}
				ambiguous := 0
				for text, ok := range sure {
					if shown[text] > 1 || ok && shown[text] != 1 {
						t.Errorf("%q was shown %d times, delivered for sure: %v", text, shown[text], ok)
					}
					if !ok {
						ambiguous++
					}
				}
				if ambiguous > len(said)*3/4 {
					t.Errorf("%d of %d answers are unsure", ambiguous, len(said))
				}
				w.checkCalls()
			})
		})
	}
}

// TestConcurrentUseOverSockets goes through real connections: every question gets one answer, in a
// process that leaves nothing behind.
func TestConcurrentUseOverSockets(t *testing.T) {
	leaks := goleak.IgnoreCurrent()
	fake := linefake.New(linefake.Options{})
	if err := fake.Listen("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	bot := fake.AddBot(linefake.BotConfig{})
	transport := http.DefaultTransport.(*http.Transport).Clone()
	a, err := line.New(line.Options{
		Channel: "line-shop", Secret: bot.Secret, Token: bot.Token, APIBase: fake.URL(), DataBase: fake.URL(),
		HTTPClient: &http.Client{Transport: transport},
	})
	if err != nil {
		t.Fatal(err)
	}
	s := &answering{a: a, t: t}
	gateway := httptest.NewServer(a.Webhook(s))
	bot.SetWebhook(gateway.URL)
	end := run(t, a, s)

	const people, questions = 8, 10
	var wg sync.WaitGroup
	for range people {
		wg.Go(func() {
			u := fake.AddUser(linefake.UserConfig{})
			chat := bot.Direct(u)
			for i := range questions {
				ev, res := chat.Say(t.Context(), u, "question")
				if !res.OK() {
					t.Errorf("webhook: %+v", res)
				}
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				if _, err := chat.Await(ctx, i+1); err != nil {
					t.Error(err)
				}
				cancel()
				if got := chat.Replies(ev.ID); len(got) != 1 {
					t.Errorf("%d replies to event %s, want 1", len(got), ev.ID)
				}
			}
		})
	}
	wg.Wait()
	s.wg.Wait()
	if err := end(); err != nil {
		t.Error(err)
	}
	gateway.Close()
	if err := fake.Close(); err != nil {
		t.Error(err)
	}
	transport.CloseIdleConnections()
	goleak.VerifyNone(t, leaks)
}

// answering is a sink that answers each event, using all of the adapter at once.
type answering struct {
	a  *line.Adapter
	t  *testing.T
	wg sync.WaitGroup
}

func (s *answering) Accept(_ context.Context, events ...channels.Inbound) error {
	for _, in := range events {
		s.wg.Go(func() {
			if err := s.a.Typing(s.t.Context(), in.Address); err != nil && channels.KindOf(err) != channels.RateLimited {
				s.t.Error(err)
			}
		})
		s.wg.Go(func() {
			if _, err := s.a.Profile(s.t.Context(), in.Address); err != nil {
				s.t.Error(err)
			}
			for i, m := range s.a.Compose(channels.Outbound{To: in.Address, Reply: in.Reply, Parts: []channels.Part{md("**answer**")}}) {
				m.ID = fmt.Sprint(in.ID, "/", i)
				if _, err := s.a.Send(s.t.Context(), m); err != nil {
					s.t.Error(err)
				}
			}
		})
	}
	return nil
}
