package channeltest

import (
	"context"
	"net/http"
	"testing"

	"botd/channels"
)

// Rig is one adapter and the platform that stands in for the real one.
type Rig struct {
	// Adapter is fresh: Run has not been called.
	Adapter channels.Adapter
	// Attach tells the platform where to call; needed when Adapter is a channels.Webhook.
	Attach func(http.Handler)
	// Ready waits until what people say reaches the adapter, once it runs; nil when it does at once.
	Ready func(ctx context.Context) error

	// Direct is a direct chat. Group is a place of several people, its zero value for a platform that has
	// none.
	Direct, Group Place

	// Failures are the ways in which the platform can fail a send.
	Failures []Failure
	// Junk are things that the platform, or somebody who poses as it, may send and that mean nothing.
	Junk []Junk
	// Secrets are the credentials that the adapter was given.
	Secrets []string
	// Logs returns what the adapter has logged so far; nil when it logs nothing.
	Logs func() string
}

// Place is one conversation with the bot, with one person in it who speaks.
type Place struct {
	// Address is that of an event which the person causes here.
	Address channels.Address
	// Name is the name that Profiler tells of the person.
	Name string
	// Say lets the person say text, and returns when the platform is done with it: it is acknowledged, or
	// refused, or on its way where the platform needs no acknowledgement.
	Say func(ctx context.Context, text string, how Manner) (Said, error)
	// Redeliver makes the platform deliver again what was said; nil when it never does.
	Redeliver func(ctx context.Context, said Said) error
	// Shown returns the texts that the bot has shown here and that still stand, oldest first.
	Shown func() []string
	// Answers returns those of them that visibly answer said; nil when the platform has no such thing.
	Answers func(said Said) []string
	// Typing reports that the sign of work is or was shown here; needed when Adapter is a channels.Typer.
	Typing func() bool
}

// Manner is how something is said.
type Manner struct {
	// Mention names the bot in a group. How the platform writes that is the rig's to know.
	Mention bool
	// ReplyTo is the platform's ID of a message of the bot that this one answers.
	ReplyTo string
}

// Said is something that was said.
type Said struct {
	// Refused reports that the platform knows that the adapter did not take it.
	Refused bool
	// Ref is the rig's own.
	Ref any
}

// Failure is one way in which the platform can fail a send.
type Failure struct {
	Name string
	// Inject makes the next send to Direct fail, and only that one.
	Inject func(t *testing.T)
	// Kind is the kind of the error that Send must return.
	Kind channels.ErrorKind
	// Reply has the send answer an event with its handle, where otherwise it answers none.
	Reply bool
	// Accepted reports that people see the message although the send fails.
	Accepted bool
	// Lasting reports that the failure stays, so that there is no point in trying again.
	Lasting bool
}

// Junk is something that makes no event.
type Junk struct {
	Name string
	// Send sends it, and returns when the adapter has dealt with it or will before what is said next.
	Send func(t *testing.T)
}

// place is a Place with what the suite calls it.
type place struct {
	Place
	name string
}

// places returns the places that the rig has.
func (r *Rig) places() []place {
	out := []place{{r.Direct, "direct"}}
	if r.Group.Say != nil {
		out = append(out, place{r.Group, "group"})
	}
	return out
}
