package linefake

import (
	"fmt"
	"maps"
	"strings"
	"time"
	"unicode/utf16"
)

// Content is what a person's message holds: Text, Sticker, Media, Location or Other.
type Content interface {
	// fill writes the properties of the message object. s.mu is held.
	fill(c *Chat, id string, m map[string]any)
	// caption is the text of the bubble.
	caption() string
}

// Text is a text message.
type Text struct {
	Text string
	// Mentions are found in Text in order, each after the one before.
	Mentions []Mention
	// Quotes is the ID of the message that this one quotes.
	Quotes string
}

// Mention marks a piece of a text as a mention of a person, of the bot or of everybody.
type Mention struct {
	// At is the text of the mention, as "@Alice".
	At string
	// User is the person mentioned, nil when she gave no consent; Self means the bot, All everybody.
	User      *User
	Self, All bool
}

func (t Text) caption() string { return t.Text }

func (t Text) fill(c *Chat, id string, m map[string]any) {
	m["type"], m["text"] = "text", t.Text
	c.quotable(id, m)
	if t.Quotes != "" {
		m["quotedMessageId"] = t.Quotes
	}
	if len(t.Mentions) == 0 {
		return
	}
	var mentionees []any
	from := 0
	for _, at := range t.Mentions {
		i := strings.Index(t.Text[from:], at.At)
		if i < 0 {
			panic(fmt.Sprintf("linefake: mention %q is not in the text", at.At))
		}
		e := map[string]any{"type": "user", "index": units(t.Text[:from+i]), "length": units(at.At)}
		switch {
		case at.All:
			e["type"] = "all"
		case at.Self:
			e["isSelf"], e["userId"] = true, c.Bot.ID
		default:
			e["isSelf"] = false
			if at.User != nil {
				e["userId"] = at.User.ID
			}
		}
		mentionees = append(mentionees, e)
		from += i + len(at.At)
	}
	m["mention"] = map[string]any{"mentionees": mentionees}
}

// units counts UTF-16 code units.
func units(s string) int { return len(utf16.Encode([]rune(s))) }

// Sticker is a sticker message. Empty IDs are filled in.
type Sticker struct {
	PackageID, StickerID string
	Keywords             []string
	// Text is what the person wrote on a message sticker.
	Text   string
	Quotes string
}

func (s Sticker) caption() string { return s.Text }

func (s Sticker) fill(c *Chat, id string, m map[string]any) {
	m["type"], m["stickerResourceType"] = "sticker", "STATIC"
	m["packageId"], m["stickerId"] = "446", "1988"
	if s.PackageID != "" {
		m["packageId"], m["stickerId"] = s.PackageID, s.StickerID
	}
	if len(s.Keywords) > 0 {
		m["keywords"] = s.Keywords
	}
	if s.Text != "" {
		m["text"], m["stickerResourceType"] = s.Text, "MESSAGE"
	}
	if s.Quotes != "" {
		m["quotedMessageId"] = s.Quotes
	}
	c.quotable(id, m)
}

// Media is an image, video, audio or file message.
type Media struct {
	// Type is "image", "video", "audio" or "file".
	Type string
	// Data and MIME are what the content endpoint serves.
	Data []byte
	MIME string
	// Preview is served for images and videos.
	Preview []byte
	// Name is the name of a file, Size its size when it shall differ from that of Data.
	Name string
	Size int64
	// Duration of audio and video.
	Duration time.Duration
	// URL, when set, makes LINE tell of content kept elsewhere, by a LIFF app for example.
	URL string
	// Set, Index and Total group images that were sent at once.
	Set          string
	Index, Total int
	// Preparing is how many times video and audio answer 202 before they are ready.
	Preparing int
	// Failed: it could not be prepared. Gone: it is not kept any more.
	Failed, Gone bool
}

func (d Media) caption() string { return d.Name }

func (d Media) fill(c *Chat, id string, m map[string]any) {
	m["type"] = d.Type
	c.s.media[id] = &content{Media: d, bot: c.Bot}
	if d.Type == "file" {
		m["fileName"], m["fileSize"] = d.Name, max(d.Size, int64(len(d.Data)))
		c.readable(id, m)
		return
	}
	m["contentProvider"] = map[string]any{"type": "line"}
	if d.URL != "" {
		m["contentProvider"] = map[string]any{"type": "external", "originalContentUrl": d.URL, "previewImageUrl": d.URL}
	}
	if d.Duration > 0 {
		m["duration"] = d.Duration.Milliseconds()
	}
	if d.Set != "" {
		m["imageSet"] = map[string]any{"id": d.Set, "index": d.Index, "total": d.Total}
	}
	if d.Type == "audio" {
		c.readable(id, m)
		return
	}
	c.quotable(id, m)
}

// Location is a location message. Title and Address may be empty.
type Location struct {
	Title, Address      string
	Latitude, Longitude float64
}

func (l Location) caption() string { return strings.TrimSpace(l.Title + " " + l.Address) }

func (l Location) fill(c *Chat, id string, m map[string]any) {
	m["type"], m["latitude"], m["longitude"] = "location", l.Latitude, l.Longitude
	if l.Title != "" {
		m["title"] = l.Title
	}
	if l.Address != "" {
		m["address"] = l.Address
	}
	c.readable(id, m)
}

// Other is a message of a type that is not known yet.
type Other struct {
	Type       string
	Properties map[string]any
}

func (o Other) caption() string { return "" }

func (o Other) fill(_ *Chat, _ string, m map[string]any) {
	maps.Copy(m, o.Properties)
	m["type"] = o.Type
}

// quotable is a message that may be quoted in one chat.
type quotable struct {
	chat    chatKey
	message string
}

// quotable gives the message a quote token and a token to mark it as read.
func (c *Chat) quotable(id string, m map[string]any) {
	m["quoteToken"] = c.quoteToken(id)
	c.readable(id, m)
}

func (c *Chat) quoteToken(id string) string {
	token := c.s.hex(24)
	c.s.quotes[token] = quotable{chatKey{c.Bot.ID, c.ID}, id}
	return token
}

func (c *Chat) readable(id string, m map[string]any) {
	token := c.s.hex(24)
	c.s.reads[token] = c.Bot.ID + " " + c.ID + " " + id
	m["markAsReadToken"] = token
}
