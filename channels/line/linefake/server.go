package linefake

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// maxBody is the largest request body that LINE takes, in bytes.
const maxBody = 2 << 20

// Options configures a Server. The zero value is a platform that behaves as LINE does.
type Options struct {
	// Now is the clock for token ages, quotas and timestamps; nil for time.Now.
	Now func() time.Time
	// Transport carries the webhooks; nil for a transport of the server's own. See HandlerTransport.
	Transport http.RoundTripper
	// AckTimeout is how long a webhook may take to be acknowledged; 0 for LINE's 2 seconds.
	AckTimeout time.Duration
	// RatePerSecond is how many calls an endpoint takes per bot and second; 0 for LINE's 2000.
	RatePerSecond int
	// Keep is how many bubbles are kept per chat and how many calls in all, the oldest go first; 0 keeps
	// everything.
	Keep int
	// Seed makes the IDs that the server gives out; the same seed gives the same ones in the same order.
	Seed uint64
}

// Server is one LINE Platform. It is an http.Handler for the API and, with Listen, a server of its own.
type Server struct {
	opts   Options
	client *http.Client
	mux    *http.ServeMux

	stop    context.Context
	stopNow context.CancelFunc
	running sync.WaitGroup

	mu      sync.Mutex
	http    *http.Server
	url     string
	rng     *rand.Rand
	bots    map[string]*Bot
	users   map[string]*User
	chats   map[chatKey]*Chat
	tokens  map[string]accessToken
	replies map[string]*replyToken
	keys    map[string]acceptedKey
	quotes  map[string]quotable
	reads   map[string]string
	media   map[string]*content
	rates   map[string]rate
	calls   []Call
	faults  map[Endpoint][]Fault
	plan    Plan
	subs    map[*subscriber]struct{}
	changed chan struct{}
}

// New returns a platform without bots or people. Close it after use.
func New(o Options) *Server {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.AckTimeout == 0 {
		o.AckTimeout = 2 * time.Second
	}
	if o.RatePerSecond == 0 {
		o.RatePerSecond = 2000
	}
	if o.Transport == nil {
		t := http.DefaultTransport.(*http.Transport).Clone()
		t.Proxy = nil
		t.MaxIdleConnsPerHost = 64
		o.Transport = t
	}
	stop, stopNow := context.WithCancel(context.Background())
	s := &Server{
		opts: o,
		client: &http.Client{Transport: o.Transport, CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		}},
		stop: stop, stopNow: stopNow,
		rng:     rand.New(rand.NewPCG(o.Seed, 0x6c696e65)),
		bots:    map[string]*Bot{},
		users:   map[string]*User{},
		chats:   map[chatKey]*Chat{},
		tokens:  map[string]accessToken{},
		replies: map[string]*replyToken{},
		keys:    map[string]acceptedKey{},
		quotes:  map[string]quotable{},
		reads:   map[string]string{},
		media:   map[string]*content{},
		rates:   map[string]rate{},
		faults:  map[Endpoint][]Fault{},
		subs:    map[*subscriber]struct{}{},
		changed: make(chan struct{}),
	}
	s.mux = s.routes()
	return s
}

// Listen serves the API on addr, which must name a loopback host; port 0 takes a free one.
func (s *Server) Listen(addr string) error {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("listen on %q: %w", addr, err)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("listen on %q: only loopback addresses are served", addr)
	}
	ln, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", addr)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	srv := &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.http != nil {
		return errors.Join(errors.New("already listening"), ln.Close())
	}
	s.http, s.url = srv, "http://"+ln.Addr().String()
	s.running.Go(func() { _ = srv.Serve(ln) })
	return nil
}

// URL is the base of the API and of the content endpoints; before Listen, a name that only Transport
// knows.
func (s *Server) URL() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.url == "" {
		return "https://api.line.test"
	}
	return s.url
}

// Close stops serving, redelivering and publishing, and waits until that has ended.
func (s *Server) Close() error {
	s.stopNow()
	s.mu.Lock()
	srv := s.http
	s.dropSubscribers()
	s.mu.Unlock()
	var err error
	if srv != nil {
		err = srv.Close()
	}
	s.running.Wait()
	s.client.CloseIdleConnections()
	return err
}

