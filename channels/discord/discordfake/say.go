package discordfake

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Saying is one message by somebody other than our bot.
type Saying struct {
	// From is the ID of the person or bot that speaks.
	From string
	Room string
	// Text is the raw content: a mention is written <@ID>, a role <@&ID>, a room <#ID>.
	Text string
	// ReplyTo is the ID of a message in the same room that this one answers; Silent takes the mention off
	// the reply.
	ReplyTo string
	Silent  bool
	// Forward is the ID of a message to forward, FromRoom the room that it stands in.
	Forward  string
	FromRoom string
	// Webhook makes the author a webhook.
	Webhook     bool
	Type        int
	Flags       int
	Attachments []Attachment
	Stickers    []Sticker
	// Extra holds further or other fields of the message, by their JSON names: components of a type that a
	// client does not know, a field whose type has changed.
	Extra map[string]any
}

// Say posts a message and tells the bot of it as its intents allow.
func (s *Server) Say(m Saying) (Message, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, who := s.world.rooms[m.Room], s.world.users[m.From]
	if r == nil || who == nil {
		return Message{}, fmt.Errorf("discordfake: no room %q or no user %q", m.Room, m.From)
	}
	msg := Message{Author: who.user, Content: m.Text, Type: m.Type, Flags: m.Flags, Attachments: m.Attachments, StickerItems: m.Stickers}
	if m.Webhook {
		msg.WebhookID = msg.Author.ID
	}
	if m.ReplyTo != "" {
		to := r.byID[m.ReplyTo]
		if to == nil {
			return Message{}, fmt.Errorf("discordfake: no message %q in the room", m.ReplyTo)
		}
		msg.Type = TypeReply
		msg.MessageReference = &Reference{MessageID: to.ID, ChannelID: m.Room, GuildID: r.json.GuildID}
		if !to.Deleted {
			quoted := to.Message
			quoted.ReferencedMessage = nil
			msg.ReferencedMessage = &quoted
		}
	}
	if m.Forward != "" {
		from := s.world.rooms[m.FromRoom]
		if from == nil || from.byID[m.Forward] == nil {
			return Message{}, fmt.Errorf("discordfake: no message %q in room %q to forward", m.Forward, m.FromRoom)
		}
		p := from.byID[m.Forward]
		msg.MessageReference = &Reference{Type: 1, MessageID: p.ID, ChannelID: m.FromRoom}
		msg.MessageSnapshots = []Snapshot{{Message: SnapshotMessage{Content: p.Content, Attachments: p.Attachments, Timestamp: p.Timestamp}}}
	}
	allowed := &allowedMentions{Parse: []string{"users", "roles", "everyone"}, RepliedUser: !m.Silent}
	return s.post(r, Post{Message: msg}, allowed, m.Extra).Message, nil
}

// Redeliver dispatches a message once more, as after a resume.
func (s *Server) Redeliver(roomID, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.world.rooms[roomID]
	s.dispatchMessage("MESSAGE_CREATE", r, r.byID[id], nil)
}

// Edit replaces the text of a message and tells the bot.
func (s *Server) Edit(roomID, id, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.world.rooms[roomID]
	s.edit(r, r.byID[id], text)
}

// Delete takes a message away and tells the bot.
func (s *Server) Delete(roomID, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.world.rooms[roomID]
	s.remove(r, r.byID[id])
}

// post adds a message to a room, works out whom it notifies, and dispatches it. The caller holds s.mu.
func (s *Server) post(r *room, draft Post, allowed *allowedMentions, extra map[string]any) *Post {
	p := &draft
	s.made = true
	p.ID, p.ChannelID, p.Timestamp = s.newID(), r.json.ID, time.Now().UTC()
	if allowed == nil {
		allowed = &allowedMentions{Parse: []string{"users", "roles", "everyone"}, RepliedUser: true}
	}
	p.Pings = s.notified(&p.Message, allowed)
	if p.Attachments == nil {
		p.Attachments = []Attachment{}
	}
	if p.Embeds == nil {
		p.Embeds = emptyList
	}
	if p.Components == nil {
		p.Components = emptyList
	}
	r.posts = append(r.posts, p)
	r.byID[p.ID] = p
	r.json.LastMessageID = &p.ID
	if f := r.json.threadFields; f != nil {
		f.ThreadMetadata.Archived = false
		f.MessageCount++
		f.TotalMessageSent++
	}
	s.dispatchMessage("MESSAGE_CREATE", r, p, extra)
	s.changed(Posted, r.json.ID, p)
	return p
}

func (s *Server) edit(r *room, p *Post, text string) {
	now := time.Now().UTC()
	p.Content, p.EditedTimestamp = text, &now
	p.Flags &^= flagLoading
	p.Edits++
	s.dispatchMessage("MESSAGE_UPDATE", r, p, nil)
	s.changed(Edited, r.json.ID, p)
}

