package memstore

import (
	"context"
	"fmt"

	"botd/channels/dispatch"
)

var _ dispatch.Knower = (*Store)(nil)

// Known implements dispatch.Knower.
func (s *Store) Known(ctx context.Context, channel, id string) (bool, error) {
	if err := s.enter(ctx); err != nil {
		return false, fmt.Errorf("look up event: %w", err)
	}
	defer s.mu.Unlock()
	until, ok := s.journal.known[event{channel, id}]
	return ok && now().Before(until), nil
}
