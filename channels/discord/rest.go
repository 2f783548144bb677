package discord

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"botd/channels"
)

const (
	apiVersion = "v10"
	// answerLimit bounds what is read of one answer: 100 messages with all their embeds fit.
	answerLimit = 8 << 20
	// callWait bounds one request beside the caller's own context.
	callWait = 20 * time.Second
)

// client calls Discord's REST API. discordgo's own client is not used: it sleeps through rate limits
// without regard to the context, sends a request again without an idempotency key, knows neither nonces
// nor the global limit, and keeps a lock per room while it waits. This one makes one attempt and says what
// came of it; repetition is the caller's. Safe for concurrent use.
type client struct {
	base   *url.URL
	token  string
	agent  string
	http   *http.Client
	limits *limits
}

// request is one call.
type request struct {
	method string
	// route is the path with the placeholder {} for what is not part of the rate limit; major is the
	// top-level resource that has limits of its own.
	route, major string
	path         string // escaped, behind the version
	query        string
	// anonymous leaves the bot token out: an interaction's token in the path is the right.
	anonymous bool
	body      any
}

// do makes the call and decodes the answer into out unless that is nil. Errors are *channels.Error around
// an *apiError where Discord answered; they hold no path, no text and no token.
func (c *client) do(ctx context.Context, r request, out any) error {
	if wait := c.limits.wait(r); wait > 0 {
		return &channels.Error{Kind: channels.RateLimited, RetryAfter: wait, Err: errHeldBack}
	}
	ctx, cancel := context.WithTimeout(ctx, callWait)
	defer cancel()
	var body io.Reader
	if r.body != nil {
		b, err := json.Marshal(r.body)
		if err != nil {
			return &channels.Error{Kind: channels.Permanent, Err: errors.New("encode request")}
		}
		body = bytes.NewReader(b)
	}
	u := *c.base
	u.RawPath = u.EscapedPath() + "/api/" + apiVersion + r.path
	u.Path, _ = url.PathUnescape(u.RawPath)
	u.RawQuery = r.query
	req, err := http.NewRequestWithContext(ctx, r.method, u.String(), body)
	if err != nil {
		return &channels.Error{Kind: channels.Permanent, Err: errors.New("build request")}
	}
	req.Header.Set("User-Agent", c.agent)
	if !r.anonymous {
		req.Header.Set("Authorization", "Bot "+c.token)
	}
	if r.body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return unreachable(err)
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, answerLimit))
	if err != nil {
		return unreachable(err)
	}
	failure := readAnswer(resp, answer, r.anonymous)
	c.limits.learn(r, resp, failure)
	if failure != nil {
		return failure
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(answer, out); err != nil {
		// Done, but what came back cannot be read: the same call may tell more another time.
		return &channels.Error{Kind: channels.Transient, Err: fmt.Errorf("read answer: %w", err)}
	}
	return nil
}

var errHeldBack = errors.New("held back within a known rate limit")

// errNotSent marks a failure before anything could be sent.
var errNotSent = errors.New("not connected")

// unreachable is a failure of the way to Discord. The URL around it would tell the path.
func unreachable(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err
	}
	if e, ok := errors.AsType[*net.OpError](err); ok && e.Op == "dial" {
		err = fmt.Errorf("%w: %w", errNotSent, err)
	}
	return &channels.Error{Kind: channels.Transient, Err: fmt.Errorf("reach discord: %w", err)}
}

// gatewayBot is the answer of GET /gateway/bot.
type gatewayBot struct {
	URL    string `json:"url"`
	Shards int    `json:"shards"`
	Limit  struct {
		Total      int   `json:"total"`
		Remaining  int   `json:"remaining"`
		ResetAfter int64 `json:"reset_after"` // milliseconds
	} `json:"session_start_limit"`
}

func (c *client) gatewayBot(ctx context.Context) (g gatewayBot, err error) {
	err = c.do(ctx, request{method: http.MethodGet, route: "/gateway/bot", path: "/gateway/bot"}, &g)
	return g, err
}

// trusts reports that the bot token may be sent to a gateway: over TLS, unless the API itself has none.
func (c *client) trusts(gateway string) bool {
	return strings.HasPrefix(gateway, "wss://") || c.base.Scheme == "http" && strings.HasPrefix(gateway, "ws://")
}

// application is the answer of GET /applications/@me.
type application struct {
	ID    string `json:"id"`
	Flags int64  `json:"flags"`
	Bot   user   `json:"bot"`
}

func (c *client) application(ctx context.Context) (app application, err error) {
	err = c.do(ctx, request{method: http.MethodGet, route: "/applications/@me", path: "/applications/@me"}, &app)
	return app, err
}

func (c *client) room(ctx context.Context, id string) (r room, err error) {
	err = c.do(ctx, inRoom(http.MethodGet, id, "", nil), &r)
	if err == nil && r.ID != id {
		err = &channels.Error{Kind: channels.Permanent, Err: errors.New("discord answered with another room")}
	}
	return r, err
}

