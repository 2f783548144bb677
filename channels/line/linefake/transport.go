package linefake

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptrace"
)

// HandlerTransport returns a transport that calls h in this process, without sockets, as a server would:
// the body is complete, a caller that leaves ends the request's context, and http.ErrAbortHandler is a
// connection that breaks. It lets a gateway and the platform talk within a testing/synctest bubble.
func HandlerTransport(h http.Handler) http.RoundTripper { return handlerTransport{h} }

type handlerTransport struct{ handler http.Handler }

func (t handlerTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		body, err = io.ReadAll(r.Body)
		_ = r.Body.Close()
		if err != nil {
			return nil, err
		}
	}
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	if trace := httptrace.ContextClientTrace(r.Context()); trace != nil {
		if trace.GetConn != nil {
			trace.GetConn(r.URL.Host)
		}
		if trace.GotConn != nil {
			trace.GotConn(httptrace.GotConnInfo{})
		}
	}
	// The server's context ends with the request, and knows nothing of the caller's values.
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	in := r.Clone(ctx)
	in.Body = io.NopCloser(bytes.NewReader(body))
	in.ContentLength = int64(len(body))
	in.RequestURI = r.URL.RequestURI()
	in.RemoteAddr = "127.0.0.1:1"
	if in.Host == "" {
		in.Host = r.URL.Host
	}
	w := &recorder{header: http.Header{}}
	done := make(chan bool, 1)
	go func() { done <- w.run(t.handler, in) }()
	select {
	case whole := <-done:
		if !whole {
			return nil, io.ErrUnexpectedEOF
		}
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	return w.response(r), nil
}

// recorder is a ResponseWriter that keeps everything.
type recorder struct {
	header, sent http.Header
	status       int
	body         bytes.Buffer
}

// run reports whether the handler came to its end.
func (w *recorder) run(h http.Handler, r *http.Request) (whole bool) {
	defer func() {
		if p := recover(); p != nil && p != any(http.ErrAbortHandler) {
			panic(p)
		}
	}()
	h.ServeHTTP(w, r)
	return true
}

func (w *recorder) Header() http.Header { return w.header }

func (w *recorder) WriteHeader(status int) {
	if w.status == 0 {
		w.status, w.sent = status, w.header.Clone()
	}
}

func (w *recorder) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.Write(p)
}

func (w *recorder) response(r *http.Request) *http.Response {
	w.WriteHeader(http.StatusOK)
	return &http.Response{
		Status: http.StatusText(w.status), StatusCode: w.status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: w.sent, Body: io.NopCloser(&w.body), ContentLength: int64(w.body.Len()), Request: r,
	}
}
