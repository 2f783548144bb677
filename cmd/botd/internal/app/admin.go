package app

import (
	"context"
	"fmt"

	"botd/cmd/botd/internal/admin"
)

// openAdmin opens the admin socket, if there is to be one. The store's lock is held by then: a socket that
// lies beside the store's file can only be one that was left behind.
func (a *App) openAdmin() (err error) {
	path := a.cfg.AdminSocket()
	if path == "" {
		return nil
	}
	a.admin = admin.New(admin.Options{
		Store: a.store, Journal: a.store, Dispatcher: a.dispatcher, Channels: a.channelStates, Level: a.opts.Level, Logger: a.log,
	})
	if a.adminListener, err = admin.Listen(context.Background(), path); err != nil {
		return fmt.Errorf("%w (set admin.socket to another path, or to off)", err)
	}
	return nil
}

// adminSocket is the path of the admin socket, empty when there is none.
func (a *App) adminSocket() string {
	if a.adminListener == nil {
		return ""
	}
	return a.adminListener.Addr().String()
}

// serveAdmin returns nil once the admin server was stopped.
func (a *App) serveAdmin() error {
	if a.adminListener == nil {
		return nil
	}
	return a.admin.Serve(a.adminListener)
}

// stopAdmin ends the admin server and removes its socket.
func (a *App) stopAdmin(ctx context.Context) {
	if a.admin == nil {
		return
	}
	if err := a.admin.Shutdown(ctx); err != nil {
		a.log.Warn("cutting off admin requests that do not end", "err", err)
	}
}

// channelStates tells how each channel is.
func (a *App) channelStates() []admin.Channel {
	channels := a.current().channels
	states := make([]admin.Channel, len(channels))
	for i, s := range channels {
		info, c := s.adapter.Info(), s.check()
		states[i] = admin.Channel{Name: info.Channel, Platform: info.Platform, Status: c.Status, Detail: c.Detail}
	}
	return states
}
