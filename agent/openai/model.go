package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	openai "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"botd/agent"
)

// Defaults of Options.
const (
	DefaultBaseURL     = "https://api.openai.com/v1"
	DefaultIdleTimeout = 2 * time.Minute
	DefaultMaxRetries  = 2
)

// maxRetryDelay is the longest that a retry waits here; a provider that asks for more is left to the
// caller, who may ask another.
const maxRetryDelay = 8 * time.Second

// API is one of the two APIs that a provider may speak.
type API uint8

const (
	// Auto tries Responses first and remembers when a provider has only Chat Completions.
	Auto API = iota
	// Responses is POST /responses.
	Responses
	// Chat is POST /chat/completions.
	Chat
)

// Dialect says which fields a provider understands: many refuse a request with a field they do not know.
type Dialect uint8

const (
	// Detect takes the dialect from the host of the base URL.
	Detect Dialect = iota
	// OpenAI is OpenAI itself.
	OpenAI
	// Azure is Azure OpenAI by its v1 API.
	Azure
	// Generic is any other server: it gets only the fields that all of them know.
	Generic
)

// Options configures a Model.
type Options struct {
	// BaseURL ends before the name of the API; empty: DefaultBaseURL.
	BaseURL string
	// APIKey is sent as a bearer token; empty: none is sent.
	APIKey  string
	API     API
	Dialect Dialect
	// Transport carries the requests; nil: one of its own, with the proxy of the environment.
	Transport http.RoundTripper
	// IdleTimeout ends a request when not a byte came for so long, keep-alives included; 0:
	// DefaultIdleTimeout.
	IdleTimeout time.Duration
	// MaxRetries is how often a request is repeated before anything of an answer came; 0:
	// DefaultMaxRetries, negative: never.
	MaxRetries int
	// Headers are added to every request.
	Headers map[string]string
	// Logger gets what was found out about the provider; nil: nothing is logged.
	Logger *slog.Logger
}

// Model is an agent.Model over HTTP.
type Model struct {
	// post is openai.Client.Post. A field of the Client's own type would bring the code of every OpenAI
	// service into the binary, 1.3 MB.
	post    func(ctx context.Context, path string, params, res any, opts ...option.RequestOption) error
	api     API
	dialect Dialect
	log     *slog.Logger
	idle    func()
	// found is the API that was found to work, Auto before any did.
	found atomic.Uint32
}

var _ agent.Model = (*Model)(nil)