// inRoom is a request below /channels/{id}.
func inRoom(method, id, rest string, body any) request {
	return request{method: method, route: "/channels/{}" + rest, major: id, path: "/channels/" + url.PathEscape(id) + rest, body: body}
}

// openDM returns the direct chat with a person. It may be called again without harm.
func (c *client) openDM(ctx context.Context, userID string) (string, error) {
	var r room
	err := c.do(ctx, request{method: http.MethodPost, route: "/users/@me/channels", path: "/users/@me/channels", body: map[string]string{"recipient_id": userID}}, &r)
	return r.ID, err
}

func (c *client) typing(ctx context.Context, room string) error {
	return c.do(ctx, inRoom(http.MethodPost, room, "/typing", nil), nil)
}

// mentions is allowed_mentions: with an empty parse and nobody named, a message notifies nobody. Left out,
// Discord would notify everybody that the text names.
type mentions struct {
	Parse       []string `json:"parse"`
	RepliedUser bool     `json:"replied_user"`
}

var nobody = mentions{Parse: []string{}}

// newMessage is the body of Create Message.
type newMessage struct {
	Content         string    `json:"content"`
	Nonce           string    `json:"nonce"`
	EnforceNonce    bool      `json:"enforce_nonce"`
	AllowedMentions mentions  `json:"allowed_mentions"`
	Reference       *answered `json:"message_reference,omitempty"`
}

// answered makes a message a reply. Without FailIfNotExists a deleted original would fail the answer.
type answered struct {
	MessageID       string `json:"message_id"`
	FailIfNotExists bool   `json:"fail_if_not_exists"`
}

func (c *client) createMessage(ctx context.Context, room string, m newMessage) (id string, err error) {
	var created struct {
		ID string `json:"id"`
	}
	err = c.do(ctx, inRoom(http.MethodPost, room, "/messages", m), &created)
	return created.ID, err
}

// messagesAfter returns up to 100 messages that follow a message, oldest first.
func (c *client) messagesAfter(ctx context.Context, room, after string) ([]json.RawMessage, error) {
	var page []json.RawMessage
	r := inRoom(http.MethodGet, room, "/messages", nil)
	r.query = url.Values{"after": {after}, "limit": {strconv.Itoa(pageSize)}}.Encode()
	if err := c.do(ctx, r, &page); err != nil {
		return nil, err
	}
	for i, j := 0, len(page)-1; i < j; i, j = i+1, j-1 {
		page[i], page[j] = page[j], page[i]
	}
	return page, nil
}

const pageSize = 100

func (c *client) deferInteraction(ctx context.Context, id, tok string) error {
	type data struct {
		Flags int `json:"flags"`
	}
	return c.do(ctx, request{
		method: http.MethodPost, route: "/interactions/{}/{}/callback", anonymous: true,
		path: "/interactions/" + url.PathEscape(id) + "/" + url.PathEscape(tok) + "/callback",
		body: struct {
			Type int  `json:"type"`
			Data data `json:"data"`
		}{5, data{flagEphemeral}},
	}, nil)
}

// followup is the body of an answer to an interaction.
type followup struct {
	Content         string   `json:"content"`
	AllowedMentions mentions `json:"allowed_mentions"`
	// Flags make a further message as private as the first.
	Flags int `json:"flags,omitempty"`
}

// editOriginal replaces the acknowledgement of an interaction. It may be repeated.
func (c *client) editOriginal(ctx context.Context, t token, text string) (id string, err error) {
	return c.answerInteraction(ctx, t, http.MethodPatch, "/messages/@original", followup{Content: text, AllowedMentions: nobody})
}

// createFollowup adds a message to the answer. Discord has no idempotency key for it.
func (c *client) createFollowup(ctx context.Context, t token, text string) (id string, err error) {
	return c.answerInteraction(ctx, t, http.MethodPost, "", followup{Content: text, AllowedMentions: nobody, Flags: flagEphemeral})
}

func (c *client) answerInteraction(ctx context.Context, t token, method, rest string, body followup) (string, error) {
	var m struct {
		ID string `json:"id"`
	}
	err := c.do(ctx, request{
		method: method, route: "/webhooks/{}/{}" + rest, major: t.ID, anonymous: true,
		path: "/webhooks/" + url.PathEscape(t.App) + "/" + url.PathEscape(t.Token) + rest, body: body,
	}, &m)
	return m.ID, err
}

func (c *client) commands(ctx context.Context, app string) (registered []registeredCommand, err error) {
	r := request{method: http.MethodGet, route: "/applications/{}/commands", path: "/applications/" + url.PathEscape(app) + "/commands", query: "with_localizations=true"}
	err = c.do(ctx, r, &registered)
	return registered, err
}

func (c *client) overwriteCommands(ctx context.Context, app string, list []commandBody) error {
	r := request{method: http.MethodPut, route: "/applications/{}/commands", path: "/applications/" + url.PathEscape(app) + "/commands", body: list}
	return c.do(ctx, r, nil)
}
