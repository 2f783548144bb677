package openai

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"
)

// maxErrorBody bounds what is read of a refusal.
const maxErrorBody = 1 << 20

// transport is what lies between the client library and the network. It ends requests on which nothing
// moves, and brings every refusal into the one form that the library can read.
type transport struct {
	next http.RoundTripper
	idle time.Duration
}

// idleError is the cause when nothing came for too long.
type idleError struct{ after time.Duration }

func (e *idleError) Error() string { return fmt.Sprintf("not a byte came for %s", e.after) }

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(req.Context())
	idle := &idleError{after: t.idle}
	timer := time.AfterFunc(t.idle, func() { cancel(idle) })
	resp, err := t.next.RoundTrip(req.WithContext(ctx))
	timer.Stop()
	if err != nil {
		defer cancel(nil)
		if errors.Is(context.Cause(ctx), idle) {
			return silent(req, idle), nil
		}
		return nil, err
	}
	resp.Body = &idleBody{ReadCloser: resp.Body, ctx: ctx, cancel: cancel, timer: timer, idle: idle}
	if resp.StatusCode >= 400 {
		normalise(resp)
	}
	return resp, nil
}

// silent stands for the answer of a provider that gave none in time. As an error the library would wait
// for it again and again; as a response it can be told not to.
func silent(req *http.Request, cause error) *http.Response {
	body := errorBody("idle_timeout", "gateway_timeout", "", cause.Error())
	return &http.Response{
		Status: "504 Gateway Timeout", StatusCode: http.StatusGatewayTimeout,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header:        http.Header{"Content-Type": {"application/json"}, noRetryHeader: {"false"}},
		Body:          io.NopCloser(bytes.NewReader(body)),
		ContentLength: int64(len(body)), Request: req,
	}
}

// noRetryHeader tells the library whether to try again, whatever the status.
const noRetryHeader = "X-Should-Retry"

// idleBody ends the request when one read waits too long. Only waiting counts, not the time that the
// reader takes over what it got; and any byte will do, so that keep-alives count.
type idleBody struct {
	io.ReadCloser
	ctx    context.Context
	cancel context.CancelCauseFunc
	timer  *time.Timer
	idle   *idleError
}

func (b *idleBody) Read(p []byte) (int, error) {
	b.timer.Reset(b.idle.after)
	n, err := b.ReadCloser.Read(p)
	b.timer.Stop()
	if err != nil && err != io.EOF && errors.Is(context.Cause(b.ctx), b.idle) {
		err = b.idle
	}
	return n, err
}

func (b *idleBody) Close() error {
	b.timer.Stop()
	defer b.cancel(nil)
	return b.ReadCloser.Close()
}

// normalise rewrites the body of a refusal to {"error":{…}}: servers send a bare string there, FastAPI's
// detail, a list, a flat object, a page of HTML or nothing, and the library loses the status over some of
// them. It also stops retries that cannot help.
func normalise(resp *http.Response) {
	raw, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	_ = resp.Body.Close()
	body := parseRefusal(raw)
	resp.Body = io.NopCloser(bytes.NewReader(body))
	resp.ContentLength = int64(len(body))
	resp.Header.Set("Content-Type", "application/json")
	resp.Header.Del("Content-Length")
	f := failureFromJSON(body)
	f.status = resp.StatusCode
	if f.outOfCredit() {
		resp.Header.Set(noRetryHeader, "false")
	}
}

// parseRefusal brings one of the known forms of a refusal into the library's.
func parseRefusal(raw []byte) []byte {
	v := gjson.ParseBytes(raw)
	if !gjson.ValidBytes(raw) {
		// HTML, plain text or nothing: the words help to sort it, and go no further.
		return errorBody("", "", "", strings.ToValidUTF8(string(raw[:min(len(raw), 1000)]), ""))
	}
	if v.IsArray() {
		v = v.Get("0")
	}
	e := v.Get("error")
	kind := v.Get("error_type").String()
	switch {
	case e.IsObject() && kind == "":
		b, err := sjson.SetRawBytes(nil, "error", []byte(e.Raw))
		if err == nil {
			return b
		}
	case e.IsObject():
		return errorBody(kind, e.Get("type").String(), e.Get("param").String(), e.Get("message").String())
	case e.Type == gjson.String:
		return errorBody(v.Get("code").String(), kind, "", e.Str)
	case v.Get("detail").Exists():
		return errorBody("", kind, "", v.Get("detail").String())
	case v.IsObject():
		return errorBody(v.Get("code").String(), v.Get("type").String(), v.Get("param").String(), v.Get("message").String())
	}
	return errorBody("", "", "", v.String())
}

func errorBody(code, typ, param, message string) []byte {
	return encode(struct {
		Error any `json:"error"`
	}{struct {
		Code    string `json:"code"`
		Type    string `json:"type"`
		Param   string `json:"param"`
		Message string `json:"message"`
	}{code, typ, param, message}})
}
