package line

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/line/line-bot-sdk-go/v8/linebot/messaging_api"
	"golang.org/x/time/rate"

	"botd/channels"
)

// Options configures an Adapter. Channel, Secret and one of Token and Tokens are required.
type Options struct {
	// Channel is the configured name of the bot account ("line-shop").
	Channel string
	// Secret is the channel secret, with which LINE signs webhooks.
	Secret string
	// Token is a long-lived channel access token. Tokens gives tokens instead, see NewStatelessTokens.
	Token  string
	Tokens TokenSource
	// Destination is the bot's user ID (U…), if it is known; Run and the first webhook find it out.
	Destination string
	// APIBase and DataBase are the bases of the API and of the content endpoints, https or loopback;
	// empty for LINE's own.
	APIBase, DataBase string
	// HTTPClient makes the calls; nil for a client with sensible limits. Redirects are never followed,
	// and a client without a timeout gets one.
	HTTPClient *http.Client
	// MaxMedia is the longest content that OpenMedia delivers, in bytes; 0 for 20 MiB.
	MaxMedia int64
	// Logger takes what an operator may want to know; nil for none.
	Logger *slog.Logger
}

// Adapter is one bot account on LINE.
type Adapter struct {
	info   channels.Info
	secret string
	log    *slog.Logger
	api    *client

	destination atomic.Pointer[string]
	sent        sentSet
	profiles    profileCache
	external    *http.Client
	maxMedia    int64
	stats       counters
	// forged keeps strangers who try the webhook from filling the log.
	forged rate.Sometimes
}

var (
	_ channels.Adapter  = (*Adapter)(nil)
	_ channels.Webhook  = (*Adapter)(nil)
	_ channels.Typer    = (*Adapter)(nil)
	_ channels.Profiler = (*Adapter)(nil)
)

// New returns an adapter; no I/O.
func New(o Options) (*Adapter, error) {
	if o.Channel == "" {
		return nil, errors.New("line: the channel has no name: set Channel")
	}
	fault := func(format string, args ...any) error {
		return fmt.Errorf("line channel %q: "+format, append([]any{o.Channel}, args...)...)
	}
	switch {
	case o.Secret == "":
		// An empty secret would verify any signature made with an empty secret: anybody could forge events.
		return nil, fault("no channel secret: copy it from the console's Basic settings tab")
	case o.Token == "" && o.Tokens == nil:
		return nil, fault("no channel access token: issue one on the console's Messaging API tab")
	case o.Token != "" && o.Tokens != nil:
		return nil, fault("both an access token and a token source: set one of them")
	case o.Destination != "" && !isID(o.Destination, 'U'):
		return nil, fault("destination is not a bot's user ID: it is U and 32 hexadecimal digits")
	}
	if o.Tokens == nil {
		o.Tokens = staticToken(o.Token)
	}
	api, err := newClient(o)
	if err != nil {
		return nil, fault("%w", err)
	}
	a := &Adapter{
		info:   channels.Info{Channel: o.Channel, Platform: "line", TypingEvery: typingEvery},
		secret: o.Secret,
		log:    o.Logger,
		api:    api,
		forged: rate.Sometimes{First: 3, Interval: time.Minute},

		external: newExternalClient(),
		maxMedia: o.MaxMedia,
	}
	if a.maxMedia <= 0 {
		a.maxMedia = defaultMaxMedia
	}
	if a.log == nil {
		a.log = slog.New(slog.DiscardHandler)
	}
	a.log = a.log.With("channel", o.Channel)
	if o.Destination != "" {
		a.destination.Store(&o.Destination)
	}
	return a, nil
}

// Info returns fixed facts.
func (a *Adapter) Info() channels.Info { return a.info }

// The waits between attempts to learn who the bot is.
const (
	firstInfoRetry = 5 * time.Second
	maxInfoRetry   = 5 * time.Minute
)

// Run learns the bot's identity from LINE, checks that webhooks are addressed to it, and waits for ctx;
// events come in by the webhook. While LINE cannot be reached it goes on trying, as everything else
// works without. It fails when LINE refuses the access token, or when token and secret belong to
// different bots.
func (a *Adapter) Run(ctx context.Context, _ channels.Sink) error {
	for wait := firstInfoRetry; ; wait = min(2*wait, maxInfoRetry) {
		err := a.identify(ctx)
		if err == nil {
			<-ctx.Done()
			return nil
		}
		if ctx.Err() != nil {
			return nil //nolint:nilerr // the end of ctx is the regular end
		}
		if channels.KindOf(err) == channels.Unauthorized {
			return fmt.Errorf("run line channel %q: %w", a.info.Channel, err)
		}
		a.log.Warn("bot info not available", "err", err, "retry_in", wait)
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil
		}
	}
}

var errOtherBot = errors.New("access token and webhooks belong to different bots: take channel secret and access token from the same channel")

// identify asks LINE which bot the access token belongs to.
func (a *Adapter) identify(ctx context.Context) error {
	var info *messaging_api.BotInfoResponse
	r := a.api.call(ctx, "get bot info", func(api *messaging_api.MessagingApiAPI) (res *http.Response, err error) {
		res, info, err = api.GetBotInfoWithHttpInfo()
		return res, err
	})
	switch {
	case !r.accepted():
		return r.error(kindOf(r))
	case info == nil || !isID(info.UserId, 'U'):
		return &channels.Error{Kind: channels.Transient, Err: errors.New("get bot info: answer without a user ID")}
	case !a.learn(info.UserId):
		return &channels.Error{Kind: channels.Unauthorized, Err: errOtherBot}
	}
	a.log.Info("bot identified", "bot", info.UserId, "chat_mode", safeWord(string(info.ChatMode)))
	return nil
}

// learn keeps the bot's user ID, or compares it to the one that is known.
func (a *Adapter) learn(destination string) (same bool) {
	if a.destination.CompareAndSwap(nil, &destination) {
		return true
	}
	return *a.destination.Load() == destination
}

// isID reports whether id is the letter and 32 lower-case hexadecimal digits, as LINE's user, group and
// room IDs are. IDs are case-sensitive.
func isID(id string, letter byte) bool {
	if len(id) != 33 || id[0] != letter {
		return false
	}
	for i := 1; i < len(id); i++ {
		if c := id[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// isMessageID reports whether id is a run of decimal digits, as LINE's message IDs are. Anything else
// must not get into the path of a request.
func isMessageID(id string) bool {
	for i := range len(id) {
		if id[i] < '0' || id[i] > '9' {
			return false
		}
	}
	return len(id) > 0 && len(id) <= 64
}

// safeWord returns s if it is a short word of letters, as LINE's enumerations are, and is thus fit for
// a log whatever the sender put there.
func safeWord(s string) string {
	if len(s) == 0 || len(s) > 32 {
		return "unknown"
	}
	for i := range len(s) {
		if c := s[i] | 0x20; c < 'a' || c > 'z' {
			return "unknown"
		}
	}
	return s
}
