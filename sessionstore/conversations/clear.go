package conversations

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"botd/sessionstore"
)

// Clear implements sessionstore.Store. The session is empty once the State has it so; the conversation is
// deleted then, or by the next operation if the API cannot be reached. OpenAI keeps the items of a deleted
// conversation as its own rules say.
func (s *Store) Clear(ctx context.Context, id sessionstore.ID) error {
	r, end, err := s.begin(ctx, id)
	if err != nil {
		return fmt.Errorf("clear session: %w", err)
	}
	defer end()
	ctx, cancel := s.begun(ctx)
	defer cancel()
	if r.Conversation != "" {
		r.Discarded = append(r.Discarded, r.Conversation)
	}
	if err := s.forget(ctx, r); err != nil {
		return fmt.Errorf("clear session: %w", err)
	}
	s.discard(ctx, r)
	return nil
}

// forget begins a new generation without a conversation.
func (s *Store) forget(ctx context.Context, r *record) error {
	turns, items := r.group("turn"), r.group("item")
	r.Conversation, r.Pending, r.Items, r.Seq = "", nil, 0, 0
	r.Generation++
	if err := s.save(ctx, r); err != nil {
		return err
	}
	return errors.Join(s.dropGroup(ctx, turns), s.dropGroup(ctx, items))
}

// discard deletes the conversations that clears have left, as far as it can.
func (s *Store) discard(ctx context.Context, r *record) {
	if len(r.Discarded) == 0 {
		return
	}
	left := slices.DeleteFunc(slices.Clone(r.Discarded), func(c string) bool {
		_, err := s.client.Conversations.Delete(ctx, c)
		return err == nil || gone(err)
	})
	if len(left) < len(r.Discarded) {
		r.Discarded = left
		_ = s.save(ctx, r) // else they are deleted once more
	}
}
