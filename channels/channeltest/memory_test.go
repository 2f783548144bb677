package channeltest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"botd/channels"
	"botd/channels/channeltest"
	"botd/channels/render"
)

const (
	credential = "open-sesame"
	// limit is the longest text that the platform takes, in code points.
	limit = 500
)

// chat is a small platform with a direct chat and a group, and an adapter of it that is right in
// everything; a fault makes it wrong in one thing.
type chat struct {
	fault  string
	events chan channels.Inbound

	mu     sync.Mutex
	shown  []post
	typing map[string]bool
	fail   string // how the next send fails
	calls  int
}

// post is a message of the bot.
type post struct{ id, key, room, text, answers string }

func rig(fault string) *channeltest.Rig {
	c := &chat{fault: fault, events: make(chan channels.Inbound, 1000), typing: map[string]bool{}}
	inject := func(how string) func(*testing.T) {
		return func(*testing.T) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.fail = how
		}
	}
	return &channeltest.Rig{
		Adapter: c,
		Direct:  c.place(channels.Address{Channel: "chat", Kind: channels.Direct, Room: "ann", User: "ann"}),
		Group:   c.place(channels.Address{Channel: "chat", Kind: channels.Group, Room: "lobby", User: "bob"}),
		Secrets: []string{credential},
		Failures: []channeltest.Failure{
			{Name: "down", Inject: inject("down"), Kind: channels.Transient},
			{Name: "answer lost", Inject: inject("lost"), Kind: channels.Transient, Accepted: true},
			{Name: "refused", Inject: inject("refused"), Kind: channels.Permanent},
			{Name: "too fast", Inject: inject("limited"), Kind: channels.RateLimited},
		},
		Junk: []channeltest.Junk{{Name: "an empty event", Send: func(*testing.T) { c.events <- channels.Inbound{} }}},
	}
}

func (c *chat) place(at channels.Address) channeltest.Place {
	n := 0
	return channeltest.Place{
		Address: at, Name: strings.ToUpper(at.User),
		Say: func(_ context.Context, text string, how channeltest.Manner) (channeltest.Said, error) {
			n++
			in := channels.Inbound{
				ID: fmt.Sprintf("%s-%d", at.Room, n), Kind: channels.Message, Address: at, Time: time.Now(),
				Speaker:   channels.Speaker{ID: at.User},
				Mentioned: at.Kind == channels.Direct || how.Mention || how.ReplyTo != "",
				Parts:     []channels.Part{{Type: channels.Text, Text: text}},
			}
			in.Reply, _ = json.Marshal(in.ID)
			c.events <- in
			return channeltest.Said{Ref: in}, nil
		},
		Redeliver: func(_ context.Context, said channeltest.Said) error {
			in := said.Ref.(channels.Inbound)
			if c.fault == "renames what is redelivered" {
				in.ID += "-again"
			}
			c.events <- in
			return nil
		},
		Shown: func() []string { return c.texts(at.Room, func(post) bool { return true }) },
		Answers: func(said channeltest.Said) []string {
			return c.texts(at.Room, func(p post) bool { return p.answers == said.Ref.(channels.Inbound).ID })
		},
		Typing: func() bool {
			c.mu.Lock()
			defer c.mu.Unlock()
			return c.typing[at.Room]
		},
	}
}

func (c *chat) texts(room string, want func(post) bool) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []string
	for _, p := range c.shown {
		if p.room == room && want(p) {
			out = append(out, p.text)
		}
	}
	return out
}

func (c *chat) Info() channels.Info {
	c.mu.Lock()
	defer c.mu.Unlock()
	info := channels.Info{Channel: "chat", Platform: "chat", TypingEvery: time.Second}
	if c.calls++; c.fault == "changes its facts" && c.calls > 1 {
		info.TypingEvery *= 2
	}
	return info
}

