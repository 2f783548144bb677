package agent

import (
	"context"

	"botd/sessionstore"
)

// Caller is on whose behalf a tool runs. A tool that acts for a person takes the identity from here,
// never from its arguments, which the model wrote.
type Caller struct {
	Turn    string
	Session sessionstore.ID
	Agent   string
	Place   string
	Group   bool
	// Speaker is the person who spoke last in the turn.
	Speaker Speaker
}

type callerKey struct{}

func withCaller(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// CallerFrom returns the caller of the tool call that ctx belongs to; false outside of one.
func CallerFrom(ctx context.Context) (Caller, bool) {
	c, ok := ctx.Value(callerKey{}).(Caller)
	return c, ok
}

func (r *run) caller() Caller {
	return Caller{
		Turn: r.turn.ID, Session: r.turn.Session, Agent: r.agent.Name, Place: r.turn.Place, Group: r.turn.Group,
		Speaker: r.turn.Input[len(r.turn.Input)-1].Speaker,
	}
}
