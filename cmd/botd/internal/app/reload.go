package app

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"botd/agent"
	"botd/agent/mcp"
	"botd/channels/dispatch"
	"botd/cmd/botd/internal/obs"
	"botd/config"
)

// live is what a reload replaces. It is never changed once it is in place.
type live struct {
	cfg *config.Config
	// toolServers are the MCP servers, by name.
	toolServers map[string]*mcp.Server
	engine      *agent.Engine
	channels    []*supervisor
	built       []channel
	handler     http.Handler
}

func (a *App) current() *live { return a.live.Load() }

// ServeHTTP hands a request to the handler that is in place.
func (a *App) ServeHTTP(w http.ResponseWriter, r *http.Request) { a.current().handler.ServeHTTP(w, r) }

// ReloadResult is what came of reading the configuration anew. It holds no secrets.
type ReloadResult struct {
	OK bool      `json:"ok"`
	At time.Time `json:"at"`
	// Applied are the keys whose change has taken effect.
	Applied []config.Change `json:"applied"`
	// Restart are the keys that have changed and take effect at the next start only.
	Restart []config.Change `json:"restart"`
	// Problems are those of the configuration; Error is what else kept it from being used. What was in use
	// before stays in use then.
	Problems config.Problems `json:"problems,omitempty"`
	Error    string          `json:"error,omitempty"`
}

// ErrNoReload is returned by Reload when there is nothing to read anew.
var ErrNoReload = errors.New("this gateway was not started from a configuration that can be read again")

// reloadable are the sections that can be changed while the gateway runs.
var reloadable = []string{"providers", "mcp", "agents", "channels", "session", "limits", "log.level"}

// canReload reports whether a change takes effect without a restart.
func canReload(c config.Change) bool {
	return slices.ContainsFunc(reloadable, func(section string) bool {
		return c.Path == section || strings.HasPrefix(c.Path, section+".")
	})
}

// Reload reads the configuration anew and puts what has changed in place: agents, providers, MCP servers,
// channels, limits and the log level. Turns that run end as they began, and nothing accepted is lost. When the
// configuration cannot be used, all stays as it was. The error is ErrNoReload, or that the gateway does
// not run.
func (a *App) Reload(ctx context.Context) (ReloadResult, error) {
	if a.opts.Load == nil {
		return ReloadResult{}, ErrNoReload
	}
	a.reloading.Lock()
	defer a.reloading.Unlock()
	if a.at() != running {
		return ReloadResult{}, errors.New("reload configuration: the gateway does not run")
	}
	cfg, problems := a.opts.Load()
	r := ReloadResult{At: time.Now(), Applied: []config.Change{}, Restart: []config.Change{}, Problems: problems}
	err := problems.Err()
	if err == nil {
		for _, c := range config.Diff(a.current().cfg, cfg) {
			if canReload(c) {
				r.Applied = append(r.Applied, c)
			}
		}
		for _, c := range config.Diff(a.cfg, cfg) {
			if !canReload(c) {
				r.Restart = append(r.Restart, c)
			}
		}
		if err = a.replace(ctx, cfg, r.Applied); err != nil {
			r.Applied, r.Error = []config.Change{}, err.Error()
		}
	}
	r.OK = err == nil
	a.reloaded(r)
	return r, nil
}

// reloaded tells of a reload.
func (a *App) reloaded(r ReloadResult) {
	if a.metrics != nil {
		a.metrics.Reloaded(r.OK)
	}
	a.mu.Lock()
	a.lastReload = &r
	a.mu.Unlock()
	if !r.OK {
		attrs := []any{"problems", r.Problems.Summary()}
		for _, p := range r.Problems {
			if p.Severity == config.SeverityError {
				attrs = append(attrs, "line", p.Line, "first", p.Message, "fix", p.Remedy)
				break
			}
		}
		if r.Error != "" {
			attrs = append(attrs, "err", r.Error)
		}
		a.log.Error("configuration not reloaded, what was in use stays in use", attrs...)
		return
	}
	a.log.Info("configuration reloaded", "applied", paths(r.Applied))
	if len(r.Restart) > 0 {
		a.log.Warn("these changes take effect at the next start only", "keys", paths(r.Restart))
	}
}

func paths(changes []config.Change) []string {
	out := make([]string, len(changes))
	for i, c := range changes {
		out[i] = c.Path
	}
	return out
}

// LastReload returns what came of the last reload, nil when there was none.
func (a *App) LastReload() *ReloadResult {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.lastReload
}

