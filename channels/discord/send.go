package discord

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"botd/channels"
)

const (
	// nonceMemory is how long Discord is sure to know a nonce: it says "in the past few minutes".
	nonceMemory = 2 * time.Minute
	// searchPages bounds the look for an earlier attempt, in pages of 100 messages.
	searchPages = 5
)

var (
	errUnknown = errors.New("an earlier attempt may have been accepted")
	errExpired = errors.New("the interaction can no longer be answered privately, and an earlier attempt may have been accepted")
	errNowhere = errors.New("address without a room or a user")
)

// Send makes one call to Discord for a message from Compose. An ordinary message carries a nonce by which
// Discord knows it again for some minutes; when an earlier attempt may lie further back, the room's recent
// messages are looked through first. Errors are *channels.Error.
func (a *Adapter) Send(ctx context.Context, m channels.Outbound) (channels.Receipt, error) {
	r := decodeReply(m.Reply)
	if r.Interaction == nil {
		return a.sendMessage(ctx, m, r)
	}
	receipt, err := a.sendInteraction(ctx, m, *r.Interaction, r.Part)
	switch codeOf(err) {
	case codeInvalidToken, codeUnknownWebhook:
	default:
		return receipt, err
	}
	// The 15 minutes are over. Discord's clock decides that, not ours.
	if m.Uncertain {
		return channels.Receipt{}, &channels.Error{Kind: channels.Ambiguous, Err: errExpired}
	}
	return a.sendMessage(ctx, m, r)
}

// sendInteraction answers a slash command.
func (a *Adapter) sendInteraction(ctx context.Context, m channels.Outbound, t token, part int) (channels.Receipt, error) {
	if part == 0 {
		id, err := a.rest.editOriginal(ctx, t, m.PlainText())
		return receipt(id), err
	}
	if m.Uncertain {
		return channels.Receipt{}, &channels.Error{Kind: channels.Ambiguous, Err: errUnknown}
	}
	id, err := a.rest.createFollowup(ctx, t, m.PlainText())
	if e, ok := errors.AsType[*channels.Error](err); ok && e.Kind == channels.Transient && !errors.Is(err, errNotSent) {
		// It may have been accepted, and there is no key to ask with.
		err = &channels.Error{Kind: channels.Ambiguous, Err: e.Err}
	}
	return receipt(id), err
}

// sendMessage posts an ordinary message.
func (a *Adapter) sendMessage(ctx context.Context, m channels.Outbound, r reply) (channels.Receipt, error) {
	room, err := a.roomOf(ctx, m.To)
	if err != nil {
		return channels.Receipt{}, err
	}
	body := newMessage{Content: m.PlainText(), Nonce: nonce(m.ID), EnforceNonce: true, AllowedMentions: nobody}
	if m.Quote && r.Message != "" {
		body.Reference = &answered{MessageID: r.Message}
	}
	if asked := r.asked(); m.Uncertain || !asked.IsZero() && time.Since(asked) > nonceMemory {
		id, complete, err := a.find(ctx, room, r, body)
		switch {
		case err != nil:
			return channels.Receipt{}, err
		case id != "":
			return receipt(id), nil
		case m.Uncertain && !complete:
			return channels.Receipt{}, &channels.Error{Kind: channels.Ambiguous, Err: errUnknown}
		}
	}
	id, err := a.rest.createMessage(ctx, room, body)
	if body.Reference != nil && refersBadly(err) {
		body.Reference = nil
		id, err = a.rest.createMessage(ctx, room, body)
	}
	if codeOf(err) == codeUnknownMessage {
		// Discord knows the nonce, and the message was deleted since: it was said.
		return channels.Receipt{}, nil
	}
	return receipt(id), err
}

// refersBadly reports that Discord refused a message only for what it refers to: a system message, or one
// in a room whose history the bot may not read.
func refersBadly(err error) bool {
	e, ok := errors.AsType[*apiError](err)
	if !ok {
		return false
	}
	if e.code == codeNoHistory {
		return true
	}
	for _, f := range e.fields {
		if strings.HasPrefix(f, "message_reference") {
			return true
		}
	}
	return false
}

// find looks for an earlier attempt of a message among those that followed the one answered. complete
// reports that all of them were seen, so that it was surely not accepted.
func (a *Adapter) find(ctx context.Context, room string, r reply, want newMessage) (id string, complete bool, err error) {
	after := before(r)
	if after == "" {
		return "", false, nil
	}
	self, err := a.self(ctx)
	if err != nil {
		return "", false, err
	}
	seen := false
	for range searchPages {
		page, err := a.rest.messagesAfter(ctx, room, after)
		if err != nil {
			return "", false, err
		}
		for _, raw := range page {
			m, err := decodeMessage(raw)
			if err != nil {
				return "", false, &channels.Error{Kind: channels.Transient, Err: fmt.Errorf("read history: %w", err)}
			}
			if m.Author.ID == self && m.isAttempt(want) {
				return m.ID, true, nil
			}
			seen, after = true, m.ID
		}
		if len(page) < pageSize {
			// Without the right to read history Discord shows an empty room.
			return "", seen, nil
		}
	}
	return "", false, nil
}

// before is the ID just before the message answered, so that a search shows that one too; empty when none
// is answered.
func before(r reply) string {
	id := r.Message
	if r.Interaction != nil {
		id = r.Interaction.ID
	}
	n, err := strconv.ParseUint(id, 10, 64)
	if err != nil || n == 0 {
		return ""
	}
	return strconv.FormatUint(n-1, 10)
}

// isAttempt reports that a message of the bot is want. Discord does not promise to tell the nonce of a
// message read back; without it, the same words in answer to the same message are the sign.
func (m *message) isAttempt(want newMessage) bool {
	if m.Nonce.v != "" {
		return m.Nonce.v == want.Nonce
	}
	if want.Reference != nil && m.Reference.v.MessageID.v != "" && m.Reference.v.MessageID.v != want.Reference.MessageID {
		return false
	}
	return strings.TrimSpace(m.Content) == strings.TrimSpace(want.Content)
}

// roomOf is the Discord channel that an address means.
func (a *Adapter) roomOf(ctx context.Context, to channels.Address) (string, error) {
	switch {
	case to.Thread != "":
		return to.Thread, nil
	case to.Room != "":
		return to.Room, nil
	case to.User != "":
		return a.rest.openDM(ctx, to.User)
	}
	return "", &channels.Error{Kind: channels.Permanent, Err: errNowhere}
}

// Typing shows that the bot is at work, for ten seconds or until it sends.
func (a *Adapter) Typing(ctx context.Context, to channels.Address) error {
	room, err := a.roomOf(ctx, to)
	if err != nil {
		return err
	}
	return a.rest.typing(ctx, room)
}

// nonce is the idempotency key of a message: 24 of the 25 characters that Discord takes.
func nonce(id string) string {
	sum := sha256.Sum256([]byte(id))
	return base32.StdEncoding.EncodeToString(sum[:15])
}

func receipt(id string) channels.Receipt {
	if id == "" {
		return channels.Receipt{}
	}
	return channels.Receipt{MessageIDs: []string{id}}
}
