package admin

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
)

// local is a transport that asks a handler within the process.
type local struct{ handler http.Handler }

// RoundTrip implements http.RoundTripper.
func (l local) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(context.WithValue(req.Context(), peerKey{}, self()))
	if req.Body == nil {
		req.Body = http.NoBody
	}
	r, w := io.Pipe()
	res := &localWriter{header: http.Header{}, body: w, begun: make(chan struct{})}
	go func() {
		defer func() {
			err := error(nil)
			if v := recover(); v != nil {
				err = errors.New("the answer was cut off")
			}
			res.WriteHeader(http.StatusOK)
			w.CloseWithError(err)
		}()
		l.handler.ServeHTTP(res, req)
	}()
	select {
	case <-res.begun:
		return &http.Response{
			Status: http.StatusText(res.status), StatusCode: res.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
			Header: res.sent, Body: r, ContentLength: -1, Request: req,
		}, nil
	case <-req.Context().Done():
		r.CloseWithError(req.Context().Err())
		return nil, req.Context().Err()
	}
}

// localWriter is an http.ResponseWriter whose body is read from a pipe.
type localWriter struct {
	header, sent http.Header
	body         *io.PipeWriter
	status       int
	once         sync.Once
	begun        chan struct{}
}

func (w *localWriter) Header() http.Header { return w.header }

func (w *localWriter) WriteHeader(status int) {
	w.once.Do(func() {
		w.status, w.sent = status, w.header.Clone()
		close(w.begun)
	})
}

func (w *localWriter) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.Write(p)
}
