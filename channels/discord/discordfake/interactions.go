package discordfake

import (
	"fmt"
	"net/http"
	"time"
)

const (
	// ackWithin and tokenLife are how long an interaction waits for its first response, and how long its
	// token lives. (Discord documentation, Receiving and Responding to Interactions.)
	ackWithin = 3 * time.Second
	tokenLife = 15 * time.Minute

	contextGuild = 0
	contextBotDM = 1
)

type interactionState struct {
	byToken map[string]*interaction
}

type interaction struct {
	id, token string
	room      *room
	user      string
	at        time.Time
	acked     time.Time
	ephemeral bool
	original  *Post
	followups []*Post
}

// Interaction is what has become of a slash command.
type Interaction struct {
	ID, Token string
	// Acknowledged reports that the bot has answered at all, After how long it took.
	Acknowledged bool
	After        time.Duration
	Ephemeral    bool
	// Text is the answer shown now, empty while the bot "is thinking".
	Text string
	// Followups are the further messages.
	Followups []Post
}

// Command is a person using a slash command in a room; options are pairs of a name and a text.
func (s *Server) Command(user, roomID, name string, options ...string) (Interaction, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, who := s.world.rooms[roomID], s.world.users[user]
	if r == nil || who == nil || len(options)%2 != 0 {
		return Interaction{}, fmt.Errorf("discordfake: no room %q or no user %q, or an option without a value", roomID, user)
	}
	in := &interaction{id: s.newID(), room: r, user: user, at: time.Now()}
	in.token = "interaction-token-" + s.newID()
	s.inter.byToken[in.token] = in
	opts := []map[string]any{}
	for i := 0; i < len(options); i += 2 {
		opts = append(opts, map[string]any{"name": options[i], "type": 3, "value": options[i+1]})
	}
	event := map[string]any{
		"id": in.id, "application_id": s.world.appID, "type": 2, "token": in.token, "version": 1,
		"channel_id": roomID, "channel": r.json, "locale": who.locale, "app_permissions": "0", "entitlements": []any{},
		"authorizing_integration_owners": map[string]string{}, "attachment_size_limit": 10 << 20,
		"data": map[string]any{"id": s.newID(), "name": name, "type": 1, "options": opts},
	}
	if r.json.GuildID != "" {
		member := map[string]any{"user": who.user, "nick": nil, "roles": []string{}, "permissions": s.permissions(r.json.GuildID, who)}
		if who.nick != "" {
			member["nick"] = who.nick
		}
		event["guild_id"], event["guild_locale"], event["member"], event["context"] = r.json.GuildID, "en-US", member, contextGuild
	} else {
		event["user"], event["context"] = who.user, contextBotDM
	}
	s.dispatch("INTERACTION_CREATE", 0, mustJSON(event), nil)
	return in.state(), nil
}

// Interaction returns what has become of a slash command, by its token.
func (s *Server) Interaction(token string) Interaction {
	s.mu.Lock()
	defer s.mu.Unlock()
	if in := s.inter.byToken[token]; in != nil {
		return in.state()
	}
	return Interaction{}
}

func (in *interaction) state() Interaction {
	st := Interaction{ID: in.id, Token: in.token, Ephemeral: in.ephemeral}
	if !in.acked.IsZero() {
		st.Acknowledged, st.After = true, in.acked.Sub(in.at)
	}
	if in.original != nil {
		st.Text = in.original.Content
	}
	for _, p := range in.followups {
		st.Followups = append(st.Followups, p.copy())
	}
	return st
}

