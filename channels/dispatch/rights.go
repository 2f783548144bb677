package dispatch

import (
	"slices"

	"botd/channels"
)

// command returns the command that an event gives on the channel, commandRefused when its speaker has no
// right to.
func (c *channel) command(in channels.Inbound) commandKind {
	if in.Kind == channels.Unsend {
		return commandUnsend
	}
	kind := parseCommand(in)
	switch kind {
	case commandReset, commandRestore, commandUndo, commandRetry:
		if shared(c.Scope, in.Address) && !c.isAdmin(in.Speaker) {
			return commandRefused
		}
	}
	return kind
}

// isAdmin reports whether a person is in charge of what several people share.
func (c *channel) isAdmin(s channels.Speaker) bool {
	return s.Admin || s.ID != "" && slices.Contains(c.Admins, s.ID)
}
