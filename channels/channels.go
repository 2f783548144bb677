package channels

import (
	"context"
	"io"
	"net/http"
	"time"
)

// RoomKind tells what kind of place an address names. It decides the default session ID and whether a
// speaker must be named to the model.
type RoomKind string

// The kinds of rooms. The values are stored.
const (
	// Direct is a conversation between one person and the bot.
	Direct RoomKind = "direct"
	// Group is a private conversation of several people: a LINE group or multi-person chat.
	Group RoomKind = "group"
	// Room is a public or semi-public room of a server: a Discord guild channel or a thread in it.
	Room RoomKind = "room"
)

// Address says where a message belongs, in the platform's own opaque, case-sensitive IDs.
type Address struct {
	// Channel is the configured name of the bot account ("line-shop").
	Channel string `json:"channel"`
	// Kind is the kind of Room.
	Kind RoomKind `json:"kind"`
	// Room is the conversation: a LINE user, group or room ID, a Discord channel ID.
	Room string `json:"room"`
	// Thread is the thread inside Room, empty outside a thread.
	Thread string `json:"thread,omitempty"`
	// User is the person, empty where the platform does not tell (a LINE group member without consent).
	User string `json:"user,omitempty"`
}

// Place names the conversation without the person: deliveries to one place keep their order.
func (a Address) Place() Address {
	a.User = ""
	return a
}

// Kind is the kind of an Inbound event.
type Kind string

// The kinds of events. The values are stored.
const (
	// Message is something a person said: text, media, a sticker.
	Message Kind = "message"
	// Postback is a press on a button that the bot offered; its data is the text of the only part.
	Postback Kind = "postback"
	// Follow is a person adding the bot as a friend or lifting a block.
	Follow Kind = "follow"
	// Join is the bot being added to a room.
	Join Kind = "join"
	// Unsend is a person taking back the message that Refers names by its MessageID, or its ID where it has no
	// other. The event has no parts and is never answered; it may arrive before the message itself.
	Unsend Kind = "unsend"
	// Edit is a person changing the message that Refers names by its MessageID; the parts are the new content
	// of all of it. It may arrive before the message itself, and late.
	Edit Kind = "edit"
)

// Speaker is the person behind an event.
type Speaker struct {
	// ID is the platform's ID of the person; authority is decided by it alone.
	ID string `json:"id,omitempty"`
	// Name is the display name, chosen by the person and never to be trusted. May be empty.
	Name string `json:"name,omitempty"`
	// Locale is a BCP 47 language tag, empty when unknown.
	Locale string `json:"locale,omitempty"`
	// Bot reports that the speaker is a program.
	Bot bool `json:"bot,omitempty"`
	// Admin reports that the platform gave the person the right to manage the place when they spoke.
	Admin bool `json:"admin,omitempty"`
}

// PartType is the type of one Part.
type PartType string

// The types of parts. The values are stored.
const (
	// Text is literal text, shown as it stands.
	Text PartType = "text"
	// Markdown is a model's text; Compose turns it into what the platform shows.
	Markdown PartType = "markdown"
	// Image, Audio, Video and File refer to media kept by the platform.
	Image PartType = "image"
	Audio PartType = "audio"
	Video PartType = "video"
	File  PartType = "file"
	// Sticker and Location carry a description in Text.
	Sticker  PartType = "sticker"
	Location PartType = "location"
)

// Part is one piece of a message.
type Part struct {
	Type PartType `json:"type"`
	// Text is the text, or a description of what the part holds (a sticker's keywords, a file's name).
	Text string `json:"text,omitempty"`
	// Media refers to the platform's copy of the content, nil for text.
	Media *MediaRef `json:"media,omitempty"`
}

// MediaRef names media that the platform keeps for some time.
type MediaRef struct {
	// ID is the platform's ID of the content (a LINE message ID, a Discord attachment ID).
	ID string `json:"id"`
	// URL is where to fetch it when ID alone is not enough. It may hold a signature: never log it.
	URL string `json:"url,omitempty"`
	// Name is the file name as told by the sender, MIME the type as told by the platform; trust neither.
	Name string `json:"name,omitempty"`
	MIME string `json:"mime,omitempty"`
	// Size is in bytes, 0 when not told.
	Size int64 `json:"size,omitempty"`
}