// replace builds what has changed and swaps it in.
func (a *App) replace(_ context.Context, cfg *config.Config, changes []config.Change) error {
	if len(changes) == 0 {
		return nil
	}
	old := a.current()
	next := &live{cfg: cfg}
	var err error
	if next.toolServers, err = a.reuseToolServers(old, cfg); err != nil {
		return err
	}
	if next.engine, err = a.buildEngine(cfg, next.toolServers); err != nil {
		return err
	}
	if next.built, err = a.reuseChannels(old, cfg); err != nil {
		return err
	}
	if len(next.built) == 0 {
		return errors.New("no channel is configured: nobody could reach the bot")
	}
	next.handler = a.handler(next.built)
	for _, c := range next.built {
		next.channels = append(next.channels, old.supervisor(c, a))
	}
	if err := a.dispatcher.Reconfigure(dispatch.Setup{
		Channels: dispatchChannels(next.built), Engine: next.engine,
		Limits: dispatch.Limits{
			MaxConcurrent: cfg.Limits.MaxConcurrentTurns, MaxHistory: cfg.Session.History.MaxItems,
			TurnTimeout: cfg.Limits.TurnTimeout, Grace: graceOf(cfg),
		},
	}); err != nil {
		return err
	}
	if l, err := obs.ParseLevel(cfg.Log.Level); err == nil && a.opts.Level != nil {
		a.opts.Level.Set(l)
	}
	a.live.Store(next)
	a.swap(old, next)
	return nil
}

// swap stops what is gone and starts what is new. Webhooks have reached the new adapters since live was stored.
func (a *App) swap(old, next *live) {
	for _, s := range old.channels {
		if !slices.Contains(next.channels, s) {
			a.adapters.stop(s)
		}
	}
	for _, s := range next.channels {
		if !slices.Contains(old.channels, s) {
			a.adapters.start(s, func(ctx context.Context) { s.run(ctx, a.intake) })
		}
	}
	for name, s := range old.toolServers {
		if next.toolServers[name] != s {
			a.tools.stop(s)
		}
	}
	for name, s := range next.toolServers {
		if old.toolServers[name] != s {
			a.tools.start(s, func(ctx context.Context) { _ = s.Run(ctx) }) // it ends with the context and for no other reason
		}
	}
}

// reuseToolServers makes the MCP servers, keeping those whose configuration is the same.
func (a *App) reuseToolServers(old *live, cfg *config.Config) (map[string]*mcp.Server, error) {
	servers := make(map[string]*mcp.Server, len(cfg.MCP))
	for name, c := range cfg.MCP {
		if s := old.toolServers[name]; s != nil && reflect.DeepEqual(c, old.cfg.MCP[name]) {
			servers[name] = s
			continue
		}
		s, err := newToolServer(name, c, a.opts)
		if err != nil {
			return nil, fmt.Errorf("set up mcp.%s: %w", name, err)
		}
		servers[name] = s
	}
	return servers, nil
}

// reuseChannels makes the channels, keeping the adapters whose own configuration is the same: they hold
// connections.
func (a *App) reuseChannels(old *live, cfg *config.Config) ([]channel, error) {
	built, err := buildChannels(cfg, a.opts)
	if err != nil {
		return nil, err
	}
	for i, c := range built {
		name := c.Adapter.Info().Channel
		now, configured := cfg.Channels[name]
		before, was := old.cfg.Channels[name]
		for _, kept := range old.built {
			same := configured && was && sameAccount(before, now) || !configured && !was
			if same && kept.Adapter.Info().Channel == name {
				built[i].Adapter = kept.Adapter
			}
		}
	}
	return built, nil
}

// sameAccount reports whether an adapter made for one channel serves the other: all else is the dispatcher's.
func sameAccount(a, b config.Channel) bool {
	return a.Type == b.Type && reflect.DeepEqual(a.LINE, b.LINE) && reflect.DeepEqual(a.Discord, b.Discord) && reflect.DeepEqual(a.Console, b.Console)
}

// supervisor returns the one that runs a channel's adapter already, or a new one.
func (l *live) supervisor(c channel, a *App) *supervisor {
	for _, s := range l.channels {
		if sameAdapter(s.adapter, c.Adapter) {
			return s
		}
	}
	return a.newSupervisor(c)
}

func sameAdapter(a, b any) bool { return reflect.TypeOf(a).Comparable() && a == b }

func (a *App) newSupervisor(c channel) *supervisor {
	return &supervisor{adapter: c.Adapter, log: a.log.With("channel", c.Adapter.Info().Channel)}
}

// crew runs functions that can be stopped one by one or all together. Its methods are safe for concurrent use.
type crew struct {
	mu      sync.Mutex
	base    context.Context
	running map[any]member
	busy    sync.WaitGroup
}

type member struct {
	cancel context.CancelFunc
	ended  chan struct{}
}

func newCrew(base context.Context) *crew { return &crew{base: base, running: map[any]member{}} }

func (c *crew) start(key any, f func(context.Context)) {
	ctx, cancel := context.WithCancel(c.base)
	m := member{cancel, make(chan struct{})}
	c.mu.Lock()
	c.running[key] = m
	c.mu.Unlock()
	c.busy.Go(func() {
		defer close(m.ended)
		f(ctx)
	})
}

// stop ends one and waits for its end.
func (c *crew) stop(key any) {
	c.mu.Lock()
	m, ok := c.running[key]
	delete(c.running, key)
	c.mu.Unlock()
	if ok {
		m.cancel()
		<-m.ended
	}
}

// stopAll ends all and waits for their ends.
func (c *crew) stopAll() {
	c.mu.Lock()
	for _, m := range c.running {
		m.cancel()
	}
	c.mu.Unlock()
	c.busy.Wait()
}
