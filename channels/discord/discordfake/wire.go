package discordfake

import (
	"encoding/json"
	"time"
)

// Intent is a set of gateway intents.
type Intent int

// The intents that decide what this server sends. (Discord documentation, Gateway, List of Intents.)
const (
	Guilds         Intent = 1 << 0
	GuildMembers   Intent = 1 << 1
	GuildPresences Intent = 1 << 8
	GuildMessages  Intent = 1 << 9
	DirectMessages Intent = 1 << 12
	MessageContent Intent = 1 << 15

	privileged = GuildMembers | GuildPresences | MessageContent
	known      = Intent(1<<17-1) | 1<<20 | 1<<21 | 1<<24 | 1<<25
)

// Types of rooms.
const (
	typeText         = 0
	typeDM           = 1
	typePublicThread = 11
)

// Types of messages that people and bots write.
const (
	TypeDefault       = 0
	TypeJoin          = 7
	TypeReply         = 19
	TypeThreadStarter = 21
)

// Message flags.
const (
	FlagEphemeral = 1 << 6
	flagLoading   = 1 << 7
)

// User is a person or a bot.
type User struct {
	ID            string  `json:"id"`
	Username      string  `json:"username"`
	Discriminator string  `json:"discriminator"`
	GlobalName    *string `json:"global_name"`
	Avatar        *string `json:"avatar"`
	PublicFlags   int     `json:"public_flags"`
	Flags         int     `json:"flags"`
	PrimaryGuild  *string `json:"primary_guild"`
	Bot           bool    `json:"bot,omitempty"`
	System        bool    `json:"system,omitempty"`
}

// Member is a user's membership of a guild, as sent beside a message.
type Member struct {
	Nick  *string  `json:"nick"`
	Roles []string `json:"roles"`
}

// Attachment is a file in a message.
type Attachment struct {
	ID          string `json:"id"`
	Filename    string `json:"filename"`
	Description string `json:"description,omitempty"`
	ContentType string `json:"content_type,omitempty"`
	Size        int    `json:"size"`
	URL         string `json:"url"`
	ProxyURL    string `json:"proxy_url"`
}

// Sticker is a sticker in a message.
type Sticker struct {
	ID         string `json:"id"`
	Name       string `json:"name"`
	FormatType int    `json:"format_type"`
}

// Reference points to another message: a reply (Type 0) or a forward (Type 1).
type Reference struct {
	Type      int    `json:"type"`
	MessageID string `json:"message_id,omitempty"`
	ChannelID string `json:"channel_id,omitempty"`
	GuildID   string `json:"guild_id,omitempty"`
}

// Snapshot is a forwarded message.
type Snapshot struct {
	Message SnapshotMessage `json:"message"`
}

// SnapshotMessage is what is kept of a forwarded message.
type SnapshotMessage struct {
	Content     string       `json:"content"`
	Attachments []Attachment `json:"attachments"`
	Timestamp   time.Time    `json:"timestamp"`
	Type        int          `json:"type"`
}

// Message is a message as Discord sends it, by REST and by the gateway.
type Message struct {
	ID                string            `json:"id"`
	ChannelID         string            `json:"channel_id"`
	Author            User              `json:"author"`
	Content           string            `json:"content"`
	Timestamp         time.Time         `json:"timestamp"`
	EditedTimestamp   *time.Time        `json:"edited_timestamp"`
	TTS               bool              `json:"tts"`
	MentionEveryone   bool              `json:"mention_everyone"`
	Mentions          []User            `json:"mentions"`
	MentionRoles      []string          `json:"mention_roles"`
	Attachments       []Attachment      `json:"attachments"`
	Embeds            []json.RawMessage `json:"embeds"`
	Components        []json.RawMessage `json:"components"`
	StickerItems      []Sticker         `json:"sticker_items,omitempty"`
	Pinned            bool              `json:"pinned"`
	Type              int               `json:"type"`
	Flags             int               `json:"flags"`
	Nonce             json.RawMessage   `json:"nonce,omitempty"`
	WebhookID         string            `json:"webhook_id,omitempty"`
	ApplicationID     string            `json:"application_id,omitempty"`
	MessageReference  *Reference        `json:"message_reference,omitempty"`
	ReferencedMessage *Message          `json:"referenced_message,omitempty"`
	MessageSnapshots  []Snapshot        `json:"message_snapshots,omitempty"`
}

// gatewayMessage is a Message with what only the gateway tells of it.
type gatewayMessage struct {
	Message
	GuildID     string  `json:"guild_id,omitempty"`
	Member      *Member `json:"member,omitempty"`
	ChannelType int     `json:"channel_type"`
}

// role is a guild's role; tags.bot_id marks the one that Discord manages for a bot.
type role struct {
	ID          string    `json:"id"`
	Name        string    `json:"name"`
	Color       int       `json:"color"`
	Hoist       bool      `json:"hoist"`
	Position    int       `json:"position"`
	Permissions string    `json:"permissions"`
	Managed     bool      `json:"managed"`
	Mentionable bool      `json:"mentionable"`
	Tags        *roleTags `json:"tags,omitempty"`
}

type roleTags struct {
	BotID string `json:"bot_id,omitempty"`
}

// channelJSON is a room as Discord sends it.
type channelJSON struct {
	ID            string  `json:"id"`
	Type          int     `json:"type"`
	GuildID       string  `json:"guild_id,omitempty"`
	Name          string  `json:"name,omitempty"`
	ParentID      *string `json:"parent_id,omitempty"`
	OwnerID       string  `json:"owner_id,omitempty"`
	LastMessageID *string `json:"last_message_id"`
	Recipients    []User  `json:"recipients,omitempty"`
	Flags         int     `json:"flags"`
	Position      *int    `json:"position,omitempty"` // rooms of a guild
	*threadFields         // threads
}

type threadFields struct {
	ThreadMetadata   *threadMetadata `json:"thread_metadata"`
	MessageCount     int             `json:"message_count"`
	MemberCount      int             `json:"member_count"`
	TotalMessageSent int             `json:"total_message_sent"`
}

// thread returns what only a thread has, nil for another room.
func (c *channelJSON) thread() *threadMetadata {
	if c.threadFields == nil {
		return nil
	}
	return c.ThreadMetadata
}

type threadMetadata struct {
	Archived            bool      `json:"archived"`
	AutoArchiveDuration int       `json:"auto_archive_duration"`
	ArchiveTimestamp    time.Time `json:"archive_timestamp"`
	Locked              bool      `json:"locked"`
}

var emptyList = []json.RawMessage{}

// frame is one gateway message.
type frame struct {
	Op   int             `json:"op"`
	Data json.RawMessage `json:"d"`
	Seq  *int64          `json:"s"`
	Type *string         `json:"t"`
}

// merge encodes v as an object with the fields of extra added or replaced.
func merge(v any, extra map[string]any) json.RawMessage {
	b := mustJSON(v)
	if len(extra) == 0 {
		return b
	}
	all := map[string]json.RawMessage{}
	if err := json.Unmarshal(b, &all); err != nil {
		panic("discordfake: merge into a value that is no object: " + err.Error())
	}
	for k, x := range extra {
		all[k] = mustJSON(x)
	}
	return mustJSON(all)
}

// mustJSON encodes a value of this package's own types, or one that a caller placed in an Extra map; a
// value that cannot be encoded is the caller's mistake.
func mustJSON(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic("discordfake: encode: " + err.Error())
	}
	return b
}
