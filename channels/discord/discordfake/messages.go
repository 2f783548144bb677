package discordfake

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	// maxContent counts code points. (Discord documentation, Message, Create Message; staff in
	// discord-api-docs issue 1315.)
	maxContent = 2000
	maxNonce   = 25
	// nonceMemory is how long enforce_nonce remembers: "in the past few minutes".
	nonceMemory = 3 * time.Minute
)

// messageBody is the body of Create Message and its kin; a field is nil where the request has none.
type messageBody struct {
	Content          *string           `json:"content"`
	Nonce            json.RawMessage   `json:"nonce"`
	EnforceNonce     bool              `json:"enforce_nonce"`
	AllowedMentions  *allowedMentions  `json:"allowed_mentions"`
	Embeds           []json.RawMessage `json:"embeds"`
	Components       []json.RawMessage `json:"components"`
	Flags            int               `json:"flags"`
	MessageReference *struct {
		Type            int    `json:"type"`
		MessageID       string `json:"message_id"`
		ChannelID       string `json:"channel_id"`
		FailIfNotExists *bool  `json:"fail_if_not_exists"`
	} `json:"message_reference"`
}

// check applies the rules that need no room.
func (b *messageBody) check(needContent bool) error {
	if b.Content != nil {
		*b.Content = strings.TrimSpace(*b.Content)
		if utf8.RuneCountInString(*b.Content) > maxContent {
			return badForm("content", "BASE_TYPE_MAX_LENGTH", "Must be 2000 or fewer in length.")
		}
	}
	if needContent && (b.Content == nil || *b.Content == "") && len(b.Embeds) == 0 && len(b.Components) == 0 {
		return refused(http.StatusBadRequest, 50006, "Cannot send an empty message")
	}
	if a := b.AllowedMentions; a != nil {
		for _, p := range a.Parse {
			if p != "users" && p != "roles" && p != "everyone" {
				return badForm("allowed_mentions", "BASE_TYPE_CHOICES", "Value must be one of ('everyone', 'roles', 'users').")
			}
		}
		if slices.Contains(a.Parse, "users") && len(a.Users) > 0 || slices.Contains(a.Parse, "roles") && len(a.Roles) > 0 {
			return badForm("allowed_mentions", "MESSAGE_ALLOWED_MENTIONS_PARSE_EXCLUSIVE", "parse and the list are mutually exclusive.")
		}
		if len(a.Users) > 100 || len(a.Roles) > 100 {
			return badForm("allowed_mentions", "BASE_TYPE_MAX_LENGTH", "Must be 100 or fewer in length.")
		}
	}
	return nil
}

func (b *messageBody) text() string {
	if b.Content == nil {
		return ""
	}
	return *b.Content
}

// nonce returns the nonce as text, or its refusal.
func (b *messageBody) nonce() (string, error) {
	if len(b.Nonce) == 0 || string(b.Nonce) == "null" {
		return "", nil
	}
	var text string
	if json.Unmarshal(b.Nonce, &text) != nil {
		n, err := strconv.ParseInt(string(b.Nonce), 10, 64)
		if err != nil {
			return "", badForm("nonce", "NONCE_TYPE_INVALID", "Nonce must be a string or an integer.")
		}
		return strconv.FormatInt(n, 10), nil
	}
	if len(text) > maxNonce {
		return "", badForm("nonce", "NONCE_TYPE_TOO_LONG", "Must be 25 or fewer in length.")
	}
	return text, nil
}

func (s *Server) createMessage(c *call) (any, error) {
	r, err := s.visible(c.args["channel"])
	if err != nil {
		return nil, err
	}
	if err := r.maySpeak(s); err != nil {
		return nil, err
	}
	var b messageBody
	if err := c.decode(&b); err != nil {
		return nil, err
	}
	if err := b.check(true); err != nil {
		return nil, err
	}
	nonce, err := b.nonce()
	if err != nil {
		return nil, err
	}
	if e, ok := r.nonces[nonce]; ok && b.EnforceNonce && time.Since(e.at) < nonceMemory {
		if p := r.byID[e.id]; !p.Deleted {
			return p.Message, nil
		}
		return nil, refused(http.StatusNotFound, 10008, "Unknown Message")
	}
	m := Message{Author: s.world.bot, Content: b.text(), Nonce: b.Nonce, Embeds: b.Embeds, Components: b.Components, Flags: b.Flags}
	if ref := b.MessageReference; ref != nil && ref.MessageID != "" {
		if err := s.refer(r, &m, ref.MessageID, ref.FailIfNotExists == nil || *ref.FailIfNotExists); err != nil {
			return nil, err
		}
	}
	p := s.post(r, Post{Message: m}, b.AllowedMentions, nil)
	if nonce != "" {
		r.nonces[nonce] = nonceEntry{p.ID, time.Now()}
	}
	return p.Message, nil
}

