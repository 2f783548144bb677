package line

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/line/line-bot-sdk-go/v8/linebot/messaging_api"

	"botd/channels"
)

// replyPause is the wait before a reply token is tried a second time.
const replyPause = 500 * time.Millisecond

var (
	errTokenSpent   = errors.New("reply token is used up or expired, and an earlier attempt may have used it")
	errUnknownReply = errors.New("nobody knows whether LINE accepted the reply")
)

// Send makes one call, by the rules of the package comment.
func (a *Adapter) Send(ctx context.Context, m channels.Outbound) (channels.Receipt, error) {
	h := decodeHandle(m.Reply)
	messages, err := messagesOf(m, h)
	if err != nil {
		return channels.Receipt{}, &channels.Error{Kind: channels.Permanent, Err: err}
	}
	if h.usable(time.Now()) {
		r, settled := a.reply(ctx, m, h, messages)
		if settled {
			return a.receipt(r)
		}
	} else if m.Once && m.Uncertain {
		return channels.Receipt{}, &channels.Error{Kind: channels.Ambiguous, Err: errTokenSpent}
	}
	return a.receipt(a.push(ctx, m, messages))
}

// sending is the outcome of a send: the IDs of what is shown, or an error.
type sending struct {
	sent []messaging_api.SentMessage
	err  *channels.Error
}

// receipt remembers what was sent, so that answers to it are known as such.
func (a *Adapter) receipt(s sending) (channels.Receipt, error) {
	if s.err != nil {
		return channels.Receipt{}, s.err
	}
	var r channels.Receipt
	for _, m := range s.sent {
		if isMessageID(m.Id) {
			r.MessageIDs = append(r.MessageIDs, m.Id)
		}
	}
	a.sent.add(r.MessageIDs...)
	return r, nil
}

// reply sends with the reply token. It is not settled when LINE has refused the token and no attempt
// before can have used it: the message may then be pushed.
func (a *Adapter) reply(ctx context.Context, m channels.Outbound, h handle, messages []messaging_api.MessageInterface) (s sending, settled bool) {
	doubt := m.Uncertain
	for try := range 2 {
		if try > 0 && !sleep(ctx, replyPause) {
			break
		}
		r := a.send(ctx, "reply", messages, func(api *messaging_api.MessagingApiAPI) (*http.Response, []messaging_api.SentMessage, error) {
			res, body, err := api.ReplyMessageWithHttpInfo(&messaging_api.ReplyMessageRequest{ReplyToken: h.Token, Messages: messages})
			if body == nil {
				return res, nil, err
			}
			return res, body.SentMessages, err
		})
		switch {
		case r.accepted():
			return sending{sent: r.sent}, true
		case !r.refused():
			doubt = true
			a.log.Warn("outcome of a reply is unknown", "delivery", m.ID, "try", try+1, "err", r.error(channels.Ambiguous))
		case r.reason == badReplyToken && !doubt:
			a.log.Info("reply token refused, sending a push", "delivery", m.ID)
			return sending{}, false
		case r.reason == badReplyToken:
			return sending{err: r.because(channels.Ambiguous, errTokenSpent)}, true
		case try == 0:
			// Nothing came of this attempt, whatever became of one before it.
			return sending{err: r.error(kindOf(r))}, true
		default:
			return sending{err: r.because(channels.Ambiguous, errUnknownReply)}, true
		}
	}
	return sending{err: &channels.Error{Kind: channels.Ambiguous, Err: errUnknownReply}}, true
}

// because returns the error of the call together with what follows from it.
func (r result) because(kind channels.ErrorKind, cause error) *channels.Error {
	e := r.error(kind)
	e.Err = fmt.Errorf("%w: %w", cause, e.Err)
	return e
}

// push sends without a token. The retry key makes it safe to do so again.
func (a *Adapter) push(ctx context.Context, m channels.Outbound, messages []messaging_api.MessageInterface) sending {
	r := a.send(ctx, "push", messages, func(api *messaging_api.MessagingApiAPI) (*http.Response, []messaging_api.SentMessage, error) {
		res, body, err := api.PushMessageWithHttpInfo(&messaging_api.PushMessageRequest{
			To: m.To.Room, Messages: messages,
			// The SDK writes null for a nil slice, which LINE's own description does not allow.
			CustomAggregationUnits: []string{},
		}, retryKey(a.info.Channel, m.ID))
		if body == nil {
			return res, nil, err
		}
		return res, body.SentMessages, err
	})
	if r.accepted() || r.status == http.StatusConflict {
		// 409: accepted before under the same key, with what was sent then.
		return sending{sent: r.sent}
	}
	return sending{err: r.error(kindOf(r))}
}

type sender func(*messaging_api.MessagingApiAPI) (*http.Response, []messaging_api.SentMessage, error)

// send makes a call that sends messages. When LINE refuses the quotation alone, as it may after the
// quoted message was taken back, the messages go without it.
func (a *Adapter) send(ctx context.Context, what string, messages []messaging_api.MessageInterface, do sender) result {
	var sent []messaging_api.SentMessage
	call := func() result {
		return a.api.call(ctx, what, func(api *messaging_api.MessagingApiAPI) (res *http.Response, err error) {
			res, sent, err = do(api)
			return res, err
		})
	}
	r := call()
	if r.status == http.StatusBadRequest && (r.reason == badQuoteToken || r.property == quoteProperty) && dropQuote(messages) {
		r = call()
	}
	if r.accepted() {
		r.sent = sent
	}
	return r
}

// quoteProperty is where messagesOf puts the quotation.
const quoteProperty = "messages[0].quoteToken"

// dropQuote removes the quotation and reports whether there was one.
func dropQuote(messages []messaging_api.MessageInterface) bool {
	text, is := messages[0].(*messaging_api.TextMessage)
	if !is || text.QuoteToken == "" {
		return false
	}
	text.QuoteToken = ""
	return true
}

// messagesOf turns the parts of a composed send into message objects. They are pointers, because the
// SDK loses the type of nested values.
func messagesOf(m channels.Outbound, h handle) ([]messaging_api.MessageInterface, error) {
	switch {
	case m.ID == "":
		return nil, errors.New("send: the message has no ID")
	case !isID(m.To.Room, 'U') && !isID(m.To.Room, 'C') && !isID(m.To.Room, 'R'):
		return nil, errors.New("send: the room is not a user, group or room ID of LINE")
	case len(m.Parts) == 0 || len(m.Parts) > maxBubbles:
		return nil, fmt.Errorf("send: %d parts, a call takes 1 to %d: send what Compose returns", len(m.Parts), maxBubbles)
	}
	messages := make([]messaging_api.MessageInterface, len(m.Parts))
	for i, p := range m.Parts {
		if p.Type != channels.Text {
			return nil, fmt.Errorf("send: part %d is not text: send what Compose returns", i)
		}
		text := &messaging_api.TextMessage{Text: p.Text}
		if i == 0 && m.Quote {
			text.QuoteToken = h.Quote
		}
		messages[i] = text
	}
	return messages, nil
}

// retryKey derives the UUID (RFC 9562, version 8) of a delivery, the same at every attempt and after
// every restart.
func retryKey(channel, id string) string {
	sum := sha256.Sum256([]byte("line retry key\x00" + channel + "\x00" + id))
	sum[6] = sum[6]&0x0f | 0x80
	sum[8] = sum[8]&0x3f | 0x80
	h := hex.EncodeToString(sum[:16])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

// sleep reports whether it lasted as long as it should.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
