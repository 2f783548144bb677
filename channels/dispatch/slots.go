package dispatch

import "sync"

// slots runs functions, a limited number at once, and starts those that have to wait in the order in
// which they came.
type slots struct {
	mu   sync.Mutex
	size int
	// free is below zero while more run than there are slots, after a resize.
	free   int
	queue  []func()
	closed bool
	busy   sync.WaitGroup
}

func newSlots(n int) *slots { return &slots{size: n, free: n} }

// submit runs f on a goroutine of its own as soon as there is a slot. After close it does nothing.
func (s *slots) submit(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
	case s.free <= 0:
		s.queue = append(s.queue, f)
	default:
		s.free--
		s.busy.Go(func() { s.work(f) })
	}
}

// work runs f and then what waits, so that a goroutine ends only when there is nothing left to do.
func (s *slots) work(f func()) {
	for f != nil {
		f()
		f = s.next()
	}
}

func (s *slots) next() func() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) == 0 || s.free < 0 {
		s.free++
		return nil
	}
	f := s.queue[0]
	s.queue[0] = nil
	s.queue = s.queue[1:]
	return f
}

// resize changes how many run at once. Those that run beyond a smaller number go on.
func (s *slots) resize(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free += n - s.size
	s.size = n
	for s.free > 0 && len(s.queue) > 0 {
		f := s.queue[0]
		s.queue[0] = nil
		s.queue = s.queue[1:]
		s.free--
		s.busy.Go(func() { s.work(f) })
	}
}

// close forgets what waits and refuses what comes; what runs goes on.
func (s *slots) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.queue = nil
}

// wait returns when nothing runs and nothing waits. Nothing may be submitted from outside meanwhile.
func (s *slots) wait() { s.busy.Wait() }
