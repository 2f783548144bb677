package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"botd/agent"
	"botd/channels/dispatch"
	"botd/cmd/botd/internal/admin"
	"botd/cmd/botd/internal/obs"
	"botd/config"
)

// Options configure an App beyond its configuration.
type Options struct {
	// Logger gets what an operator should know; nil: nothing is logged.
	Logger *slog.Logger
	// Version is shown in the log.
	Version string
	// Models replace the configured providers of these names; for tests and demonstrations.
	Models map[string]agent.Model
	// Channels are added to the configured ones, for an adapter that the configuration cannot describe.
	Channels []dispatch.Channel
	// Notify tells the service manager; nil: nobody is told. See SystemdNotify.
	Notify func(state string)
	// Level is the level of Logger, for operators to change; nil: they cannot.
	Level *slog.LevelVar
	// Load reads the configuration anew for Reload; nil: it cannot be.
	Load func() (*config.Config, config.Problems)
	// Started is when the process began, for the ready line in the log; the zero time: when New is called.
	Started time.Time
}

// App is one gateway. See the package comment.
type App struct {
	cfg     *config.Config
	opts    Options
	log     *slog.Logger
	started time.Time

	store      store
	dispatcher *dispatch.Dispatcher
	intake     *intake
	listener   net.Listener
	server     *http.Server
	// live is what Reload replaces, one reload at a time. The crews run its adapters and MCP servers.
	live            atomic.Pointer[live]
	reloading       sync.Mutex
	adapters, tools *crew
	// metrics and their listener are nil when nothing is counted.
	metrics         *obs.Metrics
	metricsListener net.Listener
	metricsServer   *http.Server
	// admin and its listener are nil when there is no admin socket.
	admin         *admin.Server
	adminListener net.Listener

	mu         sync.Mutex
	phase      phase
	lastReload *ReloadResult
}

// phase is the stage of an App's life.
type phase uint8

const (
	created phase = iota
	running
	draining
	closed
)

// New builds the gateway, opens its store and listens, unless server.listen is empty, and opens the admin
// socket, unless that is off. An App that is not run must be closed.
func New(cfg *config.Config, o Options) (_ *App, err error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Notify == nil {
		o.Notify = func(string) {}
	}
	if o.Started.IsZero() {
		o.Started = time.Now()
	}
	a := &App{cfg: cfg, opts: o, log: o.Logger, started: o.Started}
	defer func() {
		if err != nil {
			a.Close()
		}
	}()
	if err := a.openMetrics(); err != nil {
		return nil, err
	}
	toolServers, err := buildToolServers(cfg, o)
	if err != nil {
		return nil, err
	}
	engine, err := a.buildEngine(cfg, toolServers)
	if err != nil {
		return nil, err
	}
	built, err := buildChannels(cfg, o)
	if err != nil {
		return nil, err
	}
	if len(built) == 0 {
		return nil, errors.New("no channel is configured: nobody could reach the bot")
	}
	if a.store, err = openStore(cfg.Store, a.log); err != nil {
		return nil, err
	}
	a.dispatcher, err = dispatch.New(dispatch.Options{
		Channels: dispatchChannels(built), Engine: engine, Store: a.store, Journal: a.store, Logger: a.log, Observer: a.observer(),
		Budgets:       buildBudgets(cfg, a.store),
		MaxConcurrent: cfg.Limits.MaxConcurrentTurns, MaxHistory: cfg.Session.History.MaxItems,
		TurnTimeout: cfg.Limits.TurnTimeout, Grace: graceOf(cfg),
	})
	if err != nil {
		return nil, err
	}
	a.intake = &intake{sink: a.dispatcher, seen: a.eventSeen()}
	first := &live{cfg: cfg, toolServers: toolServers, engine: engine, built: built, handler: a.handler(built)}
	for _, c := range built {
		first.channels = append(first.channels, a.newSupervisor(c))
	}
	a.live.Store(first)
	a.watchMetrics()
	if cfg.Server.Listen != "" {
		if a.listener, err = (&net.ListenConfig{}).Listen(context.Background(), "tcp", cfg.Server.Listen); err != nil {
			return nil, fmt.Errorf("listen on server.listen: %w", err)
		}
	}
	a.server = newServer(a, a.log)
	if err := a.openAdmin(); err != nil {
		return nil, err
	}
	return a, nil
}

// graceOf is the grace as the dispatcher takes it, for whom zero stands for its own default.
func graceOf(cfg *config.Config) time.Duration {
	if cfg.Limits.Grace == 0 {
		return -1
	}
	return cfg.Limits.Grace
}

