package line_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/line/line-bot-sdk-go/v8/linebot/messaging_api"
	"github.com/line/line-bot-sdk-go/v8/linebot/webhook"

	"botd/channels/line/linefake"
)

// TestWhatTheSDKLeavesOpen pins the facts about the SDK that this package guards against. When one of
// these fails after an upgrade, the SDK has changed, perhaps for the better: look at its guard.
func TestWhatTheSDKLeavesOpen(t *testing.T) {
	t.Parallel()
	const user = `"source":{"type":"user","userId":"U1"}`
	t.Run("an empty secret verifies what an empty secret signed", func(t *testing.T) {
		t.Parallel()
		body := []byte("{}")
		if !webhook.ValidateSignature("", linefake.Sign("", body), body) {
			t.Error("it does not")
		}
	})
	t.Run("a parse error holds the body", func(t *testing.T) {
		t.Parallel()
		const body = `{"events": private}`
		r := httptest.NewRequest("POST", "/", strings.NewReader(body))
		r.Header.Set("X-Line-Signature", linefake.Sign("s", []byte(body)))
		if _, err := webhook.ParseRequest("s", r); err == nil || !strings.Contains(err.Error(), "private") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("one odd event fails the batch", func(t *testing.T) {
		t.Parallel()
		for name, odd := range map[string]string{
			"no type":         `{}`,
			"null source":     `{"type":"follow","source":null}`,
			"file of 3 GB":    `{"type":"message",` + user + `,"message":{"type":"file","id":"1","fileSize":3000000000}}`,
			"postback params": `{"type":"postback",` + user + `,"postback":{"data":"x","params":{"n":5}}}`,
		} {
			var cb webhook.CallbackRequest
			body := `{"destination":"U","events":[{"type":"follow",` + user + `},` + odd + `]}`
			if json.Unmarshal([]byte(body), &cb) == nil {
				t.Errorf("%s: it does not", name)
			}
		}
	})
	t.Run("an unknown event hides its ID and source", func(t *testing.T) {
		t.Parallel()
		ev, err := webhook.UnmarshalEvent([]byte(`{"type":"telepathy","webhookEventId":"01H",` + user + `}`))
		if _, unknown := ev.(webhook.UnknownEvent); err != nil || !unknown {
			t.Errorf("got %T, %v", ev, err)
		}
	})
	t.Run("the embedded base of an event stays empty", func(t *testing.T) {
		t.Parallel()
		ev, err := webhook.UnmarshalEvent([]byte(`{"type":"follow","webhookEventId":"01H",` + user + `}`))
		f, is := ev.(webhook.FollowEvent)
		if err != nil || !is || f.WebhookEventId != "01H" || f.Event.WebhookEventId != "" {
			t.Errorf("got %+v, %v", ev, err)
		}
	})
	t.Run("a push without units sends null, and a retry key even when it is empty", func(t *testing.T) {
		t.Parallel()
		var got *http.Request
		var body bytes.Buffer
		api := sdk(t, func(r *http.Request) (*http.Response, error) {
			got = r
			_, _ = body.ReadFrom(r.Body)
			return response(200, `{"sentMessages":[]}`), nil
		})
		if _, err := api.PushMessage(&messaging_api.PushMessageRequest{}, ""); err != nil {
			t.Fatal(err)
		}
		if _, sent := got.Header["X-Line-Retry-Key"]; !sent || !strings.Contains(body.String(), `"customAggregationUnits":null`) {
			t.Errorf("header %v, body %s", got.Header, &body)
		}
	})
	t.Run("an error is untyped and holds the answer", func(t *testing.T) {
		t.Parallel()
		api := sdk(t, func(*http.Request) (*http.Response, error) { return response(400, "private"), nil })
		if _, err := api.GetBotInfo(); err == nil || !strings.Contains(err.Error(), "private") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("WithContext changes the client that all share", func(t *testing.T) {
		t.Parallel()
		api := sdk(t, func(r *http.Request) (*http.Response, error) {
			if err := r.Context().Err(); err != nil {
				return nil, err
			}
			return response(200, "{}"), nil
		})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		api.WithContext(ctx)
		if _, err := api.GetBotInfo(); err == nil {
			t.Error("it does not")
		}
	})
	t.Run("an ID becomes a path unescaped", func(t *testing.T) {
		t.Parallel()
		path := ""
		api := sdk(t, func(r *http.Request) (*http.Response, error) { path = r.URL.Path; return response(200, "{}"), nil })
		if _, err := api.GetProfile("../../evil"); err != nil || path != "/v2/evil" {
			t.Errorf("path %q, %v", path, err)
		}
	})
	t.Run("the body of an error is not closed", func(t *testing.T) {
		t.Parallel()
		body := &closeable{Reader: strings.NewReader("{}")}
		api := sdk(t, func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 400, Header: http.Header{}, Body: body}, nil
		})
		if _, err := api.GetBotInfo(); err == nil || body.closed {
			t.Errorf("closed %v, %v", body.closed, err)
		}
	})
	t.Run("202 is content", func(t *testing.T) {
		t.Parallel()
		blob, err := messaging_api.NewMessagingApiBlobAPI("t", messaging_api.WithBlobHTTPClient(&http.Client{
			Transport: roundTripper(func(*http.Request) (*http.Response, error) { return response(202, ""), nil }),
		}))
		if err != nil {
			t.Fatal(err)
		}
		res, err := blob.GetMessageContent("1")
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if res.StatusCode != 202 {
			t.Errorf("status %d", res.StatusCode)
		}
	})
}

type closeable struct {
	*strings.Reader
	closed bool
}

func (c *closeable) Close() error { c.closed = true; return nil }

func sdk(t *testing.T, rt roundTripper) *messaging_api.MessagingApiAPI {
	t.Helper()
	api, err := messaging_api.NewMessagingApiAPI("t", messaging_api.WithHTTPClient(&http.Client{Transport: rt}))
	if err != nil {
		t.Fatal(err)
	}
	return api
}

func response(status int, body string) *http.Response {
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: &closeable{Reader: strings.NewReader(body)}}
}