// interactionCallback is the first response.
func (s *Server) interactionCallback(c *call) (any, error) {
	in := s.inter.byToken[c.args["token"]]
	if in == nil || in.id != c.args["interaction"] || in.acked.IsZero() && time.Since(in.at) > ackWithin {
		return nil, refused(http.StatusNotFound, 10062, "Unknown interaction")
	}
	if !in.acked.IsZero() {
		return nil, refused(http.StatusBadRequest, 40060, "Interaction has already been acknowledged.")
	}
	var b struct {
		Type int          `json:"type"`
		Data *messageBody `json:"data"`
	}
	if err := c.decode(&b); err != nil {
		return nil, err
	}
	if b.Data == nil {
		b.Data = &messageBody{}
	}
	m := Message{Content: ""}
	switch b.Type {
	case 4:
		if err := b.Data.check(true); err != nil {
			return nil, err
		}
		m.Content = b.Data.text()
	case 5:
		m.Flags = flagLoading
	default:
		return nil, badForm("type", "BASE_TYPE_CHOICES", "Value must be one of (4, 5).")
	}
	in.acked, in.ephemeral = time.Now(), b.Data.Flags&FlagEphemeral != 0
	in.original = s.respond(in, m, b.Data.AllowedMentions)
	return nil, nil
}

// respond posts one message of an interaction's answer.
func (s *Server) respond(in *interaction, m Message, a *allowedMentions) *Post {
	m.Author, m.WebhookID, m.ApplicationID, m.Type = s.world.bot, s.world.appID, s.world.appID, 20
	if a == nil {
		a = &allowedMentions{Parse: []string{"users"}}
	}
	p := Post{Message: m}
	if in.ephemeral {
		p.Flags |= FlagEphemeral
		p.OnlyFor = in.user
		a = &allowedMentions{}
	}
	return s.post(in.room, p, a, nil)
}

// answered finds an acknowledged interaction by the token in the path.
func (s *Server) answered(c *call) (*interaction, error) {
	in := s.inter.byToken[c.args["token"]]
	switch {
	case in == nil || c.args["application"] != s.world.appID || in.acked.IsZero():
		return nil, refused(http.StatusNotFound, 10015, "Unknown Webhook")
	case time.Since(in.at) > tokenLife:
		return nil, refused(http.StatusUnauthorized, 50027, "Invalid Webhook Token")
	}
	return in, nil
}

func (s *Server) createFollowup(c *call) (any, error) {
	in, err := s.answered(c)
	if err != nil {
		return nil, err
	}
	var b messageBody
	if err := c.decode(&b); err != nil {
		return nil, err
	}
	if err := b.check(true); err != nil {
		return nil, err
	}
	if in.original.Flags&flagLoading != 0 {
		// "editing the original response" by the first followup after a deferral is how it still works.
		s.edit(in.room, in.original, b.text())
		return in.original.Message, nil
	}
	p := s.respond(in, Message{Content: b.text(), Embeds: b.Embeds, Components: b.Components}, b.AllowedMentions)
	in.followups = append(in.followups, p)
	return p.Message, nil
}

// followup finds one message of an interaction's answer.
func (s *Server) followup(c *call) (*interaction, *Post, error) {
	in, err := s.answered(c)
	if err != nil {
		return nil, nil, err
	}
	p := in.original
	if id := c.args["id"]; id != "@original" && id != p.ID {
		p = nil
		for _, f := range in.followups {
			if f.ID == id {
				p = f
			}
		}
	}
	if p == nil || p.Deleted {
		return nil, nil, refused(http.StatusNotFound, 10008, "Unknown Message")
	}
	return in, p, nil
}

func (s *Server) getFollowup(c *call) (any, error) {
	_, p, err := s.followup(c)
	if err != nil {
		return nil, err
	}
	return p.Message, nil
}

func (s *Server) editFollowup(c *call) (any, error) {
	in, p, err := s.followup(c)
	if err != nil {
		return nil, err
	}
	var b messageBody
	if err := c.decode(&b); err != nil {
		return nil, err
	}
	if err := b.check(b.Content != nil); err != nil {
		return nil, err
	}
	if b.Content != nil {
		s.edit(in.room, p, *b.Content)
	}
	return p.Message, nil
}

func (s *Server) deleteFollowup(c *call) (any, error) {
	in, p, err := s.followup(c)
	if err != nil {
		return nil, err
	}
	s.remove(in.room, p)
	return nil, nil
}