func dispatchChannels(built []channel) []dispatch.Channel {
	out := make([]dispatch.Channel, len(built))
	for i, c := range built {
		out[i] = c.Channel
	}
	return out
}

// Addr returns the address that the HTTP server listens on, empty when there is none.
func (a *App) Addr() string {
	if a.listener == nil {
		return ""
	}
	return a.listener.Addr().String()
}

// Dispatcher returns the sink of all channels, through which sessions can be reset too.
func (a *App) Dispatcher() *dispatch.Dispatcher { return a.dispatcher }

// Run works until ctx ends and then drains; see the package comment. It returns nil after a drain.
func (a *App) Run(ctx context.Context) error {
	if !a.enter(running) {
		return errors.New("run gateway: it was run or closed before")
	}
	defer a.Close()

	// Nothing below is cut off by the end of ctx itself: each part is told to stop in its turn.
	base := context.WithoutCancel(ctx)
	dispatchCtx, stopDispatcher := context.WithCancel(base)
	defer stopDispatcher()
	channelCtx, stopChannels := context.WithCancel(base)
	defer stopChannels()

	toolCtx, stopTools := context.WithCancel(base)
	defer stopTools()
	a.adapters, a.tools = newCrew(channelCtx), newCrew(toolCtx)
	failed := make(chan error, 4)
	var dispatcher, server, keeper sync.WaitGroup
	keeper.Go(func() { a.housekeep(dispatchCtx) })
	dispatcher.Go(func() {
		if err := a.dispatcher.Run(dispatchCtx); err != nil {
			failed <- fmt.Errorf("run dispatcher: %w", err)
		}
	})
	a.swap(&live{}, a.current())
	server.Go(func() {
		if a.listener == nil {
			return
		}
		if err := a.server.Serve(a.listener); !errors.Is(err, http.ErrServerClosed) {
			failed <- fmt.Errorf("serve HTTP: %w", err)
		}
	})
	server.Go(func() {
		if err := a.serveMetrics(); err != nil {
			failed <- err
		}
	})
	server.Go(func() {
		if err := a.serveAdmin(); err != nil {
			failed <- err
		}
	})
	announced := make(chan struct{})
	go func() {
		defer close(announced)
		a.announce(ctx)
	}()

	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	a.enter(draining)
	a.reloading.Lock() // a reload under way ends first, and none begins any more
	defer a.reloading.Unlock()
	begun := time.Now()
	a.opts.Notify("STOPPING=1")
	a.log.Info("stopping", "grace", a.current().cfg.Limits.Grace.String())
	a.stopServers(base)
	server.Wait()
	stopChannels()
	stopDispatcher()
	a.adapters.stopAll()
	dispatcher.Wait()
	keeper.Wait()
	stopTools() // now that no turn needs them
	a.tools.stopAll()
	<-announced
	a.log.Info("stopped", "took", time.Since(begun).Round(time.Millisecond).String())
	return err
}

// announce tells the log and the service manager once the dispatcher has replayed its journal.
func (a *App) announce(ctx context.Context) {
	const every = 2 * time.Millisecond
	tick := time.NewTicker(every)
	defer tick.Stop()
	for a.dispatcher.Ready() != nil {
		if a.at() != running {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
	channels := a.current().channels
	names := make([]string, len(channels))
	for i, s := range channels {
		names[i] = s.adapter.Info().Channel
	}
	a.log.Info("ready", "version", a.opts.Version, "listen", a.Addr(), "admin_socket", a.adminSocket(), "channels", names,
		"took", time.Since(a.started).Round(time.Millisecond).String())
	a.opts.Notify("READY=1")
}

// AwaitIdle waits until every accepted message is answered and every answer delivered or given up.
func (a *App) AwaitIdle(ctx context.Context) error {
	const every = 10 * time.Millisecond
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		stats, err := a.store.Stats(ctx)
		if err != nil {
			return fmt.Errorf("await idle: %w", err)
		}
		if stats.Pending == 0 && stats.Waiting == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// enter goes on to the next phase; false when it is not ahead.
func (a *App) enter(p phase) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.phase >= p {
		return false
	}
	a.phase = p
	return true
}

func (a *App) at() phase {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.phase
}

// Close releases the store and the listener of an App that was not run; after Run it does nothing.
func (a *App) Close() {
	if !a.enter(closed) {
		return
	}
	if a.listener != nil {
		_ = a.listener.Close()
	}
	if a.metricsListener != nil {
		_ = a.metricsListener.Close()
	}
	if a.adminListener != nil {
		_ = a.adminListener.Close()
	}
	if a.store != nil {
		if err := a.store.Close(); err != nil {
			a.log.Error("close store", "err", err)
		}
	}
}