// Transport calls the API without a socket, as HandlerTransport(s).
func (s *Server) Transport() http.RoundTripper { return HandlerTransport(s) }

// ServeHTTP answers one call to the API.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// request is one call on its way through an endpoint.
type request struct {
	*http.Request
	bot  *Bot
	body []byte
	id   string
	now  time.Time
}

// into decodes the body, which must be JSON as such and by its content type.
func (r *request) into(v any) *answer {
	if ct := r.Header.Get("Content-Type"); !strings.HasPrefix(ct, "application/json") {
		a := refuse(http.StatusUnsupportedMediaType, fmt.Sprintf("The content type, %s, is not supported", ct))
		return &a
	}
	if err := json.Unmarshal(r.body, v); err != nil {
		a := refuse(http.StatusBadRequest, "The request body could not be parsed as JSON (line: 1, column: 1)")
		return &a
	}
	return nil
}

// serve runs one endpoint with its faults, and keeps the record of calls.
func (s *Server) serve(ep Endpoint, handle func(*request) answer) http.HandlerFunc {
	return func(w http.ResponseWriter, hr *http.Request) {
		r := &request{Request: hr, id: s.requestID(), now: s.opts.Now()}
		body, err := io.ReadAll(io.LimitReader(hr.Body, maxBody+1))
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		r.body = body
		r.bot = s.botFor(bearer(hr), r.now)
		call := Call{Endpoint: ep, At: r.now, RequestID: r.id, RetryKey: hr.Header.Get(retryKeyHeader)}
		if r.bot != nil {
			call.Bot = r.bot.ID
		}
		f := s.nextFault(call)
		if !s.wait(hr.Context(), f.Delay) || f.Lost == BeforeHandling {
			s.record(call)
			panic(http.ErrAbortHandler)
		}
		var a answer
		if f.Status == 0 || f.Handled {
			a = s.handle(ep, r, handle)
			call.Handled = true
		}
		if f.Status != 0 {
			a = refuse(f.Status, f.message())
			a.header = f.Header
		}
		call.Status, call.Note = a.status, a.note
		if e, isError := a.body.(errorBody); isError {
			call.Message = e.Message
		}
		s.record(call)
		if !s.wait(hr.Context(), f.Hold) || f.Lost == AfterHandling {
			panic(http.ErrAbortHandler)
		}
		a.write(w, r.id)
	}
}

// handle checks what every endpoint checks and then asks the endpoint.
func (s *Server) handle(ep Endpoint, r *request, handle func(*request) answer) answer {
	switch {
	case len(r.body) > maxBody:
		return refuse(http.StatusRequestEntityTooLarge, "Payload Too Large")
	case ep == IssueToken:
		return handle(r)
	case r.Header.Get("Authorization") == "":
		return refuse(http.StatusUnauthorized, NoToken)
	case r.bot == nil:
		return refuse(http.StatusUnauthorized, InvalidToken)
	case !s.admit(ep, r):
		return refuse(http.StatusTooManyRequests, RateLimit)
	}
	return handle(r)
}

// wait sleeps for d and reports whether caller and platform are still there.
func (s *Server) wait(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
	case <-s.stop.Done():
	}
	return false
}

func (a answer) write(w http.ResponseWriter, id string) {
	h := w.Header()
	h.Set("X-Line-Request-Id", id)
	for k, v := range a.header {
		h[http.CanonicalHeaderKey(k)] = v
	}
	if a.mime != "" {
		h.Set("Content-Type", a.mime)
		w.WriteHeader(a.status)
		_, _ = w.Write(a.blob)
		return
	}
	if a.body == nil {
		w.WriteHeader(a.status)
		return
	}
	h.Set("Content-Type", "application/json")
	w.WriteHeader(a.status)
	_ = json.NewEncoder(w).Encode(a.body)
}

// bearer returns the token of the Authorization header, empty when there is none.
func bearer(r *http.Request) string {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if scheme != "Bearer" {
		return ""
	}
	return token
}