// New returns a model. It does not contact the provider.
func New(o Options) (*Model, error) {
	if o.BaseURL == "" {
		o.BaseURL = DefaultBaseURL
	}
	base, err := url.Parse(o.BaseURL)
	if err != nil {
		return nil, errors.New("base URL cannot be parsed") // the cause quotes the URL, which may hold a password
	}
	if base.Scheme != "http" && base.Scheme != "https" || base.Host == "" {
		return nil, errors.New("base URL must be http:// or https:// and name a host")
	}
	if o.Dialect == Detect {
		o.Dialect = detect(base)
	}
	if o.API > Chat || o.Dialect > Generic {
		return nil, fmt.Errorf("unknown API %d or dialect %d", o.API, o.Dialect)
	}
	if o.IdleTimeout <= 0 {
		o.IdleTimeout = DefaultIdleTimeout
	}
	switch {
	case o.MaxRetries == 0:
		o.MaxRetries = DefaultMaxRetries
	case o.MaxRetries < 0:
		o.MaxRetries = 0
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	m := &Model{api: o.API, dialect: o.Dialect, log: o.Logger}
	m.found.Store(uint32(o.API))
	if o.Transport == nil {
		own := http.DefaultTransport.(*http.Transport).Clone()
		o.Transport, m.idle = own, own.CloseIdleConnections
	}
	opts := []option.RequestOption{
		option.WithBaseURL(o.BaseURL),
		option.WithHTTPClient(&http.Client{Transport: &transport{next: o.Transport, idle: o.IdleTimeout}}),
		option.WithMaxRetries(o.MaxRetries),
		option.WithMaxRetryDelay(maxRetryDelay),
		option.WithHeader("Accept", "text/event-stream"),
	}
	if o.APIKey != "" {
		opts = append(opts, option.WithAPIKey(o.APIKey))
	}
	for k, v := range o.Headers {
		opts = append(opts, option.WithHeader(k, v))
	}
	// Not openai.NewClient, which reads the environment.
	client := openai.Client{Options: opts}
	m.post = client.Post
	return m, nil
}

func detect(base *url.URL) Dialect {
	switch host := strings.ToLower(base.Hostname()); {
	case host == "api.openai.com" || strings.HasSuffix(host, ".api.openai.com"):
		return OpenAI
	case strings.HasSuffix(host, ".openai.azure.com"), strings.HasSuffix(host, ".services.ai.azure.com"):
		return Azure
	}
	return Generic
}

// Close drops the idle connections. The model may still be used.
func (m *Model) Close() {
	if m.idle != nil {
		m.idle()
	}
}

// driver speaks one API.
type driver struct {
	path string
	// params makes the body of a request, read reads the answer.
	params func(d Dialect, req *agent.Request) ([]byte, error)
	read   func(resp *http.Response, req *agent.Request, yield func(agent.ModelEvent, error) bool) (*agent.Completion, error)
}

// errStopped ends the reading of an answer whose consumer has stopped.
var errStopped = errors.New("iteration stopped")

// Stream implements agent.Model.
func (m *Model) Stream(ctx context.Context, req *agent.Request) iter.Seq2[agent.ModelEvent, error] {
	return func(yield func(agent.ModelEvent, error) bool) {
		done, err := m.answer(ctx, req, yield)
		switch {
		case errors.Is(err, errStopped):
		case err != nil && ctx.Err() != nil:
			yield(agent.ModelEvent{}, ctx.Err())
		case err != nil:
			yield(agent.ModelEvent{}, err)
		default:
			yield(agent.ModelEvent{Done: done}, nil)
		}
	}
}

func (m *Model) answer(ctx context.Context, req *agent.Request, yield func(agent.ModelEvent, error) bool) (*agent.Completion, error) {
	switch API(m.found.Load()) {
	case Responses:
		return m.call(ctx, responsesDriver, req, yield)
	case Chat:
		return m.call(ctx, chatDriver, req, yield)
	}
	done, err := m.call(ctx, responsesDriver, req, yield)
	if !lacksResponses(err) {
		if err == nil {
			m.found.Store(uint32(Responses))
		}
		return done, err
	}
	done, err = m.call(ctx, chatDriver, req, yield)
	if err == nil && m.found.CompareAndSwap(uint32(Auto), uint32(Chat)) {
		m.log.Info("provider has no Responses API, using Chat Completions")
	}
	return done, err
}

// call makes one request by one API.
func (m *Model) call(ctx context.Context, d *driver, req *agent.Request, yield func(agent.ModelEvent, error) bool) (*agent.Completion, error) {
	body, err := d.params(m.dialect, req)
	if err != nil {
		return nil, &agent.Error{Kind: agent.InvalidRequest, Err: fmt.Errorf("write request: %w", err)}
	}
	var resp *http.Response
	if err := m.post(ctx, d.path, body, &resp); err != nil {
		return nil, fmt.Errorf("post %s: %w", d.path, failureOf(err, resp).toError())
	}
	defer resp.Body.Close()
	done, err := d.read(resp, req, yield)
	if err != nil {
		if errors.Is(err, errStopped) {
			return nil, err
		}
		return nil, fmt.Errorf("read %s: %w", d.path, failureOf(err, resp).toError())
	}
	done.RequestID = requestID(resp)
	return done, nil
}

// withConversation adds the conversation to the fields of a request. The library would copy the items, the
// bulk of every request, several times over.
func withConversation(fields []byte, name string, items []json.RawMessage) []byte {
	n := len(fields) + len(name) + 32
	for _, raw := range items {
		n += len(raw) + 1
	}
	b := append(make([]byte, 0, n), bytes.TrimSuffix(fields, []byte("}"))...)
	b = append(b, `,"stream":true,"`+name+`":[`...)
	for i, raw := range items {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, raw...)
	}
	return append(b, "]}"...)
}

// estimate fills in a usage that the provider did not tell.
func estimate(u agent.Usage, req *agent.Request, items []json.RawMessage) agent.Usage {
	u.Requests = 1
	if u.InputTokens > 0 || u.OutputTokens > 0 {
		return u
	}
	u.Estimated = true
	u.InputTokens = agent.EstimateTokens([]byte(req.Instructions))
	for _, raw := range req.Input {
		u.InputTokens += agent.EstimateTokens(raw)
	}
	for _, raw := range items {
		u.OutputTokens += agent.EstimateTokens(raw)
	}
	return u
}
