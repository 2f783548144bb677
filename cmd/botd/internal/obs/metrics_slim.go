//go:build slim

package obs

import (
	"net/http"

	"botd/agent"
	"botd/channels/dispatch"
)

// Metrics counts nothing in this build.
type Metrics struct{}

// NewMetrics returns nil: this build has no metrics.
func NewMetrics(string) *Metrics { return nil }

// Watch does nothing.
func (*Metrics) Watch(Sources) {}

// Handler is never called.
func (*Metrics) Handler() http.Handler { return http.NotFoundHandler() }

// EventSeen does nothing.
func (*Metrics) EventSeen(string, string, bool) {}

// TurnEnded does nothing.
func (*Metrics) TurnEnded(dispatch.TurnReport) {}

// SendEnded does nothing.
func (*Metrics) SendEnded(dispatch.SendReport) {}

// Hooks are none.
func (*Metrics) Hooks() agent.Hooks { return agent.Hooks{} }

// Reloaded does nothing.
func (*Metrics) Reloaded(bool) {}
