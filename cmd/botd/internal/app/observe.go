package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"botd/agent"
	"botd/agent/mcp"
	"botd/channels/dispatch"
	"botd/cmd/botd/internal/obs"
	"botd/config"
)

// openMetrics begins to count, and listens, when metrics.listen is set.
func (a *App) openMetrics() (err error) {
	if a.cfg.Metrics.Listen == "" {
		return nil
	}
	if a.metrics = obs.NewMetrics(a.opts.Version); a.metrics == nil {
		return errors.New("metrics.listen: this build has no metrics")
	}
	if a.metricsListener, err = (&net.ListenConfig{}).Listen(context.Background(), "tcp", a.cfg.Metrics.Listen); err != nil {
		return fmt.Errorf("listen on metrics.listen: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", a.metrics.Handler())
	a.metricsServer = newServer(recovered(mux, a.log), a.log)
	return nil
}

// watchMetrics adds what is looked up at each scrape, once there is something to look at.
func (a *App) watchMetrics() {
	if a.metrics == nil {
		return
	}
	s := obs.Sources{
		Channels: func() []obs.ChannelState {
			var states []obs.ChannelState
			for _, c := range a.channelStates() {
				states = append(states, obs.ChannelState{Name: c.Name, Platform: c.Platform, Up: c.Status == statusOK})
			}
			return states
		},
		ToolServers: func() map[string]bool {
			up := map[string]bool{}
			for name, s := range a.current().toolServers {
				up[name] = s.Connected()
			}
			return up
		},
		Journal: a.store.Stats,
	}
	if file, ok := a.store.(interface{ Size() (file, free int64) }); ok {
		s.StoreSize = file.Size
	}
	a.metrics.Watch(s)
}

// buildEngine makes the engine, whose calls are counted when anything is.
func (a *App) buildEngine(cfg *config.Config, servers map[string]*mcp.Server) (*agent.Engine, error) {
	var hooks agent.Hooks
	if a.metrics != nil {
		hooks = a.metrics.Hooks()
	}
	return buildEngine(cfg, servers, hooks, a.opts)
}

// eventSeen counts events; nil when nothing is counted.
func (a *App) eventSeen() func(channel, kind string, kept bool) {
	if a.metrics == nil {
		return nil
	}
	return a.metrics.EventSeen
}

// observer is told of turns and deliveries; nil when nothing is counted.
func (a *App) observer() dispatch.Observer {
	if a.metrics == nil {
		return nil
	}
	return a.metrics
}

// MetricsAddr returns the address that serves /metrics, empty when there is none.
func (a *App) MetricsAddr() string {
	if a.metricsListener == nil {
		return ""
	}
	return a.metricsListener.Addr().String()
}

// serveMetrics returns nil once the server was stopped.
func (a *App) serveMetrics() error {
	if a.metricsListener == nil {
		return nil
	}
	if err := a.metricsServer.Serve(a.metricsListener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve metrics: %w", err)
	}
	return nil
}

// stopMetrics waits for a scrape under way, no longer than a second: figures are of no worth to the drain.
func (a *App) stopMetrics(ctx context.Context) {
	if a.metricsServer == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if a.metricsServer.Shutdown(ctx) != nil {
		_ = a.metricsServer.Close()
	}
}
