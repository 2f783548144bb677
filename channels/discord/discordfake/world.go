package discordfake

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"
)

// world is all that exists: people, guilds, rooms and what was said in them.
type world struct {
	bot    User
	appID  string
	users  map[string]*person
	guilds map[string]*guild
	order  []string // guild IDs as created
	rooms  map[string]*room
	dms    map[string]string // user ID → room ID
}

type person struct {
	user   User
	nick   string
	locale string
	rights uint64 // in every guild, as Discord's permission bits
	shut   bool   // takes no direct messages from the bot
}

type guild struct {
	id, name string
	botRole  string
	owner    string   // empty for the bot
	rooms    []string // as created, threads too
	absent   bool     // the bot is not a member
}

type room struct {
	json   channelJSON
	owner  string // the person of a direct chat
	posts  []*Post
	byID   map[string]*Post
	denied Permission
	nonces map[string]nonceEntry // bot nonce → message
	typing time.Time
}

type nonceEntry struct {
	id string
	at time.Time
}

func newWorld() world {
	return world{users: map[string]*person{}, guilds: map[string]*guild{}, rooms: map[string]*room{}, dms: map[string]string{}}
}

// Permission is a set of things that the bot may be denied in a room.
type Permission int

// The permissions that can be denied.
const (
	View Permission = 1 << iota
	Send
	ReadHistory
	CreateThreads
)

// Post is a message as a room shows it, with what only the server knows.
type Post struct {
	Message
	// Pings are those whom the message notified: user IDs, role IDs, "everyone", "here".
	Pings []string
	// OnlyFor is the person who alone sees an ephemeral message.
	OnlyFor string
	// Deleted reports that the message was taken away again.
	Deleted bool
	// Edits counts how often the text was replaced.
	Edits int
}

// ChangeKind is what happened in a room.
type ChangeKind string

// The kinds of changes.
const (
	Posted  ChangeKind = "posted"
	Edited  ChangeKind = "edited"
	Deleted ChangeKind = "deleted"
	Typing  ChangeKind = "typing"
)

// Change is one thing that happened in a room.
type Change struct {
	Kind ChangeKind
	Room string
	// Post is the message as it is now; empty for Typing, which is always the bot's.
	Post Post
}

// Person adds a person who has joined every guild.
func (s *Server) Person(name string) User {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.addUser(User{Username: strings.ToLower(name), Discriminator: "0", GlobalName: &name})
}

// OtherBot adds a bot that is not ours.
func (s *Server) OtherBot(name string) User {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.addUser(User{Username: name, Discriminator: "0001", Bot: true})
}

func (s *Server) addUser(u User) User {
	u.ID = s.newID()
	s.world.users[u.ID] = &person{user: u, locale: "en-US"}
	return u
}

// SetNick gives a person a nickname in every guild.
func (s *Server) SetNick(user, nick string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.world.users[user].nick = nick
}

// SetLocale sets the language of a person's client, as interactions tell it.
func (s *Server) SetLocale(user, locale string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.world.users[user].locale = locale
}

// Shut makes a person refuse direct messages.
func (s *Server) Shut(user string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.world.users[user].shut = true
}

// Guild adds a guild that the bot is a member of, and returns its ID and that of the role which Discord
// manages for the bot there.
func (s *Server) Guild(name string) (id, botRole string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := &guild{id: s.newID(), name: name, botRole: s.newID()}
	s.world.guilds[g.id] = g
	s.world.order = append(s.world.order, g.id)
	s.dispatch("GUILD_CREATE", Guilds, s.guildJSON(g), nil)
	return g.id, g.botRole
}

// Room adds a text room to a guild.
func (s *Server) Room(guildID, name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	position := len(s.world.guilds[guildID].rooms)
	r := s.addRoom(channelJSON{Type: typeText, GuildID: guildID, Name: name, Position: &position})
	s.dispatch("CHANNEL_CREATE", Guilds, mustJSON(r.json), nil)
	return r.json.ID
}

// Thread adds a public thread to a room.
func (s *Server) Thread(roomID, name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.addThread(s.newID(), s.world.rooms[roomID], name, s.world.bot.ID).json.ID
}

