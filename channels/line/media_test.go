package line_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"botd/channels"
	"botd/channels/line"
	"botd/channels/line/linefake"
)

// ref lets Alice send media and returns the reference that the sink got.
func (w *world) ref(m linefake.Media) channels.MediaRef {
	w.t.Helper()
	return *w.post(w.chat, w.alice, m).Parts[0].Media
}

func TestOpenMedia(t *testing.T) {
	t.Parallel()
	jpeg := bytes.Repeat([]byte("jpeg"), 1000)
	for _, tt := range []struct {
		name  string
		media linefake.Media
		fault []linefake.Fault
		max   int64
		want  channels.ErrorKind // of OpenMedia or of reading
		took  time.Duration
	}{
		{name: "image", media: linefake.Media{Type: "image", Data: jpeg}, want: delivered},
		{name: "file", media: linefake.Media{Type: "file", Name: "a.bin", Data: jpeg}, want: delivered},
		{name: "as long as is allowed", media: linefake.Media{Type: "image", Data: jpeg}, max: 4000, want: delivered},
		{name: "longer than allowed", media: linefake.Media{Type: "image", Data: jpeg}, max: 3999, want: channels.Permanent},
		{name: "a file said to be longer than allowed", media: linefake.Media{Type: "file", Name: "a", Size: 5000, Data: jpeg[:1]}, max: 4000, want: channels.Permanent},
		{name: "video that is prepared", media: linefake.Media{Type: "video", Data: jpeg, Preparing: 4}, want: delivered, took: 3 * time.Second},
		{name: "file that is prepared", media: linefake.Media{Type: "file", Name: "a.mp4", Data: jpeg, Preparing: 1}, want: delivered, took: time.Second},
		{name: "video that cannot be prepared", media: linefake.Media{Type: "video", Preparing: 1, Failed: true}, want: channels.Gone},
		{name: "video that is prepared for ever", media: linefake.Media{Type: "video", Preparing: 1e9}, want: channels.Transient, took: 119 * time.Second},
		{name: "gone", media: linefake.Media{Type: "image", Gone: true}, want: channels.Gone},
		{name: "empty", media: linefake.Media{Type: "audio"}, want: channels.Transient},
		{name: "LINE is away", media: linefake.Media{Type: "image", Data: jpeg}, fault: []linefake.Fault{{Status: 503}}, want: channels.Transient},
		{name: "connection lost", media: linefake.Media{Type: "image", Data: jpeg}, fault: []linefake.Fault{{Lost: linefake.AfterHandling}}, want: channels.Transient},
		{name: "limited", media: linefake.Media{Type: "image", Data: jpeg}, fault: []linefake.Fault{{Status: 429}}, want: channels.RateLimited},
		{name: "unauthorized", media: linefake.Media{Type: "image", Data: jpeg}, fault: []linefake.Fault{{Status: 401}}, want: channels.Unauthorized},
		{name: "slow, but within patience", media: linefake.Media{Type: "image", Data: jpeg}, fault: []linefake.Fault{{Delay: 19 * time.Second}}, want: delivered, took: 19 * time.Second},
		{name: "stalled", media: linefake.Media{Type: "image", Data: jpeg}, fault: []linefake.Fault{{Delay: time.Hour}}, want: channels.Transient, took: 20 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, func(o *line.Options) { o.MaxMedia = tt.max })
				ref := w.ref(tt.media)
				w.fake.Inject(linefake.GetContent, tt.fault...)
				began := time.Now()
				got, err := readMedia(t, w.a, ref)
				if tt.want != delivered {
					expectKind(t, err, tt.want)
				} else if err != nil || !bytes.Equal(got, jpeg) {
					t.Errorf("got %d bytes, %v; want %d", len(got), err, len(jpeg))
				}
				if took := time.Since(began); took != tt.took {
					t.Errorf("took %v, want %v", took, tt.took)
				}
			})
		})
	}
}

func readMedia(t *testing.T, a *line.Adapter, ref channels.MediaRef) ([]byte, error) {
	t.Helper()
	r, err := a.OpenMedia(t.Context(), ref)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err := r.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}()
	return io.ReadAll(r)
}

func TestOpenMediaChecksTheIDBeforeItBecomesAPath(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, id := range []string{"", "../../../../evil", "1/../../x", "1 2", "１", strings.Repeat("1", 100)} {
		_, err := w.a.OpenMedia(t.Context(), channels.MediaRef{ID: id})
		expectKind(t, err, channels.Permanent)
	}
	if n := len(w.fake.Calls()); n != 0 {
		t.Errorf("%d calls, want none", n)
	}
}

func TestOpenMediaEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		ref := w.ref(linefake.Media{Type: "video", Preparing: 1e9})
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		began := time.Now()
		_, err := w.a.OpenMedia(ctx, ref)
		expectKind(t, err, channels.Transient)
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != 5*time.Second {
			t.Errorf("got %v after %v", err, time.Since(began))
		}
	})
}

// TestMediaThatBreaksOff: what is not whole does not look whole.
func TestMediaThatBreaksOff(t *testing.T) {
	t.Parallel()
	for name, tail := range map[string]io.Reader{"broken": broken{}, "stalled": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, func(o *line.Options) {
					o.HTTPClient.Transport = roundTripper(func(r *http.Request) (*http.Response, error) {
						if tail == nil {
							tail = waiting{r.Context()}
						}
						body := io.NopCloser(io.MultiReader(strings.NewReader("half"), tail))
						return &http.Response{StatusCode: 200, Header: http.Header{}, Body: body, ContentLength: -1}, nil
					})
				})
				got, err := readMedia(t, w.a, channels.MediaRef{ID: "1"})
				expectKind(t, err, channels.Transient)
				if string(got) != "half" || strings.Contains(err.Error(), textMarker) {
					t.Errorf("got %q, %v", got, err)
				}
			})
		})
	}
}

// waiting is a body of which nothing comes any more.
type waiting struct{ ctx context.Context }

func (w waiting) Read([]byte) (int, error) { <-w.ctx.Done(); return 0, w.ctx.Err() }
