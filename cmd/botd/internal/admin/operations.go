package admin

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"

	"botd/sessionstore/boltstore"
)

// What stores with a file can do.
type (
	sizer    interface{ Size() (file, free int64) }
	backuper interface {
		Backup(ctx context.Context, w io.Writer) error
	}
	verifier interface {
		Verify(ctx context.Context) error
	}
)

func (s *Server) getStats(w http.ResponseWriter, r *http.Request) error {
	if q := params(r); q.err != nil {
		return q.err
	}
	st, err := s.opts.Journal.Stats(r.Context())
	if err != nil {
		return err
	}
	stats := Stats{
		Pending: st.Pending, Waiting: st.Waiting, Held: st.Held, Unknown: st.Unknown, Dead: st.Dead,
		DeadEvents: st.DeadEvents, Oldest: st.Oldest,
	}
	if file, ok := s.opts.Store.(sizer); ok {
		stats.File = &FileStats{}
		stats.File.Size, stats.File.Free = file.Size()
	}
	return reply(w, stats)
}

func (s *Server) getChannels(w http.ResponseWriter, r *http.Request) error {
	if q := params(r); q.err != nil {
		return q.err
	}
	page := Page[Channel]{Data: s.opts.Channels()}
	if page.Data == nil {
		page.Data = []Channel{}
	}
	return reply(w, page)
}

func (s *Server) level() (*slog.LevelVar, error) {
	if s.opts.Level == nil {
		return nil, problem(CodeUnsupported, "there is no log level to change: no gateway runs")
	}
	return s.opts.Level, nil
}

func (s *Server) getLogLevel(w http.ResponseWriter, r *http.Request) error {
	level, err := s.level()
	if err != nil {
		return err
	}
	if q := params(r); q.err != nil {
		return q.err
	}
	return reply(w, LogLevel{strings.ToLower(level.Level().String())})
}

// levels are the names of the levels, as in the configuration.
var levels = map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}

func (s *Server) putLogLevel(w http.ResponseWriter, r *http.Request) error {
	level, err := s.level()
	if err != nil {
		return err
	}
	if q := params(r); q.err != nil {
		return q.err
	}
	var want LogLevel
	if err := decode(r, &want); err != nil {
		return err
	}
	l, ok := levels[want.Level]
	if !ok {
		return problem(CodeInvalidRequest, "level must be debug, info, warn or error")
	}
	level.Set(l)
	s.log.Info("log level changed", "level", want.Level)
	return reply(w, want)
}

func (s *Server) backup(w http.ResponseWriter, r *http.Request) error {
	store, ok := s.opts.Store.(backuper)
	if !ok {
		return unsupported("be copied to a file")
	}
	if q := params(r); q.err != nil {
		return q.err
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	return store.Backup(r.Context(), w)
}

func (s *Server) verify(w http.ResponseWriter, r *http.Request) error {
	store, ok := s.opts.Store.(verifier)
	if !ok {
		return unsupported("be verified")
	}
	if q := params(r); q.err != nil {
		return q.err
	}
	if err := decode(r, &struct{}{}); err != nil {
		return err
	}
	switch err := store.Verify(r.Context()); {
	case err == nil:
		return reply(w, VerifyResult{OK: true})
	case errors.Is(err, boltstore.ErrCorrupt):
		return reply(w, VerifyResult{Faults: strings.Split(err.Error(), "\n")})
	default:
		return err
	}
}
