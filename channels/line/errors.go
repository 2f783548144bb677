package line

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"

	"botd/channels"
)

// reason is what LINE's text for an error means (Messaging API reference, Error messages). The text
// itself is never passed on: nothing says that it repeats no part of the request.
type reason string

const (
	noReason       reason = ""
	badReplyToken  reason = "invalid reply token"
	badQuoteToken  reason = "invalid quote token"
	monthlyLimit   reason = "monthly limit reached"
	rateLimit      reason = "rate limit exceeded"
	failedToSend   reason = "failed to send messages"
	badMessages    reason = "the request body has errors"
	badProperty    reason = "a property in the request body is invalid"
	badJSON        reason = "the request body could not be parsed"
	badToken       reason = "access token refused"
	notAvailable   reason = "the API is not available for this account"
	notFound       reason = "not found"
	retryKeyKnown  reason = "retry key already accepted"
	badClient      reason = "channel ID or secret refused"
	badTokenSource reason = "token request refused"
)

// reasons is searched in order for the beginning of LINE's text.
var reasons = []struct {
	text   string
	reason reason
}{
	{"Invalid reply token", badReplyToken},
	{"Invalid quote token", badQuoteToken},
	{"You have reached your monthly limit", monthlyLimit},
	{"The API rate limit has been exceeded", rateLimit},
	{"Failed to send messages", failedToSend},
	{"The request body has", badMessages},
	{"The property, ", badProperty},
	{"The request body could not be parsed", badJSON},
	{"Authentication failed", badToken},
	{"Access to this API is not available", notAvailable},
	{"Not found", notFound},
	{"The retry key is already accepted", retryKeyKnown},
	{"invalid_client", badClient},
	{"invalid_request", badTokenSource},
}

func reasonOf(text string) reason {
	for _, r := range reasons {
		if strings.HasPrefix(text, r.text) {
			return r.reason
		}
	}
	return noReason
}

// error returns the call's failure as kind.
func (r result) error(kind channels.ErrorKind) *channels.Error {
	e := &channels.Error{Kind: kind, RetryAfter: r.retryAfter}
	if r.status == 0 {
		e.Err = fmt.Errorf("%s: %w", r.what, r.err)
		return e
	}
	s := fmt.Sprintf("%s: status %d", r.what, r.status)
	if r.reason != noReason {
		s += ": " + string(r.reason)
	}
	if r.property != "" {
		s += " at " + r.property
	}
	if r.requestID != "" {
		s += " (request " + r.requestID + ")"
	}
	e.Err = errors.New(s)
	return e
}

// kindOf sorts the failure of a call that may be repeated safely. 429 has several meanings, told apart by
// LINE's text alone.
func kindOf(r result) channels.ErrorKind {
	if r.status == 0 {
		// The token source knows more about its own failures.
		return channels.KindOf(r.err)
	}
	switch r.status {
	case http.StatusUnauthorized:
		return channels.Unauthorized
	case http.StatusTooManyRequests:
		if r.reason == monthlyLimit {
			return channels.QuotaExhausted
		}
		return channels.RateLimited
	case http.StatusNotFound, http.StatusGone:
		return channels.Gone
	case http.StatusBadRequest:
		if r.reason == failedToSend {
			return channels.Gone
		}
		return channels.Permanent
	case http.StatusRequestTimeout:
		return channels.Transient
	}
	if r.status >= 400 && r.status < 500 {
		return channels.Permanent
	}
	return channels.Transient
}

// networkError describes the failure of a connection in words of our own: the text of the original may
// quote what the other side has sent. The original can be unwrapped.
func networkError(err error) error {
	if err == nil {
		return nil
	}
	e := &connectionError{err: err}
	var dns *net.DNSError
	var op *net.OpError
	var timeout interface{ Timeout() bool }
	switch {
	case errors.Is(err, context.Canceled):
		e.text = "canceled"
	case errors.As(err, &timeout) && timeout.Timeout():
		e.text = "timed out"
	case errors.As(err, &dns):
		e.text = "host name not found"
	case errors.As(err, &op) && op.Op == "dial":
		e.text = "no connection"
	case errors.As(err, &op):
		e.text = "connection broken"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		e.text = "connection closed without an answer"
	default:
		e.text = "connection failed"
	}
	return e
}

type connectionError struct {
	text string
	err  error
}

func (e *connectionError) Error() string { return e.text }
func (e *connectionError) Unwrap() error { return e.err }

var (
	requestIDForm = regexp.MustCompile(`^[0-9a-f-]{1,64}$`)
	// propertyForm are the places in the bodies that this package sends.
	propertyForm = regexp.MustCompile(`^(?:to|replyToken|chatId|loadingSeconds|messages(?:\[\d\](?:\.(?:type|text|quoteToken))?)?)$`)
)

func safeRequestID(s string) string {
	if !requestIDForm.MatchString(s) {
		return ""
	}
	return s
}

func safeProperty(s string) string {
	if !propertyForm.MatchString(s) {
		return ""
	}
	return s
}
