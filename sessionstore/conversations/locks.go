package conversations

import (
	"context"
	"sync"

	"botd/sessionstore"
)

// locks gives each session to one operation at a time. The zero value is ready.
type locks struct {
	mu   sync.Mutex
	held map[sessionstore.ID]*lock
}

type lock struct {
	turn  chan struct{} // holds one token while nobody has the lock
	users int
}

// lock waits for a session; the caller calls unlock when the error is nil.
func (l *locks) lock(ctx context.Context, id sessionstore.ID) (unlock func(), err error) {
	l.mu.Lock()
	if l.held == nil {
		l.held = map[sessionstore.ID]*lock{}
	}
	k := l.held[id]
	if k == nil {
		k = &lock{turn: make(chan struct{}, 1)}
		k.turn <- struct{}{}
		l.held[id] = k
	}
	k.users++
	l.mu.Unlock()
	select {
	case <-k.turn:
		return func() { k.turn <- struct{}{}; l.leave(id, k) }, nil
	case <-ctx.Done():
		l.leave(id, k)
		return nil, ctx.Err()
	}
}

func (l *locks) leave(id sessionstore.ID, k *lock) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if k.users--; k.users == 0 {
		delete(l.held, id)
	}
}
