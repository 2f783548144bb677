package linefake

import (
	"fmt"
	"slices"
	"time"
)

// BotConfig describes a LINE Official Account with its Messaging API channel. Empty fields are filled in.
type BotConfig struct {
	// ID is the bot's user ID, the destination of its webhooks.
	ID string
	// ChannelID, Secret and Token are the channel's ID, channel secret and long-lived access token.
	ChannelID, Secret, Token string
	// Name is the display name.
	Name string
	// WebhookURL is where events are posted.
	WebhookURL string
	// Redeliver holds the waits before each redelivery of a webhook that was not acknowledged; empty, as
	// by LINE's default, for no redelivery.
	Redeliver []time.Duration
	// Quota is how many messages may be pushed in a month, counted per recipient; 0 for any number.
	Quota int
	// ChatMode "chat" and MarkAsReadMode "manual" let the bot mark messages as read; the defaults are
	// "bot" and "auto".
	ChatMode, MarkAsReadMode string
}

// Bot is one LINE Official Account.
type Bot struct {
	// ID, ChannelID, Secret and Token are those of BotConfig; Token is the long-lived access token.
	ID, ChannelID, Secret, Token string

	s     *Server
	conf  BotConfig
	usage map[string]int // pushed messages by month
}

// AddBot adds a bot.
func (s *Server) AddBot(c BotConfig) *Bot {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.ID == "" {
		c.ID = s.hexID("U")
	}
	if c.ChannelID == "" {
		c.ChannelID = fmt.Sprintf("16%08d", s.rng.Uint32N(100_000_000))
	}
	if c.Secret == "" {
		c.Secret = s.hex(16)
	}
	if c.Token == "" {
		c.Token = s.hex(64)
	}
	if c.Name == "" {
		c.Name = "Bot"
	}
	if c.ChatMode == "" {
		c.ChatMode = "bot"
	}
	if c.MarkAsReadMode == "" {
		c.MarkAsReadMode = "auto"
	}
	b := &Bot{ID: c.ID, ChannelID: c.ChannelID, Secret: c.Secret, Token: c.Token, s: s, conf: c, usage: map[string]int{}}
	s.bots[b.ID] = b
	s.tokens[c.Token] = accessToken{bot: b}
	return b
}

// SetWebhook changes where events are posted.
func (b *Bot) SetWebhook(url string) {
	b.s.mu.Lock()
	defer b.s.mu.Unlock()
	b.conf.WebhookURL = url
}

// SetQuota changes how many messages may be pushed in a month; 0 for any number.
func (b *Bot) SetQuota(n int) {
	b.s.mu.Lock()
	defer b.s.mu.Unlock()
	b.conf.Quota = n
}

// Pushed returns how many messages were pushed this month, counted per recipient.
func (b *Bot) Pushed() int {
	b.s.mu.Lock()
	defer b.s.mu.Unlock()
	return b.usage[month(b.s.opts.Now())]
}

// month is the key of the quota: LINE's months begin in Japanese time.
func month(t time.Time) string {
	return t.In(time.FixedZone("JST", 9*60*60)).Format("2006-01")
}

// UserConfig describes a person. Empty fields are left out of the profile, except ID and Name, which are
// filled in.
type UserConfig struct {
	ID, Name, Language, PictureURL, StatusMessage string
}

// User is one person.
type User struct {
	// ID and Name are those of UserConfig.
	ID, Name string

	conf UserConfig
}

// AddUser adds a person.
func (s *Server) AddUser(c UserConfig) *User {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.ID == "" {
		c.ID = s.hexID("U")
	}
	if c.Name == "" {
		c.Name = "User " + c.ID[1:5]
	}
	u := &User{ID: c.ID, Name: c.Name, conf: c}
	s.users[u.ID] = u
	return u
}

// chatKey names a chat: a person may talk with several bots.
type chatKey struct{ bot, id string }

// Chat is one conversation that a bot takes part in: one-on-one, group or multi-person.
type Chat struct {
	// ID is the person's ID in a one-on-one chat, else the ID of the group (C…) or room (R…).
	ID string
	// Bot is the bot in the chat; LINE allows one official account in a group.
	Bot *Bot

	s       *Server
	members []*User
	// blocked: the person blocked the bot, or the bot is not in the group any more.
	blocked bool
	bubbles []Bubble
	shown   int // bubbles from the bot that people saw, trimmed ones included
	loading time.Time
}

// Direct returns the one-on-one chat of the bot and u, who is made a friend of the bot if there is no
// chat yet.
func (b *Bot) Direct(u *User) *Chat {
	b.s.mu.Lock()
	defer b.s.mu.Unlock()
	if c := b.s.chats[chatKey{b.ID, u.ID}]; c != nil {
		return c
	}
	return b.newChat(u.ID, u)
}

// Group returns a new group chat of the bot and members.
func (b *Bot) Group(members ...*User) *Chat {
	b.s.mu.Lock()
	defer b.s.mu.Unlock()
	return b.newChat(b.s.hexID("C"), members...)
}

// Room returns a new multi-person chat of the bot and members.
func (b *Bot) Room(members ...*User) *Chat {
	b.s.mu.Lock()
	defer b.s.mu.Unlock()
	return b.newChat(b.s.hexID("R"), members...)
}

func (b *Bot) newChat(id string, members ...*User) *Chat {
	c := &Chat{ID: id, Bot: b, s: b.s, members: slices.Clone(members)}
	b.s.chats[chatKey{b.ID, id}] = c
	return c
}

// direct reports whether the chat is one-on-one.
func (c *Chat) direct() bool { return c.ID[0] == 'U' }

// source returns the event source for something that from did; a group event may come without a user.
func (c *Chat) source(from *User) map[string]any {
	src := map[string]any{}
	switch c.ID[0] {
	case 'U':
		return map[string]any{"type": "user", "userId": c.ID}
	case 'C':
		src["type"], src["groupId"] = "group", c.ID
	case 'R':
		src["type"], src["roomId"] = "room", c.ID
	}
	if from != nil {
		src["userId"] = from.ID
	}
	return src
}

// member returns the person if she is in the chat.
func (c *Chat) member(id string) *User {
	for _, u := range c.members {
		if u.ID == id {
			return u
		}
	}
	return nil
}
