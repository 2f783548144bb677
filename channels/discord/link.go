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
	dg    *discordgo.Session
	wire  *wire // of the newest connection
	dials chan *wire
	down  func(error) // told when a connection is over

	// ready is set once READY was seen: from then on Open resumes. alive is set by READY and RESUMED and
	// taken back with each Open. Both are set by discordgo's goroutines.
	ready, alive atomic.Bool
	// failures counts resumes in a row that came to nothing.
	failures int
}

// newLink prepares a session that asks for the gateway at url. Nothing is sent yet.
func (a *Adapter) newLink(ctx context.Context, url string) (*link, error) {
	dg, err := discordgo.New("Bot " + a.token)
	if err != nil {
		return nil, fmt.Errorf("create discord session: %w", err)
	}
	l := &link{dg: dg, dials: make(chan *wire, 1), down: a.health.down}
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
			return l.dial(ctx, a.dialer, network, addr, false)
		},
		NetDialTLSContext: func(_ context.Context, network, addr string) (net.Conn, error) {
			return l.dial(ctx, a.dialer, network, addr, true)
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
func (l *link) dial(ctx context.Context, d dialer, network, addr string, secure bool) (net.Conn, error) {
	c, err := d.open(ctx, network, addr, secure)
	if err != nil {
		return nil, err
	}
	w := newWire(c, l.down)
	l.dials <- w
	return w, nil
}

// open connects, and identifies or resumes. Its error is the cause of the failure as the wire saw it. When
// usable is false the library did not return, and the link must be thrown away.
func (l *link) open(ctx context.Context) (usable bool, err error) {
	l.wire = nil
	l.alive.Store(false)
	done := make(chan error, 1)
	go func() { done <- contained(l.dg.Open) }()

	limit := time.NewTimer(openWait)
	defer limit.Stop()
	var grace <-chan time.Time
	ended := ctx.Done()
	for {
		select {
		case l.wire = <-l.dials:
			if grace != nil {
				l.wire.end(errCutOff)
			}
			continue
		case err = <-done:
			select {
			case l.wire = <-l.dials:
			default:
			}
			if cause := l.cause(); err != nil && cause != nil {
				err = cause
			}
			return true, err
		case <-ended:
		case <-limit.C:
		case <-grace:
			return false, errCutOff
		}
		ended = nil
		if l.wire != nil {
			l.wire.end(errCutOff)
		}
		if grace == nil {
			t := time.NewTimer(graceWait)
			defer t.Stop()
			grace = t.C
		}
	}
}

// wait returns once the connection is over, with its cause. When ctx ends first it says goodbye; a signal
// from over cuts the connection, so that Discord keeps what is to come.
func (l *link) wait(ctx context.Context, over <-chan struct{}) (usable bool, err error) {
	select {
	case <-l.wire.closed:
	case <-over:
		l.wire.end(errBacklog)
	case <-ctx.Done():
		l.wire.finish()
	}
	t := time.NewTimer(graceWait)
	defer t.Stop()
	select {
	case <-l.wire.closed:
		return true, l.cause()
	case <-t.C:
		_ = l.wire.Conn.Close()
		return false, errCutOff
	}
}

// cause is why the newest connection ended, nil when there was none or it has not.
func (l *link) cause() error {
	if l.wire == nil {
		return nil
	}
	cause, _ := l.wire.state()
	return cause
}

// greeted reports that Discord said HELLO: until then a failure says nothing of the session.
func (l *link) greeted() bool {
	if l.wire == nil {
		return false
	}
	_, greeted := l.wire.state()
	return greeted
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
