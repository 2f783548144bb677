package line

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/line/line-bot-sdk-go/v8/linebot/messaging_api"
)

const (
	// callTimeout bounds one call to the API. LINE answers sends within a second; a call that takes
	// longer is not worth the minute in which a reply token is good.
	callTimeout = 10 * time.Second
	dialTimeout = 5 * time.Second
	// maxAnswer bounds the answer to an API call, in bytes.
	maxAnswer = 1 << 20

	defaultAPIBase  = "https://api.line.me"
	defaultDataBase = "https://api-data.line.me"
)

// client makes calls to the Messaging API. The SDK's own client is made anew for each call: it holds
// one token, and its WithContext changes it for everybody.
type client struct {
	http    *http.Client
	timeout time.Duration
	// blob is http for content, which may be long.
	blob   *http.Client
	base   string
	data   string
	tokens TokenSource
}

func newClient(o Options) (*client, error) {
	c := &client{base: o.APIBase, data: o.DataBase, tokens: o.Tokens}
	c.http, c.timeout = newHTTPClient(o.HTTPClient)
	blob := *c.http
	blob.Transport = bounded{next: c.http.Transport.(bounded).next, errorsOnly: true}
	c.blob = &blob
	if c.base == "" {
		c.base = defaultAPIBase
	}
	if c.data == "" {
		c.data = defaultDataBase
	}
	if err := errors.Join(checkBase("API base", c.base), checkBase("data base", c.data)); err != nil {
		return nil, err
	}
	return c, nil
}

// checkBase refuses bases to which the access token would travel in the clear.
func checkBase(what, base string) error {
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return fmt.Errorf("%s is not a plain URL such as https://api.line.me", what)
	}
	loopback := u.Hostname() == "localhost"
	if ip := net.ParseIP(u.Hostname()); ip != nil {
		loopback = ip.IsLoopback()
	}
	if u.Scheme != "https" && (u.Scheme != "http" || !loopback) {
		return fmt.Errorf("%s must be https: the access token is sent there", what)
	}
	return nil
}

// newHTTPClient returns a copy of base, or a new client, that bounds answers and follows no redirect: the
// API makes none, and the body of a redirected POST would go to another host. The timeout for each call
// is returned beside it, for the caller's context: a client's own timeout holds a goroutine until the
// body of the answer is closed, and the SDK does not close that of an error.
func newHTTPClient(base *http.Client) (*http.Client, time.Duration) {
	c := &http.Client{}
	if base != nil {
		*c = *base
	}
	timeout := c.Timeout
	if timeout <= 0 {
		timeout = callTimeout
	}
	c.Timeout = 0
	if c.Transport == nil {
		t := http.DefaultTransport.(*http.Transport).Clone()
		t.DialContext = (&net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}).DialContext
		t.TLSHandshakeTimeout = dialTimeout
		t.MaxIdleConnsPerHost = 32
		c.Transport = t
	}
	c.Transport = bounded{next: c.Transport}
	c.Jar = nil
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return c, timeout
}

// bounded limits the length of answers, which the SDK reads to their end whatever it is.
type bounded struct {
	next http.RoundTripper
	// errorsOnly leaves the content of a success to its reader.
	errorsOnly bool
}

func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := b.next.RoundTrip(r)
	if err == nil && (!b.errorsOnly || res.StatusCode/100 != 2) {
		res.Body = &boundedBody{ReadCloser: res.Body, left: maxAnswer}
	}
	return res, err
}

type boundedBody struct {
	io.ReadCloser
	left int
}

var errLongAnswer = errors.New("answer is too long")

// Read closes the body at its end, as the SDK does not close the body of an error.
func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left == 0 {
		_ = b.Close()
		return 0, errLongAnswer
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), b.left)])
	b.left -= n
	if err != nil {
		_ = b.Close()
	}
	return n, err
}

// progress notes how far a request has come.
type progress struct{ sought, found atomic.Bool }

func (p *progress) watch(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) { p.sought.Store(true) },
		GotConn: func(httptrace.GotConnInfo) { p.found.Store(true) },
	})
}

// unsent reports that surely no byte of the request has left: a connection was wanted, and there was
// none. It is never true for a transport that does not tell.
func (p *progress) unsent() bool { return p.sought.Load() && !p.found.Load() }

// call makes one call.
func (c *client) call(ctx context.Context, what string, do func(*messaging_api.MessagingApiAPI) (*http.Response, error)) result {
	return c.authorized(ctx, what, func(token string) result { return c.attempt(ctx, what, token, do) })
}

// authorized gives a call its access token. When LINE refuses it and the source has another, the call is
// made again with that: one answered 401 has done nothing.
func (c *client) authorized(ctx context.Context, what string, attempt func(token string) result) result {
	token, err := c.tokens.Token(ctx)
	if err != nil {
		return result{what: what, unsent: true, err: err}
	}
	r := attempt(token)
	if r.status != http.StatusUnauthorized {
		return r
	}
	c.tokens.Refused(token)
	if other, err := c.tokens.Token(ctx); err == nil && other != token {
		return attempt(other)
	}
	return r
}

func (c *client) attempt(ctx context.Context, what, token string, do func(*messaging_api.MessagingApiAPI) (*http.Response, error)) result {
	api, err := messaging_api.NewMessagingApiAPI(token, messaging_api.WithHTTPClient(c.http), messaging_api.WithEndpoint(c.base))
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return result{what: what, unsent: true, err: networkError(err)}
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	var p progress
	res, err := do(api.WithContext(p.watch(ctx)))
	if res == nil {
		return result{what: what, unsent: p.unsent(), err: networkError(err)}
	}
	return readResult(what, res)
}

// result is what is known of a call after it has ended.
type result struct {
	what string
	// status is 0 when there was no answer; unsent then says that LINE surely saw nothing, and err why.
	status int
	unsent bool
	err    error

	requestID  string
	reason     reason
	property   string
	sent       []messaging_api.SentMessage
	retryAfter time.Duration
}

// readResult reads an answer. The body of a success has been read by the SDK.
func readResult(what string, res *http.Response) result {
	r := result{what: what, status: res.StatusCode, requestID: safeRequestID(res.Header.Get("X-Line-Request-Id"))}
	if r.accepted() {
		return r
	}
	var body messaging_api.ErrorResponse
	raw, _ := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	_ = res.Body.Close()
	// An answer that is not LINE's, such as a proxy's page, is judged by its status alone.
	_ = json.Unmarshal(raw, &body)
	r.reason = reasonOf(body.Message)
	if len(body.Details) > 0 {
		r.property = safeProperty(body.Details[0].Property)
	}
	r.sent = body.SentMessages
	if s, err := strconv.Atoi(res.Header.Get("Retry-After")); err == nil && s > 0 {
		r.retryAfter = min(time.Duration(s)*time.Second, time.Hour)
	}
	return r
}

// accepted reports that LINE has done what was asked. A body that could not be read changes nothing.
func (r result) accepted() bool { return r.status/100 == 2 }

// refused reports that LINE has surely not done it. 408 is a proxy's word that an answer was late.
func (r result) refused() bool {
	return r.unsent || r.status >= 300 && r.status < 500 && r.status != http.StatusRequestTimeout
}
