package dispatch

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"time"

	"botd/agent"
	"botd/channels"
	"botd/sessionstore"
)

// Waits between runs of a turn that failed.
const (
	firstTurnRetry = time.Second
	maxTurnRetry   = time.Minute
)

// keep commits an answer and returns the entries that another turn has to answer.
func (d *Dispatcher) keep(t *turn, a *answer) (again []Entry) {
	if !d.startCommit(t) {
		d.ended(t, TurnReport{End: Dropped}, errRevoked)
		return nil
	}
	began := time.Now()
	r := TurnResult{
		Session: t.lane.id, Turn: t.id, Generation: t.generation,
		Undo: t.undo, Items: a.Items, Consumed: seqs(t.entries), Usage: a.Usage,
	}
	says := speech{t.asked(), channels.Part{Type: channels.Markdown, Text: a.Text}}
	if a.notice != nil {
		says = *a.notice
	}
	r.Tallies = t.tallies(a.notice == nil && !a.told, a.Agent)
	err := d.compose(&r, says)
	if err == nil {
		err = d.write(r, t.entries, !a.told)
	}
	if err != nil {
		d.account(t, r.Tallies)
	}
	switch {
	case err == nil:
		d.ended(t, TurnReport{
			End: Answered, Agent: a.Agent, Replies: len(r.Replies), Committed: time.Since(began), Usage: a.Usage,
		}, nil)
		return nil
	case errors.Is(err, sessionstore.ErrStale), errors.Is(err, sessionstore.ErrChanged), d.hard.Err() != nil:
		d.ended(t, TurnReport{End: Dropped, Usage: a.Usage}, err)
		return t.entries
	case errors.Is(err, ErrConsumed):
		d.ended(t, TurnReport{End: Dropped, Usage: a.Usage}, err)
		d.recheck(t.entries)
		return nil
	}
	return d.setAside(t, diagnose(err), err)
}

// failed decides what becomes of a turn whose run failed.
func (d *Dispatcher) failed(t *turn, err error) (again []Entry) {
	v := diagnose(err)
	attempt := t.attempts() + 1
	if !v.passes || attempt >= d.opts.MaxAttempts || v.wait > d.opts.MaxRetryWait {
		if !d.startCommit(t) {
			d.ended(t, TurnReport{End: Dropped}, errRevoked)
			return nil
		}
		return d.setAside(t, v, err)
	}
	if err := d.opts.Journal.Fail(d.hard, seqs(t.entries), v.reason); err != nil {
		d.logFor(t.asked()).Warn("failed attempt not recorded", "turn", t.id, "attempt", attempt, "err", err)
	}
	d.ended(t, TurnReport{End: Retried}, err)
	wait := max(v.wait, backoff(firstTurnRetry, maxTurnRetry, attempt, t.id))
	d.mu.Lock()
	defer d.mu.Unlock()
	if t.phase == revoked {
		return nil
	}
	t.lane.notBefore = time.Now().Add(wait)
	for i := range t.entries {
		t.entries[i].Attempts++
	}
	return t.entries
}

// setAside gives a turn up, and says so to the person.
func (d *Dispatcher) setAside(t *turn, v verdict, cause error) (again []Entry) {
	began := time.Now()
	r := TurnResult{Session: t.lane.id, Turn: t.id, Consumed: seqs(t.entries), Dead: v.reason}
	if err := d.compose(&r, d.notice(t.asked(), v.text)); err != nil {
		d.logFor(t.asked()).Error("notice not composed", "turn", t.id, "err", err)
		r.Replies = nil
	}
	switch err := d.writeNotice(r, t.entries); {
	case err == nil:
		d.ended(t, TurnReport{End: SetAside, Replies: len(r.Replies), Committed: time.Since(began)}, cause)
		return nil
	case errors.Is(err, ErrConsumed):
		d.ended(t, TurnReport{End: Dropped}, err)
		d.recheck(t.entries)
		return nil
	default:
		d.ended(t, TurnReport{End: Dropped}, err)
		return t.entries
	}
}

