package line

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"botd/channels"
)

// The parser is our own: the SDK's fails on events that are odd in one property, and drops what it does
// not know. It reads what is needed and lets everything else be, since new properties, types and values
// come unannounced (Messaging API reference, Webhook event objects).

// batch is the body of a webhook.
type batch struct {
	Destination string            `json:"destination"`
	Events      []json.RawMessage `json:"events"`
}

// event is what all events have in common, and the objects that only some have.
type event struct {
	Type            string `json:"type"`
	Mode            string `json:"mode"`
	WebhookEventID  string `json:"webhookEventId"`
	Timestamp       int64  `json:"timestamp"`
	ReplyToken      string `json:"replyToken"`
	Source          source `json:"source"`
	DeliveryContext struct {
		IsRedelivery bool `json:"isRedelivery"`
	} `json:"deliveryContext"`
	Message  json.RawMessage `json:"message"`
	Postback struct {
		Data string `json:"data"`
	} `json:"postback"`
	Unsend struct {
		MessageID string `json:"messageId"`
	} `json:"unsend"`
}

type source struct {
	Type    string `json:"type"`
	UserID  string `json:"userId"`
	GroupID string `json:"groupId"`
	RoomID  string `json:"roomId"`
}

// maxID bounds the IDs that go into session IDs and keys. LINE's have 33 characters or less.
const maxID = 128

// maxTimestamp is the last millisecond of the year 9999. JSON can hold no later time, and an event that
// cannot be stored would take the others of its webhook with it.
const maxTimestamp = 253402300799999

// errIgnored is an event that means nothing to a gateway.
var errIgnored = errors.New("event means nothing to a gateway")

// kinds are the events that are handed on. Everything else LINE reports is left out.
var kinds = map[string]channels.Kind{
	"message":  channels.Message,
	"postback": channels.Postback,
	"follow":   channels.Follow,
	"join":     channels.Join,
	"unsend":   channels.Unsend,
}

// parse turns one event into what the sink takes. It returns errIgnored for one to be left out, any
// other error for one that cannot be understood; errors hold nothing of the event.
func (a *Adapter) parse(raw json.RawMessage, received time.Time) (channels.Inbound, error) {
	var in channels.Inbound
	var head struct {
		Type string `json:"type"`
	}
	if json.Unmarshal(raw, &head) != nil || head.Type == "" {
		return in, errors.New("event without a type")
	}
	odd := func(reason error) error { return fmt.Errorf("%s event with %w", head.Type, reason) }
	kind, wanted := kinds[head.Type]
	if !wanted {
		return in, errIgnored
	}
	var ev event
	if json.Unmarshal(raw, &ev) != nil {
		return in, odd(errors.New("a property of the wrong type"))
	}
	// A channel in standby must not send anything: another one serves the chat.
	if ev.Mode == "standby" || isDummy(ev.ReplyToken) {
		return in, errIgnored
	}
	if ev.WebhookEventID == "" || len(ev.WebhookEventID) > maxID {
		return in, odd(errors.New("no usable webhookEventId"))
	}
	to, err := ev.Source.address(a.info.Channel)
	if err != nil {
		return in, odd(err)
	}
	in = channels.Inbound{
		ID: ev.WebhookEventID, Kind: kind, Address: to, Time: received.UTC(),
		Speaker:   channels.Speaker{ID: to.User},
		Mentioned: to.Kind == channels.Direct || kind == channels.Postback,
	}
	if ev.Timestamp > 0 && ev.Timestamp <= maxTimestamp {
		in.Time = time.UnixMilli(ev.Timestamp).UTC()
	}
	quote := ""
	switch kind {
	case channels.Message:
		var m message
		if json.Unmarshal(ev.Message, &m) != nil {
			return in, odd(errors.New("no usable message"))
		}
		if err := a.fill(&in, m); err != nil {
			return in, odd(err)
		}
		quote = m.QuoteToken
	case channels.Postback:
		in.Parts = []channels.Part{{Type: channels.Text, Text: ev.Postback.Data}}
	case channels.Unsend:
		if in.Refers = ev.Unsend.MessageID; in.Refers == "" || len(in.Refers) > maxID {
			return in, odd(errors.New("no usable message ID"))
		}
	}
	in.Reply = newHandle(ev.ReplyToken, quote, in.Time, received, ev.DeliveryContext.IsRedelivery).encode()
	return in, nil
}

// address returns where an event belongs. In groups and rooms the person may be unknown. A place that no
// answer could be sent to is refused before a model works on one.
func (s source) address(channel string) (channels.Address, error) {
	a := channels.Address{Channel: channel, Kind: channels.Group, User: s.UserID}
	var letter byte
	switch s.Type {
	case "user":
		a.Kind, a.Room, letter = channels.Direct, s.UserID, 'U'
	case "group":
		a.Room, letter = s.GroupID, 'C'
	case "room":
		a.Room, letter = s.RoomID, 'R'
	default:
		return a, errors.New("no known source")
	}
	if !isID(a.Room, letter) || len(a.User) > maxID {
		return a, errors.New("no usable source ID")
	}
	return a, nil
}
