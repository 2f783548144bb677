package line

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/line/line-bot-sdk-go/v8/linebot/messaging_api"

	"botd/channels"
)

const (
	defaultMaxMedia = 20 << 20
	// stallTimeout is how long content may come to a halt. A whole download has no limit but its size: a
	// large video takes LINE most of a minute.
	stallTimeout = 20 * time.Second
	// LINE prepares video and audio after the message has come, and tells so by 202.
	firstPrepareWait = time.Second
	maxPrepareWait   = 8 * time.Second
	prepareTimeout   = 2 * time.Minute
)

var (
	errTooLong   = errors.New("content is longer than allowed")
	errEmpty     = errors.New("content is empty")
	errPreparing = errors.New("content is still being prepared")
	errNoContent = errors.New("content could not be prepared")
)

// OpenMedia opens the content of a message. It waits while LINE prepares it, for up to 2 minutes. The
// reader fails when the content is longer than Options.MaxMedia, or when it stalls; its type is for the
// caller to find out from its first bytes, because LINE tells one file now as a video and now as a file.
// Content that LINE does not keep itself is fetched from its URL, without the access token and from
// public addresses only. Errors are *channels.Error; Gone means that LINE keeps it no longer.
func (a *Adapter) OpenMedia(ctx context.Context, ref channels.MediaRef) (io.ReadCloser, error) {
	const what = "get content"
	fault := func(kind channels.ErrorKind, err error) (io.ReadCloser, error) {
		return nil, &channels.Error{Kind: kind, Err: fmt.Errorf("%s: %w", what, err)}
	}
	switch {
	case ref.Size > a.maxMedia:
		return fault(channels.Permanent, errTooLong)
	case ref.URL != "":
		return a.openExternal(ctx, ref.URL)
	case !isMessageID(ref.ID):
		return fault(channels.Permanent, errors.New("not a message ID of LINE"))
	}
	began := time.Now()
	for wait := firstPrepareWait; ; wait = min(2*wait, maxPrepareWait) {
		r, body := a.api.content(ctx, what, ref.ID)
		switch {
		case r.status == http.StatusOK:
			return a.deliver(what, body)
		case !r.accepted():
			return nil, r.error(kindOf(r))
		case a.api.preparationFailed(ctx, ref.ID):
			return fault(channels.Gone, errNoContent)
		case time.Since(began)+wait > prepareTimeout:
			return fault(channels.Transient, errPreparing)
		case !sleep(ctx, wait):
			return fault(channels.Transient, networkError(ctx.Err()))
		}
	}
}

// deliver returns the content if there is any, with a bound to its length.
func (a *Adapter) deliver(what string, body *watched) (io.ReadCloser, error) {
	fault := func(kind channels.ErrorKind, err error) (io.ReadCloser, error) {
		_ = body.Close()
		return nil, &channels.Error{Kind: kind, Err: fmt.Errorf("%s: %w", what, err)}
	}
	if body.length > a.maxMedia {
		return fault(channels.Permanent, errTooLong)
	}
	r := bufio.NewReader(body)
	switch _, err := r.Peek(1); {
	case err == io.EOF:
		return fault(channels.Transient, errEmpty)
	case err != nil:
		return fault(channels.Transient, err)
	}
	return &media{Reader: r, Closer: body, what: what, left: a.maxMedia}, nil
}

// media is content that is being read.
type media struct {
	*bufio.Reader
	io.Closer
	what string
	left int64
}

// Read returns an error once there is more than is allowed, never a part that looks whole.
func (m *media) Read(p []byte) (int, error) {
	if m.left == 0 {
		if _, err := m.Reader.Peek(1); err == io.EOF {
			return 0, io.EOF
		}
		return 0, &channels.Error{Kind: channels.Permanent, Err: fmt.Errorf("%s: %w", m.what, errTooLong)}
	}
	n, err := m.Reader.Read(p[:min(int64(len(p)), m.left)])
	m.left -= int64(n)
	if err != nil && !errors.Is(err, io.EOF) {
		err = &channels.Error{Kind: channels.Transient, Err: fmt.Errorf("%s: %w", m.what, err)}
	}
	return n, err
}

// content asks for the content of a message. The body is nil unless the status is 200: the SDK also
// takes a 202, which has none, for a success.
func (c *client) content(ctx context.Context, what, id string) (r result, body *watched) {
	r = c.authorized(ctx, what, func(token string) result {
		api, err := messaging_api.NewMessagingApiBlobAPI(token, messaging_api.WithBlobHTTPClient(c.blob), messaging_api.WithBlobEndpoint(c.data))
		if err != nil {
			return result{what: what, unsent: true, err: networkError(err)}
		}
		w, ctx := watch(ctx)
		res, _, err := api.WithContext(ctx).GetMessageContentWithHttpInfo(id)
		if res == nil {
			return result{what: what, err: w.explain(err)}
		}
		if res.StatusCode == http.StatusOK {
			w.ReadCloser, w.length = res.Body, res.ContentLength
			body = w
			return result{what: what, status: res.StatusCode}
		}
		defer w.end()
		defer res.Body.Close()
		return readResult(what, res)
	})
	return r, body
}

// preparationFailed reports that LINE has given up to prepare a video or audio. Any other answer, such
// as the 400 for an image or a file, says nothing.
func (c *client) preparationFailed(ctx context.Context, id string) bool {
	failed := false
	c.authorized(ctx, "get preparation status", func(token string) result {
		api, err := messaging_api.NewMessagingApiBlobAPI(token, messaging_api.WithBlobHTTPClient(c.http), messaging_api.WithBlobEndpoint(c.data))
		if err != nil {
			return result{}
		}
		ctx, cancel := context.WithTimeout(ctx, c.timeout)
		defer cancel()
		res, status, err := api.WithContext(ctx).GetMessageContentTranscodingByMessageIdWithHttpInfo(id) //nolint:bodyclose // the client closes it on success and its context on failure
		if res == nil {
			return result{}
		}
		failed = err == nil && status.Status == messaging_api.GetMessageContentTranscodingResponseSTATUS_FAILED
		return result{status: res.StatusCode}
	})
	return failed
}

// watched is a body, and before that a request, that is given up when it stalls.
type watched struct {
	io.ReadCloser
	length  int64 // -1 when it is not known
	cancel  context.CancelFunc
	timer   *time.Timer
	stalled atomic.Bool
}

// watch returns a context that ends when nothing has come for stallTimeout.
func watch(ctx context.Context) (*watched, context.Context) {
	w := &watched{}
	ctx, w.cancel = context.WithCancel(ctx)
	w.timer = time.AfterFunc(stallTimeout, func() { w.stalled.Store(true); w.cancel() })
	return w, ctx
}

// Read returns errors that quote nothing of what has come.
func (w *watched) Read(p []byte) (int, error) {
	w.timer.Reset(stallTimeout)
	n, err := w.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = w.explain(err)
	}
	return n, err
}

// Close ends the watch too.
func (w *watched) Close() error {
	w.end()
	return w.ReadCloser.Close()
}

func (w *watched) end() {
	w.timer.Stop()
	w.cancel()
}

// explain ends a request that failed and says why.
func (w *watched) explain(err error) error {
	w.end()
	if w.stalled.Load() {
		return networkError(context.DeadlineExceeded)
	}
	return networkError(err)
}
