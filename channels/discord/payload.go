package discord

import (
	"cmp"
	"encoding/json"
	"errors"
	"strconv"
	"time"
)

// The structs below hold what the adapter reads of Discord's objects. discordgo's own are not used for
// events: one component or field of a type that it does not know leaves its Message without an Author.

// lenient is a field that the adapter can do without: a value that does not fit is left out instead of
// failing the object around it.
type lenient[T any] struct{ v T }

// UnmarshalJSON never fails.
func (l *lenient[T]) UnmarshalJSON(b []byte) error {
	var v T
	if json.Unmarshal(b, &v) == nil {
		l.v = v
	}
	return nil
}

// listOf is a lenient list of lenient elements.
type listOf[T any] struct{ lenient[[]lenient[T]] }

// all yields the elements.
func (l listOf[T]) all(yield func(T) bool) {
	for _, e := range l.v {
		if !yield(e.v) {
			return
		}
	}
}

type user struct {
	ID         string          `json:"id"`
	Username   string          `json:"username"`
	GlobalName lenient[string] `json:"global_name"`
	Bot        lenient[bool]   `json:"bot"`
	System     lenient[bool]   `json:"system"`
	// Member is there for users mentioned in a guild.
	Member lenient[nickname] `json:"member"`
}

type nickname struct {
	Nick lenient[string] `json:"nick"`
}

type member struct {
	nickname
	User lenient[user] `json:"user"`
	// Permissions is there in interactions alone: what the person may do in the room.
	Permissions lenient[permissions] `json:"permissions"`
}

// permissions is a set of rights; Discord writes it as a decimal number in a string. (Discord documentation,
// Permissions.)
type permissions uint64

const (
	permitAdministrator  permissions = 1 << 3
	permitManageGuild    permissions = 1 << 5
	permitManageMessages permissions = 1 << 13
)

// UnmarshalText reads the decimal number.
func (p *permissions) UnmarshalText(b []byte) error {
	n, err := strconv.ParseUint(string(b), 10, 64)
	*p = permissions(n)
	return err
}

// inCharge reports a right to manage what others have said in the room.
func (p permissions) inCharge() bool {
	return p&(permitAdministrator|permitManageGuild|permitManageMessages) != 0
}

// name is the name that others see: the nickname in the guild, else the display name.
func (u user) name(n nickname) string {
	return cmp.Or(n.Nick.v, u.Member.v.Nick.v, u.GlobalName.v, u.Username)
}

type attachment struct {
	ID          string          `json:"id"`
	Filename    string          `json:"filename"`
	Description lenient[string] `json:"description"`
	ContentType lenient[string] `json:"content_type"`
	Size        lenient[int64]  `json:"size"`
	URL         string          `json:"url"`
}

type sticker struct {
	Name string `json:"name"`
}

type embed struct {
	Title       lenient[string] `json:"title"`
	Description lenient[string] `json:"description"`
}

type poll struct {
	Question struct {
		Text string `json:"text"`
	} `json:"question"`
	Answers listOf[struct {
		Media struct {
			Text string `json:"text"`
		} `json:"poll_media"`
	}] `json:"answers"`
}

type reference struct {
	Type      lenient[int]    `json:"type"`
	MessageID lenient[string] `json:"message_id"`
}

// content is what a message and the snapshot of a forwarded one have in common.
type content struct {
	Content     string             `json:"content"`
	Attachments listOf[attachment] `json:"attachments"`
	Stickers    listOf[sticker]    `json:"sticker_items"`
	Embeds      listOf[embed]      `json:"embeds"`
}

// message is MESSAGE_CREATE, and a message read by REST.
type message struct {
	content
	ID           string             `json:"id"`
	ChannelID    string             `json:"channel_id"`
	GuildID      lenient[string]    `json:"guild_id"`
	ChannelType  *lenient[roomType] `json:"channel_type"`
	Author       user               `json:"author"`
	Member       lenient[member]    `json:"member"`
	Timestamp    lenient[time.Time] `json:"timestamp"`
	Type         int                `json:"type"`
	Flags        lenient[int]       `json:"flags"`
	WebhookID    lenient[string]    `json:"webhook_id"`
	Nonce        lenient[string]    `json:"nonce"`
	Mentions     listOf[user]       `json:"mentions"`
	MentionRoles listOf[string]     `json:"mention_roles"`
	Reference    lenient[reference] `json:"message_reference"`
	Referenced   lenient[*quoted]   `json:"referenced_message"`
	Snapshots    listOf[struct {
		Message content `json:"message"`
	}] `json:"message_snapshots"`
	Poll lenient[*poll] `json:"poll"`
}

