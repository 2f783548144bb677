package agent

import (
	"context"
	"errors"
	"time"
)

// retryPause is between two passes through the chain of models.
const retryPause = 2 * time.Second

// ask gets one answer from the first model of the chain that gives one.
//
// The next model is asked when a model is unreachable, overloaded, out of credit, or too small for the
// conversation; and only while no text of the failed answer was shown. A request that is refused for what
// it is, or a key that is, fails the run: another model would only hide the mistake. After a tool has run
// the chain is gone through twice, because to fail then would mean to run the tool again with the turn.
func (r *run) ask(ctx context.Context, mode toolMode) (*Completion, error) {
	passes := 1
	if r.effects {
		passes = 2
	}
	var cause error
	for pass := range passes {
		if pass > 0 {
			if err := pause(ctx, retryPause); err != nil {
				return nil, err
			}
		}
		for i := r.model; i < len(r.agent.Models); i++ {
			done, spoke, err := r.askModel(ctx, i, mode)
			if err == nil {
				r.model = i
				r.spend(done.Usage)
				return done, nil
			}
			if errors.Is(err, errStopped) || ctx.Err() != nil {
				return nil, err
			}
			r.e.log.Warn("model call failed", "turn", r.turn.ID, "agent", r.agent.Name,
				"model", r.agent.Models[i].String(), "err", err)
			if spoke || !fallsOver(err) {
				return nil, err
			}
			if cause == nil || !retryable(cause) {
				cause = err
			}
		}
	}
	return nil, cause
}

// askModel asks one model, again where the request can be mended. spoke reports that text was shown.
func (r *run) askModel(ctx context.Context, i int, mode toolMode) (done *Completion, spoke bool, err error) {
	for {
		done, spoke, err = r.stream(ctx, &r.agent.Models[i], r.request(&r.agent.Models[i], mode), r.delta)
		if err == nil || spoke {
			return done, spoke, err
		}
		e, _ := errors.AsType[*Error](err)
		switch {
		case e == nil:
			return nil, false, err
		case e.Kind == BadReasoning && !r.noReasoning:
			r.noReasoning = true
		case e.Kind == ContextOverflow && r.squeeze < squeezeAll:
			r.squeeze++
		default:
			return nil, false, err
		}
		r.e.log.Info("mending the request", "turn", r.turn.ID, "model", r.agent.Models[i].String(), "cause", e.Kind.String())
	}
}

// delta shows text as it comes, unless it must be judged first.
func (r *run) delta(text string) bool {
	return len(r.agent.OutputGuards) > 0 || r.emit(Event{Delta: text})
}

// stream asks one model once and passes on its text.
func (r *run) stream(ctx context.Context, ref *ModelRef, req *Request, delta func(string) bool) (done *Completion, spoke bool, err error) {
	said := 0
	seen := ModelCall{Turn: r.turn.ID, Agent: r.agent.Name, Provider: ref.Provider, Model: ref.Name, Start: time.Now()}
	defer func() {
		if seen.Err = err; done != nil {
			seen.Usage, seen.RequestID = done.Usage, done.RequestID
		} else if spoke {
			seen.Usage = brokenOff(req, said)
		}
		r.e.opts.Hooks.model(seen)
		if seen.Usage != (Usage{}) {
			Spend(ctx, Spending{Agent: r.agent.Name, Provider: ref.Provider, Model: ref.Name, Usage: seen.Usage})
		}
	}()
	for ev, err := range ref.Model.Stream(ctx, req) {
		switch {
		case err != nil:
			return nil, spoke, err
		case ev.Done != nil:
			return ev.Done, spoke, nil
		case ev.Delta != "":
			if !spoke {
				spoke, seen.FirstDelta = true, time.Since(seen.Start)
			}
			said++ // providers send about one token at a time
			if !delta(ev.Delta) {
				return nil, spoke, errStopped
			}
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, spoke, err
	}
	return nil, spoke, &Error{Kind: Transient, Err: errors.New("the model's answer has no end")}
}

// brokenOff is what an answer has cost that did not come to its end: providers tell the count only there.
func brokenOff(req *Request, deltas int) Usage {
	u := Usage{Requests: 1, InputTokens: EstimateTokens([]byte(req.Instructions)), OutputTokens: deltas, Estimated: true}
	for _, raw := range req.Input {
		u.InputTokens += EstimateTokens(raw)
	}
	return u
}

func (r *run) request(ref *ModelRef, mode toolMode) *Request {
	req := &Request{
		Model:        ref.Name,
		Instructions: r.instructions,
		Input: raws(Repair(r.view(ref), RepairOptions{
			Provider: ref.Provider, Stateless: true, NoReasoning: r.noReasoning,
		})),
		Temperature:     r.agent.Temperature,
		MaxOutputTokens: r.agent.MaxOutputTokens,
		CacheKey:        r.cacheKey,
		Safety:          r.safety,
	}
	if mode != toolsHidden {
		req.Tools = r.agent.specs
		req.NoTools = mode == toolsForbidden && len(req.Tools) > 0
	}
	return req
}

// fallsOver reports whether another model may do better.
func fallsOver(err error) bool {
	e, ok := errors.AsType[*Error](err)
	if !ok {
		return false
	}
	switch e.Kind {
	case Transient, RateLimited, QuotaExhausted, ContextOverflow:
		return true
	}
	return false
}

func retryable(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Kind.Retryable()
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
