package discordfake

import (
	"encoding/json"
	"time"
)

const (
	identifyTotal = 1000
	// resumeWindow is how long a session without a connection can be resumed: Discord says "a few minutes".
	resumeWindow = 3 * time.Minute
	// replayLimit bounds the events kept for a resume.
	replayLimit = 8192
	// identifyEvery is the period in which max_concurrency, here 1, IDENTIFYs are allowed.
	identifyEvery = 5 * time.Second
)

// hub is the gateway's state: connections, sessions, what is left of today's budget, and scripted faults.
type hub struct {
	conns      map[*conn]struct{}
	sessions   map[string]*session
	left       int
	resetAt    time.Time
	tokenReset bool
	identified time.Time

	onIdentify, onResume []Reaction
	withoutHello         int
	muted                bool
	lose, duplicate      int
	delay                time.Duration
	stats                GatewayStats
}

func newHub(left int) hub {
	return hub{conns: map[*conn]struct{}{}, sessions: map[string]*session{}, left: left, resetAt: time.Now().Add(24 * time.Hour)}
}

// renew begins a new day.
func (h *hub) renew() {
	if now := time.Now(); now.After(h.resetAt) {
		h.left, h.resetAt = identifyTotal, now.Add(24*time.Hour)
	}
}

// session is one gateway session: it outlives its connection, for a while.
type session struct {
	id      string
	intents Intent
	seq     int64
	log     []logged
	conn    *conn
	until   time.Time // when it has no connection: resumable until
}

type logged struct {
	seq   int64
	event string
	data  json.RawMessage
}

// dispatch sends an event to every session that asked for it. Exactly one of data and encode is given;
// encode makes the data for a session by the intents granted to it. The caller holds s.mu.
func (s *Server) dispatch(event string, intent Intent, data json.RawMessage, encode func(granted Intent) []byte) {
	for _, ses := range s.hub.sessions {
		if intent != 0 && ses.intents&intent == 0 {
			continue
		}
		d := data
		if encode != nil {
			d = encode(ses.intents)
		}
		s.deliver(ses, event, d)
	}
}

// deliver gives one event the session's next number, keeps it for a resume, and sends it.
func (s *Server) deliver(ses *session, event string, data json.RawMessage) {
	if ses.conn == nil && time.Now().After(ses.until) {
		delete(s.hub.sessions, ses.id)
		return
	}
	ses.seq++
	ses.log = append(ses.log, logged{ses.seq, event, data})
	if len(ses.log) > replayLimit {
		ses.log = ses.log[len(ses.log)-replayLimit:]
	}
	if ses.conn == nil {
		return
	}
	times := 1
	if isMessage := event == "MESSAGE_CREATE" || event == "INTERACTION_CREATE"; isMessage {
		if s.hub.lose > 0 {
			s.hub.lose--
			times = 0
		} else if s.hub.duplicate > 0 {
			s.hub.duplicate--
			times = 2
		}
	}
	for range times {
		ses.conn.event(event, ses.seq, data)
	}
}

// identify answers IDENTIFY. The caller holds s.mu.
func (s *Server) identify(c *conn, data json.RawMessage) {
	s.hub.stats.Identifies++
	var d struct {
		Token      string          `json:"token"`
		Intents    *Intent         `json:"intents"`
		Properties json.RawMessage `json:"properties"`
		Shard      *[2]int         `json:"shard"`
	}
	if err := json.Unmarshal(data, &d); err != nil {
		c.close(closeDecode)
		return
	}
	if c.session != nil {
		c.close(closeAlreadyAuthenticated)
		return
	}
	if r := next(&s.hub.onIdentify); r != (Reaction{}) {
		s.react(c, r)
		return
	}
	if !s.validToken(d.Token) {
		c.close(closeAuthentication)
		return
	}
	s.hub.renew()
	s.hub.left--
	if s.hub.left < 0 {
		// "all active sessions for the app are terminated, the bot token is reset"
		s.hub.tokenReset = true
		for c := range s.hub.conns {
			c.close(closeAuthentication)
		}
		s.hub.sessions = map[string]*session{}
		return
	}
	switch {
	case d.Intents == nil, *d.Intents&^known != 0:
		c.close(closeInvalidIntents)
		return
	case *d.Intents&privileged&^s.opts.Privileged != 0:
		c.close(closeDisallowedIntents)
		return
	case d.Shard != nil && (d.Shard[1] < 1 || d.Shard[0] < 0 || d.Shard[0] >= d.Shard[1]):
		c.close(closeInvalidShard)
		return
	}
	if now := time.Now(); now.Sub(s.hub.identified) < identifyEvery {
		c.send(opInvalidSession, json.RawMessage("false"))
		return
	}
	s.hub.identified = time.Now()
	ses := &session{id: "session-" + s.newID(), intents: *d.Intents, conn: c}
	c.session = ses
	s.hub.sessions[ses.id] = ses
	s.welcome(ses)
}

