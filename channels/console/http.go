package console

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"path"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"botd/channels"
)

const (
	// maxBody bounds a request, maxID names and IDs, in bytes.
	maxBody = 64 << 10
	maxID   = 128
	// heartbeat keeps proxies and clients from giving a quiet stream up.
	heartbeat = 15 * time.Second
	// shutdownTimeout bounds the wait for requests when Run ends.
	shutdownTimeout = 5 * time.Second
	// writeTimeout bounds one write to a client that does not read.
	writeTimeout = 10 * time.Second
)

// posted is the body of POST …/messages.
type posted struct {
	User    string `json:"user"`
	Text    string `json:"text"`
	Room    string `json:"room"`
	ID      string `json:"id"`
	Mention *bool  `json:"mention"`
	ReplyTo string `json:"reply_to"`
}

// Webhook implements channels.Webhook: it returns the handler of the HTTP endpoints.
func (a *Adapter) Webhook(sink channels.Sink) http.Handler {
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch endpoint := path.Base(r.URL.Path); {
		case endpoint == "messages" && r.Method == http.MethodPost:
			a.receive(w, r, sink)
		case endpoint == "events" && r.Method == http.MethodGet:
			a.events(w, r)
		case endpoint == "messages" || endpoint == "events":
			refuse(w, http.StatusMethodNotAllowed, "want POST messages or GET events")
		default:
			refuse(w, http.StatusNotFound, "no such endpoint: want POST messages or GET events")
		}
	})
	return local(http.NewCrossOriginProtection().Handler(handler))
}

// local refuses what does not come from this machine or was written by a page of another site.
func local(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !isLoopback(r.RemoteAddr):
			refuse(w, http.StatusForbidden, "only this machine may talk to the console")
		case !isLoopback(r.Host):
			refuse(w, http.StatusForbidden, "the console is reached as localhost only")
		case r.Header.Get("Forwarded") != "" || r.Header.Get("X-Forwarded-For") != "":
			refuse(w, http.StatusForbidden, "the console may not be put behind a proxy")
		case r.Header.Get("Sec-Fetch-Site") == "cross-site":
			refuse(w, http.StatusForbidden, "a page of another site may not talk to the console")
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// isLoopback reports whether the host of an address, with or without a port, is this machine.
func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = strings.Trim(address, "[]")
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

func refuse(w http.ResponseWriter, status int, why string) {
	reply(w, status, map[string]string{"error": why})
}

func reply(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

// receive takes one message.
func (a *Adapter) receive(w http.ResponseWriter, r *http.Request, sink channels.Sink) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		refuse(w, http.StatusUnsupportedMediaType, "want Content-Type: application/json")
		return
	}
	var p posted
	decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&p); err != nil {
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			refuse(w, http.StatusRequestEntityTooLarge, fmt.Sprintf("the body has more than %d bytes", maxBody))
			return
		}
		refuse(w, http.StatusBadRequest, "the body is not a JSON object with user, text and perhaps room, id, mention, reply_to")
		return
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		refuse(w, http.StatusBadRequest, "something follows the JSON object")
		return
	}
	if err := p.check(); err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	in := a.inbound(p)
	if err := sink.Accept(r.Context(), in); err != nil {
		w.Header().Set("Retry-After", "1")
		refuse(w, http.StatusServiceUnavailable, "the message could not be kept; send it again with the same id")
		return
	}
	reply(w, http.StatusAccepted, map[string]string{"event_id": in.ID})
}

func (p posted) check() error {
	for name, value := range map[string]string{"user": p.User, "room": p.Room, "id": p.ID, "reply_to": p.ReplyTo} {
		if len(value) > maxID || strings.ContainsFunc(value, unicode.IsControl) {
			return fmt.Errorf("%s is longer than %d bytes or holds control characters", name, maxID)
		}
	}
	switch {
	case p.User == "":
		return errors.New("user is missing")
	case p.User == terminalRoom:
		return fmt.Errorf("user %q is the one at the terminal", p.User)
	case strings.TrimSpace(p.Text) == "":
		return errors.New("text is missing")
	case !utf8.ValidString(p.Text):
		return errors.New("text is not UTF-8")
	}
	return nil
}

