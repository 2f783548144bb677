package line

import "sync"

// maxSent is how many of the bot's own messages are remembered. People quote what they just read.
const maxSent = 4096

// sentSet remembers the IDs of the messages sent last. The zero value is empty.
type sentSet struct {
	mu    sync.Mutex
	ids   map[string]struct{}
	order []string // a ring, once it is full
	next  int
}

func (s *sentSet) add(ids ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ids == nil {
		s.ids = map[string]struct{}{}
	}
	for _, id := range ids {
		if _, known := s.ids[id]; known {
			continue
		}
		s.ids[id] = struct{}{}
		if len(s.order) < maxSent {
			s.order = append(s.order, id)
			continue
		}
		delete(s.ids, s.order[s.next])
		s.order[s.next] = id
		s.next = (s.next + 1) % maxSent
	}
}

func (s *sentSet) has(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, is := s.ids[id]
	return is
}