func (c *chat) Compose(m channels.Outbound) []channels.Outbound {
	var texts []string
	for _, p := range m.Parts {
		text := p.Text
		if p.Type == channels.Markdown {
			text = render.Plain(text)
		}
		if strings.TrimSpace(text) != "" || c.fault == "shows nothing" {
			texts = append(texts, text)
		}
	}
	pieces := render.Split(strings.Join(texts, "\n"), limit, render.CodePoints)
	if c.fault == "shows nothing" && len(pieces) == 0 {
		pieces = []string{""}
	}
	if c.fault == "cuts long answers off" {
		pieces = pieces[:min(len(pieces), 5)]
	}
	if c.fault == "is not deterministic" {
		c.mu.Lock()
		c.calls++
		m.Once = c.calls%2 == 0
		c.mu.Unlock()
	}
	sends := make([]channels.Outbound, len(pieces))
	for i, piece := range pieces {
		sends[i] = m
		sends[i].Parts = []channels.Part{{Type: channels.Text, Text: piece}}
	}
	if c.fault == "changes its input" && len(m.Parts) > 0 {
		m.Parts[0].Text = ""
	}
	return sends
}

func (c *chat) Run(ctx context.Context, sink channels.Sink) error {
	if c.fault == "leaves a goroutine" {
		go func() { select {} }()
	}
	last := channels.Inbound{}
	for {
		select {
		case <-ctx.Done():
			if c.fault == "fails when it ends" {
				return ctx.Err()
			}
			return nil
		case in := <-c.events:
			if in.ID == "" && c.fault != "passes junk on" {
				continue
			}
			c.spoil(&in)
			if c.fault == "loses the order of events" {
				in, last = last, in
				if in.ID == "" {
					continue
				}
			}
			for sink.Accept(ctx, in) != nil && ctx.Err() == nil {
				time.Sleep(time.Millisecond)
			}
		}
	}
}

// spoil applies the faults of events.
func (c *chat) spoil(in *channels.Inbound) {
	switch c.fault {
	case "calls a group direct":
		in.Address.Kind = channels.Direct
	case "does not tell mentions":
		in.Mentioned = in.Address.Kind == channels.Direct
	case "is always mentioned":
		in.Mentioned = true
	case "gives every event one ID":
		in.ID = "event"
	case "mixes up reply handles":
		in.Reply, _ = json.Marshal("somebody else's")
	}
}

func (c *chat) Send(ctx context.Context, m channels.Outbound) (channels.Receipt, error) {
	if err := ctx.Err(); err != nil && c.fault != "ignores its context" {
		return channels.Receipt{}, &channels.Error{Kind: channels.Transient, Err: err}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	fail := c.fail
	c.fail = ""
	failure := func(kind channels.ErrorKind, text string) (channels.Receipt, error) {
		switch c.fault {
		case "tells message text in errors":
			text += ": " + m.PlainText()
		case "tells credentials in errors":
			text += ": " + credential
		case "returns plain errors":
			return channels.Receipt{}, errors.New(text)
		case "calls every failure permanent":
			kind = channels.Permanent
		}
		return channels.Receipt{}, &channels.Error{Kind: kind, Err: errors.New(text)}
	}
	switch fail {
	case "down":
		return failure(channels.Transient, "platform is down")
	case "refused":
		return failure(channels.Permanent, "platform refuses the message")
	case "limited":
		return failure(channels.RateLimited, "too many messages")
	}
	p := post{id: fmt.Sprint(len(c.shown)), key: m.ID, room: m.To.Room, text: m.PlainText()}
	_ = json.Unmarshal(m.Reply, &p.answers)
	fresh := true
	for _, old := range c.shown {
		if old.key == p.key && c.fault != "has no idempotency key" {
			p.id, fresh = old.id, false
		}
	}
	if fresh {
		c.shown = append(c.shown, p)
	}
	if fail == "lost" {
		return failure(channels.Transient, "the answer was lost")
	}
	return channels.Receipt{MessageIDs: []string{p.id}}, nil
}

func (c *chat) Typing(ctx context.Context, to channels.Address) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.typing[to.Room] = c.fault != "does not type"
	return ctx.Err()
}

func (c *chat) Profile(_ context.Context, to channels.Address) (channels.Speaker, error) {
	name := strings.ToUpper(to.User)
	if c.fault == "mixes up names" {
		name = "somebody else"
	}
	return channels.Speaker{ID: to.User, Name: name}, nil
}

func (c *chat) Stream(_ context.Context, m channels.Outbound) (channels.Live, error) {
	return &live{chat: c, m: m}, nil
}

type live struct {
	*chat
	m    channels.Outbound
	text string
}

func (l *live) Write(_ context.Context, text string) error {
	l.text += text
	return nil
}

func (l *live) Close() error {
	if l.fault != "leaves previews" {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.shown = append(l.shown, post{key: "preview", room: l.m.To.Room, text: l.text})
	return nil
}
