package line

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"botd/channels"
)

// message is a message object of a webhook, of whichever type.
type message struct {
	ID              string `json:"id"`
	Type            string `json:"type"`
	QuoteToken      string `json:"quoteToken"`
	QuotedMessageID string `json:"quotedMessageId"`

	// text, and message stickers
	Text    string `json:"text"`
	Mention struct {
		Mentionees []mentionee `json:"mentionees"`
	} `json:"mention"`

	// sticker
	Keywords []string `json:"keywords"`

	// image, video, audio
	ContentProvider struct {
		Type               string `json:"type"`
		OriginalContentURL string `json:"originalContentUrl"`
	} `json:"contentProvider"`
	// Duration is in milliseconds. Numbers are floats because a float takes any number that JSON has.
	Duration float64 `json:"duration"`
	ImageSet struct {
		Index float64 `json:"index"`
		Total float64 `json:"total"`
	} `json:"imageSet"`

	// file
	FileName string  `json:"fileName"`
	FileSize float64 `json:"fileSize"`

	// location; LINE tells title and address only of some
	Title     string  `json:"title"`
	Address   string  `json:"address"`
	Latitude  float64 `json:"latitude"`
	Longitude float64 `json:"longitude"`
}

// fill puts a message into the event.
func (a *Adapter) fill(in *channels.Inbound, m message) error {
	if m.ID == "" || len(m.ID) > maxID {
		return errors.New("no usable message ID")
	}
	in.MessageID, in.Refers = m.ID, m.QuotedMessageID
	if m.QuotedMessageID != "" && a.sent.has(m.QuotedMessageID) {
		in.Mentioned = true
	}
	var part channels.Part
	switch m.Type {
	case "text":
		text, self := stripSelf(m.Text, m.Mention.Mentionees)
		in.Mentioned = in.Mentioned || self
		part = channels.Part{Type: channels.Text, Text: text}
	case "sticker":
		part = channels.Part{Type: channels.Sticker, Text: m.stickerWords()}
	case "location":
		part = channels.Part{Type: channels.Location, Text: m.locationWords()}
	case "image":
		part = m.media(channels.Image, m.imageWords())
	case "video":
		part = m.media(channels.Video, m.durationWords())
	case "audio":
		part = m.media(channels.Audio, m.durationWords())
	case "file":
		part = m.media(channels.File, m.FileName)
	default:
		return errIgnored
	}
	in.Parts = []channels.Part{part}
	return nil
}

// media returns a part that refers to the content. Content that LINE does not keep itself has a URL,
// which must be fetched without the access token.
func (m message) media(t channels.PartType, words string) channels.Part {
	ref := &channels.MediaRef{ID: m.ID, Name: m.FileName}
	if m.FileSize > 0 && m.FileSize < 1<<53 {
		ref.Size = int64(m.FileSize)
	}
	if m.ContentProvider.Type == "external" {
		ref.URL = m.ContentProvider.OriginalContentURL
	}
	return channels.Part{Type: t, Text: words, Media: ref}
}

// stickerWords is what a person wrote on the sticker, then what the sticker shows.
func (m message) stickerWords() string {
	words := strings.Join(m.Keywords, ", ")
	switch {
	case m.Text == "":
		return words
	case words == "":
		return m.Text
	}
	return m.Text + " (" + words + ")"
}

// imageWords places an image among those that were sent at once.
func (m message) imageWords() string {
	if m.ImageSet.Index < 1 || m.ImageSet.Total < 1 {
		return ""
	}
	return fmt.Sprintf("%.0f of %.0f", m.ImageSet.Index, m.ImageSet.Total)
}

func (m message) durationWords() string {
	if m.Duration < 1 || m.Duration > float64(1000*time.Hour/time.Millisecond) {
		return ""
	}
	d := time.Duration(m.Duration) * time.Millisecond
	return max(d.Round(time.Second), time.Second).String()
}

func (m message) locationWords() string {
	var words []string
	for _, w := range []string{m.Title, m.Address} {
		if w = strings.TrimSpace(w); w != "" {
			words = append(words, w)
		}
	}
	at := "(" + strconv.FormatFloat(m.Latitude, 'f', -1, 64) + ", " + strconv.FormatFloat(m.Longitude, 'f', -1, 64) + ")"
	return strings.TrimSpace(strings.Join(words, ", ") + " " + at)
}
