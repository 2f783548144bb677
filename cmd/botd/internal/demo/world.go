package demo

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"botd/channels"
	"botd/channels/discord/discordfake"
	"botd/channels/dispatch"
	"botd/channels/line/linefake"
	"botd/sessionstore"
)

// botName is what people call the bot on both platforms.
const botName = "botd"

// made is when the people and places of the demonstration came to be. It is fixed, so that they have the
// same IDs in every run and a gateway that remembers finds them again.
var made = time.Date(2025, time.January, 1, 0, 0, 0, 0, time.UTC)

// world is both platforms with their people and places.
type world struct {
	line         *linefake.Server
	bot          *linefake.Bot
	discord      *discordfake.Server
	discordToken string
	places       []*place
}

// person is somebody who takes part in a place.
type person struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	// Session is the session that what the person says here belongs to.
	Session sessionstore.ID `json:"session"`
}

// place is one conversation.
type place struct {
	// ID names the place on the page.
	ID       string `json:"id"`
	Platform string `json:"platform"`
	Title    string `json:"title"`
	Subtitle string `json:"subtitle"`
	// Group says that the bot answers only when it is mentioned.
	Group  bool     `json:"group"`
	People []person `json:"people"`

	// room is the platform's ID.
	room string
	say  func(ctx context.Context, from person, text string, mention bool) error
	// messages and busy tell what the place shows.
	messages func() []message
	busy     func() time.Time
}

// message is one message as the page shows it.
type message struct {
	ID   string    `json:"id"`
	From string    `json:"from"`
	Name string    `json:"name"`
	Bot  bool      `json:"bot"`
	Text string    `json:"text"`
	At   time.Time `json:"at"`
	// ReplyTo is the ID of the message that this one visibly answers.
	ReplyTo string `json:"reply_to,omitempty"`
	Deleted bool   `json:"deleted,omitempty"`
}

func newWorld() (w *world, err error) {
	w = &world{discordToken: rand.Text()}
	defer func() {
		if err != nil {
			w.close()
		}
	}()
	w.line = linefake.New(linefake.Options{Seed: 1, Keep: keepMessages})
	if err := w.line.Listen("127.0.0.1:0"); err != nil {
		return nil, fmt.Errorf("start the LINE platform: %w", err)
	}
	if w.discord, err = discordfake.New(discordfake.Options{Token: w.discordToken, BotName: botName, Made: made}); err != nil {
		return nil, fmt.Errorf("start the Discord platform: %w", err)
	}
	w.bot = w.line.AddBot(linefake.BotConfig{
		ID: lineID("bot"), ChannelID: "1234567890", Name: botName,
		Secret: hex.EncodeToString([]byte(rand.Text())[:16]), Token: rand.Text(),
	})
	aiko := w.line.AddUser(linefake.UserConfig{ID: lineID("Aiko"), Name: "Aiko", Language: "en"})
	ben := w.line.AddUser(linefake.UserConfig{ID: lineID("Ben"), Name: "Ben", Language: "en"})
	w.addChat("line-direct", botName, "Official account", w.bot.Direct(aiko), aiko)
	w.addChat("line-group", "Kyoto trip", "Group of 3", w.bot.Group(aiko, ben), aiko, ben)

	dana, eli := w.discord.Person("Dana"), w.discord.Person("Eli")
	guild, _ := w.discord.Guild("Book club")
	w.addRoom("discord-direct", botName, "Direct message", w.discord.DM(dana.ID), false, dana)
	w.addRoom("discord-room", "general", "Book club", w.discord.Room(guild, "general"), true, dana, eli)
	return w, nil
}

// lineID returns a LINE user ID of the demonstration.
func lineID(name string) string {
	sum := sha256.Sum256([]byte("botd demo " + name))
	return "U" + hex.EncodeToString(sum[:16])
}

// addChat adds a chat on LINE.
func (w *world) addChat(id, title, subtitle string, chat *linefake.Chat, people ...*linefake.User) {
	p := &place{ID: id, Platform: "line", Title: title, Subtitle: subtitle, Group: len(people) > 1, room: chat.ID, busy: chat.Loading}
	users := map[string]*linefake.User{}
	for _, u := range people {
		users[u.ID] = u
		a := channels.Address{Channel: "line", Kind: channels.Direct, Room: chat.ID, User: u.ID}
		if p.Group {
			a.Kind = channels.Group
		}
		p.People = append(p.People, person{u.ID, u.Name, dispatch.SessionID("", a)})
	}
	p.say = func(ctx context.Context, from person, text string, mention bool) error {
		said := linefake.Text{Text: text}
		if mention {
			said = linefake.Text{Text: "@" + botName + " " + text, Mentions: []linefake.Mention{{At: "@" + botName, Self: true}}}
		}
		if _, res := chat.Post(ctx, users[from.ID], said); !res.OK() {
			return fmt.Errorf("the gateway has not taken the webhook: status %d", res.Status)
		}
		return nil
	}
	p.messages = func() []message {
		var out []message
		for _, b := range chat.Bubbles() {
			out = append(out, w.bubble(p, b))
		}
		return out
	}
	w.places = append(w.places, p)
}