// Inbound is one verified, normalised platform event.
type Inbound struct {
	// ID is unique within Address.Channel and is the key of deduplication. A redelivery has the same ID.
	ID      string    `json:"id"`
	Kind    Kind      `json:"kind"`
	Address Address   `json:"address"`
	Time    time.Time `json:"time"`
	Speaker Speaker   `json:"speaker"`
	// Mentioned reports that the message speaks to the bot: it names the bot, or answers one of its messages.
	// Always true in a direct chat.
	Mentioned bool   `json:"mentioned,omitempty"`
	Parts     []Part `json:"parts,omitempty"`
	// MessageID is the platform's ID of the message itself, where it differs from ID.
	MessageID string `json:"message_id,omitempty"`
	// Refers is the ID of the message that this one quotes, or that an Unsend takes back.
	Refers string `json:"refers,omitempty"`
	// Reply is adapter-private state needed to answer this event (a LINE reply token and its deadline, a
	// Discord message reference). It belongs to the event, never to the room, and is handed back in
	// Outbound.Reply. It may hold a credential: never log it.
	Reply []byte `json:"reply,omitempty"`
}

// PlainText joins the text of the parts with newlines.
func (in Inbound) PlainText() string { return joinText(in.Parts) }

// Outbound is one message from the bot to a place.
type Outbound struct {
	// ID is stable across retries and restarts; adapters derive the platform's idempotency key from it.
	ID string  `json:"id"`
	To Address `json:"to"`
	// Reply is the Inbound.Reply of the event answered, nil for a message that answers none.
	Reply []byte `json:"reply,omitempty"`
	// Quote asks for the answer to visibly refer to the message answered, as groups need.
	Quote bool   `json:"quote,omitempty"`
	Parts []Part `json:"parts"`
	// Actions are buttons offered with the message. Compose leaves them on the last send, in the platform's
	// own form; a platform without buttons leaves them out, so the text must tell what can be typed instead.
	Actions []Action `json:"actions,omitempty"`
	// Once is set by Compose on a send for which the platform has no idempotency key. The dispatcher
	// durably notes that such a send is about to begin, and sets Uncertain when it is tried again.
	Once bool `json:"once,omitempty"`
	// Uncertain reports that an earlier attempt of this very send may have been accepted. With Once set,
	// the adapter must then not use any way of sending that could show the message a second time.
	Uncertain bool `json:"uncertain,omitempty"`
}

// Action is a button under a message. A press arrives as a Postback whose text is Data.
type Action struct {
	// Label is what the button shows, at most 20 characters, the tightest of the platforms.
	Label string `json:"label"`
	// Data is at most 80 bytes. Data that begins with "/" is a command, which can be typed as well.
	Data string `json:"data"`
	// Danger marks an act that cannot be taken back.
	Danger bool `json:"danger,omitempty"`
}

// PlainText joins the text of the parts with newlines.
func (m Outbound) PlainText() string { return joinText(m.Parts) }

func joinText(parts []Part) string {
	n := 0
	for _, p := range parts {
		n += len(p.Text) + 1
	}
	b := make([]byte, 0, n)
	for _, p := range parts {
		if p.Text == "" {
			continue
		}
		if len(b) > 0 {
			b = append(b, '\n')
		}
		b = append(b, p.Text...)
	}
	return string(b)
}

// Receipt is the platform's word that a message was accepted.
type Receipt struct {
	// MessageIDs are the platform's IDs of the messages shown, in order; may be empty.
	MessageIDs []string `json:"message_ids,omitempty"`
}

// Info holds the fixed facts of an adapter.
type Info struct {
	// Channel is the configured name of the bot account.
	Channel string
	// Platform is "line", "discord" or "console".
	Platform string
	// TypingEvery is how often Typer.Typing must be called to keep the sign of work visible; 0: never.
	TypingEvery time.Duration
}

