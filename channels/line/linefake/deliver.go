package linefake

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// Reason says why LINE counts a webhook as failed, in the words of its error statistics.
type Reason string

// The reasons.
const (
	CouldNotConnect Reason = "could_not_connect"
	RequestTimeout  Reason = "request_timeout"
	ErrorStatusCode Reason = "error_status_code"
)

// Result is how a webhook was answered.
type Result struct {
	// Status is the HTTP status, 0 when there was no answer.
	Status int
	// Reason is empty when the webhook was acknowledged.
	Reason Reason
	// Err is the error of the connection.
	Err error
	// Took is the time until the answer or the failure.
	Took time.Duration
}

// OK reports whether the webhook was acknowledged.
func (r Result) OK() bool { return r.Reason == "" }

// Deliver posts the events in one webhook and waits for the acknowledgement. When it is missing and the
// bot has redelivery on, the webhook is posted again in the background until Close.
func (b *Bot) Deliver(ctx context.Context, events ...Event) Result {
	r := b.post(ctx, events, false)
	b.s.mu.Lock()
	waits := b.conf.Redeliver
	b.s.mu.Unlock()
	if !r.OK() && len(events) > 0 && len(waits) > 0 && b.s.stop.Err() == nil {
		b.s.running.Go(func() { b.redeliver(waits, events) })
	}
	return r
}

// Redeliver posts the events again, as LINE does after a failure.
func (b *Bot) Redeliver(ctx context.Context, events ...Event) Result {
	return b.post(ctx, events, true)
}

// Verify posts what the console's Verify button posts: a webhook without events.
func (b *Bot) Verify(ctx context.Context) Result { return b.post(ctx, nil, false) }

func (b *Bot) redeliver(waits []time.Duration, events []Event) {
	for _, d := range waits {
		t := time.NewTimer(d)
		select {
		case <-t.C:
		case <-b.s.stop.Done():
			t.Stop()
			return
		}
		if b.post(b.s.stop, events, true).OK() {
			return
		}
	}
}

func (b *Bot) post(ctx context.Context, events []Event, redelivery bool) Result {
	body, err := b.body(events, redelivery)
	if err != nil {
		return Result{Reason: CouldNotConnect, Err: err}
	}
	b.s.mu.Lock()
	now := b.s.opts.Now()
	for _, e := range events {
		if t := b.s.replies[e.ReplyToken]; t != nil {
			t.deliver(now, redelivery)
		}
	}
	b.s.mu.Unlock()
	return b.DeliverRaw(ctx, body)
}

// DeliverRaw signs any body and posts it.
func (b *Bot) DeliverRaw(ctx context.Context, body []byte) Result {
	b.s.mu.Lock()
	url := b.conf.WebhookURL
	b.s.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, b.s.opts.AckTimeout)
	defer cancel()
	start := time.Now()
	r := Result{}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return Result{Reason: CouldNotConnect, Err: fmt.Errorf("webhook URL: %w", err)}
	}
	req.Header.Set("Content-Type", "application/json; charset=utf-8")
	req.Header.Set("User-Agent", "LineBotWebhook/2.0")
	req.Header.Set("X-Line-Signature", Sign(b.Secret, body))
	res, err := b.s.client.Do(req)
	r.Took = time.Since(start)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		r.Reason, r.Err = RequestTimeout, err
		return r
	case err != nil:
		r.Reason, r.Err = CouldNotConnect, err
		return r
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, 1<<20))
	r.Status = res.StatusCode
	if res.StatusCode/100 != 2 {
		r.Reason = ErrorStatusCode
	}
	return r
}

// Sign returns the x-line-signature of a body (Messaging API reference, Signature validation).
func Sign(secret string, body []byte) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// Encode returns the body of a webhook with the events, as Deliver posts it the first time.
func (b *Bot) Encode(events ...Event) ([]byte, error) { return b.body(events, false) }

// body is written by hand, as encoding/json would refuse a raw event that is not valid JSON.
func (b *Bot) body(events []Event, redelivery bool) ([]byte, error) {
	body := []byte(`{"destination":"` + b.ID + `","events":[`)
	for i, e := range events {
		raw, err := e.encode(redelivery)
		if err != nil {
			return nil, fmt.Errorf("encode event %d: %w", i, err)
		}
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, raw...)
	}
	return append(body, "]}"...), nil
}
