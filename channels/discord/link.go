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
	"runtime"
	"sync/atomic"
	"time"

	"github.com/bwmarrin/discordgo"
	"github.com/gorilla/websocket"
)

const (
	// openWait bounds one Open: the handshake, HELLO and READY.
	openWait = 30 * time.Second
	// graceWait is how long discordgo gets to return after its connection was cut. It sleeps for one
	// second in Close.
	graceWait = 5 * time.Second
)

// link is one discordgo session: one gateway session, over one connection after another. It is used by
// the supervisor's goroutine alone, but for what is marked.
type link struct {
	dg   *discordgo.Session
	down func(error)          // told when a connection is over
	wire atomic.Pointer[wire] // the newest connection, nil before it is dialled; for all goroutines
	ctx  context.Context      // of the newest Open, for its dialling

	// ready is set once READY was seen: from then on Open resumes. alive is set by READY and RESUMED and
	// taken back with each Open. Both are set by discordgo's goroutines.
	ready, alive atomic.Bool
	// failures counts resumes in a row that came to nothing.
	failures int
	// limit and grace are openWait and graceWait.
	limit, grace time.Duration
}

// newLink prepares a session that asks for the gateway at url. Nothing is sent yet.
func (a *Adapter) newLink(ctx context.Context, url string) (*link, error) {
	dg, err := discordgo.New("Bot " + a.token)
	if err != nil {
		return nil, fmt.Errorf("create discord session: %w", err)
	}
	l := &link{dg: dg, down: a.health.down, limit: openWait, grace: graceWait}
	dg.Identify.Intents = a.intents()
	// Payload compression would hide from the wire what it must see.
	dg.Compress = false
	dg.StateEnabled = false
	dg.SyncEvents = true
	dg.ShouldReconnectOnError = false
	dg.ShouldRetryOnRateLimit = false
	dg.MaxRestRetries = 0
	// Silent: at its lower levels the library logs the token and message text.
	dg.LogLevel = -1
	dg.Client = &http.Client{Transport: gatewayAnswer(url)}
	dg.Dialer = &websocket.Dialer{
		HandshakeTimeout: openWait,
		NetDialContext: func(_ context.Context, network, addr string) (net.Conn, error) {
			return l.dial(a.dialer, network, addr, false)
		},
		NetDialTLSContext: func(_ context.Context, network, addr string) (net.Conn, error) {
			return l.dial(a.dialer, network, addr, true)
		},
	}
	dg.AddHandler(func(_ *discordgo.Session, e *discordgo.Event) { a.onEvent(ctx, l, e.Type, e.RawData) })
	return l, nil
}

// gatewayAnswer answers the only REST request that discordgo makes, for the gateway's address, without
// asking again what the supervisor has just learned.
type gatewayAnswer string

// RoundTrip answers GET /gateway and refuses everything else.
func (url gatewayAnswer) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.String() != discordgo.EndpointGateway {
		return nil, errors.New("unexpected request by the discord library")
	}
	body, err := json.Marshal(map[string]string{"url": string(url)})
	if err != nil {
		return nil, err
	}
	return &http.Response{
		Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(body)), Request: r,
	}, nil
}

// dial opens the connection that the web socket runs over.
func (l *link) dial(d dialer, network, addr string, secure bool) (net.Conn, error) {
	c, err := d.open(l.ctx, network, addr, secure)
	if err != nil {
		return nil, err
	}
	w := newWire(c, l.down)
	l.wire.Store(w)
	if l.ctx.Err() != nil {
		w.end(errCutOff)
	}
	return w, nil
}

// open connects, and identifies or resumes. Its error is the cause of the failure as the wire saw it. When
// usable is false the library did not return, and the link must be thrown away.
func (l *link) open(ctx context.Context) (usable bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, l.limit)
	defer cancel()
	l.ctx = ctx
	l.wire.Store(nil)
	l.alive.Store(false)
	done := make(chan error, 1)
	go func() { done <- contained(l.dg.Open) }()
	select {
	case err = <-done:
	case <-ctx.Done():
		if w := l.wire.Load(); w != nil {
			w.end(errCutOff)
		}
		t := time.NewTimer(l.grace)
		defer t.Stop()
		select {
		case err = <-done:
		case <-t.C:
			return false, errCutOff
		}
	}
	if cause, _ := l.state(); err != nil && cause != nil && !errors.Is(cause, net.ErrClosed) {
		err = cause
	}
	return true, err
}

// wait returns once the connection is over, with its cause. When ctx ends first it says goodbye.
func (l *link) wait(ctx context.Context) (usable bool, err error) {
	w := l.wire.Load()
	select {
	case <-w.closed:
	case <-ctx.Done():
		w.finish()
	}
	t := time.NewTimer(l.grace)
	defer t.Stop()
	select {
	case <-w.closed:
		cause, _ := w.state()
		return true, cause
	case <-t.C:
		_ = w.Conn.Close()
		return false, errCutOff
	}
}

// state is that of the newest connection: why it ended, nil when it has not, and whether Discord said
// HELLO on it. Until then a failure says nothing of the session.
func (l *link) state() (cause error, greeted bool) {
	if w := l.wire.Load(); w != nil {
		return w.state()
	}
	return nil, false
}

// contained runs f and turns a panic into an error.
func contained(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = panicked(p)
		}
	}()
	return f()
}

// panicked describes a panic. A value that is no runtime error may hold anything, so only its type is told.
func panicked(p any) error {
	if e, ok := p.(runtime.Error); ok {
		return fmt.Errorf("panic: %w", e)
	}
	return fmt.Errorf("panic with a %T", p)
}
