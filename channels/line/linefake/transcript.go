package linefake

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// Via tells how a bubble came into a chat.
type Via string

// The ways.
const (
	// Said: by a person.
	Said Via = "said"
	// Replied: by the bot, with a reply token.
	Replied Via = "reply"
	// Pushed: by the bot, with a push.
	Pushed Via = "push"
)

// Bubble is one message as a chat shows it.
type Bubble struct {
	// ID is the message ID.
	ID string `json:"id"`
	// Bot and Chat name the chat.
	Bot  string `json:"bot"`
	Chat string `json:"chat"`
	// From is the ID of who sent it, empty for a person who gave no consent.
	From string    `json:"from,omitempty"`
	At   time.Time `json:"at"`
	Via  Via       `json:"via"`
	// Type is the type of the message, Text its text, or its alternative text, or a file's name.
	Type string `json:"type"`
	Text string `json:"text,omitempty"`
	// Raw is the message object as it was sent.
	Raw json.RawMessage `json:"raw"`
	// Quotes is the ID of the message that this one quotes.
	Quotes string `json:"quotes,omitempty"`
	// Event is the webhookEventId that a person's message made, or that a reply answers.
	Event string `json:"event,omitempty"`
	// Call is the request that sent it; bubbles of one call share it.
	Call string `json:"call,omitempty"`
	// Unseen: LINE took the message although nobody will see it, as the person blocked the bot.
	Unseen bool `json:"unseen,omitempty"`
	// Unsent: the person took the message back.
	Unsent bool `json:"unsent,omitempty"`
}

// Bubbles returns what the chat shows, oldest first.
func (c *Chat) Bubbles() []Bubble {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	return slices.Clone(c.bubbles)
}

// Answers returns what the bot has shown in the chat, oldest first.
func (c *Chat) Answers() []Bubble {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	return c.answers()
}

func (c *Chat) answers() []Bubble {
	var out []Bubble
	for _, b := range c.bubbles {
		if b.Via != Said && !b.Unseen {
			out = append(out, b)
		}
	}
	return out
}

// Await waits until the bot has shown n bubbles in the chat since it began, and returns those kept.
func (c *Chat) Await(ctx context.Context, n int) ([]Bubble, error) {
	for {
		c.s.mu.Lock()
		shown, answers, changed := c.shown, c.answers(), c.s.changed
		c.s.mu.Unlock()
		if shown >= n {
			return answers, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return answers, fmt.Errorf("await %d bubbles, %d shown: %w", n, shown, ctx.Err())
		}
	}
}

// Replies returns the bubbles that answered the event with its reply token.
func (c *Chat) Replies(event string) []Bubble {
	return slices.DeleteFunc(c.Answers(), func(b Bubble) bool { return b.Event != event || b.Via != Replied })
}

// Loading returns until when the chat shows the loading animation, the zero time when it does not.
func (c *Chat) Loading() time.Time {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	if c.s.opts.Now().After(c.loading) {
		return time.Time{}
	}
	return c.loading
}

// show adds a bubble to the chat. s.mu is held.
func (c *Chat) show(b Bubble) {
	b.Bot, b.Chat = c.Bot.ID, c.ID
	c.bubbles = append(c.bubbles, b)
	if k := c.s.opts.Keep; k > 0 && len(c.bubbles) > k {
		c.bubbles = slices.Delete(c.bubbles, 0, len(c.bubbles)-k)
	}
	if b.Via != Said && !b.Unseen {
		c.shown++
		c.loading = time.Time{}
	}
	c.s.publish(Update{Bot: c.Bot.ID, Chat: c.ID, Bubble: &b})
	close(c.s.changed)
	c.s.changed = make(chan struct{})
}

// Update is one change in a chat: a new bubble, a message taken back, the loading animation, or messages
// read. Exactly one of the fields after Chat is set.
type Update struct {
	Bot  string `json:"bot"`
	Chat string `json:"chat"`
	// Bubble is a new bubble, or the new state of one that was taken back.
	Bubble *Bubble `json:"bubble,omitempty"`
	// Loading is until when the loading animation shows.
	Loading time.Time `json:"loading,omitzero"`
	// Read is the ID of the newest message that the bot marked as read.
	Read string `json:"read,omitempty"`
}

type subscriber struct{ updates chan Update }

// Subscribe returns every Update from now on. The platform never waits for a subscriber: one that falls
// behind by more than buffer has its channel closed and can begin anew from Bubbles. The channel is also
// closed by cancel, which may be called more than once, and by Close.
func (s *Server) Subscribe(buffer int) (updates <-chan Update, cancel func()) {
	sub := &subscriber{make(chan Update, buffer)}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.subs[sub] = struct{}{}
	if s.stop.Err() != nil {
		s.unsubscribe(sub)
	}
	return sub.updates, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.unsubscribe(sub)
	}
}

func (s *Server) unsubscribe(sub *subscriber) {
	if _, in := s.subs[sub]; in {
		delete(s.subs, sub)
		close(sub.updates)
	}
}

func (s *Server) dropSubscribers() {
	for sub := range s.subs {
		s.unsubscribe(sub)
	}
}

func (s *Server) publish(u Update) {
	for sub := range s.subs {
		select {
		case sub.updates <- u:
		default:
			s.unsubscribe(sub)
		}
	}
}
