package linefake

import (
	"crypto/sha256"
	"encoding/json"
	"net/http"
	"slices"
	"time"
)

const (
	retryKeyHeader = "X-Line-Retry-Key"
	// retryKeyAge is how long a retry key is remembered (Retrying a failed API request).
	retryKeyAge = 24 * time.Hour
)

// sendBody is the body of reply, push and validate, whichever properties it has.
type sendBody struct {
	ReplyToken string            `json:"replyToken"`
	To         string            `json:"to"`
	Messages   []json.RawMessage `json:"messages"`
}

// readSend decodes and checks a body; allowed are its top-level properties.
func readSend(r *request, allowed ...string) (sendBody, []message, *answer) {
	var body sendBody
	var raw map[string]json.RawMessage
	if a := r.into(&raw); a != nil {
		return body, nil, a
	}
	for name := range raw {
		if !slices.Contains(allowed, name) {
			a := badProperty(name)
			return body, nil, &a
		}
	}
	if a := r.into(&body); a != nil {
		return body, nil, a
	}
	messages, details := checkMessages(body.Messages)
	if len(details) > 0 {
		a := badBody(details)
		return body, nil, &a
	}
	return body, messages, nil
}

func (s *Server) validate(r *request) answer {
	if _, _, bad := readSend(r, "messages"); bad != nil {
		return *bad
	}
	return ok(struct{}{})
}

func (s *Server) reply(r *request) answer {
	if _, sent := r.Header[retryKeyHeader]; sent {
		return refuse(http.StatusBadRequest, "The header, X-Line-Retry-Key, is not supported by this API")
	}
	body, messages, bad := readSend(r, "replyToken", "messages", "notificationDisabled")
	if bad != nil {
		return *bad
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	token := s.replies[body.ReplyToken]
	if token == nil || token.chat.Bot != r.bot || !token.valid(r.now) {
		return refuse(http.StatusBadRequest, InvalidReplyToken)
	}
	quotes, bad := token.chat.quotesOf(messages)
	if bad != nil {
		return *bad
	}
	token.used = true
	return ok(sentBody{token.chat.send(r, messages, quotes, Bubble{Via: Replied, Event: token.event})})
}

type sentBody struct {
	SentMessages []sentMessage `json:"sentMessages"`
}

// acceptedKey is a push that was accepted under a retry key.
type acceptedKey struct {
	request string
	sent    []sentMessage
	body    [sha256.Size]byte
	at      time.Time
}

func (s *Server) push(r *request) answer {
	key, keyed := r.Header[retryKeyHeader]
	if keyed && !isUUID(key[0]) {
		return refuse(http.StatusBadRequest, "The value of the header, X-Line-Retry-Key, is invalid")
	}
	body, messages, bad := readSend(r, "to", "messages", "notificationDisabled", "customAggregationUnits")
	if bad != nil {
		return *bad
	}
	if !isID(body.To, "UCR") {
		return badProperty("to")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	sum := sha256.Sum256(r.body)
	if keyed {
		if k, is := s.keys[r.bot.ID+key[0]]; is && r.now.Sub(k.at) < retryKeyAge {
			a := answer{status: http.StatusConflict, body: errorBody{Message: RetryKeyAccepted, SentMessages: k.sent}}
			a.header = http.Header{"X-Line-Accepted-Request-Id": {k.request}}
			if k.body != sum {
				a.note = "retry key used again for a different request"
			}
			return a
		}
	}
	chat := s.chats[chatKey{r.bot.ID, body.To}]
	switch {
	case chat == nil && s.users[body.To] == nil && body.To[0] == 'U':
		return badProperty("to")
	case chat == nil && body.To[0] != 'U', chat != nil && chat.blocked && !chat.direct():
		return refuse(http.StatusBadRequest, FailedToSend)
	case chat == nil:
		// LINE takes a push to a person who is no friend of the bot, and shows it to nobody.
		chat = &Chat{ID: body.To, Bot: r.bot, s: s, blocked: true}
	}
	quotes, bad := chat.quotesOf(messages)
	if bad != nil {
		return *bad
	}
	if !chat.blocked {
		recipients, used := len(chat.members), month(r.now)
		if q := r.bot.conf.Quota; q > 0 && r.bot.usage[used]+recipients > q {
			return refuse(http.StatusTooManyRequests, MonthlyLimit)
		}
		r.bot.usage[used] += recipients
	}
	sent := chat.send(r, messages, quotes, Bubble{Via: Pushed})
	if keyed {
		s.forgetKeys(r.now)
		s.keys[r.bot.ID+key[0]] = acceptedKey{request: r.id, sent: sent, body: sum, at: r.now}
	}
	return ok(sentBody{sent})
}

// forgetKeys drops the keys that are out of date, now and then.
func (s *Server) forgetKeys(now time.Time) {
	const enough = 8192
	if len(s.keys) < enough || len(s.keys)%1024 != 0 {
		return
	}
	for k, a := range s.keys {
		if now.Sub(a.at) >= retryKeyAge {
			delete(s.keys, k)
		}
	}
}

// quotesOf resolves the quote tokens of the messages. s.mu is held.
func (c *Chat) quotesOf(messages []message) ([]string, *answer) {
	quotes := make([]string, len(messages))
	for i, m := range messages {
		if m.QuoteToken == "" {
			continue
		}
		q, known := c.s.quotes[m.QuoteToken]
		if !known || q.chat != (chatKey{c.Bot.ID, c.ID}) {
			a := refuse(http.StatusBadRequest, "Invalid quote token")
			return nil, &a
		}
		quotes[i] = q.message
	}
	return quotes, nil
}

// send shows the messages. s.mu is held.
func (c *Chat) send(r *request, messages []message, quotes []string, b Bubble) []sentMessage {
	sent := make([]sentMessage, len(messages))
	for i, m := range messages {
		id := c.s.messageID()
		sent[i].ID = id
		if m.quotable() {
			sent[i].QuoteToken = c.quoteToken(id)
		}
		b.ID, b.From, b.At, b.Call, b.Unseen = id, c.Bot.ID, r.now, r.id, c.blocked
		b.Type, b.Text, b.Raw, b.Quotes = m.Type, m.caption(), m.raw, quotes[i]
		c.show(b)
	}
	return sent
}

// rate counts the calls of one second.
type rate struct {
	second int64
	calls  int
}

// admit counts the call against the rate limit of its endpoint.
func (s *Server) admit(ep Endpoint, r *request) bool {
	limit := s.opts.RatePerSecond
	if ep == LoadingStart {
		limit = min(limit, 100)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	key, second := r.bot.ID+string(ep), r.now.Unix()
	n := s.rates[key]
	if n.second != second {
		n = rate{second: second}
	}
	n.calls++
	s.rates[key] = n
	return n.calls <= limit
}