// verdict is what a failure means for the turn.
type verdict struct {
	// passes says that the same turn may succeed later, after wait when the provider asks for it.
	passes bool
	wait   time.Duration
	// reason is for the operator, text for the person.
	reason string
	text   textKey
}

// diagnose returns what a failure of a turn means.
func diagnose(err error) verdict {
	if e, ok := errors.AsType[*agent.Error](err); ok {
		v := verdict{passes: e.Kind.Retryable(), wait: e.RetryAfter, reason: e.Kind.String()}
		switch e.Kind {
		case agent.Transient, agent.RateLimited:
			v.text = textBusy
		case agent.QuotaExhausted, agent.Unauthorized, agent.ModelNotFound:
			v.text = textOperator
		case agent.ContextOverflow:
			v.text = textTooLong
		case agent.Filtered:
			v.text = textFiltered
		default:
			v.text = textFailed
		}
		return v
	}
	if _, ok := errors.AsType[*panicError](err); ok {
		return verdict{reason: "panic", text: textFailed}
	}
	switch {
	case errors.Is(err, errTimeout):
		return verdict{reason: "timeout", text: textTimeout}
	case refused(err):
		return verdict{reason: "refused by the session store", text: textFailed}
	}
	return verdict{passes: true, reason: "error of no known kind", text: textBusy}
}

// ended logs and reports how a run of a turn ended.
func (d *Dispatcher) ended(t *turn, r TurnReport, err error) {
	d.account(t, t.tallies(false, ""))
	first := t.entries[0]
	r.Channel, r.Session, r.Turn, r.Events = t.channel.info.Channel, t.lane.id, t.id, len(t.entries)
	r.Waited, r.Ran = max(t.started.Sub(first.Received), 0), t.ran
	attrs := []slog.Attr{
		slog.String("turn", t.id), slog.String("end", string(r.End)), slog.Int("attempt", t.attempts()+1),
		slog.Int("events", r.Events), slog.Int("replies", r.Replies), slog.String("agent", r.Agent),
		slog.Duration("waited", r.Waited), slog.Duration("ran", r.Ran), slog.Duration("committed", r.Committed),
		slog.Int("input_tokens", r.Usage.InputTokens), slog.Int("output_tokens", r.Usage.OutputTokens),
	}
	level := slog.LevelInfo
	if err != nil {
		attrs = append(attrs, slog.Any("err", err))
		if r.End != Dropped {
			level = slog.LevelWarn
		}
	}
	if p, ok := errors.AsType[*panicError](err); ok {
		attrs = append(attrs, slog.String("stack", string(p.stack)))
		level = slog.LevelError
	}
	d.logFor(first).LogAttrs(context.Background(), level, "turn ended", attrs...)
	d.opts.Observer.TurnEnded(r)
}

// storedTurn finds the items of the turn that answers e in a history, and returns the turn's ID and the
// number of messages that it answers, 0 when there are none.
func storedTurn(history []sessionstore.Item, e Entry) (turn string, n int) {
	for _, it := range slices.Backward(history) {
		if n := turnSize(e, it.Turn); n > 0 {
			return it.Turn, n
		}
	}
	return "", 0
}

// answerText returns the text of the last assistant message among a turn's items, empty when it has
// none.
func answerText(history []sessionstore.Item, turn string) string {
	for _, it := range slices.Backward(history) {
		if it.Turn != turn {
			continue
		}
		var message struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		}
		if json.Unmarshal(it.Raw, &message) == nil && message.Role == "assistant" {
			return contentText(message.Content)
		}
	}
	return ""
}

// contentText returns the text of a message's content, which is a string or a list of parts.
func contentText(content json.RawMessage) string {
	var text string
	if json.Unmarshal(content, &text) == nil {
		return text
	}
	var parts []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	if json.Unmarshal(content, &parts) != nil {
		return ""
	}
	var b strings.Builder
	for _, p := range parts {
		if p.Type == "output_text" {
			b.WriteString(p.Text)
		}
	}
	return b.String()
}
