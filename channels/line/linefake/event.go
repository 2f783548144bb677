package linefake

import (
	"context"
	"encoding/json"
	"maps"
	"time"
)

// Event is one webhook event, made but perhaps not delivered yet.
type Event struct {
	// ID is the webhookEventId, MessageID the message's, ReplyToken the token; empty where there is none.
	ID, MessageID, ReplyToken string
	// Body is the event object; a test may change it before delivery.
	Body map[string]any

	raw json.RawMessage
}

// RawEvent returns an event that is posted as it is written, valid JSON or not.
func RawEvent(body string) Event { return Event{raw: json.RawMessage(body)} }

// encode returns the event as JSON, as the first delivery or as a redelivery.
func (e Event) encode(redelivery bool) (json.RawMessage, error) {
	if e.raw != nil {
		return e.raw, nil
	}
	body := e.Body
	if redelivery {
		body = maps.Clone(body)
		body["deliveryContext"] = map[string]any{"isRedelivery": true}
	}
	return json.Marshal(body)
}

// Say posts a text of a person and returns how the webhook was answered.
func (c *Chat) Say(ctx context.Context, from *User, text string) (Event, Result) {
	return c.Post(ctx, from, Text{Text: text})
}

// Post posts a message of a person.
func (c *Chat) Post(ctx context.Context, from *User, content Content) (Event, Result) {
	ev := c.Message(from, content)
	return ev, c.Bot.Deliver(ctx, ev)
}

// Message makes the event of a person's message and shows it in the chat. from may be nil in groups and
// rooms: somebody who gave no consent.
func (c *Chat) Message(from *User, content Content) Event {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	id := c.s.messageID()
	m := map[string]any{"id": id}
	content.fill(c, id, m)
	ev := c.event("message", from, true, map[string]any{"message": m})
	ev.MessageID = id
	raw, err := json.Marshal(m)
	if err != nil {
		panic("linefake: content is not JSON: " + err.Error())
	}
	b := Bubble{ID: id, At: c.s.opts.Now(), Via: Said, Type: m["type"].(string), Text: content.caption(), Raw: raw, Event: ev.ID}
	if from != nil {
		b.From = from.ID
	}
	if q, is := m["quotedMessageId"].(string); is {
		b.Quotes = q
	}
	c.show(b)
	return ev
}

// Postback makes the event of a press on a button; params are those of a date picker or rich menu.
func (c *Chat) Postback(from *User, data string, params map[string]string) Event {
	p := map[string]any{"data": data}
	if params != nil {
		p["params"] = params
	}
	return c.make("postback", from, true, map[string]any{"postback": p})
}

// Follow makes the event of a person adding the bot as a friend, or lifting a block.
func (c *Chat) Follow() Event {
	c.s.mu.Lock()
	was := c.blocked
	c.blocked = false
	c.s.mu.Unlock()
	return c.make("follow", nil, true, map[string]any{"follow": map[string]any{"isUnblocked": was}})
}

// Unfollow makes the event of a person blocking the bot; messages to her are not shown from now on.
func (c *Chat) Unfollow() Event {
	c.s.mu.Lock()
	c.blocked = true
	c.s.mu.Unlock()
	return c.make("unfollow", nil, false, nil)
}

// Join makes the event of the bot coming into a group or room.
func (c *Chat) Join() Event {
	c.s.mu.Lock()
	c.blocked = false
	c.s.mu.Unlock()
	return c.make("join", nil, true, nil)
}

// Leave makes the event of the bot being removed; sending to the chat fails from now on.
func (c *Chat) Leave() Event {
	c.s.mu.Lock()
	c.blocked = true
	c.s.mu.Unlock()
	return c.make("leave", nil, false, nil)
}

// MemberJoined adds people to a group or room and makes the event.
func (c *Chat) MemberJoined(users ...*User) Event {
	c.s.mu.Lock()
	c.members = append(c.members, users...)
	c.s.mu.Unlock()
	return c.make("memberJoined", nil, true, map[string]any{"joined": map[string]any{"members": sources(users)}})
}

