package discord

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"
)

// Cursor keeps how far the adapter has read, so that what was said during an outage can be fetched when it
// is over. What it keeps is small: a few hundred IDs. Without one the adapter catches up only on outages
// that it lives through.
type Cursor interface {
	// Load returns what was saved last, nil when nothing was.
	Load(ctx context.Context) (map[string]string, error)
	// Save replaces what was saved. It must be durable when it returns nil. It is called every few seconds
	// while messages come, and may be late: what is fetched twice has the same ID.
	Save(ctx context.Context, read map[string]string) error
}

const (
	// saveEvery is how often the cursor is saved while it moves.
	saveEvery = 5 * time.Second
	// knownChats bounds the direct chats remembered: Discord does not list them.
	knownChats = 200
)

// everywhere is the key of the newest message read in any room; other keys are the rooms of direct chats.
// Both are stored.
const everywhere = ""

// positions is how far was read. It is safe for concurrent use.
type positions struct {
	mu sync.Mutex
	// read holds only what is accepted, up to the first gap: while a catch-up is under way, what is read
	// meanwhile waits in ahead.
	read, ahead map[string]string
	frozen      bool
	dirty       bool
}

func newPositions() *positions {
	return &positions{read: map[string]string{}, ahead: map[string]string{}}
}

// advance notes that a message was dealt with.
func (p *positions) advance(key, id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.frozen {
		move(p.ahead, key, id)
		return
	}
	p.dirty = move(p.read, key, id) || p.dirty
	if len(p.read) > 2*knownChats {
		p.trim()
	}
}

// trim forgets all but the chats with the newest messages.
func (p *positions) trim() {
	var chats []string
	for key := range p.read {
		if key != everywhere {
			chats = append(chats, key)
		}
	}
	slices.SortFunc(chats, func(x, y string) int { return compareSnowflakes(p.read[y], p.read[x]) })
	for _, key := range chats[min(knownChats, len(chats)):] {
		delete(p.read, key)
	}
}

// move sets a position if that is forward.
func move(m map[string]string, key, id string) bool {
	if compareSnowflakes(id, m[key]) <= 0 {
		return false
	}
	m[key] = id
	return true
}

// freeze keeps the positions where they are until thaw, and returns them.
func (p *positions) freeze() map[string]string {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.frozen = true
	return maps.Clone(p.read)
}

// thaw lets the positions move on.
func (p *positions) thaw() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.frozen = false
	for key, id := range p.ahead {
		p.dirty = move(p.read, key, id) || p.dirty
	}
	clear(p.ahead)
}

// changed returns what to save, nil when nothing has changed since.
func (p *positions) changed() map[string]string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.dirty {
		return nil
	}
	p.dirty = false
	p.trim()
	return maps.Clone(p.read)
}

// again marks the positions as not saved.
func (p *positions) again() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dirty = true
}

// loadCursor reads the cursor, however often it takes.
func (a *Adapter) loadCursor(ctx context.Context) error {
	if a.cursor == nil {
		return nil
	}
	for n := 1; ; n++ {
		var read map[string]string
		err := contained(func() (err error) {
			read, err = a.cursor.Load(ctx)
			return err
		})
		if err == nil {
			for key, id := range read {
				if isSnowflake(id) && (key == everywhere || isSnowflake(key)) {
					a.read.advance(key, id)
				}
			}
			return nil
		}
		a.log.Error("read position not loaded, trying again", "attempt", n, "err", err)
		if err := sleep(ctx, backoff(n)); err != nil {
			return err
		}
	}
}

// keepCursor saves the cursor while it moves, and a last time when the worker has ended.
func (a *Adapter) keepCursor(ctx context.Context, worked <-chan struct{}) {
	tick := time.NewTicker(saveEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			a.saveCursor(ctx)
		case <-worked:
			a.saveCursor(ctx)
			return
		}
	}
}

func (a *Adapter) saveCursor(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, drainWait)
	defer cancel()
	read := a.read.changed()
	if read == nil {
		return
	}
	if err := contained(func() error { return a.cursor.Save(ctx, read) }); err != nil {
		a.read.again()
		a.log.Warn("read position not saved", "err", err)
	}
}
