package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/tidwall/gjson"
)

// DefaultRefusal is said instead of what a guard blocks.
const DefaultRefusal = "Sorry, I cannot help with that."

// Guard judges texts before they go further. It is safe for concurrent use.
type Guard interface {
	// Name names the guard in logs and metrics.
	Name() string
	// Check reports whether the text must go no further. An error fails the run: what could not be judged
	// is not let through.
	Check(ctx context.Context, text string) (blocked bool, err error)
}

// check asks all guards at once and returns the name of the first, in their order, that blocks the text.
func check(ctx context.Context, guards []Guard, text string) (blocked string, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	verdicts := make([]bool, len(guards))
	errs := make([]error, len(guards))
	var wg sync.WaitGroup
	for i, g := range guards {
		wg.Go(func() {
			if verdicts[i], errs[i] = g.Check(ctx, text); verdicts[i] {
				cancel() // the others need not go on
			}
		})
	}
	wg.Wait()
	for i, g := range guards {
		if verdicts[i] {
			return g.Name(), nil
		}
	}
	for i, g := range guards {
		if errs[i] != nil {
			return "", fmt.Errorf("ask guard %s: %w", g.Name(), asError(errs[i]))
		}
	}
	return "", nil
}

// asError gives an error of a guard a kind, should it have none.
func asError(err error) error {
	if _, ok := errors.AsType[*Error](err); ok {
		return err
	}
	return &Error{Kind: Transient, Err: err}
}

// guardInput asks the guards of the agent that the turn begins with about what people said. It returns
// the end of the run when they block it, nil when not.
func (r *run) guardInput(ctx context.Context) (*Final, error) {
	if len(r.agent.InputGuards) == 0 {
		return nil, nil
	}
	var texts []string
	for _, it := range r.fresh {
		content := gjson.GetBytes(it.Raw, "content")
		if parts := content.Array(); content.IsArray() && len(parts) > 0 {
			content = parts[len(parts)-1].Get("text") // behind the header, which no person wrote
		}
		texts = append(texts, content.Str)
	}
	guard, err := check(ctx, r.agent.InputGuards, strings.Join(texts, "\n"))
	if err != nil || guard == "" {
		return nil, err
	}
	return r.refuse(guard), nil
}

// guardOutput does the same for the answer, of which nothing is kept or was shown when it is blocked.
// Tools that have run are remembered.
func (r *run) guardOutput(ctx context.Context, text string) (*Final, error) {
	guard, err := check(ctx, r.agent.OutputGuards, text)
	if err != nil || guard == "" {
		return nil, err
	}
	return r.refuse(guard), nil
}

// refuse ends a run with the refusal, so that the history stays a dialogue.
func (r *run) refuse(guard string) *Final {
	r.e.log.Info("blocked by guard", "turn", r.turn.ID, "agent", r.agent.Name, "guard", guard)
	text := r.agent.Refusal
	if text == "" {
		text = DefaultRefusal
	}
	r.add("", AssistantMessage(text))
	final := r.final(text)
	final.Blocked = guard
	return final
}
