package app

import (
	"context"
	"log/slog"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	"botd/channels"
)

// Limits of the HTTP server. Webhooks are small and are acknowledged at once; who needs longer is no
// platform. Handlers bound the bodies.
const (
	readHeaderTimeout = 5 * time.Second
	readTimeout       = 15 * time.Second
	writeTimeout      = 30 * time.Second
	idleTimeout       = 2 * time.Minute
	maxHeaderBytes    = 16 << 10
)

func newServer(h http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}

// shutdownTimeout bounds the wait for requests under way; a webhook is acknowledged within milliseconds.
const shutdownTimeout = 5 * time.Second

// stopServers takes no more requests and waits for those under way.
func (a *App) stopServers(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, shutdownTimeout)
	defer cancel()
	var stopping sync.WaitGroup
	stopping.Go(func() { a.stopAdmin(ctx) })
	stopping.Go(func() { a.stopMetrics(ctx) })
	if err := a.server.Shutdown(ctx); err != nil {
		a.log.Warn("cutting off HTTP requests that do not end", "err", err)
		_ = a.server.Close()
	}
	stopping.Wait()
}

// handler serves the webhooks of the channels and the health checks.
func (a *App) handler(built []channel) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", healthz)
	mux.HandleFunc("GET /readyz", a.readyz)
	for path, h := range webhooks(a.intake, built) {
		mux.Handle(path, h)
	}
	return recovered(mux, a.log)
}

// webhooks returns the handlers by path. Channels of one kind may share a path.
func webhooks(sink channels.Sink, built []channel) map[string]http.Handler {
	handlers := map[string]http.Handler{}
	for i, c := range built {
		if c.path == "" || handlers[c.path] != nil {
			continue
		}
		var adapters []channels.Adapter
		for _, other := range built[i:] {
			if other.path == c.path {
				adapters = append(adapters, other.Adapter)
			}
		}
		handlers[c.path] = c.webhook(sink, adapters)
	}
	return handlers
}

// recovered keeps a panic in one request that request's failure.
func recovered(next http.Handler, log *slog.Logger) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			switch v := recover(); v {
			case nil:
			case http.ErrAbortHandler: // the way to end a response early
				panic(v)
			default:
				log.Error("request has panicked", "path", r.URL.Path, "err", panicError(v), "stack", string(debug.Stack()))
				w.WriteHeader(http.StatusInternalServerError)
			}
		}()
		next.ServeHTTP(w, r)
	})
}
