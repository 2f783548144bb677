package discordfake

import (
	"encoding/json"
	"net/http"
	"slices"
	"time"
)

// Reaction is what the gateway does with one IDENTIFY or RESUME instead of granting it. The zero value
// grants it.
type Reaction struct {
	// Close is a close code to end the connection with.
	Close int
	// Op is 7 (reconnect) or 9 (invalid session); Resumable is the data of Op 9.
	Op        int
	Resumable bool
	// Silent answers nothing at all; Drop cuts the connection.
	Silent, Drop bool
}

// next takes the first reaction of a script.
func next(script *[]Reaction) Reaction {
	if len(*script) == 0 {
		return Reaction{}
	}
	r := (*script)[0]
	*script = (*script)[1:]
	return r
}

func (s *Server) react(c *conn, r Reaction) {
	switch {
	case r.Close != 0:
		c.close(r.Close)
	case r.Op == opReconnect:
		c.send(opReconnect, json.RawMessage("null"))
	case r.Op == opInvalidSession:
		c.send(opInvalidSession, mustJSON(r.Resumable))
	case r.Drop:
		c.drop()
	}
}

// OnIdentify scripts the answers to the coming IDENTIFYs, one each.
func (s *Server) OnIdentify(r ...Reaction) {
	s.locked(func() { s.hub.onIdentify = append(s.hub.onIdentify, r...) })
}

// OnResume scripts the answers to the coming RESUMEs, one each.
func (s *Server) OnResume(r ...Reaction) {
	s.locked(func() { s.hub.onResume = append(s.hub.onResume, r...) })
}

// WithholdHello leaves the next n connections without HELLO.
func (s *Server) WithholdHello(n int) { s.locked(func() { s.hub.withoutHello = n }) }

// Mute stops (or restores) the acknowledgement of heartbeats.
func (s *Server) Mute(on bool) { s.locked(func() { s.hub.muted = on }) }

// LoseDispatches keeps the next n message and interaction events from the wire. A resume replays them.
func (s *Server) LoseDispatches(n int) { s.locked(func() { s.hub.lose = n }) }

// DuplicateDispatches sends the next n message and interaction events twice.
func (s *Server) DuplicateDispatches(n int) { s.locked(func() { s.hub.duplicate = n }) }

// DelayDispatches makes every event arrive late.
func (s *Server) DelayDispatches(d time.Duration) { s.locked(func() { s.hub.delay = d }) }

// CloseGateway ends every connection with a close code.
func (s *Server) CloseGateway(code int) { s.each(func(c *conn) { c.close(code) }) }

// DropGateway cuts every connection without a close frame.
func (s *Server) DropGateway() { s.each((*conn).drop) }

// AskReconnect sends Op 7 on every connection.
func (s *Server) AskReconnect() {
	s.each(func(c *conn) { c.send(opReconnect, json.RawMessage("null")) })
}

// AskHeartbeat sends Op 1 on every connection.
func (s *Server) AskHeartbeat() {
	s.each(func(c *conn) { c.send(opHeartbeat, json.RawMessage("null")) })
}

// Invalidate sends Op 9 on every connection.
func (s *Server) Invalidate(resumable bool) {
	s.each(func(c *conn) {
		if !resumable && c.session != nil {
			delete(s.hub.sessions, c.session.id)
		}
		c.send(opInvalidSession, mustJSON(resumable))
	})
}

// ForgetSessions makes every session unknown, as after a long outage.
func (s *Server) ForgetSessions() { s.locked(func() { s.hub.sessions = map[string]*session{} }) }

// Dispatch sends any event to every session, whatever its intents.
func (s *Server) Dispatch(event string, data any) {
	s.locked(func() { s.dispatch(event, 0, mustJSON(data), nil) })
}

func (s *Server) locked(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

func (s *Server) each(f func(*conn)) {
	s.locked(func() {
		for c := range s.hub.conns {
			f(c)
		}
	})
}

// GatewayStats counts what clients have done on the gateway.
type GatewayStats struct {
	Connections, Identifies, Resumes, Heartbeats int
	// Closes are the codes with which clients closed connections, in order; 0 where the client went
	// without a close frame. Connections that the server ended are not in it.
	Closes []int
	// Live counts the connections with a session.
	Live int
	// IdentifiesLeft is what remains of the session start limit.
	IdentifiesLeft int
}

// Gateway returns what clients have done on the gateway so far.
func (s *Server) Gateway() GatewayStats {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.hub.stats
	st.Closes = slices.Clone(st.Closes)
	st.IdentifiesLeft = s.hub.left
	for c := range s.hub.conns {
		if c.session != nil && !c.closing {
			st.Live++
		}
	}
	return st
}

// Fault is a failure of the REST API, for the next requests that match.
type Fault struct {
	// Method and Path choose the requests: any method when empty; Path is matched by path.Match against
	// the path behind the version ("/channels/*/messages"), any path when empty.
	Method, Path string
	// Times is how many requests fail: 0 means one, a negative number all.
	Times int
	// Accept obeys the request before it is delayed and its answer lost or replaced.
	Accept bool
	// Delay comes before all else.
	Delay time.Duration
	// Drop cuts the connection instead of answering.
	Drop bool
	// Status, Header and Body are the answer; with Status 0, and no Drop, the real answer is given.
	Status int
	Header http.Header
	Body   string
}

// Inject makes requests fail. Faults are used up in the order in which they were injected.
func (s *Server) Inject(f Fault) {
	if f.Times == 0 {
		f.Times = 1
	}
	s.locked(func() { s.rest.faults = append(s.rest.faults, &f) })
}

// BadGateway is the answer of a proxy whose server is away.
func BadGateway() Fault {
	return Fault{Status: http.StatusBadGateway, Header: http.Header{"Content-Type": {"text/html"}}, Body: "<html><title>502 Bad Gateway</title></html>"}
}

// GlobalLimit is Discord's answer past the global rate limit: of the headers it has Retry-After, Global and
// Scope alone.
func GlobalLimit(after time.Duration) Fault {
	return Fault{Status: http.StatusTooManyRequests, Header: http.Header{
		"Content-Type": {"application/json"}, "Retry-After": {wholeSeconds(after)}, "X-Ratelimit-Global": {"true"}, "X-Ratelimit-Scope": {"global"},
	}, Body: string(mustJSON(map[string]any{"message": "You are being rate limited.", "retry_after": after.Seconds(), "global": true}))}
}

// CloudflareLimit is the answer of the proxy before Discord to an address that sent too many invalid
// requests: HTML, not JSON.
func CloudflareLimit(after time.Duration) Fault {
	f := Fault{
		Status: http.StatusTooManyRequests, Header: http.Header{"Content-Type": {"text/html; charset=UTF-8"}},
		Body: "<!doctype html><title>Access denied | discord.com used Cloudflare to restrict access</title>Error 1015",
	}
	if after > 0 {
		f.Header.Set("Retry-After", wholeSeconds(after))
	}
	return f
}
