package admin

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"strings"
	"time"

	"botd/channels/dispatch"
	"botd/sessionstore"
)

func (s *Server) resetSession(w http.ResponseWriter, r *http.Request) error {
	id, err := sessionID(r)
	if err != nil {
		return err
	}
	if q := params(r); q.err != nil {
		return q.err
	}
	if err := decode(r, &struct{}{}); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), actTimeout)
	defer cancel()
	before, err := s.opts.Store.Generation(ctx, id)
	if err != nil {
		return err
	}
	if err := s.reset(ctx, id); err != nil {
		return err
	}
	result := ResetResult{Session: id}
	if result.Generation, err = s.opts.Store.Generation(ctx, id); err != nil {
		return err
	}
	archives, err := s.archives(ctx, id)
	if err != nil {
		return err
	}
	if len(archives) > 0 && archives[0].Generation >= before {
		result.Archive = &archives[0]
	}
	return reply(w, result)
}

// reset forgets a session and all that was asked in it and is not answered. A turn that is running must
// not write afterwards, so the dispatcher that runs it has to know first.
func (s *Server) reset(ctx context.Context, id sessionstore.ID) error {
	if s.opts.Dispatcher != nil {
		return s.opts.Dispatcher.Reset(ctx, id)
	}
	var asked []uint64
	for e, err := range s.opts.Journal.Pending(ctx) {
		if err != nil {
			return err
		}
		if e.Session == id {
			asked = append(asked, e.Seq)
		}
	}
	return s.opts.Journal.Commit(ctx, dispatch.TurnResult{
		Session: id, Turn: strings.ToLower(rand.Text()[:16]), Clear: true, Consumed: asked,
	})
}

func (s *Server) restoreSession(w http.ResponseWriter, r *http.Request) error {
	id, err := sessionID(r)
	if err != nil {
		return err
	}
	if q := params(r); q.err != nil {
		return q.err
	}
	archiver, ok := s.opts.Store.(sessionstore.Archiver)
	if !ok {
		return unsupported("undo a reset")
	}
	var want RestoreRequest
	if err := decode(r, &want); err != nil {
		return err
	}
	archives, err := s.archives(r.Context(), id)
	if err != nil {
		return err
	}
	for _, a := range archives {
		if want.Generation != nil && *want.Generation != a.Generation {
			continue
		}
		// The store gives the session another generation: a turn that is running is refused and run again.
		if err := archiver.Restore(r.Context(), id, a.Generation); err != nil {
			return err
		}
		return reply(w, RestoreResult{Session: id, Restored: a})
	}
	if want.Generation != nil {
		return problem(CodeNoArchive, "session %s has no archive of generation %d", id, *want.Generation)
	}
	return problem(CodeNoArchive, "session %s has nothing to restore", id)
}

func (s *Server) eraseSession(w http.ResponseWriter, r *http.Request) error {
	id, err := sessionID(r)
	if err != nil {
		return err
	}
	if q := params(r); q.err != nil {
		return q.err
	}
	if err := decode(r, &struct{}{}); err != nil {
		return err
	}
	eraser, ok := s.opts.Store.(sessionstore.Eraser)
	if !ok {
		return unsupported("erase a session")
	}
	// One that is not listed may have been erased in part: an erasure that failed can be repeated.
	session, err := s.find(r.Context(), id)
	if p, ok := errors.AsType[*Problem](err); ok && (p.Code == CodeNoSession || p.Code == CodeUnsupported) {
		err = nil
	}
	if err != nil {
		return err
	}
	archives, err := s.archives(r.Context(), id)
	if err != nil {
		return err
	}
	result := EraseResult{Session: id, Items: session.Items}
	for _, a := range archives {
		result.Archived += a.Items
	}
	if s.opts.Dispatcher != nil {
		ctx, cancel := context.WithTimeout(r.Context(), actTimeout)
		defer cancel()
		if err := s.opts.Dispatcher.Reset(ctx, id); err != nil {
			return err
		}
	}
	// What was begun is brought to its end, whether or not the client waits for it.
	if err := eraser.Erase(s.life, id); err != nil {
		return err
	}
	result.ErasedAt = time.Now().UTC()
	return reply(w, result)
}