func (s *Server) addThread(id string, parent *room, name, owner string) *room {
	parentID := parent.json.ID
	r := s.addRoom(channelJSON{
		ID: id, Type: typePublicThread, GuildID: parent.json.GuildID, Name: name, ParentID: &parentID, OwnerID: owner,
		threadFields: &threadFields{ThreadMetadata: &threadMetadata{AutoArchiveDuration: 1440, ArchiveTimestamp: time.Now()}},
	})
	r.denied = parent.denied
	s.dispatch("THREAD_CREATE", Guilds, merge(r.json, map[string]any{"newly_created": true}), nil)
	return r
}

// Archive closes a thread; a locked one stays closed.
func (s *Server) Archive(thread string, locked bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.world.rooms[thread].json.thread()
	m.Archived, m.Locked = true, locked
}

// DM returns the direct chat between the bot and a person.
func (s *Server) DM(user string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.openDM(user).json.ID
}

func (s *Server) openDM(user string) *room {
	if id, ok := s.world.dms[user]; ok {
		return s.world.rooms[id]
	}
	r := s.addRoom(channelJSON{Type: typeDM, Recipients: []User{s.world.users[user].user}})
	r.owner = user
	s.world.dms[user] = r.json.ID
	return r
}

func (s *Server) addRoom(c channelJSON) *room {
	if c.ID == "" {
		c.ID = s.newID()
	}
	r := &room{json: c, byID: map[string]*Post{}, nonces: map[string]nonceEntry{}}
	s.world.rooms[c.ID] = r
	if g := s.world.guilds[c.GuildID]; g != nil {
		g.rooms = append(g.rooms, c.ID)
	}
	return r
}

// Deny takes permissions from the bot in a room.
func (s *Server) Deny(roomID string, p Permission) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.world.rooms[roomID].denied |= p
}

// DeleteRoom takes a room away.
func (s *Server) DeleteRoom(roomID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.world.rooms[roomID]
	delete(s.world.rooms, roomID)
	if g := s.world.guilds[r.json.GuildID]; g != nil {
		g.rooms = slices.DeleteFunc(g.rooms, func(id string) bool { return id == roomID })
	}
	s.dispatch("CHANNEL_DELETE", Guilds, mustJSON(r.json), nil)
}

// Kick removes the bot from a guild: its rooms stay, out of the bot's sight.
func (s *Server) Kick(guildID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.world.guilds[guildID]
	g.absent = true
	for _, id := range g.rooms {
		s.world.rooms[id].denied |= View
	}
	s.dispatch("GUILD_DELETE", Guilds, mustJSON(map[string]any{"id": guildID}), nil)
}

// Posts returns every message of a room, oldest first, deleted ones too.
func (s *Server) Posts(roomID string) []Post {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.world.rooms[roomID]
	if r == nil {
		return nil
	}
	posts := make([]Post, len(r.posts))
	for i, p := range r.posts {
		posts[i] = p.copy()
	}
	return posts
}

// BotPosts returns the messages of a room that the bot wrote and that still stand.
func (s *Server) BotPosts(roomID string) []Post {
	return slices.DeleteFunc(s.Posts(roomID), func(p Post) bool { return p.Author.ID != s.world.bot.ID || p.Deleted })
}

func (p *Post) copy() Post {
	c := *p
	c.Pings = slices.Clone(p.Pings)
	return c
}

// LastTyping is when the bot last showed that it types in a room.
func (s *Server) LastTyping(roomID string) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.world.rooms[roomID].typing
}

// ErrClosed is the error of Watch on a closed server.
var ErrClosed = errors.New("discordfake: server is closed")

// Watch hands every change from now on to fn, in order, until ctx ends or the server closes. It blocks.
// A slow fn delays only itself.
func (s *Server) Watch(ctx context.Context, fn func(Change)) error {
	w := newMailbox[Change]()
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return ErrClosed
	}
	s.watch[w] = struct{}{}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.watch, w)
		s.mu.Unlock()
	}()
	for {
		for _, c := range w.take() {
			fn(c)
		}
		select {
		case <-w.wake:
		case <-ctx.Done():
			return ctx.Err()
		case <-w.ended:
			return ErrClosed
		}
	}
}

// changed tells every watcher. The caller holds s.mu.
func (s *Server) changed(kind ChangeKind, roomID string, p *Post) {
	c := Change{Kind: kind, Room: roomID}
	if p != nil {
		c.Post = p.copy()
	}
	for w := range s.watch {
		w.push(c)
	}
}
