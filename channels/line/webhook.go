package line

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/line/line-bot-sdk-go/v8/linebot/webhook"

	"botd/channels"
)

const (
	// maxWebhook bounds a webhook, in bytes. LINE states no maximum; its batches have a few kilobytes.
	maxWebhook = 1 << 20
	// acceptTimeout bounds the wait for the sink. LINE hangs up after 2 seconds, but what is durable
	// a little later is not lost, which it could be otherwise: redelivery is off by default.
	acceptTimeout = 10 * time.Second
)

// Webhook returns the handler for this bot alone.
func (a *Adapter) Webhook(sink channels.Sink) http.Handler { return Handler(sink, a) }

// Handler returns the handler for one path that several bots share. A webhook belongs to the bot that
// its destination names and is verified with that bot's own secret; a bot whose destination is not known
// yet is known by its secret. See the package comment for the statuses.
func Handler(sink channels.Sink, adapters ...*Adapter) http.Handler {
	return &handler{sink: sink, adapters: adapters}
}

type handler struct {
	sink     channels.Sink
	adapters []*Adapter
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	received := time.Now()
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "LINE posts webhooks", http.StatusMethodNotAllowed)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxWebhook))
	if _, tooLong := errors.AsType[*http.MaxBytesError](err); tooLong {
		http.Error(w, "webhook is longer than 1 MiB", http.StatusRequestEntityTooLarge)
		return
	}
	if err != nil {
		http.Error(w, "webhook could not be read", http.StatusBadRequest)
		return
	}
	a := h.verify(body, r.Header.Get("X-Line-Signature"))
	if a == nil {
		http.Error(w, "signature does not match", http.StatusForbidden)
		return
	}
	a.stats.webhooks.Add(1)
	var b batch
	if json.Unmarshal(body, &b) != nil || !isID(b.Destination, 'U') {
		http.Error(w, "signed, but not a webhook", http.StatusBadRequest)
		return
	}
	if !a.addressed(b.Destination) {
		http.Error(w, "addressed to another bot", http.StatusForbidden)
		return
	}
	if err := a.accept(r.Context(), h.sink, b.Events, received); err != nil {
		http.Error(w, "events could not be kept", http.StatusServiceUnavailable)
		return
	}
	w.WriteHeader(http.StatusOK)
}

// verify returns the bot that the webhook is for, nil when no bot's secret signed it.
func (h *handler) verify(body []byte, signature string) *Adapter {
	candidates := h.adapters
	if len(candidates) > 1 {
		candidates = h.named(body)
	}
	for _, a := range candidates {
		if webhook.ValidateSignature(a.secret, signature, body) {
			return a
		}
	}
	for _, a := range candidates {
		a.stats.rejected.Add(1)
		a.forged.Do(func() { a.log.Warn("webhook refused: its signature does not match the channel secret") })
	}
	return nil
}

// named returns the bots that a webhook not verified yet may be for: the one that it names, else those
// of which the name is not known.
func (h *handler) named(body []byte) []*Adapter {
	var to struct {
		Destination string `json:"destination"`
	}
	_ = json.Unmarshal(body, &to)
	var unnamed []*Adapter
	for _, a := range h.adapters {
		switch d := a.destination.Load(); {
		case d == nil:
			unnamed = append(unnamed, a)
		case *d == to.Destination:
			return []*Adapter{a}
		}
	}
	return unnamed
}

// addressed checks the destination of a verified webhook, and learns it when it is not known yet.
func (a *Adapter) addressed(destination string) bool {
	if a.learn(destination) {
		return true
	}
	a.stats.rejected.Add(1)
	a.log.Error("webhook refused", "err", errOtherBot)
	return false
}

// accept hands the events to the sink that can be understood.
func (a *Adapter) accept(ctx context.Context, sink channels.Sink, events []json.RawMessage, received time.Time) error {
	inbound := make([]channels.Inbound, 0, len(events))
	for _, raw := range events {
		in, err := a.parse(raw, received)
		switch {
		case err == nil:
			inbound = append(inbound, in)
		case errors.Is(err, errIgnored):
			a.stats.ignored.Add(1)
		default:
			a.stats.quarantined.Add(1)
			a.log.Warn("webhook event set aside", "reason", err)
		}
	}
	if len(inbound) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), acceptTimeout)
	defer cancel()
	if err := sink.Accept(ctx, inbound...); err != nil {
		a.stats.refused.Add(uint64(len(inbound)))
		a.log.Error("webhook events not accepted", "events", len(inbound), "err", err)
		return err
	}
	a.stats.accepted.Add(uint64(len(inbound)))
	return nil
}
