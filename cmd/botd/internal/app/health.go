package app

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"
)

// Readiness is what /readyz answers.
type Readiness struct {
	// Status is ready, degraded (some channel or MCP server does not work), starting, draining or failed. The answer is
	// 200 for the first two and 503 for the others: one channel that is down must not take a load
	// balancer away from those that work.
	Status string `json:"status"`
	// Checks are store, dispatcher, channel/NAME for each channel, and mcp/NAME for each MCP server.
	Checks map[string]check `json:"checks"`
}

// check is the result of one check.
type check struct {
	Status string `json:"status"`
	Detail string `json:"detail,omitempty"`
}

const (
	statusOK         = "ok"
	statusStarting   = "starting"
	statusConnecting = "connecting"
	statusFailed     = "failed"

	ready    = "ready"
	degraded = "degraded"
	drained  = "draining"
)

// storeTimeout bounds the check of the store.
const storeTimeout = 2 * time.Second

// Ready returns nil when the gateway works: the store answers, the dispatcher has replayed its journal,
// and at least one channel works.
func (a *App) Ready() error {
	r := a.readiness(context.Background())
	if r.Status == ready || r.Status == degraded {
		return nil
	}
	return errors.New(r.Status)
}

func (a *App) readiness(ctx context.Context) Readiness {
	r := Readiness{Checks: map[string]check{}}
	switch a.at() {
	case created:
		r.Status = statusStarting
	case draining, closed:
		r.Status = drained
		return r
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	r.Checks["store"] = check{Status: statusOK}
	if err := a.checkStore(ctx); err != nil {
		r.Checks["store"] = check{Status: statusFailed, Detail: err.Error()}
		r.Status = statusFailed
	}
	r.Checks["dispatcher"] = check{Status: statusOK}
	if err := a.dispatcher.Ready(); err != nil {
		r.Checks["dispatcher"] = check{Status: statusStarting, Detail: err.Error()}
		r.worsen(statusStarting)
	}
	working, connected := 0, 0
	for _, s := range a.current().channels {
		c := s.check()
		r.Checks["channel/"+s.adapter.Info().Channel] = c
		if c.Status != statusFailed {
			working++
		}
		if c.Status == statusOK {
			connected++
		}
	}
	toolsMissing := false
	for name, s := range a.current().toolServers {
		c := check{Status: statusOK}
		if !s.Connected() {
			toolsMissing = true
			c = check{Status: statusConnecting, Detail: "not connected: its tools are missing"}
		}
		r.Checks["mcp/"+name] = c
	}
	switch {
	case working == 0:
		r.worsen(statusFailed)
	case connected < len(a.current().channels) || toolsMissing:
		r.worsen(degraded)
	default:
		r.worsen(ready)
	}
	return r
}

// worsen sets the status unless an earlier check has set one.
func (r *Readiness) worsen(status string) {
	if r.Status == "" {
		r.Status = status
	}
}

// healthz tells that the process answers. It looks at nothing else: a restart would not mend a network.
func healthz(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, map[string]string{"status": statusOK})
}

func (a *App) readyz(w http.ResponseWriter, r *http.Request) {
	state := a.readiness(r.Context())
	code := http.StatusServiceUnavailable
	if state.Status == ready || state.Status == degraded {
		code = http.StatusOK
	}
	writeJSON(w, code, state)
}

func writeJSON(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(v) // the client is gone
}
