package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"botd/channels/dispatch"
	"botd/sessionstore"
)

// Limits of the HTTP server. Answers have writeTimeout for each piece of them, however long the whole is.
const (
	readTimeout    = 10 * time.Second
	writeTimeout   = 30 * time.Second
	idleTimeout    = 2 * time.Minute
	maxHeaderBytes = 16 << 10
	// maxBody bounds the body of a request, in bytes.
	maxBody = 64 << 10
	// actTimeout bounds a reset, which waits for a turn that is being committed.
	actTimeout = 30 * time.Second
)

// Dispatcher is what the API needs of the dispatcher.
type Dispatcher interface {
	// Reset forgets a session so that a turn begun before cannot write to it.
	Reset(ctx context.Context, id sessionstore.ID) error
	// Wake makes changes of the journal known.
	Wake(ctx context.Context) error
	// Ready returns nil while events are answered.
	Ready() error
}

// Options configure a Server. Store and Journal are needed.
type Options struct {
	Store   sessionstore.Store
	Journal dispatch.Journal
	// Dispatcher is the one that runs over the journal. Nil: none does in any process.
	Dispatcher Dispatcher
	// Channels tells the state of every channel; nil: there are none.
	Channels func() []Channel
	// Level is the log level that can be changed; nil: it cannot.
	Level *slog.LevelVar
	// Logger gets what an operator should know, and the audit when the store keeps none. Nil discards it.
	Logger *slog.Logger
}

// Server is the API. See the package comment.
type Server struct {
	opts    Options
	log     *slog.Logger
	auditor Auditor
	http    *http.Server

	// life ends when requests that are under way are cut off.
	life context.Context
	end  context.CancelFunc
	// work is held shared by each request, and as a whole to wait for them; closed is guarded by it.
	work   sync.RWMutex
	closed bool

	// settling keeps two acts from working on one delivery.
	settling sync.Mutex
}

// New returns a Server.
func New(o Options) *Server {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Channels == nil {
		o.Channels = func() []Channel { return nil }
	}
	s := &Server{opts: o, log: o.Logger}
	s.auditor, _ = o.Store.(Auditor)
	s.life, s.end = context.WithCancel(context.Background())
	s.http = &http.Server{
		Handler:           s.Handler(),
		ReadHeaderTimeout: readTimeout,
		ReadTimeout:       readTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ConnContext:       withPeer,
		BaseContext:       func(net.Listener) context.Context { return s.life },
		ErrorLog:          slog.NewLogLogger(o.Logger.Handler(), slog.LevelDebug),
	}
	return s
}

// Serve answers on l until Shutdown, and returns nil then.
func (s *Server) Serve(l net.Listener) error {
	if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve admin API: %w", err)
	}
	return nil
}

// Shutdown closes the listener and waits for the requests under way; those that ctx does not leave time
// for are cut off. Nothing works on the store any more when it returns.
func (s *Server) Shutdown(ctx context.Context) error {
	err := s.http.Shutdown(ctx)
	s.end()
	if err != nil {
		err = errors.Join(err, s.http.Close())
	}
	s.work.Lock()
	defer s.work.Unlock()
	s.closed = true
	return err
}

// handler answers a request; a Problem is made of the error.
type handler func(w http.ResponseWriter, r *http.Request) error

// route is one operation.
type route struct {
	method, path string
	// act is the operation's name in the audit, empty when it concerns nobody.
	act   string
	serve handler
}

func (s *Server) routes() []route {
	return []route{
		{"GET", "/v1/sessions", "session.list", s.listSessions},
		{"GET", "/v1/sessions/{id}", "session.look", s.getSession},
		{"GET", "/v1/sessions/{id}/items", "session.read", s.getItems},
		{"GET", "/v1/sessions/{id}/export", "session.export", s.exportSession},
		{"POST", "/v1/sessions/{id}/reset", "session.reset", s.resetSession},
		{"POST", "/v1/sessions/{id}/restore", "session.restore", s.restoreSession},
		{"DELETE", "/v1/sessions/{id}", "session.erase", s.eraseSession},
		{"GET", "/v1/deliveries", "delivery.list", s.listDeliveries},
		{"POST", "/v1/deliveries/{seq}/retry", "delivery.retry", s.retryDelivery},
		{"POST", "/v1/deliveries/{seq}/drop", "delivery.drop", s.dropDelivery},
		{"GET", "/v1/dead-events", "event.list", s.listDeadEvents},
		{"POST", "/v1/dead-events/{seq}/revive", "event.revive", s.reviveEvent},
		{"GET", "/v1/stats", "", s.getStats},
		{"GET", "/v1/channels", "", s.getChannels},
		{"GET", "/v1/log-level", "", s.getLogLevel},
		{"PUT", "/v1/log-level", "log.level", s.putLogLevel},
		{"GET", "/v1/backup", "store.backup", s.backup},
		{"POST", "/v1/verify", "store.verify", s.verify},
		{"GET", "/v1/openapi.json", "", s.getOpenAPI},
	}
}

