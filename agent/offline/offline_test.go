package offline_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"botd/agent"
	"botd/agent/offline"
	"botd/agent/tools"
	"botd/sessionstore"
)

// chat is a conversation through the engine, remembered as a store would.
type chat struct {
	t       *testing.T
	e       *agent.Engine
	group   bool
	history []sessionstore.Item
}

func newChat(t *testing.T, group bool) *chat {
	t.Helper()
	clock := tools.NewClock(tools.ClockOptions{Now: func() time.Time { return time.Date(2026, 12, 1, 6, 5, 0, 0, time.UTC) }})
	e, err := agent.New(agent.Options{Agents: []agent.Agent{{
		Name: "demo", Tools: []agent.Tool{clock},
		Models: []agent.ModelRef{{Model: offline.New(offline.Options{}), Name: "offline", Provider: "offline"}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	return &chat{t: t, e: e, group: group}
}

func (c *chat) say(who, text string) string {
	c.t.Helper()
	turn := agent.Turn{ID: "t", Session: "s", Group: c.group, History: c.history, Input: []agent.Message{{
		Speaker: agent.Speaker{ID: who, Name: who}, Parts: []agent.Part{{Text: text}},
	}}}
	streamed := ""
	for ev, err := range c.e.Run(c.t.Context(), turn) {
		if err != nil {
			c.t.Fatalf("%q: %v", text, err)
		}
		streamed += ev.Delta
		if ev.Final != nil {
			if ev.Final.Text != streamed {
				c.t.Errorf("%q: streamed %q, final %q", text, streamed, ev.Final.Text)
			}
			c.history = append(c.history, ev.Final.Items...)
		}
	}
	return streamed
}

func (c *chat) expect(who, text, want string) {
	c.t.Helper()
	if got := c.say(who, text); !strings.Contains(got, want) {
		c.t.Errorf("%q: got %q, want it to say %q", text, got, want)
	}
}

func TestDemoConversation(t *testing.T) {
	t.Parallel()
	c := newChat(t, false)
	c.expect("ann", "Hi!", "I am botd's built-in offline model")
	c.expect("ann", "What's my name?", "not told me your name")
	c.expect("ann", "My name is Ann.", "Nice to meet you, **Ann**")
	c.expect("ann", "remember that the key is under the mat", "I will remember: “the key is under the mat”")
	c.expect("ann", "what is my name?", "Your name is **Ann**")
	c.expect("ann", "What do you remember?", "- your name is **Ann**\n- “the key is under the mat”")
	c.expect("ann", "what time is it in Tokyo?", "it is **15:05** on Tuesday, 2026-12-01 (Asia/Tokyo)")
	c.expect("ann", "いま何時？", "it is **06:05** on Tuesday, 2026-12-01 (UTC)")
	c.expect("ann", "time in Mars/Olympus", "it answered: “error: unknown time zone")
	c.expect("ann", "help", "Try: ")
	c.expect("ann", "สวัสดี", "You said: “สวัสดี”")
	c.history = nil
	c.expect("ann", "what is my name?", "not told me your name")
}

func TestGroupKeepsPeopleApart(t *testing.T) {
	t.Parallel()
	c := newChat(t, true)
	c.say("U1", "my name is Ann")
	c.say("U2", "私はケンです")
	c.expect("U1", "who am I?", "**Ann**")
	c.expect("U2", "私の名前は何?", "**ケン**")
	c.expect("U3", "what is my name?", "not told me")
}

func TestWithoutToolsItSaysSo(t *testing.T) {
	t.Parallel()
	req := &agent.Request{Input: nil, NoTools: true, Tools: []agent.ToolSpec{{Name: "clock"}}}
	req.Input = append(req.Input, agent.UserMessage("what time is it?"))
	for ev, err := range offline.New(offline.Options{}).Stream(t.Context(), req) {
		if err != nil {
			t.Fatal(err)
		}
		if ev.Done != nil && (len(ev.Done.Items) != 1 || !strings.Contains(string(ev.Done.Items[0]), "given none")) {
			t.Errorf("items %s", ev.Done.Items)
		}
	}
}

func TestWordsComeOneByOneAndEndWithContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := offline.New(offline.Options{WordDelay: 50 * time.Millisecond})
		ctx, cancel := context.WithTimeout(t.Context(), 1010*time.Millisecond)
		defer cancel()
		req := &agent.Request{}
		req.Input = append(req.Input, agent.UserMessage("hello"))
		words := 0
		var last error
		for ev, err := range m.Stream(ctx, req) {
			if ev.Delta != "" {
				words++
			}
			last = err
		}
		if words != 20 || !errors.Is(last, context.DeadlineExceeded) {
			t.Errorf("%d words in a second, then %v", words, last)
		}
	})
}
