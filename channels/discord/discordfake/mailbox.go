package discordfake

import "sync"

// mailbox carries values to one reader without ever holding up those who push.
type mailbox[T any] struct {
	mu    sync.Mutex
	items []T
	over  bool
	wake  chan struct{} // has a value when there may be something to take
	ended chan struct{} // closed by end
}

func newMailbox[T any]() *mailbox[T] {
	return &mailbox[T]{wake: make(chan struct{}, 1), ended: make(chan struct{})}
}

func (m *mailbox[T]) push(v T) {
	m.mu.Lock()
	if !m.over {
		m.items = append(m.items, v)
	}
	m.mu.Unlock()
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// take empties the mailbox.
func (m *mailbox[T]) take() []T {
	m.mu.Lock()
	defer m.mu.Unlock()
	items := m.items
	m.items = nil
	return items
}

// end refuses all that comes after it.
func (m *mailbox[T]) end() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.over {
		m.over = true
		close(m.ended)
	}
}
