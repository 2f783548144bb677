package admin

import (
	"context"
	"errors"
	"net/http"

	"botd/channels/dispatch"
)

// dropped is the reason that a dropped delivery keeps.
const dropped = "dropped by an operator"

func (s *Server) inspector() (dispatch.Inspector, error) {
	inspector, ok := s.opts.Journal.(dispatch.Inspector)
	if !ok {
		return nil, unsupported("show its journal")
	}
	return inspector, nil
}

func (s *Server) listDeliveries(w http.ResponseWriter, r *http.Request) error {
	inspector, err := s.inspector()
	if err != nil {
		return err
	}
	q := params(r, "state", "text", "cursor", "limit")
	state, text, after, limit := dispatch.State(q.text("state")), q.flag("text"), q.seqCursor(), q.limit(defaultPage)
	switch state {
	case dispatch.Waiting, dispatch.Held, dispatch.Unknown, dispatch.Dead:
	default:
		q.fail("state must be one of waiting, held, unknown and dead")
	}
	if q.err != nil {
		return q.err
	}
	kept, err := inspector.Outbox(r.Context(), state, after, limit+1)
	if err != nil {
		return err
	}
	page := Page[Delivery]{Data: []Delivery{}}
	if len(kept) > limit {
		kept = kept[:limit]
		page.Next = cursorOfSeq(kept[limit-1].Seq)
	}
	for _, k := range kept {
		// Message.Reply may hold a credential and is not told.
		d := Delivery{
			Seq: k.Seq, ID: k.Message.ID, State: k.State, Session: k.Session, To: k.Message.To,
			Created: k.Created, NextAt: k.NextAt, Settled: k.Settled, Attempts: k.Attempts, Reason: k.Reason,
		}
		if text {
			d.Text = k.Message.PlainText()
		}
		page.Data = append(page.Data, d)
	}
	return reply(w, page)
}

// acted is the answer to an act on something that has a number.
type acted struct {
	Seq uint64 `json:"seq"`
}

// change changes the journal and lets the dispatcher know. One that has not read the journal yet could
// miss the change; one that drains leaves it to the next start.
func (s *Server) change(ctx context.Context, act func() error) error {
	if s.opts.Dispatcher == nil {
		return act()
	}
	if err := s.opts.Dispatcher.Ready(); err != nil {
		return err
	}
	if err := act(); err != nil {
		return err
	}
	err := s.opts.Dispatcher.Wake(context.WithoutCancel(ctx))
	if errors.Is(err, dispatch.ErrDraining) {
		return nil
	}
	return err
}

func (s *Server) retryDelivery(w http.ResponseWriter, r *http.Request) error {
	inspector, seq, err := s.numbered(r)
	if err != nil {
		return err
	}
	s.settling.Lock()
	defer s.settling.Unlock()
	err = s.change(r.Context(), func() error { return inspector.Release(r.Context(), seq) })
	if errors.Is(err, dispatch.ErrNotFound) {
		return problem(CodeNoDelivery, "no delivery %d is held, unknown or dead", seq)
	}
	if err != nil {
		return err
	}
	return reply(w, acted{seq})
}

// numbered reads a request that acts on something by its number.
func (s *Server) numbered(r *http.Request) (dispatch.Inspector, uint64, error) {
	inspector, err := s.inspector()
	if err != nil {
		return nil, 0, err
	}
	if q := params(r); q.err != nil {
		return nil, 0, q.err
	}
	if err := decode(r, &struct{}{}); err != nil {
		return nil, 0, err
	}
	seq, err := seqOf(r)
	return inspector, seq, err
}

func (s *Server) dropDelivery(w http.ResponseWriter, r *http.Request) error {
	inspector, seq, err := s.numbered(r)
	if err != nil {
		return err
	}
	s.settling.Lock()
	defer s.settling.Unlock()
	id, err := s.droppable(r.Context(), inspector, seq)
	if err != nil {
		return err
	}
	err = s.opts.Journal.Settle(r.Context(), id, dispatch.Outcome{State: dispatch.Dead, Reason: dropped})
	if errors.Is(err, dispatch.ErrNotFound) {
		return problem(CodeNoDelivery, "there is no delivery %d any more", seq)
	}
	if err != nil {
		return err
	}
	return reply(w, acted{seq})
}

// droppable returns the ID of a delivery that nobody is about to send.
func (s *Server) droppable(ctx context.Context, inspector dispatch.Inspector, seq uint64) (id string, err error) {
	for _, state := range []dispatch.State{dispatch.Held, dispatch.Waiting, dispatch.Unknown, dispatch.Dead} {
		kept, err := inspector.Outbox(ctx, state, seq-1, 1)
		switch {
		case err != nil:
			return "", err
		case len(kept) == 0 || kept[0].Seq != seq:
		case state == dispatch.Held, state == dispatch.Waiting && s.opts.Dispatcher == nil:
			return kept[0].Message.ID, nil
		case state == dispatch.Waiting:
			return "", problem(CodeInHand, "delivery %d is about to be sent; only held ones can be dropped while the gateway runs", seq)
		default:
			return "", problem(CodeInHand, "delivery %d is %s already and is not sent unless it is retried", seq, state)
		}
	}
	return "", problem(CodeNoDelivery, "there is no delivery %d", seq)
}

func (s *Server) listDeadEvents(w http.ResponseWriter, r *http.Request) error {
	inspector, err := s.inspector()
	if err != nil {
		return err
	}
	q := params(r, "text", "cursor", "limit")
	text, after, limit := q.flag("text"), q.seqCursor(), q.limit(defaultPage)
	if q.err != nil {
		return q.err
	}
	letters, err := inspector.DeadLetters(r.Context(), after, limit+1)
	if err != nil {
		return err
	}
	page := Page[DeadEvent]{Data: []DeadEvent{}}
	if len(letters) > limit {
		letters = letters[:limit]
		page.Next = cursorOfSeq(letters[limit-1].Seq)
	}
	for _, l := range letters {
		e := DeadEvent{
			Seq: l.Seq, ID: l.Event.ID, Session: l.Session, From: l.Event.Address, Name: l.Event.Speaker.Name,
			Received: l.Received, Dead: l.Dead, Attempts: l.Attempts, Reason: l.DeadReason, LastError: l.LastError,
		}
		if text {
			e.Text = l.Event.PlainText()
		}
		page.Data = append(page.Data, e)
	}
	return reply(w, page)
}

func (s *Server) reviveEvent(w http.ResponseWriter, r *http.Request) error {
	inspector, seq, err := s.numbered(r)
	if err != nil {
		return err
	}
	var e dispatch.Entry
	err = s.change(r.Context(), func() (err error) {
		e, err = inspector.Revive(r.Context(), seq)
		return err
	})
	if errors.Is(err, dispatch.ErrNotFound) {
		return problem(CodeNoEvent, "there is no dead event %d", seq)
	}
	if err != nil {
		return err
	}
	return reply(w, acted{e.Seq})
}
