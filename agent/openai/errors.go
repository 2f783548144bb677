package openai

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	openai "github.com/openai/openai-go/v3"
	"github.com/tidwall/gjson"

	"botd/agent"
)

// failure is all that is known about a request that did not succeed.
type failure struct {
	// status is the HTTP status, 0 when the failure came within an answer or before any.
	status           int
	code, typ, param string
	// message is in the provider's words. It sorts the failure and goes no further.
	message string
	// cause is set when there was no word from the provider.
	cause      error
	retryAfter time.Duration
	requestID  string
}

// Error implements error for failures found within an answer.
func (f *failure) Error() string { return f.describe() }

// early is the failure of an answer that stops without its end.
func early(what string) *failure { return &failure{cause: errors.New(what)} }

// failureOf sorts any error of the library, the transport or the reading of an answer.
func failureOf(err error, resp *http.Response) *failure {
	f, ok := errors.AsType[*failure](err)
	if !ok {
		f = &failure{cause: plain(err)}
		if e, ok := errors.AsType[*openai.Error](err); ok {
			f = &failure{status: e.StatusCode, code: e.Code, typ: e.Type, param: e.Param, message: e.Message}
			resp = e.Response
		}
	}
	if resp != nil {
		f.requestID = requestID(resp)
		f.retryAfter = retryAfter(resp.Header, time.Now())
	}
	return f
}

// plain takes the URL out of an error: it may hold a password.
func plain(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}

// failureFromJSON reads {"error":{…}} or an error event, whose fields may lie flat.
func failureFromJSON(raw []byte) *failure {
	v := gjson.ParseBytes(raw)
	e := v.Get("error")
	if !e.IsObject() {
		if e.Type == gjson.String {
			return &failure{message: e.Str, code: v.Get("code").String()}
		}
		e = v
	}
	f := &failure{
		code: e.Get("code").String(), typ: e.Get("type").String(),
		param: e.Get("param").String(), message: e.Get("message").String(),
	}
	// Some providers put an HTTP status in the code of an error within an answer.
	if n, err := strconv.Atoi(f.code); err == nil && n >= 400 && n < 600 {
		f.status = n
	}
	return f
}

var (
	overflowRE = regexp.MustCompile(`(?i)context[ _-]?(?:length|window|size)|maximum context|prompt is too long|too many tokens|too many input tokens|input (?:is|was) too long|request too large|exceeds? the (?:available |model's )?(?:context|maximum)|token limit`)
	quotaRE    = regexp.MustCompile(`(?i)exceeded your current quota|insufficient[ _](?:quota|balance|credits?|funds)|credit balance|billing`)
	noModelRE  = regexp.MustCompile(`(?i)\bmodel\b.{0,200}\b(?:not found|does not exist|doesn't exist|not supported|unknown|no such)|\b(?:no such|unknown|invalid) model\b|try pulling it`)
	reasonRE   = regexp.MustCompile(`(?i)encrypted content.*(?:verif|decrypt|decod)|without its required|Items are not persisted|item with id '?(?:rs|msg|fc|cmp)_`)
	filterRE   = regexp.MustCompile(`(?i)content[ _-](?:filter|policy|management)|safety (?:system|policy)|moderation|flagged`)
	noPathRE   = regexp.MustCompile(`(?i)/?responses\b`)
)

func (f *failure) outOfCredit() bool {
	switch f.code {
	case "insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "insufficient_credits":
		return true
	}
	return f.status == http.StatusPaymentRequired || f.typ == "insufficient_quota" ||
		f.status == http.StatusTooManyRequests && quotaRE.MatchString(f.message)
}