func (s *Server) remove(r *room, p *Post) {
	p.Deleted = true
	s.dispatch("MESSAGE_DELETE", r.intent(), mustJSON(map[string]any{"id": p.ID, "channel_id": r.json.ID, "guild_id": r.json.GuildID}), nil)
	s.changed(Deleted, r.json.ID, p)
}

func (r *room) intent() Intent {
	if r.json.Type == typeDM {
		return DirectMessages
	}
	return GuildMessages
}

// dispatchMessage sends a message event, with its content where the receiver may read it.
func (s *Server) dispatchMessage(event string, r *room, p *Post, extra map[string]any) {
	if r.denied&View != 0 {
		return
	}
	encode := func(granted Intent) []byte {
		g := gatewayMessage{Message: s.readable(p.Message, r, granted), GuildID: r.json.GuildID, ChannelType: r.json.Type}
		if r.json.GuildID != "" && p.WebhookID == "" {
			g.Member = &Member{Roles: []string{}}
			if u := s.world.users[p.Author.ID]; u != nil && u.nick != "" {
				g.Member.Nick = &u.nick
			}
		}
		seen := extra
		if !s.mayRead(p.Message, r, granted) {
			seen = maps.Clone(extra)
			maps.DeleteFunc(seen, func(k string, _ any) bool { return slices.Contains(hiddenFields, k) })
		}
		return merge(g, seen)
	}
	s.dispatch(event, r.intent(), nil, encode)
}

// hiddenFields are those emptied without MESSAGE_CONTENT. (Discord documentation, Gateway, Message Content.)
var hiddenFields = []string{"content", "embeds", "attachments", "components", "poll"}

// mayRead reports whether the bot may read the content of m with the intents granted to it: always its
// own, in direct chats, and where it is mentioned. (Discord documentation, Message Content Intent.)
func (s *Server) mayRead(m Message, r *room, granted Intent) bool {
	return granted&MessageContent != 0 || r.json.Type == typeDM || m.Author.ID == s.world.bot.ID ||
		slices.ContainsFunc(m.Mentions, func(u User) bool { return u.ID == s.world.bot.ID })
}

// readable returns m as the bot may see it.
func (s *Server) readable(m Message, r *room, granted Intent) Message {
	if q := m.ReferencedMessage; q != nil {
		seen := s.readable(*q, r, granted)
		m.ReferencedMessage = &seen
	}
	if !s.mayRead(m, r, granted) {
		m.Content, m.Embeds, m.Attachments, m.Components = "", emptyList, []Attachment{}, emptyList
		m.MessageSnapshots = nil
	}
	return m
}

// allowedMentions is the field of the same name. (Discord documentation, Message, Allowed Mentions Object.)
type allowedMentions struct {
	Parse       []string `json:"parse"`
	Users       []string `json:"users"`
	Roles       []string `json:"roles"`
	RepliedUser bool     `json:"replied_user"`
}

var (
	userMention = regexp.MustCompile(`<@!?(\d+)>`)
	roleMention = regexp.MustCompile(`<@&(\d+)>`)
)

// notified fills in the mentions of m and returns whom it notifies.
func (s *Server) notified(m *Message, a *allowedMentions) []string {
	m.Mentions, m.MentionRoles = []User{}, []string{}
	var pings []string
	ping := func(id string) {
		if !slices.Contains(pings, id) {
			pings = append(pings, id)
		}
	}
	for _, match := range userMention.FindAllStringSubmatch(m.Content, -1) {
		u := s.world.users[match[1]]
		if u == nil || !slices.Contains(a.Parse, "users") && !slices.Contains(a.Users, match[1]) {
			continue
		}
		if !slices.Contains(pings, u.user.ID) {
			m.Mentions = append(m.Mentions, u.user)
		}
		ping(u.user.ID)
	}
	for _, match := range roleMention.FindAllStringSubmatch(m.Content, -1) {
		if slices.Contains(a.Parse, "roles") || slices.Contains(a.Roles, match[1]) {
			m.MentionRoles = append(m.MentionRoles, match[1])
			ping(match[1])
		}
	}
	if slices.Contains(a.Parse, "everyone") {
		for _, word := range []string{"everyone", "here"} {
			if strings.Contains(m.Content, "@"+word) {
				m.MentionEveryone = true
				ping(word)
			}
		}
	}
	if q := m.ReferencedMessage; q != nil && m.Type == TypeReply && a.RepliedUser && !slices.Contains(pings, q.Author.ID) {
		m.Mentions = append(m.Mentions, q.Author)
		ping(q.Author.ID)
	}
	return pings
}