// refer makes m a reply.
func (s *Server) refer(r *room, m *Message, to string, must bool) error {
	if r.denied&ReadHistory != 0 {
		return refused(http.StatusBadRequest, 160002, "Cannot reply without permission to read message history")
	}
	p := r.byID[to]
	switch {
	case p == nil || p.Deleted:
		if must {
			return badForm("message_reference", "REPLIES_UNKNOWN_MESSAGE", "Unknown message")
		}
		return nil
	case p.Type != TypeDefault && p.Type != TypeReply && p.Type != 20 && p.Type != 23:
		return badForm("message_reference", "REPLIES_CANNOT_REPLY_TO_SYSTEM_MESSAGE", "Cannot reply to a system message")
	}
	quoted := p.Message
	quoted.ReferencedMessage = nil
	m.Type, m.ReferencedMessage = TypeReply, &quoted
	m.MessageReference = &Reference{MessageID: to, ChannelID: r.json.ID, GuildID: r.json.GuildID}
	return nil
}

// visible finds a room that the bot may see.
func (s *Server) visible(id string) (*room, error) {
	r := s.world.rooms[id]
	if r == nil {
		return nil, refused(http.StatusNotFound, 10003, "Unknown Channel")
	}
	if r.denied&View != 0 {
		return nil, refused(http.StatusForbidden, 50001, "Missing Access")
	}
	return r, nil
}

func (r *room) maySpeak(s *Server) error {
	if r.denied&Send != 0 {
		return refused(http.StatusForbidden, 50013, "Missing Permissions")
	}
	if r.owner != "" && s.world.users[r.owner].shut {
		return refused(http.StatusForbidden, 50007, "Cannot send messages to this user")
	}
	if t := r.json.thread(); t != nil && t.Archived && t.Locked {
		return refused(http.StatusBadRequest, 50083, "Thread is archived")
	}
	return nil
}

// find looks a message up in a room that the bot may see.
func (s *Server) find(c *call) (*room, *Post, error) {
	r, err := s.visible(c.args["channel"])
	if err != nil {
		return nil, nil, err
	}
	p := r.byID[c.args["message"]]
	if p == nil || p.Deleted {
		return nil, nil, refused(http.StatusNotFound, 10008, "Unknown Message")
	}
	return r, p, nil
}

// read is a message as REST gives it back.
func (s *Server) read(r *room, p *Post) Message {
	m := s.readable(p.Message, r, s.opts.Privileged)
	if !s.opts.HistoryNonce {
		m.Nonce = nil
	}
	return m
}

func (s *Server) getMessage(c *call) (any, error) {
	r, p, err := s.find(c)
	if err != nil {
		return nil, err
	}
	if r.denied&ReadHistory != 0 {
		return nil, refused(http.StatusForbidden, 50013, "Missing Permissions")
	}
	return s.read(r, p), nil
}

// getMessages answers newest first. Without the right to read history the list is empty. (Discord
// documentation, Message, Get Channel Messages.)
func (s *Server) getMessages(c *call) (any, error) {
	r, err := s.visible(c.args["channel"])
	if err != nil {
		return nil, err
	}
	limit := 50
	if q := c.q("limit"); q != "" {
		if limit, err = strconv.Atoi(q); err != nil || limit < 1 || limit > 100 {
			return nil, badForm("limit", "NUMBER_TYPE_MAX", "int value should be between 1 and 100.")
		}
	}
	if r.denied&ReadHistory != 0 {
		return []Message{}, nil
	}
	after, before := c.q("after"), c.q("before")
	var found []Message
	for _, p := range r.posts {
		if p.Deleted || p.OnlyFor != "" || after != "" && !newer(p.ID, after) || before != "" && !newer(before, p.ID) {
			continue
		}
		found = append(found, s.read(r, p))
	}
	if len(found) > limit {
		if after != "" {
			found = found[:limit]
		} else {
			found = found[len(found)-limit:]
		}
	}
	slices.Reverse(found)
	if found == nil {
		found = []Message{}
	}
	return found, nil
}

func (s *Server) editMessage(c *call) (any, error) {
	r, p, err := s.find(c)
	if err != nil {
		return nil, err
	}
	if p.Author.ID != s.world.bot.ID {
		return nil, refused(http.StatusForbidden, 50005, "Cannot edit a message authored by another user")
	}
	if t := r.json.thread(); t != nil && t.Archived {
		return nil, refused(http.StatusBadRequest, 50083, "Thread is archived")
	}
	var b messageBody
	if err := c.decode(&b); err != nil {
		return nil, err
	}
	if err := b.check(b.Content != nil); err != nil {
		return nil, err
	}
	if b.Content != nil {
		s.edit(r, p, *b.Content)
	}
	return p.Message, nil
}

func (s *Server) deleteMessage(c *call) (any, error) {
	r, p, err := s.find(c)
	if err != nil {
		return nil, err
	}
	if p.Author.ID != s.world.bot.ID {
		return nil, refused(http.StatusForbidden, 50013, "Missing Permissions")
	}
	s.remove(r, p)
	return nil, nil
}
