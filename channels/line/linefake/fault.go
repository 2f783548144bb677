package linefake

import (
	"math/rand/v2"
	"net/http"
	"slices"
	"time"
)

// Endpoint names an endpoint of the API.
type Endpoint string

// The endpoints.
const (
	Reply         Endpoint = "reply"
	Push          Endpoint = "push"
	ValidateReply Endpoint = "validate reply"
	ValidatePush  Endpoint = "validate push"
	Profile       Endpoint = "profile"
	MemberProfile Endpoint = "member profile"
	BotInfo       Endpoint = "bot info"
	Quota         Endpoint = "quota"
	Consumption   Endpoint = "consumption"
	LoadingStart  Endpoint = "loading"
	MarkAsRead    Endpoint = "mark as read"
	GetContent    Endpoint = "content"
	GetPreview    Endpoint = "preview"
	Transcoding   Endpoint = "transcoding"
	IssueToken    Endpoint = "token"
)

// Loss says when the connection is lost.
type Loss uint8

// The losses.
const (
	// NotLost: the answer arrives.
	NotLost Loss = iota
	// BeforeHandling: the request arrives, and nothing comes of it.
	BeforeHandling
	// AfterHandling: the request is handled, and the answer is lost.
	AfterHandling
)

// Fault is what goes wrong with one call. The zero Fault is a call that goes well.
type Fault struct {
	// Delay is how long the request waits before it is handled; a client that leaves meanwhile has sent
	// nothing.
	Delay time.Duration
	// Lost closes the connection without an answer.
	Lost Loss
	// Status is answered instead of the endpoint's own, with Message (empty for the usual text of the
	// status) and Header. The request is handled only if Handled is set.
	Status  int
	Message string
	Header  http.Header
	Handled bool
	// Hold is how long the answer waits after the request is handled.
	Hold time.Duration
}

func (f Fault) message() string {
	if f.Message != "" {
		return f.Message
	}
	switch f.Status {
	case http.StatusTooManyRequests:
		return RateLimit
	case http.StatusUnauthorized:
		return InvalidToken
	case http.StatusForbidden:
		return NotAvailable
	case http.StatusNotFound:
		return NotFound
	case http.StatusInternalServerError:
		return InternalError
	}
	return http.StatusText(f.Status)
}

// Plan decides the fault of each call for which none was injected. It is called for one call at a time
// and must not call the Server.
type Plan func(Call) Fault

// Inject lets the next calls to the endpoint go wrong, one fault a call, in order.
func (s *Server) Inject(ep Endpoint, faults ...Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults[ep] = append(s.faults[ep], faults...)
}

// SetPlan sets the plan for every other call; nil for none.
func (s *Server) SetPlan(p Plan) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.plan = p
}

func (s *Server) nextFault(c Call) Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	if q := s.faults[c.Endpoint]; len(q) > 0 {
		s.faults[c.Endpoint] = q[1:]
		return q[0]
	}
	if s.plan != nil {
		return s.plan(c)
	}
	return Fault{}
}

// Odds are the chances, from 0 to 1, of each kind of fault of a RandomPlan.
type Odds struct {
	// Refused: 500 without handling. Accepted: handled, and still 500. Limited: 429.
	Refused, Accepted, Limited float64
	// Dropped: the connection is lost before, AnswerLost: after handling.
	Dropped, AnswerLost float64
	// Slow: delayed by up to MaxDelay.
	Slow     float64
	MaxDelay time.Duration
}

// RandomPlan makes calls to the endpoints go wrong by chance; the same seed gives the same sequence. No
// endpoints means all.
func RandomPlan(seed uint64, o Odds, endpoints ...Endpoint) Plan {
	rng := rand.New(rand.NewPCG(seed, 0x6661756c74))
	return func(c Call) Fault {
		if len(endpoints) > 0 && !slices.Contains(endpoints, c.Endpoint) {
			return Fault{}
		}
		var f Fault
		if rng.Float64() < o.Slow {
			f.Delay = time.Duration(rng.Float64() * float64(o.MaxDelay))
		}
		p := rng.Float64()
		for _, kind := range []struct {
			odds float64
			set  func()
		}{
			{o.Refused, func() { f.Status = http.StatusInternalServerError }},
			{o.Accepted, func() { f.Status, f.Handled = http.StatusInternalServerError, true }},
			{o.Limited, func() { f.Status = http.StatusTooManyRequests }},
			{o.Dropped, func() { f.Lost = BeforeHandling }},
			{o.AnswerLost, func() { f.Lost = AfterHandling }},
		} {
			if p < kind.odds {
				kind.set()
				break
			}
			p -= kind.odds
		}
		return f
	}
}

// Call is one request to the API.
type Call struct {
	Endpoint Endpoint
	// Bot is the ID of the bot whose token was used, empty for an unknown token.
	Bot       string
	At        time.Time
	RequestID string
	RetryKey  string
	// Status is the status answered, whether or not it arrived; Message is LINE's text for an error.
	Status  int
	Message string
	// Handled is false when a fault kept the request from being looked at.
	Handled bool
	// Note tells of something that LINE bears and no client should do.
	Note string
}

// record keeps the call.
func (s *Server) record(c Call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, c)
	if k := s.opts.Keep; k > 0 && len(s.calls) > k {
		s.calls = slices.Delete(s.calls, 0, len(s.calls)-k)
	}
}

// Calls returns the calls to the endpoints, all when none is named, oldest first.
func (s *Server) Calls(endpoints ...Endpoint) []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Call
	for _, c := range s.calls {
		if len(endpoints) == 0 || slices.Contains(endpoints, c.Endpoint) {
			out = append(out, c)
		}
	}
	return out
}