// welcome sends READY and the guilds.
func (s *Server) welcome(ses *session) {
	guilds := []map[string]any{}
	for _, id := range s.world.order {
		if !s.world.guilds[id].absent {
			guilds = append(guilds, map[string]any{"id": id, "unavailable": true})
		}
	}
	s.deliver(ses, "READY", mustJSON(map[string]any{
		"v": 10, "user": s.world.bot, "guilds": guilds, "session_id": ses.id, "session_type": "normal",
		"resume_gateway_url": s.gatewayURL(), "application": map[string]any{"id": s.world.appID, "flags": s.appFlags()},
	}))
	if ses.intents&Guilds == 0 {
		return
	}
	for _, id := range s.world.order {
		if g := s.world.guilds[id]; !g.absent {
			s.deliver(ses, "GUILD_CREATE", s.guildJSON(g))
		}
	}
}

// resume answers RESUME. The caller holds s.mu.
func (s *Server) resume(c *conn, data json.RawMessage) {
	s.hub.stats.Resumes++
	var d struct {
		Token     string `json:"token"`
		SessionID string `json:"session_id"`
		Seq       int64  `json:"seq"`
	}
	if err := json.Unmarshal(data, &d); err != nil {
		c.close(closeDecode)
		return
	}
	if r := next(&s.hub.onResume); r != (Reaction{}) {
		s.react(c, r)
		return
	}
	if !s.validToken(d.Token) {
		c.close(closeAuthentication)
		return
	}
	ses := s.hub.sessions[d.SessionID]
	if ses == nil || ses.conn == nil && time.Now().After(ses.until) || len(ses.log) > 0 && d.Seq+1 < ses.log[0].seq {
		delete(s.hub.sessions, d.SessionID)
		c.send(opInvalidSession, json.RawMessage("false"))
		return
	}
	if d.Seq > ses.seq {
		delete(s.hub.sessions, d.SessionID)
		c.close(closeInvalidSeq)
		return
	}
	if old := ses.conn; old != nil && old != c {
		old.session = nil
		old.drop()
	}
	ses.conn, c.session = c, ses
	for _, l := range ses.log {
		if l.seq > d.Seq {
			c.event(l.event, l.seq, l.data)
		}
	}
	s.deliver(ses, "RESUMED", json.RawMessage("{}"))
}

func (s *Server) validToken(token string) bool {
	return !s.hub.tokenReset && (token == s.opts.Token || token == "Bot "+s.opts.Token)
}

// appFlags are the application's flags: an unverified bot has the LIMITED variants of what it may do.
// (Discord documentation, Application, Application Flags.)
func (s *Server) appFlags() int {
	flags := 0
	if s.opts.Privileged&MessageContent != 0 {
		flags |= 1 << 19
	}
	return flags
}

// guildJSON is a guild as GUILD_CREATE tells of it.
func (s *Server) guildJSON(g *guild) json.RawMessage {
	rooms, threads := []channelJSON{}, []channelJSON{}
	for _, id := range g.rooms {
		switch r := s.world.rooms[id]; {
		case r.denied&View != 0:
		case r.json.thread() == nil:
			rooms = append(rooms, r.json)
		case !r.json.thread().Archived:
			threads = append(threads, r.json)
		}
	}
	roles := []role{
		{ID: g.id, Name: "@everyone", Permissions: "0"},
		{ID: g.botRole, Name: s.world.bot.Username, Permissions: "0", Managed: true, Tags: &roleTags{BotID: s.world.bot.ID}},
	}
	return mustJSON(map[string]any{
		"id": g.id, "name": g.name, "owner_id": s.ownerOf(g), "unavailable": false, "joined_at": time.Now().UTC(), "large": false, "member_count": len(s.world.users),
		"channels": rooms, "threads": threads, "roles": roles, "members": []any{}, "presences": []any{}, "voice_states": []any{},
	})
}