func (w *world) bubble(p *place, b linefake.Bubble) message {
	m := message{ID: b.ID, From: b.From, At: b.At, Bot: b.Via != linefake.Said, Text: b.Text, ReplyTo: b.Quotes, Deleted: b.Unsent}
	m.Name = p.nameOf(b.From)
	if m.Bot {
		m.Name = botName
	}
	return m
}

// addRoom adds a room on Discord.
func (w *world) addRoom(id, title, subtitle, room string, group bool, people ...discordfake.User) {
	p := &place{ID: id, Platform: "discord", Title: title, Subtitle: subtitle, Group: group, room: room}
	for _, u := range people {
		a := channels.Address{Channel: "discord", Kind: channels.Direct, Room: room, User: u.ID}
		if group {
			a.Kind = channels.Room
		}
		p.People = append(p.People, person{u.ID, *u.GlobalName, dispatch.SessionID("", a)})
	}
	p.say = func(_ context.Context, from person, text string, mention bool) error {
		if mention {
			text = "<@" + w.discord.Bot().ID + "> " + text
		}
		_, err := w.discord.Say(discordfake.Saying{From: from.ID, Room: room, Text: text})
		return err
	}
	p.messages = func() []message {
		posts := w.discord.Posts(room)
		var out []message
		for _, post := range posts[max(0, len(posts)-keepMessages):] {
			out = append(out, w.post(p, post))
		}
		return out
	}
	p.busy = func() time.Time {
		// The sign lasts ten seconds, or until the next message of the bot.
		typing := w.discord.LastTyping(room)
		if posts := w.discord.BotPosts(room); len(posts) > 0 && posts[len(posts)-1].Timestamp.After(typing) {
			return time.Time{}
		}
		return typing.Add(discordTyping)
	}
	w.places = append(w.places, p)
}

// discordTyping is how long Discord shows that somebody types.
const discordTyping = 10 * time.Second

func (w *world) post(p *place, post discordfake.Post) message {
	m := message{ID: post.ID, From: post.Author.ID, At: post.Timestamp, Bot: post.Author.Bot, Text: post.Content, Deleted: post.Deleted}
	m.Name = p.nameOf(post.Author.ID)
	if m.Bot {
		m.Name = botName
	}
	if post.MessageReference != nil {
		m.ReplyTo = post.MessageReference.MessageID
	}
	m.Text = strings.ReplaceAll(m.Text, "<@"+w.discord.Bot().ID+">", "@"+botName)
	for _, who := range p.People {
		m.Text = strings.ReplaceAll(m.Text, "<@"+who.ID+">", "@"+who.Name)
	}
	return m
}

func (p *place) nameOf(id string) string {
	for _, who := range p.People {
		if who.ID == id {
			return who.Name
		}
	}
	return ""
}

// errUnknown is returned for a place, person or session that is not in the world.
var errUnknown = errors.New("no such place or person")

func (w *world) find(id, who string) (*place, person, error) {
	for _, p := range w.places {
		if p.ID != id {
			continue
		}
		for _, someone := range p.People {
			if someone.ID == who {
				return p, someone, nil
			}
		}
	}
	return nil, person{}, errUnknown
}

// at returns the place with the platform's ID, nil when there is none.
func (w *world) at(platform, room string) *place {
	for _, p := range w.places {
		if p.Platform == platform && p.room == room {
			return p
		}
	}
	return nil
}

// host returns the platform's ID of the person whom a platform's page begins with. They run the service
// there: what they share with others is theirs to reset.
func (w *world) host(platform string) string {
	for _, p := range w.places {
		if p.Platform == platform {
			return p.People[0].ID
		}
	}
	return ""
}

func (w *world) close() {
	if w.line != nil {
		_ = w.line.Close()
	}
	if w.discord != nil {
		_ = w.discord.Close()
	}
}