// Handler returns the handler of the API.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	methods := map[string][]string{}
	for _, rt := range s.routes() {
		serve := rt.serve
		if rt.act != "" {
			serve = s.audited(rt.act, serve)
		}
		mux.Handle(rt.method+" "+rt.path, s.answer(serve))
		methods[rt.path] = append(methods[rt.path], rt.method)
	}
	for path, allowed := range methods {
		slices.Sort(allowed)
		mux.Handle(path, s.answer(func(w http.ResponseWriter, r *http.Request) error {
			w.Header().Set("Allow", strings.Join(allowed, ", "))
			return problem(CodeMethod, "%s is not among the methods of this path: %s", r.Method, strings.Join(allowed, ", "))
		}))
	}
	mux.Handle("/", s.answer(func(http.ResponseWriter, *http.Request) error {
		return problem(CodeNoPath, "see docs/admin.md for the paths")
	}))
	sameSite := http.NewCrossOriginProtection()
	sameSite.SetDenyHandler(s.answer(func(http.ResponseWriter, *http.Request) error {
		return problem(CodeForbidden, "a page of another site may not use this API")
	}))
	return sameSite.Handler(mux)
}

// answer makes an http.Handler of a handler: it takes the body in, keeps the client to its time, and turns
// errors and panics into problems.
func (s *Server) answer(serve handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		res := &response{ResponseWriter: w, control: http.NewResponseController(w)}
		res.extend()
		res.Header().Set("Cache-Control", "no-store")
		res.Header().Set("X-Content-Type-Options", "nosniff")
		err := s.guarded(serve, res, r)
		switch {
		case err == nil:
		case res.begun:
			s.log.Warn("answer cut off", "path", pattern(r), "err", err)
			panic(http.ErrAbortHandler) // so that the client sees that it is not whole
		default:
			p := problemOf(err)
			if p.Code == CodeInternal {
				s.log.Error("admin request failed", "path", pattern(r), "err", err)
			}
			p.write(res)
		}
	})
}

// pattern is the path of a request without what it names, for the log.
func pattern(r *http.Request) string {
	_, path, _ := strings.Cut(r.Pattern, " ")
	return path
}

// guarded turns a panic into an error that says where it was.
func (s *Server) guarded(serve handler, w http.ResponseWriter, r *http.Request) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic with a %T in %s", v, pattern(r)) // its value could hold anything
		}
	}()
	s.work.RLock()
	defer s.work.RUnlock()
	if s.closed {
		return problem(CodeDraining, "the gateway is about to stop")
	}
	if !peerFrom(r.Context()).permitted() {
		return problem(CodeForbidden, "only root and the user of the gateway may use this API")
	}
	if err := takeBody(w, r); err != nil {
		return err
	}
	return serve(w, r)
}

// takeBody reads the whole body, so that the time for reading it is over before work begins.
func takeBody(w http.ResponseWriter, r *http.Request) error {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
			return err
		}
		return problem(CodeInvalidRequest, "the body did not arrive")
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	r.ContentLength = int64(len(body))
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // within the process there is none
	return nil
}

// decode reads the JSON body into v; an empty body leaves it as it is.
func decode(r *http.Request, v any) error {
	if r.ContentLength == 0 {
		return nil
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return problem(CodeMediaType, "send Content-Type: application/json")
	}
	dec := json.NewDecoder(r.Body)
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return problem(CodeInvalidRequest, "the body is not the JSON object that is asked for: %v", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return problem(CodeInvalidRequest, "the body goes on after its JSON object")
	}
	return nil
}

// reply writes v as the answer.
func reply(w http.ResponseWriter, v any) error {
	w.Header().Set("Content-Type", "application/json")
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// response gives the client some time for each piece of an answer.
type response struct {
	http.ResponseWriter
	control *http.ResponseController
	begun   bool
}

func (w *response) extend() { _ = w.control.SetWriteDeadline(time.Now().Add(writeTimeout)) }

func (w *response) WriteHeader(status int) {
	w.begun = true
	w.extend()
	w.ResponseWriter.WriteHeader(status)
}

func (w *response) Write(p []byte) (int, error) {
	w.begun = true
	w.extend()
	return w.ResponseWriter.Write(p)
}

// Unwrap is for http.ResponseController.
func (w *response) Unwrap() http.ResponseWriter { return w.ResponseWriter }