// MemberLeft makes the event of people leaving a group or room.
func (c *Chat) MemberLeft(users ...*User) Event {
	c.s.mu.Lock()
	for _, u := range users {
		for i, m := range c.members {
			if m == u {
				c.members = append(c.members[:i:i], c.members[i+1:]...)
				break
			}
		}
	}
	c.s.mu.Unlock()
	return c.make("memberLeft", nil, false, map[string]any{"left": map[string]any{"members": sources(users)}})
}

func sources(users []*User) []any {
	var out []any
	for _, u := range users {
		out = append(out, map[string]any{"type": "user", "userId": u.ID})
	}
	return out
}

// Unsend takes a message back and makes the event.
func (c *Chat) Unsend(from *User, message string) Event {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	c.change(message, func(b *Bubble) { b.Unsent = true })
	delete(c.s.media, message)
	return c.event("unsend", from, false, map[string]any{"unsend": map[string]any{"messageId": message}})
}

// Edit changes the text of a message in a group and makes the event.
func (c *Chat) Edit(from *User, message, text string) Event {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	c.change(message, func(b *Bubble) { b.Text = text })
	m := map[string]any{"id": message}
	Text{Text: text}.fill(c, message, m)
	ev := c.event("messageEdited", from, true, map[string]any{"message": m})
	ev.MessageID = message
	return ev
}

// Event makes an event of any type, known or not, with a reply token when token is set.
func (c *Chat) Event(from *User, typ string, token bool, properties map[string]any) Event {
	return c.make(typ, from, token, properties)
}

// change edits a bubble and tells the subscribers. s.mu is held.
func (c *Chat) change(message string, edit func(*Bubble)) {
	for i := range c.bubbles {
		if c.bubbles[i].ID == message {
			edit(&c.bubbles[i])
			b := c.bubbles[i]
			c.s.publish(Update{Bot: c.Bot.ID, Chat: c.ID, Bubble: &b})
		}
	}
}

func (c *Chat) make(typ string, from *User, token bool, properties map[string]any) Event {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	return c.event(typ, from, token, properties)
}

// event makes an event. s.mu is held.
func (c *Chat) event(typ string, from *User, token bool, properties map[string]any) Event {
	now := c.s.opts.Now()
	ev := Event{ID: c.s.eventID(now), Body: map[string]any{}}
	maps.Copy(ev.Body, properties)
	maps.Copy(ev.Body, map[string]any{
		"type": typ, "mode": "active", "timestamp": now.UnixMilli(), "source": c.source(from),
		"webhookEventId": ev.ID, "deliveryContext": map[string]any{"isRedelivery": false},
	})
	if token {
		ev.ReplyToken = c.s.hex(16)
		ev.Body["replyToken"] = ev.ReplyToken
		c.s.forgetReplies(now)
		c.s.replies[ev.ReplyToken] = &replyToken{chat: c, event: ev.ID, made: now}
	}
	return ev
}

// replyToken is the right to answer one event once.
type replyToken struct {
	chat      *Chat
	event     string
	made      time.Time // when the event happened
	delivered time.Time // when it was posted last
	used      bool
}

// The ages of reply tokens (Messaging API reference, Send reply message, Reply token).
const (
	replyTokenAge    = time.Minute
	redeliveredUntil = 20 * time.Minute
)

func (t *replyToken) valid(now time.Time) bool {
	return !t.used && !t.delivered.IsZero() && !now.After(t.delivered.Add(replyTokenAge))
}

// Expire makes a reply token invalid before its time, as LINE may do without notice.
func (s *Server) Expire(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.replies[token]; t != nil {
		t.used = true
	}
}

// deliver starts the minute; a redelivery starts it anew unless the event is too old.
func (t *replyToken) deliver(now time.Time, redelivery bool) {
	if !redelivery || now.Sub(t.made) <= redeliveredUntil {
		t.delivered = now
	}
}

// forgetReplies drops tokens that can never be valid again, now and then.
func (s *Server) forgetReplies(now time.Time) {
	const enough = 8192
	if len(s.replies) < enough || len(s.replies)%1024 != 0 {
		return
	}
	for k, t := range s.replies {
		if now.Sub(t.made) > redeliveredUntil+replyTokenAge {
			delete(s.replies, k)
		}
	}
}