// kind sorts a failure by what can be done about it.
func (f *failure) kind() agent.ErrorKind {
	if f.cause != nil {
		return agent.Transient
	}
	is := func(re *regexp.Regexp, codes ...string) bool {
		for _, c := range codes {
			if f.code == c || f.typ == c {
				return true
			}
		}
		return re.MatchString(f.message)
	}
	refused := f.status == 0 || f.status == 400 || f.status == 404 || f.status == 422
	switch {
	case f.outOfCredit():
		return agent.QuotaExhausted
	case f.status == http.StatusRequestEntityTooLarge,
		f.status != http.StatusTooManyRequests && is(overflowRE, "context_length_exceeded", "exceed_context_size_error"):
		return agent.ContextOverflow
	case f.status == http.StatusTooManyRequests || f.code == "rate_limit_exceeded" || f.typ == "rate_limit_error":
		return agent.RateLimited
	case refused && is(reasonRE, "invalid_encrypted_content"):
		return agent.BadReasoning
	case f.status < 500 && is(filterRE, "content_filter", "content_policy_violation", "bio_policy", "cyber_policy"):
		return agent.Filtered
	case f.status == http.StatusUnauthorized, f.status == http.StatusForbidden, f.code == "invalid_api_key":
		return agent.Unauthorized
	case refused && is(noModelRE, "model_not_found"):
		return agent.ModelNotFound
	case f.status == http.StatusRequestTimeout, f.status == http.StatusConflict, f.status >= 500:
		return agent.Transient
	case f.status == 0 && f.code != "invalid_prompt" && f.typ != "invalid_request_error":
		return agent.Transient // within an answer: the request itself was taken
	}
	return agent.InvalidRequest
}

// describe tells a failure without the provider's words.
func (f *failure) describe() string {
	if f.cause != nil {
		return f.cause.Error()
	}
	var parts []string
	if f.status > 0 {
		parts = append(parts, strings.TrimSpace(fmt.Sprintf("status %d %s", f.status, http.StatusText(f.status))))
	}
	for _, p := range []struct{ name, value string }{{"code", f.code}, {"type", f.typ}, {"parameter", f.param}} {
		if v := word(p.value); v != "" {
			parts = append(parts, p.name+" "+v)
		}
	}
	if len(parts) == 0 {
		return "the provider reports a failure without a code"
	}
	return strings.Join(parts, ", ")
}

var notWordRE = regexp.MustCompile(`[^a-zA-Z0-9_.\[\]-]+`)

// word keeps a provider's identifier from carrying anything else.
func word(s string) string {
	s = notWordRE.ReplaceAllString(s, "_")
	return s[:min(len(s), 64)]
}

func (f *failure) toError() error {
	if errors.Is(f.cause, context.Canceled) || errors.Is(f.cause, context.DeadlineExceeded) {
		return f.cause
	}
	cause := f.cause
	if cause == nil {
		cause = f
	}
	if errors.Is(cause, io.ErrUnexpectedEOF) || errors.Is(cause, io.EOF) {
		cause = fmt.Errorf("the connection was cut: %w", cause)
	}
	return &agent.Error{Kind: f.kind(), RetryAfter: f.retryAfter, RequestID: f.requestID, Err: cause}
}

// lacksResponses reports whether an error says that the provider has no Responses API.
func lacksResponses(err error) bool {
	e, ok := errors.AsType[*agent.Error](err)
	if !ok || e.Kind == agent.ModelNotFound {
		return false
	}
	f, ok := errors.AsType[*failure](err)
	if !ok {
		return false
	}
	switch f.status {
	case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotImplemented:
		return e.Kind != agent.BadReasoning
	case http.StatusBadRequest:
		return noPathRE.MatchString(f.message)
	}
	return false
}

// requestID is the provider's name for the request, cleaned of anything else.
func requestID(resp *http.Response) string {
	for _, h := range []string{"X-Request-Id", "Apim-Request-Id", "Request-Id", "X-Generation-Id"} {
		if id := word(resp.Header.Get(h)); id != "" {
			return id
		}
	}
	return ""
}

// retryAfter is how long a response asks to wait.
func retryAfter(h http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms > 0 {
		return bounded(ms * float64(time.Millisecond))
	}
	v := h.Get("Retry-After")
	if s, err := strconv.ParseFloat(v, 64); err == nil && s > 0 {
		return bounded(s * float64(time.Second))
	}
	if at, err := http.ParseTime(v); err == nil && at.After(now) {
		return bounded(float64(at.Sub(now)))
	}
	return 0
}

// bounded keeps what a server asks for within a day.
func bounded(d float64) time.Duration { return time.Duration(min(d, float64(24*time.Hour))) }
