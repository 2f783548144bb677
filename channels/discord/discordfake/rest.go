package discordfake

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"path"
	"strings"
	"time"
)

const (
	maxBody     = 25 << 20
	keptRecords = 4096
)

// restState is what the REST API keeps beside the world.
type restState struct {
	requests []Request
	faults   []*Fault
	limits   limits
	invalid  int
	commands []json.RawMessage
	// overwrites counts the bulk overwrites of commands.
	overwrites int
}

func newRESTState() restState { return restState{limits: newLimits()} }

// Request is one REST request as it was received. The Authorization header is not kept.
type Request struct {
	At     time.Time
	Method string
	// Path is the path behind the version: "/channels/1/messages".
	Path, Query string
	Version     string
	ContentType string
	Body        []byte
	// Status is that of the answer, 0 when there was none; Answer is its body.
	Status int
	Answer []byte
	// Authorized reports a valid bot token.
	Authorized bool
}

// InvalidRequests counts the answers 401, 403 and 429 given: Discord bans an address that collects 10 000
// of them in ten minutes.
func (s *Server) InvalidRequests() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rest.invalid
}

// answer is what goes back: a value to encode as JSON, or nothing but a status.
type answer struct {
	status int
	header http.Header
	body   []byte
}

func (a *answer) set(key, value string) {
	if a.header == nil {
		a.header = http.Header{}
	}
	a.header.Set(key, value)
}

// serveAPI answers one REST request.
func (s *Server) serveAPI(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return
	}
	version, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/api/"), "/")
	q := &Request{
		At: time.Now(), Method: r.Method, Path: "/" + rest, Query: r.URL.RawQuery, Version: version,
		ContentType: r.Header.Get("Content-Type"), Body: body,
	}

	f := s.fault(q)
	var a answer
	if f != nil && f.Accept {
		a = s.obey(r, q)
	}
	if f != nil && f.Delay > 0 {
		select {
		case <-time.After(f.Delay):
		case <-r.Context().Done():
			s.record(q, 0, true)
			return
		}
	}
	if f == nil || !f.Accept && f.Status == 0 && !f.Drop {
		a = s.obey(r, q)
	}
	if f != nil && f.Status != 0 {
		a = answer{status: f.Status, header: f.Header, body: []byte(f.Body)}
	}
	lost := f != nil && f.Drop
	q.Answer = a.body
	s.record(q, a.status, lost)
	if lost {
		panic(http.ErrAbortHandler)
	}
	maps.Copy(w.Header(), a.header)
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body)
}

// fault takes the first injected failure that matches.
func (s *Server) fault(q *Request) *Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, f := range s.rest.faults {
		if f.Method != "" && f.Method != q.Method {
			continue
		}
		if f.Path != "" {
			if ok, err := path.Match(f.Path, q.Path); err != nil || !ok {
				continue
			}
		}
		if f.Times > 0 {
			if f.Times--; f.Times == 0 {
				s.rest.faults = append(s.rest.faults[:i], s.rest.faults[i+1:]...)
			}
		}
		return f
	}
	return nil
}

func (s *Server) record(q *Request, status int, lost bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if status == http.StatusUnauthorized || status == http.StatusForbidden || status == http.StatusTooManyRequests {
		s.rest.invalid++
	}
	if !lost {
		q.Status = status
	}
	s.rest.requests = append(s.rest.requests, *q)
	if len(s.rest.requests) > keptRecords {
		s.rest.requests = s.rest.requests[len(s.rest.requests)-keptRecords:]
	}
}

