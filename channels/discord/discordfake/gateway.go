package discordfake

import (
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/gorilla/websocket"
)

// Gateway opcodes. (Discord documentation, Opcodes and Status Codes.)
const (
	opDispatch       = 0
	opHeartbeat      = 1
	opIdentify       = 2
	opPresence       = 3
	opResume         = 6
	opReconnect      = 7
	opInvalidSession = 9
	opHello          = 10
	opACK            = 11
)

// Gateway close codes.
const (
	closeUnknownOp            = 4001
	closeDecode               = 4002
	closeNotAuthenticated     = 4003
	closeAuthentication       = 4004
	closeAlreadyAuthenticated = 4005
	closeInvalidSeq           = 4007
	closeRateLimited          = 4008
	closeTimedOut             = 4009
	closeInvalidShard         = 4010
	closeInvalidVersion       = 4012
	closeInvalidIntents       = 4013
	closeDisallowedIntents    = 4014
)

const (
	maxClientFrame = 4096
	eventsPerMin   = 120
)

func (s *Server) gatewayURL() string {
	return "ws" + s.secure() + "://" + s.ln.Addr().String() + "/gateway"
}

// serveGateway is one web socket connection, from the handshake to its end.
func (s *Server) serveGateway(w http.ResponseWriter, r *http.Request) {
	up := websocket.Upgrader{CheckOrigin: func(*http.Request) bool { return true }}
	ws, err := up.Upgrade(w, r, nil)
	if err != nil {
		return
	}
	c := &conn{s: s, ws: ws, out: newMailbox[outgoing]()}
	ws.SetCloseHandler(func(int, string) error { return nil })
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		_ = ws.Close()
		return
	}
	s.conns.Add(1)
	defer s.conns.Done()
	s.hub.conns[c] = struct{}{}
	s.hub.stats.Connections++
	v, enc := r.URL.Query().Get("v"), r.URL.Query().Get("encoding")
	switch {
	case v != "9" && v != "10" || enc != "json":
		c.close(closeInvalidVersion)
	case s.hub.withoutHello > 0:
		s.hub.withoutHello--
	default:
		c.send(opHello, mustJSON(map[string]any{"heartbeat_interval": s.opts.Heartbeat.Milliseconds()}))
	}
	s.mu.Unlock()

	s.conns.Go(c.write)
	code := c.read()

	s.mu.Lock()
	defer s.mu.Unlock()
	ends := c.final
	if !c.closing {
		s.hub.stats.Closes = append(s.hub.stats.Closes, code)
		ends = code == websocket.CloseNormalClosure || code == websocket.CloseGoingAway
	}
	c.drop()
	delete(s.hub.conns, c)
	if ses := c.session; ses != nil && ses.conn == c {
		ses.conn, ses.until = nil, time.Now().Add(resumeWindow)
		if ends {
			delete(s.hub.sessions, ses.id)
		}
	}
}

// read handles what the client sends and returns the code of its close frame, 0 when there was none.
func (c *conn) read() int {
	_ = c.ws.SetReadDeadline(time.Now().Add(2 * c.s.opts.Heartbeat))
	for {
		_, data, err := c.ws.ReadMessage()
		if err != nil {
			if ce, ok := errors.AsType[*websocket.CloseError](err); ok && ce.Code != websocket.CloseAbnormalClosure {
				return ce.Code
			}
			if ne, ok := errors.AsType[net.Error](err); ok && ne.Timeout() {
				c.expire()
			}
			return 0
		}
		c.s.mu.Lock()
		c.handle(data)
		c.s.mu.Unlock()
	}
}

// expire ends a connection whose client has sent no heartbeat.
func (c *conn) expire() {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	if !c.closing {
		c.closing, c.final = true, true
		_ = c.ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(closeTimedOut, ""), time.Now().Add(time.Second))
	}
}

// handle obeys one client message. The caller holds the server's lock.
func (c *conn) handle(data []byte) {
	var f frame
	if err := json.Unmarshal(data, &f); err != nil || len(data) > maxClientFrame {
		c.close(closeDecode)
		return
	}
	now := time.Now()
	for len(c.sent) > 0 && now.Sub(c.sent[0]) > time.Minute {
		c.sent = c.sent[1:]
	}
	if c.sent = append(c.sent, now); len(c.sent) > eventsPerMin {
		c.close(closeRateLimited)
		return
	}
	switch {
	case f.Op == opHeartbeat:
		c.s.hub.stats.Heartbeats++
		_ = c.ws.SetReadDeadline(now.Add(2 * c.s.opts.Heartbeat))
		if !c.s.hub.muted {
			c.send(opACK, json.RawMessage("null"))
		}
	case f.Op == opIdentify:
		c.s.identify(c, f.Data)
	case f.Op == opResume:
		c.s.resume(c, f.Data)
	case f.Op < opDispatch || f.Op > opACK:
		c.close(closeUnknownOp)
	case c.session == nil:
		c.close(closeNotAuthenticated)
	case f.Op == opPresence:
	default:
		c.close(closeUnknownOp)
	}
}

// conn is one web socket connection. Its fields belong to the server's lock.
type conn struct {
	s       *Server
	ws      *websocket.Conn
	session *session
	sent    []time.Time
	closing bool // the server has closed, or cut, the connection
	final   bool // in a way that ends the session
	out     *mailbox[outgoing]
}

// outgoing is one thing to write: a message, or a close code.
type outgoing struct {
	data  []byte
	close int
	delay time.Duration
}

func (c *conn) send(op int, data json.RawMessage) {
	c.out.push(outgoing{data: mustJSON(frame{Op: op, Data: data})})
}

func (c *conn) event(event string, seq int64, data json.RawMessage) {
	c.out.push(outgoing{data: mustJSON(frame{Op: opDispatch, Data: data, Seq: &seq, Type: &event}), delay: c.s.hub.delay})
}

// close ends the connection with a code once all that was queued before is written.
func (c *conn) close(code int) {
	switch code {
	case closeAuthentication, closeInvalidSeq, closeTimedOut, closeInvalidShard, closeInvalidIntents, closeDisallowedIntents:
		c.final = true
	}
	c.closing = true
	c.out.push(outgoing{close: code})
}

// drop cuts the connection without a word.
func (c *conn) drop() {
	c.closing = true
	c.out.end()
	_ = c.ws.Close()
}

// write sends what is queued until the connection ends.
func (c *conn) write() {
	for {
		for _, o := range c.out.take() {
			if o.delay > 0 {
				select {
				case <-time.After(o.delay):
				case <-c.out.ended:
					return
				}
			}
			if o.close != 0 {
				_ = c.ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(o.close, ""), time.Now().Add(time.Second))
				// The client is given a moment to read the code: closing at once could reset the connection.
				_ = c.ws.SetReadDeadline(time.Now().Add(time.Second))
				return
			}
			if c.ws.WriteMessage(websocket.TextMessage, o.data) != nil {
				return
			}
		}
		select {
		case <-c.out.wake:
		case <-c.out.ended:
			return
		}
	}
}
