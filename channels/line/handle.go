package line

import (
	"encoding/json"
	"strings"
	"time"
)

// handle is what is needed to answer one event. It is channels.Inbound.Reply and is stored: add fields,
// never rename them.
type handle struct {
	// Token is the reply token, empty for an event that has none; it may be tried until Deadline.
	Token    string    `json:"token,omitempty"`
	Deadline time.Time `json:"deadline,omitzero"`
	// Quote is the token that quotes the message, which does not expire. Not every message has one.
	Quote string `json:"quote,omitempty"`
}

// The ages of reply tokens (Messaging API reference, Send reply message, Reply token).
const (
	// replyAge is how long after the webhook a token is good; after a redelivery as long again, unless
	// redeliveryAge has passed since the event.
	replyAge      = time.Minute
	redeliveryAge = 20 * time.Minute
	// replyMargin is for the way to LINE and for clocks that differ.
	replyMargin = 2 * time.Second
)

// newHandle returns the handle of an event that arrived at received.
func newHandle(token, quote string, happened, received time.Time, redelivery bool) handle {
	h := handle{Quote: quote}
	if token == "" {
		return h
	}
	h.Token, h.Deadline = token, received.Add(replyAge)
	if last := happened.Add(redeliveryAge); redelivery && last.Before(h.Deadline) {
		h.Deadline = last
	}
	h.Deadline = h.Deadline.UTC()
	return h
}

// encode returns nil for a handle without use.
func (h handle) encode() []byte {
	if h.Token == "" && h.Quote == "" {
		return nil
	}
	b, err := json.Marshal(h)
	if err != nil {
		// A deadline outside the years that JSON can hold: the clock is broken.
		return nil
	}
	return b
}

// decodeHandle returns an empty handle for anything that is not one.
func decodeHandle(b []byte) handle {
	var h handle
	if json.Unmarshal(b, &h) != nil {
		return handle{}
	}
	return h
}

// usable reports whether the token may still be tried.
func (h handle) usable(now time.Time) bool {
	return h.Token != "" && now.Before(h.Deadline.Add(-replyMargin))
}

// isDummy reports whether a reply token is one that LINE's console has sent to verify a webhook: it
// answers nothing.
func isDummy(token string) bool {
	return len(token) == 32 && (strings.Trim(token, "0") == "" || strings.Trim(token, "f") == "")
}