// obey does what the request asks, if it may.
func (s *Server) obey(r *http.Request, q *Request) answer {
	if !strings.HasPrefix(r.UserAgent(), "DiscordBot (") {
		// (Discord documentation, Reference, User Agent.)
		return answer{status: http.StatusForbidden, header: http.Header{"Content-Type": {"text/html"}}, body: []byte("<html>error code: 1020</html>")}
	}
	if q.Version != "v9" && q.Version != "v10" {
		return failure(&apiError{http.StatusBadRequest, 50041, "Invalid API version", nil})
	}
	inner := r.Clone(r.Context())
	inner.URL.Path, inner.URL.RawPath = q.Path, ""
	inner.Body = io.NopCloser(bytes.NewReader(q.Body))
	h, pattern := s.mux.Handler(inner)
	e, ok := h.(endpoint)
	if !ok {
		return failure(&apiError{http.StatusNotFound, 0, "404: Not Found", nil})
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	q.Authorized = r.Header.Get("Authorization") == "Bot "+s.opts.Token && !s.hub.tokenReset
	open := strings.Contains(pattern, "/interactions/") || strings.Contains(pattern, "/webhooks/")
	if !open && !q.Authorized {
		return failure(&apiError{http.StatusUnauthorized, 0, "401: Unauthorized", nil})
	}
	if len(q.Body) > 0 && q.ContentType != "application/json" {
		return failure(&apiError{http.StatusBadRequest, 50109, "The request body contains invalid JSON.", nil})
	}
	var verdict answer
	if !s.opts.NoLimits {
		var refused bool
		if verdict, refused = s.rest.limits.take(pattern, majorOf(q.Path), open); refused {
			return verdict
		}
	}
	call := &call{query: r.URL.Query(), body: q.Body}
	call.match(pattern, q.Path)
	a := call.run(e)
	for k, v := range verdict.header {
		a.set(k, v[0])
	}
	return a
}

// endpoint is the code behind one route; it runs under the server's lock. It is a http.Handler only so
// that the standard mux can route to it.
type endpoint func(*call) (any, error)

// ServeHTTP is never called.
func (endpoint) ServeHTTP(http.ResponseWriter, *http.Request) {}

// call is one request to an endpoint.
type call struct {
	args  map[string]string
	query map[string][]string
	body  []byte
}

func (c *call) q(name string) string {
	if v := c.query[name]; len(v) > 0 {
		return v[0]
	}
	return ""
}

// match takes the values of the pattern's wildcards from the path.
func (c *call) match(pattern, p string) {
	_, pattern, _ = strings.Cut(pattern, " ")
	c.args = map[string]string{}
	parts := strings.Split(p, "/")
	for i, name := range strings.Split(pattern, "/") {
		if strings.HasPrefix(name, "{") && i < len(parts) {
			c.args[strings.Trim(name, "{}")] = parts[i]
		}
	}
}

// decode reads the body into v.
func (c *call) decode(v any) error {
	if err := json.Unmarshal(c.body, v); err != nil {
		return &apiError{http.StatusBadRequest, 50109, "The request body contains invalid JSON.", nil}
	}
	return nil
}

func (c *call) run(e endpoint) answer {
	v, err := e(c)
	if err != nil {
		return failure(err)
	}
	if v == nil {
		return answer{status: http.StatusNoContent}
	}
	a := answer{status: http.StatusOK, body: mustJSON(v)}
	a.set("Content-Type", "application/json")
	return a
}

// apiError is an error as Discord tells it. (Discord documentation, Opcodes and Status Codes, JSON.)
type apiError struct {
	status  int
	code    int
	message string
	errors  map[string]any
}

func (e *apiError) Error() string { return e.message }

func failure(err error) answer {
	e, ok := errors.AsType[*apiError](err)
	if !ok {
		e = &apiError{http.StatusInternalServerError, 0, "500: Internal Server Error", nil}
	}
	body := map[string]any{"message": e.message, "code": e.code}
	if e.errors != nil {
		body["errors"] = e.errors
	}
	a := answer{status: e.status, body: mustJSON(body)}
	a.set("Content-Type", "application/json")
	return a
}

// badForm is the refusal of one field.
func badForm(field, code, message string) error {
	return &apiError{http.StatusBadRequest, 50035, "Invalid Form Body", map[string]any{
		field: map[string]any{"_errors": []any{map[string]any{"code": code, "message": message}}},
	}}
}

func refused(status, code int, message string) error { return &apiError{status, code, message, nil} }

// majorOf is the part of a path that has a rate limit of its own: the room, guild or webhook.
func majorOf(p string) string {
	parts := strings.Split(p, "/")
	if len(parts) < 3 {
		return ""
	}
	switch parts[1] {
	case "channels", "guilds":
		return parts[2]
	case "webhooks":
		return strings.Join(parts[2:min(4, len(parts))], "/")
	}
	return ""
}