// quoted is the message that a reply answers.
type quoted struct {
	content
	ID     string `json:"id"`
	Author user   `json:"author"`
}

var (
	errNoID     = errors.New("message without an id, room or author")
	errNoAuthor = errors.New("interaction without an id, token, room or user")
)

// decodeMessage reads a message and checks what nothing can be done without.
func decodeMessage(raw []byte) (*message, error) {
	var m message
	if err := json.Unmarshal(raw, &m); err != nil {
		return nil, err
	}
	if m.ID == "" || m.ChannelID == "" || m.Author.ID == "" {
		return nil, errNoID
	}
	return &m, nil
}

// roomType is a room's type. (Discord documentation, Channel, Channel Types.)
type roomType int

const (
	typeDM            roomType = 1
	typeGroupDM       roomType = 3
	typeNewsThread    roomType = 10
	typePublicThread  roomType = 11
	typePrivateThread roomType = 12
)

func (t roomType) isThread() bool {
	return t == typeNewsThread || t == typePublicThread || t == typePrivateThread
}

// holdsMessages reports a room that people write in: text, voice and news channels, and threads. Posts of
// a forum are threads.
func (t roomType) holdsMessages() bool { return t == 0 || t == 2 || t == 5 || t.isThread() }

// room is a Discord channel or thread.
type room struct {
	ID            string          `json:"id"`
	Type          roomType        `json:"type"`
	Name          lenient[string] `json:"name"`
	ParentID      lenient[string] `json:"parent_id"`
	LastMessageID lenient[string] `json:"last_message_id"`
}

// guild is GUILD_CREATE.
type guild struct {
	ID       string          `json:"id"`
	OwnerID  lenient[string] `json:"owner_id"`
	Channels listOf[room]    `json:"channels"`
	Threads  listOf[room]    `json:"threads"`
	Roles    listOf[role]    `json:"roles"`
}

type role struct {
	ID   string          `json:"id"`
	Name lenient[string] `json:"name"`
	Tags lenient[struct {
		BotID lenient[string] `json:"bot_id"`
	}] `json:"tags"`
}

// interaction is INTERACTION_CREATE.
type interaction struct {
	ID            string          `json:"id"`
	ApplicationID string          `json:"application_id"`
	Type          int             `json:"type"`
	Token         string          `json:"token"`
	ChannelID     lenient[string] `json:"channel_id"`
	GuildID       lenient[string] `json:"guild_id"`
	Channel       lenient[room]   `json:"channel"`
	Member        lenient[member] `json:"member"`
	User          lenient[user]   `json:"user"`
	Locale        lenient[string] `json:"locale"`
	Data          lenient[struct {
		Name    string `json:"name"`
		Type    int    `json:"type"`
		Options listOf[struct {
			Value lenient[json.RawMessage] `json:"value"`
		}] `json:"options"`
	}] `json:"data"`
}

// Types of messages, interactions and commands that are answered.
const (
	messageDefault  = 0
	messageReply    = 19
	flagEphemeral   = 1 << 6
	referForward    = 1
	interactCommand = 2
	commandChat     = 1
)

// decodeInteraction reads an interaction. Who used it is in Member within a guild, in User outside.
func decodeInteraction(raw []byte) (*interaction, user, error) {
	var i interaction
	if err := json.Unmarshal(raw, &i); err != nil {
		return nil, user{}, err
	}
	who := i.User.v
	if who.ID == "" {
		who = i.Member.v.User.v
	}
	if i.ID == "" || i.Token == "" || i.ApplicationID == "" || i.ChannelID.v == "" || who.ID == "" {
		return nil, user{}, errNoAuthor
	}
	return &i, who, nil
}

// discordEpoch is the first millisecond of a snowflake. (Discord documentation, Reference, Snowflakes.)
const discordEpoch = 1420070400000

// snowflakeTime returns when an ID was made, the zero time when it is none.
func snowflakeTime(id string) time.Time {
	n, err := strconv.ParseUint(id, 10, 64)
	if err != nil || n>>22 == 0 {
		return time.Time{}
	}
	return time.UnixMilli(int64(n>>22) + discordEpoch)
}

// isSnowflake reports that s can be an ID: what stands in a URL path is nothing else.
func isSnowflake(s string) bool {
	if s == "" || len(s) > 20 {
		return false
	}
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}
