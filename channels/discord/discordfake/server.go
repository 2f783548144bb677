package discordfake

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"
)

// DefaultToken is the bot token that a Server accepts when Options names none.
const DefaultToken = "fake-discord-token"

// Options configures a Server. The zero value is an unverified bot without privileged intents, on a
// loopback port, with Discord's real limits.
type Options struct {
	// Token is the bot token that is accepted; DefaultToken when empty.
	Token string
	// BotName is the bot's user name; "botd" when empty.
	BotName string
	// Listener is where to serve; a free port of 127.0.0.1 when nil.
	Listener net.Listener
	// Secure tells that Listener speaks TLS: the server then names https and wss addresses.
	Secure bool
	// Heartbeat is the interval that HELLO asks for; 41.25 s when 0.
	Heartbeat time.Duration
	// Privileged are the privileged intents switched on for the application in the developer portal.
	Privileged Intent
	// Identifies is how many IDENTIFYs are left today, of 1000; 1000 when 0.
	Identifies int
	// HistoryNonce makes messages read back by REST carry their nonce. Discord does not promise that.
	HistoryNonce bool
	// NoLimits turns the rate limits of the REST API off.
	NoLimits bool
	// Made is when the bot and what is added before the first message were made: their IDs are counted from
	// it, and so they are the same in every run that adds the same in the same order. Now when zero.
	Made time.Time
}

// Server is one Discord. Create it with New and end it with Close.
type Server struct {
	opts  Options
	ln    net.Listener
	http  *http.Server
	mux   *http.ServeMux
	conns sync.WaitGroup
	serve sync.WaitGroup

	mu     sync.Mutex
	closed bool
	lastID int64
	made   bool // Options.Made is past, IDs are of now from here on
	world  world
	hub    hub
	rest   restState
	inter  interactionState
	watch  map[*mailbox[Change]]struct{}
}

// New starts a server.
func New(o Options) (*Server, error) {
	if o.Token == "" {
		o.Token = DefaultToken
	}
	if o.BotName == "" {
		o.BotName = "botd"
	}
	if o.Heartbeat == 0 {
		o.Heartbeat = 41250 * time.Millisecond
	}
	if o.Identifies == 0 {
		o.Identifies = identifyTotal
	}
	ln := o.Listener
	if ln == nil {
		var err error
		if ln, err = new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0"); err != nil {
			return nil, fmt.Errorf("listen: %w", err)
		}
	}
	s := &Server{opts: o, ln: ln, watch: map[*mailbox[Change]]struct{}{}}
	s.made = o.Made.IsZero()
	if !s.made {
		s.lastID = (o.Made.UnixMilli() - discordEpoch) << 22
	}
	s.world = newWorld()
	s.hub = newHub(o.Identifies)
	s.rest = newRESTState()
	s.inter = interactionState{byToken: map[string]*interaction{}}
	bot := User{ID: s.newID(), Username: o.BotName, Discriminator: "0000", Bot: true}
	s.world.bot, s.world.appID = bot, bot.ID
	s.world.users[bot.ID] = &person{user: bot}

	s.mux = http.NewServeMux()
	s.routes()
	top := http.NewServeMux()
	top.HandleFunc("/api/", s.serveAPI)
	top.HandleFunc("/gateway", s.serveGateway)
	top.HandleFunc("/gateway/", s.serveGateway)
	s.http = &http.Server{Handler: top, ReadHeaderTimeout: 10 * time.Second, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)}
	s.serve.Go(func() { _ = s.http.Serve(ln) })
	return s, nil
}

// URL is the base that stands for https://discord.com.
func (s *Server) URL() string { return "http" + s.secure() + "://" + s.ln.Addr().String() }

func (s *Server) secure() string {
	if s.opts.Secure {
		return "s"
	}
	return ""
}

// Close ends every connection and waits until nothing of the server runs any more.
func (s *Server) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return errors.New("discordfake: already closed")
	}
	s.closed = true
	for c := range s.hub.conns {
		c.drop()
	}
	for w := range s.watch {
		w.end()
	}
	s.mu.Unlock()
	err := s.http.Close()
	s.serve.Wait()
	s.conns.Wait()
	return err
}

// Bot is the bot's own user; its ID is the application's ID too.
func (s *Server) Bot() User { return s.world.bot }

// discordEpoch is the first millisecond of a snowflake. (Discord documentation, Reference, Snowflakes.)
const discordEpoch = 1420070400000

// newID returns the next snowflake. The caller holds s.mu, or is New.
func (s *Server) newID() string {
	if !s.made {
		s.lastID++
		return strconv.FormatInt(s.lastID, 10)
	}
	id := max((time.Now().UnixMilli()-discordEpoch)<<22, s.lastID+1)
	s.lastID = id
	return strconv.FormatInt(id, 10)
}

// newer reports whether snowflake a was made after b; an empty b is older than all.
func newer(a, b string) bool {
	if len(a) != len(b) {
		return len(a) > len(b)
	}
	return a > b
}

// Requests returns the REST requests recorded so far, oldest first; only the newest few thousand are kept.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.rest.requests)
}