// Sink takes events from adapters. It is implemented by the dispatcher.
type Sink interface {
	// Accept returns nil only once every event is durable or known to be a duplicate or not wanted; only
	// then may the adapter acknowledge the platform. It never waits for the model. After an error nothing
	// may be acknowledged, and the same events may be handed in again.
	Accept(ctx context.Context, events ...Inbound) error
}

// Adapter joins one bot account on one platform. See the package comment for its duties.
type Adapter interface {
	// Info returns fixed facts; no I/O.
	Info() Info
	// Compose turns one answer into the sends that it takes, each exactly one call to the platform, in
	// order. Markdown parts are rendered, texts split at the platform's limits, and the event's reply
	// handle is left only on sends that use it. IDs are the dispatcher's to set afterwards. Compose is
	// pure: no I/O, same result for the same input. An answer with nothing to show gives no sends.
	Compose(m Outbound) []Outbound
	// Run receives events until ctx ends, reconnecting by itself, and returns nil then. An error means
	// that this channel cannot go on without the operator (a revoked token, a missing intent).
	Run(ctx context.Context, sink Sink) error
	// Send makes one call to the platform for a message that came from Compose. Errors are *Error.
	Send(ctx context.Context, m Outbound) (Receipt, error)
}

// The interfaces below are optional and found by type assertion. Never wrap an Adapter: wrapping hides them.

// Webhook is implemented by adapters whose platform calls us.
type Webhook interface {
	// Webhook returns the handler for the platform's calls; it acknowledges only after sink has accepted.
	Webhook(sink Sink) http.Handler
}

// Typer shows that the bot is working on an answer.
type Typer interface {
	// Typing shows the sign once; see Info.TypingEvery. Failures are of no consequence to the answer.
	Typing(ctx context.Context, to Address) error
}

// Profiler looks up a speaker whom an event left unnamed.
type Profiler interface {
	// Profile returns what the platform tells of the person at to. Answers are cached by the adapter.
	Profile(ctx context.Context, to Address) (Speaker, error)
}

// Streamer shows an answer while it is written.
type Streamer interface {
	// Stream opens a live view of an answer that is not yet complete. It is a preview: the committed
	// message is still delivered by Send, and the adapter replaces the preview with it.
	Stream(ctx context.Context, m Outbound) (Live, error)
}

// MediaOpener fetches media that people sent.
type MediaOpener interface {
	// OpenMedia returns the content of media that an Inbound of this channel referred to. The adapter bounds
	// size and time, and fetches from the platform's own hosts only. The caller closes the reader. Errors are
	// *Error: Gone when the platform has it no longer, Permanent when it is too large or refused.
	OpenMedia(ctx context.Context, ref MediaRef) (io.ReadCloser, error)
}

// Prober finds out by asking the platform whether the channel is set up as it must be.
type Prober interface {
	// Probe makes only requests that change nothing, and returns what it found, the good included.
	Probe(ctx context.Context) []Finding
}

// Level is how bad a Finding is.
type Level string

// The levels. Warn works but probably not as meant; Fail does not work.
const (
	OK   Level = "ok"
	Warn Level = "warn"
	Fail Level = "fail"
)

// Finding is one result of a check. It holds no credentials.
type Finding struct {
	Level Level `json:"level"`
	// Check names what was looked at in a few words, Detail says what was found.
	Check  string `json:"check"`
	Detail string `json:"detail"`
	// Remedy says what to do about it, empty when nothing is to be done.
	Remedy string `json:"remedy,omitempty"`
}

// Blobs keeps the content of media that the bot sends: parts whose MediaRef.ID begins with "blob:". Adapters
// that send media are given one.
type Blobs interface {
	// Open returns the content; the caller closes it.
	Open(ctx context.Context, id string) (io.ReadCloser, error)
	// Link returns an address under the public URL from which the platform can fetch the content for ttl; empty
	// where the program has no public URL.
	Link(id string, ttl time.Duration) string
}

// Live is the preview of one answer.
type Live interface {
	// Write appends text. It never blocks on the platform for longer than ctx.
	Write(ctx context.Context, text string) error
	// Close ends the preview; what was shown stays until Send replaces it.
	Close() error
}
