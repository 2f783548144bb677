package discord

import (
	"cmp"
	"context"
	"strings"

	"botd/channels"
)

const (
	// quoteLimit and extraLimit bound, in code points, what is told of a quoted message and of an embed.
	quoteLimit = 500
	extraLimit = 500
)

// inbound turns a message into an event; ok is false when it is not one person's words for the bot: bots,
// webhooks, system messages, ephemeral ones, and what the bot may not read.
func (a *Adapter) inbound(ctx context.Context, m *message) (in channels.Inbound, ok bool) {
	self := a.dir.me()
	if m.Author.Bot.v || m.Author.System.v || m.Author.ID == self || m.WebhookID.v != "" ||
		m.Flags.v&flagEphemeral != 0 || m.Type != messageDefault && m.Type != messageReply {
		return in, false
	}
	direct := m.direct()
	called := direct || m.calls(self, a.dir)
	quoted := m.Referenced.v
	answersMe := m.Type == messageReply && quoted != nil && self != "" && quoted.Author.ID == self

	parts := a.parts(m)
	if len(parts) == 0 && !called {
		// Without MESSAGE_CONTENT Discord empties what does not mention the bot.
		return in, false
	}
	if len(parts) == 0 && !direct {
		parts = append(parts, channels.Part{Type: channels.Text, Text: "@" + cmp.Or(m.mentionedName(self), "bot")})
	}
	if q := a.quotePart(m); q.Text != "" && !isCommand(parts) {
		parts = append(parts, q)
	}
	in = channels.Inbound{
		ID:   m.ID,
		Kind: channels.Message,
		Time: m.Timestamp.v,
		// A message does not tell the rights of its author: only the owner of the guild is known to be in charge.
		Speaker:   channels.Speaker{ID: m.Author.ID, Name: m.Author.name(m.Member.v.nickname), Admin: a.dir.owns(m.Author.ID, m.GuildID.v)},
		Mentioned: called || answersMe,
		Parts:     parts,
		Reply:     reply{Message: m.ID}.encode(),
	}
	if in.Time.IsZero() {
		in.Time = snowflakeTime(m.ID)
	}
	if m.Reference.v.Type.v != referForward {
		in.Refers = m.Reference.v.MessageID.v
	}
	in.Address = a.address(ctx, m.ChannelID, m.GuildID.v, m.roomType(), m.Author.ID)
	return in, true
}

// direct reports a chat with one person: Discord tells no guild of it.
func (m *message) direct() bool {
	if t := m.roomType(); t != nil {
		return *t == typeDM
	}
	return m.GuildID.v == ""
}

func (m *message) roomType() *roomType {
	if m.ChannelType == nil {
		return nil
	}
	return &m.ChannelType.v
}

// calls reports that the message names the bot or the role that Discord manages for it. @everyone does not
// count.
func (m *message) calls(self string, d *directory) bool {
	if self == "" {
		return false
	}
	for u := range m.Mentions.all {
		if u.ID == self {
			return true
		}
	}
	for id := range m.MentionRoles.all {
		if d.ownRole(m.GuildID.v, id) {
			return true
		}
	}
	return false
}

func (m *message) mentionedName(id string) string {
	for u := range m.Mentions.all {
		if u.ID == id && id != "" {
			return u.name(nickname{})
		}
	}
	return ""
}

// address tells where a message belongs. A thread lies in its parent room.
func (a *Adapter) address(ctx context.Context, roomID, guild string, kind *roomType, userID string) channels.Address {
	to := channels.Address{Channel: a.channel, Kind: channels.Room, Room: roomID, User: userID}
	if guild == "" {
		to.Kind = channels.Direct
		if kind != nil && *kind == typeGroupDM {
			to.Kind = channels.Group
		}
		return to
	}
	if kind != nil && !kind.isThread() {
		return to
	}
	r, ok := a.lookUp(ctx, roomID)
	if kind == nil && !(ok && r.Type.isThread()) {
		return to
	}
	to.Thread = roomID
	if parent := r.ParentID.v; ok && parent != "" {
		to.Room = parent
	}
	return to
}

