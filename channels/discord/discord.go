package discord

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bwmarrin/discordgo"

	"botd/channels"
)

// DefaultAPIBase is where Discord is.
const DefaultAPIBase = "https://discord.com"

// typingEvery keeps the sign of work up: Discord shows it for ten seconds. (Discord documentation,
// Channel, Trigger Typing Indicator.)
const typingEvery = 8 * time.Second

// Options configures an Adapter.
type Options struct {
	// Channel is the configured name of the bot account.
	Channel string
	// Token is the bot token, with or without "Bot " before it.
	Token string
	// APIBase stands for https://discord.com, which it is when empty. It steers the gateway too: its address
	// is asked for there.
	APIBase string
	// MessageContent asks for the privileged intent of that name, which shows the bot every message of a
	// room. Without it Discord shows only direct messages and those that mention the bot.
	MessageContent bool
	// Commands are the slash commands to offer; DefaultCommands when nil. An empty list that is not nil
	// leaves those registered as they are.
	Commands []Command
	// Cursor keeps how far was read; see there. May be nil.
	Cursor Cursor
	// CatchUp is how far back to look for direct messages and mentions that came during an outage:
	// DefaultCatchUp when 0, not at all when negative.
	CatchUp time.Duration
	// Dial opens connections, to the REST API and to the gateway alike; a net.Dialer's when nil. A proxy named
	// by the environment (HTTPS_PROXY) is reached by it too.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// Logger takes what the operator should know; nothing is logged when nil. Tokens and message text are
	// never logged.
	Logger *slog.Logger
}

// Adapter is one bot account on Discord. Create it with New.
type Adapter struct {
	channel        string
	token          string
	messageContent bool
	commands       []Command
	dialer         dialer
	log            *slog.Logger
	rest           *client
	dir            *directory
	intake         *intake
	health         *health
	cursor         Cursor
	reach          time.Duration
	read           *positions
	round          atomic.Pointer[round] // the newest catch-up
	acks           chan struct{}         // bounds the acknowledgements under way
	tasks          sync.WaitGroup

	appMu sync.Mutex
	app   application // ID is empty before it is known

	// sink is set by Run; identifiedAt belongs to the supervisor.
	sink         channels.Sink
	identifiedAt time.Time
}

var (
	_ channels.Adapter = (*Adapter)(nil)
	_ channels.Typer   = (*Adapter)(nil)
)

// New checks the options. It does no I/O.
func New(o Options) (*Adapter, error) {
	if o.Channel == "" {
		return nil, errors.New("discord: the channel has no name")
	}
	token := strings.TrimPrefix(o.Token, "Bot ")
	if token == "" || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, fmt.Errorf("discord: the token of channel %q is empty or holds characters that no token has", o.Channel)
	}
	if o.APIBase == "" {
		o.APIBase = DefaultAPIBase
	}
	base, err := url.Parse(strings.TrimSuffix(o.APIBase, "/"))
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Host == "" || base.RawQuery != "" {
		return nil, fmt.Errorf("discord: the API base of channel %q is no http or https address", o.Channel)
	}
	if o.Dial == nil {
		o.Dial = (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.CatchUp == 0 {
		o.CatchUp = DefaultCatchUp
	}
	if o.Commands == nil {
		o.Commands = DefaultCommands()
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DialContext = o.Dial
	transport.MaxIdleConnsPerHost = 16
	return &Adapter{
		channel:        o.Channel,
		token:          token,
		messageContent: o.MessageContent,
		commands:       o.Commands,
		dialer:         dialer{dial: o.Dial, proxy: transport.Proxy, tls: &tls.Config{MinVersion: tls.VersionTLS12}},
		log:            o.Logger.With("channel", o.Channel),
		rest: &client{
			base: base, token: token, agent: userAgent, limits: newLimits(),
			http: &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
		},
		dir:    newDirectory(),
		intake: newIntake(),
		health: newHealth(),
		cursor: o.Cursor,
		reach:  o.CatchUp,
		read:   newPositions(),
		acks:   make(chan struct{}, ackLimit),
	}, nil
}

// userAgent has the form that Discord asks for. (Discord documentation, Reference, User Agent.)
const userAgent = "DiscordBot (https://github.com/bwmarrin/discordgo, v" + discordgo.VERSION + ") botd"

// Info returns fixed facts.
func (a *Adapter) Info() channels.Info {
	return channels.Info{Channel: a.channel, Platform: "discord", TypingEvery: typingEvery}
}

// Run receives events until ctx ends, and returns nil then. Its errors are ErrToken, ErrIntent,
// ErrSharding and ErrProtocol, wrapped with what to do. It returns after all of its goroutines have ended.
func (a *Adapter) Run(ctx context.Context, sink channels.Sink) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	work, abandon := context.WithCancel(context.WithoutCancel(ctx))
	defer abandon()

	a.sink = sink
	if a.loadCursor(ctx) != nil {
		return nil
	}
	worked := make(chan struct{})
	go func() {
		defer close(worked)
		a.work(work, ctx.Done())
	}()
	if a.cursor != nil {
		a.tasks.Go(func() { a.keepCursor(context.WithoutCancel(ctx), worked) })
	}
	if len(a.commands) > 0 {
		a.tasks.Go(func() { a.keepCommands(ctx) })
	}

	err := a.supervise(ctx)
	stop()
	a.intake.close()
	grace := time.AfterFunc(drainWait, abandon)
	<-worked
	grace.Stop()
	a.tasks.Wait()
	a.health.down(errFinished)
	a.rest.http.CloseIdleConnections()
	return err
}

// keepCommands registers the commands once, however often it takes.
func (a *Adapter) keepCommands(ctx context.Context) {
	for n := 1; ; n++ {
		if a.health.waitUp(ctx) != nil {
			return
		}
		err := contained(func() error { return a.registerCommands(ctx) })
		if err == nil || ctx.Err() != nil {
			return
		}
		a.log.Warn("slash commands not registered", "attempt", n, "err", err)
		if k := channels.KindOf(err); k != channels.Transient && k != channels.RateLimited || sleep(ctx, max(backoff(n), retryAfter(err))) != nil {
			return
		}
	}
}

// identity returns the application behind the token, asked for once.
func (a *Adapter) identity(ctx context.Context) (application, error) {
	a.appMu.Lock()
	defer a.appMu.Unlock()
	if a.app.ID != "" {
		return a.app, nil
	}
	app, err := a.rest.application(ctx)
	if err != nil {
		return application{}, err
	}
	if !isSnowflake(app.ID) {
		return application{}, &channels.Error{Kind: channels.Transient, Err: errors.New("discord names no application")}
	}
	a.app = app
	return app, nil
}

// self returns the bot's user ID.
func (a *Adapter) self(ctx context.Context) (string, error) {
	if id := a.dir.me(); id != "" {
		return id, nil
	}
	app, err := a.identity(ctx)
	if err != nil {
		return "", err
	}
	if app.Bot.ID == "" {
		return app.ID, nil
	}
	return app.Bot.ID, nil
}

// Application flags that grant MESSAGE_CONTENT; small bots have the limited one. (Discord documentation,
// Application, Application Flags.)
const contentFlags = 1<<18 | 1<<19

// preflight finds out before the first login what would make it fail.
func (a *Adapter) preflight(ctx context.Context) error {
	app, err := a.identity(ctx)
	if err != nil {
		return fmt.Errorf("ask for the application: %w", a.explain(err))
	}
	if a.messageContent && app.Flags&contentFlags == 0 {
		return a.fatal(4014)
	}
	return nil
}
