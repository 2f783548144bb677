package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"botd/channels/dispatch"
	"botd/sessionstore"
	"botd/sessionstore/boltstore"
)

// Code says what kind of error a Problem is. The values never change.
type Code string

// The codes.
const (
	// CodeInvalidRequest: something about the request is not as documented; the detail says what.
	CodeInvalidRequest Code = "invalid-request"
	// CodeTooLarge: the body is larger than any that is asked for.
	CodeTooLarge Code = "too-large"
	// CodeMediaType: the body is not declared as JSON.
	CodeMediaType Code = "media-type"
	// CodeForbidden: the caller is somebody else's user, or a page of another site.
	CodeForbidden Code = "forbidden"
	// CodeNoPath: there is no such path; CodeMethod: the path knows no such method.
	CodeNoPath Code = "no-such-path"
	CodeMethod Code = "method-not-allowed"
	// CodeNoSession, CodeNoArchive, CodeNoDelivery and CodeNoEvent: what was named does not exist.
	CodeNoSession  Code = "no-such-session"
	CodeNoArchive  Code = "no-such-archive"
	CodeNoDelivery Code = "no-such-delivery"
	CodeNoEvent    Code = "no-such-event"
	// CodeInHand: the delivery is about to be sent, or sent already, and so cannot be dropped.
	CodeInHand Code = "delivery-in-hand"
	// CodeUnsupported: this gateway, or its store, cannot do that.
	CodeUnsupported Code = "not-supported"
	// CodeNotReady: the gateway has not read its journal yet; CodeDraining: it is about to stop.
	CodeNotReady Code = "not-ready"
	CodeDraining Code = "draining"
	// CodeTimeout: it took too long, and may still happen.
	CodeTimeout Code = "timeout"
	// CodeAudit: the act could not be recorded and was not done.
	CodeAudit Code = "audit-unavailable"
	// CodeStoreFull: there is no room for the write.
	CodeStoreFull Code = "store-full"
	// CodeInternal: anything else.
	CodeInternal Code = "internal"
)

// statuses are the HTTP status and the title of each code.
var statuses = map[Code]struct {
	status int
	title  string
}{
	CodeInvalidRequest: {http.StatusBadRequest, "The request is not valid"},
	CodeTooLarge:       {http.StatusRequestEntityTooLarge, "The body is too large"},
	CodeMediaType:      {http.StatusUnsupportedMediaType, "The body must be application/json"},
	CodeForbidden:      {http.StatusForbidden, "Not permitted"},
	CodeNoPath:         {http.StatusNotFound, "No such path"},
	CodeMethod:         {http.StatusMethodNotAllowed, "No such method"},
	CodeNoSession:      {http.StatusNotFound, "No such session"},
	CodeNoArchive:      {http.StatusNotFound, "Nothing to restore"},
	CodeNoDelivery:     {http.StatusNotFound, "No such delivery"},
	CodeNoEvent:        {http.StatusNotFound, "No such event"},
	CodeInHand:         {http.StatusConflict, "The delivery cannot be dropped"},
	CodeUnsupported:    {http.StatusNotImplemented, "Not supported here"},
	CodeNotReady:       {http.StatusServiceUnavailable, "Not ready yet"},
	CodeDraining:       {http.StatusServiceUnavailable, "About to stop"},
	CodeTimeout:        {http.StatusGatewayTimeout, "It took too long"},
	CodeAudit:          {http.StatusServiceUnavailable, "The act could not be recorded"},
	CodeStoreFull:      {http.StatusInsufficientStorage, "No room"},
	CodeInternal:       {http.StatusInternalServerError, "Something went wrong"},
}

// Problem is an error as the API tells it (RFC 9457). It is what the Client returns, too.
type Problem struct {
	Title  string `json:"title"`
	Status int    `json:"status"`
	Code   Code   `json:"code"`
	Detail string `json:"detail,omitempty"`
}

func (p *Problem) Error() string {
	if p.Detail == "" {
		return p.Title
	}
	return p.Detail
}

// problem makes a Problem.
func problem(code Code, format string, args ...any) *Problem {
	s := statuses[code]
	return &Problem{Title: s.title, Status: s.status, Code: code, Detail: fmt.Sprintf(format, args...)}
}

// known are the errors that have a code of their own.
var known = []struct {
	err  error
	code Code
}{
	{sessionstore.ErrInvalidID, CodeInvalidRequest},
	{sessionstore.ErrNoArchive, CodeNoArchive},
	{sessionstore.ErrClosed, CodeDraining},
	{dispatch.ErrNotReady, CodeNotReady},
	{dispatch.ErrDraining, CodeDraining},
	{boltstore.ErrFull, CodeStoreFull},
	{context.DeadlineExceeded, CodeTimeout},
}

// problemOf is the Problem that an error is.
func problemOf(err error) *Problem {
	if p, ok := errors.AsType[*Problem](err); ok {
		return p
	}
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return problem(CodeTooLarge, "a body has at most %d bytes", tooLarge.Limit)
	}
	for _, k := range known {
		if errors.Is(err, k.err) {
			return problem(k.code, "%v", err)
		}
	}
	return problem(CodeInternal, "%v", err)
}

func (p *Problem) write(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // the client is gone
}
