package demo

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"botd/cmd/botd/internal/app"
)

// DefaultListen is where the page is served unless something else is asked for.
const DefaultListen = "127.0.0.1:7788"

// Options configure a Demo.
type Options struct {
	// Listen is the loopback host:port of the page. When empty it is DefaultListen, or any free port if
	// that one is taken.
	Listen string
	// Data is the folder of the gateway's file; empty for a temporary one that is removed in the end.
	Data string
	// APIKey, BaseURL and Model choose a real model. Without APIKey and BaseURL it is the built-in one,
	// which needs no network.
	APIKey, BaseURL, Model string
	// WordDelay passes before each word of the built-in model.
	WordDelay time.Duration
	// Version is shown on the page.
	Version string
	// Logger gets the gateway's log; nil for none.
	Logger *slog.Logger
}

// Demo is one demonstration.
type Demo struct {
	opts     Options
	data     string
	world    *world
	gateway  *app.App
	hub      *hub
	listener net.Listener
	server   *http.Server
	// ready is closed once the gateway hears both platforms.
	ready chan struct{}
	// ending is closed when Run is to end, so that the pages' streams do not keep it up.
	ending chan struct{}
}

// New builds the platforms and the gateway, and listens. A Demo that is not run must be closed.
func New(o Options) (_ *Demo, err error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	d := &Demo{opts: o, data: o.Data, ready: make(chan struct{}), ending: make(chan struct{})}
	defer func() {
		if err != nil {
			d.Close()
		}
	}()
	if d.listener, err = listen(o.Listen); err != nil {
		return nil, err
	}
	if d.data == "" {
		if d.data, err = os.MkdirTemp("", "botd-demo-"); err != nil {
			return nil, fmt.Errorf("make a temporary folder: %w", err)
		}
	}
	if d.world, err = newWorld(); err != nil {
		return nil, err
	}
	if d.gateway, err = newGateway(o, d.data, d.world); err != nil {
		return nil, err
	}
	d.world.bot.SetWebhook("http://" + d.gateway.Addr() + webhookPath)
	d.hub = newHub(d.world, d.gateway.Sessions())
	d.server = &http.Server{
		Handler: d.handler(), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 15 * time.Second,
		IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
		ErrorLog: slog.NewLogLogger(o.Logger.Handler(), slog.LevelDebug),
	}
	return d, nil
}

func listen(address string) (net.Listener, error) {
	var config net.ListenConfig
	if address == "" {
		if l, err := config.Listen(context.Background(), "tcp", DefaultListen); err == nil {
			return l, nil
		}
		address = "127.0.0.1:0"
	}
	if !isLoopback(address) {
		return nil, fmt.Errorf("listen on %s: the page has no authentication, so it is served on this machine alone (try %s)", address, DefaultListen)
	}
	l, err := config.Listen(context.Background(), "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen for the page: %w", err)
	}
	return l, nil
}

// URL is the address of the page.
func (d *Demo) URL() string { return "http://" + d.listener.Addr().String() }

// Run serves the page and runs the gateway until ctx ends.
func (d *Demo) Run(ctx context.Context) error {
	defer d.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	// Each part ends only after those that need it: the page, the gateway, the platforms.
	base := context.WithoutCancel(ctx)
	hubCtx, stopHub := context.WithCancel(base)
	defer stopHub()
	gatewayCtx, stopGateway := context.WithCancel(base)
	defer stopGateway()
	errs := make(chan error, 2)
	var page, gateway, hub sync.WaitGroup
	hub.Go(func() { d.hub.run(hubCtx) })
	page.Go(func() { d.awaitReady(ctx) })
	gateway.Go(func() {
		if err := d.gateway.Run(gatewayCtx); err != nil {
			errs <- err
		}
		cancel()
	})
	page.Go(func() {
		if err := d.server.Serve(d.listener); !errors.Is(err, http.ErrServerClosed) {
			errs <- fmt.Errorf("serve the page: %w", err)
		}
		cancel()
	})

	<-ctx.Done()
	close(d.ending)
	end, stop := context.WithTimeout(base, 5*time.Second)
	defer stop()
	if d.server.Shutdown(end) != nil {
		_ = d.server.Close()
	}
	page.Wait()
	stopGateway()
	gateway.Wait()
	stopHub()
	hub.Wait()
	select {
	case err := <-errs:
		return err
	default:
		return nil
	}
}

// awaitReady closes ready. A platform that is asked to deliver before the gateway has come to it would find
// nobody there.
func (d *Demo) awaitReady(ctx context.Context) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for d.gateway.Dispatcher().Ready() != nil || d.world.discord.Gateway().Live == 0 {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
	close(d.ready)
}

// Close releases what New took; after Run it does nothing.
func (d *Demo) Close() {
	if d.listener != nil {
		_ = d.listener.Close()
	}
	if d.gateway != nil {
		d.gateway.Close()
	}
	if d.world != nil {
		d.world.close()
	}
	if d.opts.Data == "" && d.data != "" {
		if err := os.RemoveAll(d.data); err != nil {
			d.opts.Logger.Warn("temporary folder not removed", "err", err)
		}
	}
}
