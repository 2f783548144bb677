package conversations

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"botd/sessionstore"
)

// settle does what an earlier operation left undone.
func (s *Store) settle(ctx context.Context, r *record) error {
	if r.Pending == nil && len(r.Discarded) == 0 {
		return nil
	}
	ctx, cancel := s.begun(ctx)
	defer cancel()
	s.discard(ctx, r)
	if r.Pending == nil {
		return nil
	}
	ids, err := s.landed(ctx, r)
	if gone(err) {
		return s.forget(ctx, r) // the conversation was deleted, and the batch with it
	}
	if err != nil {
		return err
	}
	if r.Pending.Undo {
		return s.undo(ctx, r, ids)
	}
	err = s.finish(ctx, r, ids)
	if r.Pending == nil && (refused(err) || errors.Is(err, sessionstore.ErrStale)) {
		return nil // it is undone, or its conversation is gone: no one's concern any more
	}
	return err
}

// incomplete is the error of a batch that is kept. The cause is only told, not wrapped: it may be the end
// of the write's own time, which must not be taken for the caller's context, whose end means that nothing
// was written.
func incomplete(err error) error {
	return fmt.Errorf("%w: %v", ErrIncomplete, plain(err)) //nolint:errorlint // see above
}

// finish sends the pending items behind those that have landed, whose IDs are known, and notes the batch
// as written.
func (s *Store) finish(ctx context.Context, r *record, ids []string) error {
	p := r.Pending
	for len(ids) < len(p.Items) {
		chunk := p.Items[len(ids):min(len(ids)+createLimit, len(p.Items))]
		made, err := s.create(ctx, r.Conversation, chunk)
		if refused(err) {
			return s.giveUp(ctx, r, err)
		}
		if err != nil {
			return incomplete(err)
		}
		if len(made) != len(chunk) {
			if made, err = s.landed(ctx, r); err != nil {
				return incomplete(err)
			}
			if len(made) < len(ids)+len(chunk) {
				return incomplete(errors.New("the API took fewer items than it was given"))
			}
			ids = made
			continue
		}
		ids = append(ids, made...)
	}
	if err := s.written(ctx, r, ids); err != nil {
		return incomplete(err)
	}
	return nil
}

// written notes a batch whose items are all in the conversation. Done twice it does the same.
func (s *Store) written(ctx context.Context, r *record, ids []string) error {
	p := r.Pending
	for i, id := range ids {
		it := itemRecord{Seq: r.Seq + uint64(i) + 1, Turn: p.Turn, Origin: p.Origins[i], At: p.At}
		if err := s.putItem(ctx, r, id, it); err != nil {
			return err
		}
	}
	if len(p.Turn) > 0 {
		if err := s.put(ctx, r.turnKey(string(p.Turn)), []byte("1")); err != nil {
			return err
		}
	}
	r.Pending = nil
	r.Seq += uint64(len(ids))
	r.Items += len(ids)
	return s.save(ctx, r)
}

// giveUp undoes a batch that the API refuses and returns why.
func (s *Store) giveUp(ctx context.Context, r *record, why error) error {
	if gone(why) {
		return errors.Join(sessionstore.ErrStale, s.forget(ctx, r))
	}
	r.Pending.Undo = true
	if err := s.save(ctx, r); err != nil {
		return errors.Join(why, err)
	}
	if ids, err := s.landed(ctx, r); err == nil {
		_ = s.undo(ctx, r, ids) // what cannot be undone now is undone before the session is next read
	}
	return why
}

// undo deletes the items of the pending batch that have landed, the last first.
func (s *Store) undo(ctx context.Context, r *record, ids []string) error {
	for _, id := range slices.Backward(ids) {
		if err := s.remove(ctx, r.Conversation, id); err != nil {
			return err
		}
	}
	r.Pending = nil
	return s.save(ctx, r)
}