func (a *Adapter) inbound(p posted) channels.Inbound {
	in := channels.Inbound{
		ID: newID(), Kind: channels.Message, Time: time.Now(),
		Address: channels.Address{Channel: a.opts.Channel, Kind: channels.Direct, Room: p.User, User: p.User},
		Speaker: channels.Speaker{ID: p.User, Name: p.User},
		Parts:   []channels.Part{{Type: channels.Text, Text: p.Text}},
		Refers:  p.ReplyTo,
	}
	if p.Room != "" {
		in.Address.Kind, in.Address.Room = channels.Group, p.Room
	}
	if p.ID != "" {
		// The ID is the client's, and so it is unique for the person alone.
		in.ID = fmt.Sprintf("u-%d-%s-%s", len(p.User), p.User, p.ID)
	}
	switch {
	case in.Address.Kind == channels.Direct:
		in.Mentioned = true
	case p.Mention != nil:
		in.Mentioned = *p.Mention
	default:
		in.Mentioned = strings.Contains(strings.ToLower(p.Text), "@"+strings.ToLower(a.opts.Name)) ||
			p.ReplyTo != "" && a.rooms.has(keyOf(in.Address), p.ReplyTo)
	}
	in.Reply = handle{Event: in.ID}.encode()
	return in
}

// events streams what the bot shows in one room.
func (a *Adapter) events(w http.ResponseWriter, r *http.Request) {
	user, room := r.URL.Query().Get("user"), r.URL.Query().Get("room")
	k := key{direct: room == "", name: room}
	if k.direct {
		k.name = user
	}
	if k.name == "" || len(k.name) > maxID {
		refuse(w, http.StatusBadRequest, "want user or room in the query")
		return
	}
	last := r.Header.Get("Last-Event-ID")
	if last == "" {
		last = r.URL.Query().Get("last_id")
	}
	missed, c := a.rooms.watch(k, last)
	defer a.rooms.leave(k, c)

	s := stream{w: w, control: http.NewResponseController(w)}
	if err := s.control.SetReadDeadline(time.Time{}); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(http.StatusOK)
	s.write(": hello\n\n")
	for i := range missed {
		s.update(update{message: &missed[i]})
	}
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	for s.err == nil {
		select {
		case u, ok := <-c.updates:
			if !ok {
				return
			}
			s.update(u)
		case <-beat.C:
			s.write(": still here\n\n")
		case <-r.Context().Done():
			return
		case <-a.ended:
			return
		}
	}
}

// stream writes server-sent events.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	err     error
}

func (s *stream) update(u update) {
	id, event, data := "", "typing", any(struct{}{})
	switch {
	case u.message != nil:
		id, event, data = "id: "+u.message.ID+"\n", "message", u.message
	case u.preview != "":
		event, data = "preview", map[string]string{"text": u.preview}
	}
	raw, err := json.Marshal(data)
	if err != nil {
		s.err = err
		return
	}
	s.write(id + "event: " + event + "\ndata: " + string(raw) + "\n\n")
}

func (s *stream) write(text string) {
	if s.err != nil {
		return
	}
	// The server's own limits are for the whole exchange, and this one has no end.
	if err := s.control.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		s.err = err
		return
	}
	if _, s.err = io.WriteString(s.w, text); s.err == nil {
		s.err = s.control.Flush()
	}
}

// serve serves the endpoints on Options.Listen until ctx ends.
func (a *Adapter) serve(ctx context.Context, sink channels.Sink) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", a.opts.Listen)
	if err != nil {
		return fmt.Errorf("listen for the console: %w", err)
	}
	server := &http.Server{
		Handler: a.Webhook(sink), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 15 * time.Second,
		IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
	}
	stopped := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(stopped)
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
		defer cancel()
		if server.Shutdown(end) != nil {
			_ = server.Close()
		}
	})
	err = server.Serve(listener)
	if !stop() {
		<-stopped
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("serve the console: %w", err)
}