// parts describes the content of a message: the person's own words first, then what came with them.
func (a *Adapter) parts(m *message) []channels.Part {
	s := scope{self: a.dir.me(), guild: m.GuildID.v, mentions: m.Mentions, dir: a.dir}
	var parts []channels.Part
	if text := s.text(m.Content); text != "" {
		parts = append(parts, channels.Part{Type: channels.Text, Text: text})
	}
	parts = append(parts, media(m.content)...)
	for snapshot := range m.Snapshots.all {
		if text := s.text(snapshot.Message.Content); text != "" {
			parts = append(parts, channels.Part{Type: channels.Text, Text: "[forwarded message: " + quoteText(text, maxForward) + "]"})
		}
		parts = append(parts, media(snapshot.Message)...)
	}
	if p := m.Poll.v; p != nil && p.Question.Text != "" {
		var answers []string
		for answer := range p.Answers.all {
			answers = append(answers, answer.Media.Text)
		}
		parts = append(parts, channels.Part{Type: channels.Text, Text: "[poll: " + quoteText(p.Question.Text+" "+strings.Join(answers, " / "), extraLimit) + "]"})
	}
	return parts
}

// maxForward keeps all of a forwarded message: it is what the person wants to talk about.
const maxForward = 4000

// media describes attachments, stickers and embeds.
func media(c content) []channels.Part {
	var parts []channels.Part
	for f := range c.Attachments.all {
		if f.ID == "" {
			continue
		}
		text := f.Filename
		if d := f.Description.v; d != "" {
			text += " (" + quoteText(d, extraLimit) + ")"
		}
		parts = append(parts, channels.Part{Type: mediaType(f.ContentType.v), Text: text, Media: &channels.MediaRef{
			ID: f.ID, URL: f.URL, Name: f.Filename, MIME: f.ContentType.v, Size: f.Size.v,
		}})
	}
	for st := range c.Stickers.all {
		if st.Name != "" {
			parts = append(parts, channels.Part{Type: channels.Sticker, Text: st.Name})
		}
	}
	for e := range c.Embeds.all {
		if text := strings.TrimSpace(e.Title.v + "\n" + e.Description.v); text != "" {
			parts = append(parts, channels.Part{Type: channels.Text, Text: "[preview of a link: " + quoteText(text, extraLimit) + "]"})
		}
	}
	return parts
}

func mediaType(mime string) channels.PartType {
	kind, _, _ := strings.Cut(mime, "/")
	switch kind {
	case "image":
		return channels.Image
	case "audio":
		return channels.Audio
	case "video":
		return channels.Video
	}
	return channels.File
}

// quotePart tells of the message that a reply answers, as data beside the person's own words. Its text is
// empty when there is nothing to tell.
func (a *Adapter) quotePart(m *message) channels.Part {
	q := m.Referenced.v
	if m.Type != messageReply || q == nil {
		return channels.Part{}
	}
	s := scope{self: a.dir.me(), guild: m.GuildID.v, mentions: m.Mentions, dir: a.dir, whole: true}
	words := []string{}
	if text := s.text(q.Content); text != "" {
		words = append(words, quoteText(text, quoteLimit))
	}
	for _, p := range media(q.content) {
		if p.Type != channels.Text {
			words = append(words, "["+string(p.Type)+": "+p.Text+"]")
		}
	}
	if len(words) == 0 {
		return channels.Part{}
	}
	name := q.Author.name(nickname{})
	if q.Author.ID == s.self {
		name = "you"
	}
	return channels.Part{Type: channels.Text, Text: "[in reply to " + oneLine(name) + ": " + strings.Join(words, " ") + "]"}
}

// isCommand reports that a message is one command and nothing else: a quotation beside it would make it
// ordinary text.
func isCommand(parts []channels.Part) bool {
	return len(parts) == 1 && strings.HasPrefix(parts[0].Text, "/") && !strings.ContainsAny(parts[0].Text, " \n")
}
