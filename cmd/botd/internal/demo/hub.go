package demo

import (
	"context"
	"sync"
	"time"

	"botd/channels/discord/discordfake"
	"botd/channels/line/linefake"
	"botd/sessionstore"
)

const (
	// keepMessages and keepItems bound what a page gets of one chat and one session.
	keepMessages = 200
	keepItems    = 200
	// refresh is how often sessions are looked at without a reason.
	refresh = 2 * time.Second
	// backlog is how many updates a page may be behind.
	backlog = 1024
)

// hub hands what happens on the platforms and in the store to the pages.
type hub struct {
	world *world
	store sessionstore.Store

	// refreshing keeps an older state of a session from being handed out after a newer one.
	refreshing sync.Mutex

	mu      sync.Mutex
	clients map[chan update]struct{}
	// seen is the last state of each session that was handed out.
	seen map[sessionstore.ID]stamp
}

// stamp tells one state of a session from another.
type stamp struct {
	generation uint64
	last       uint64
	items      int
}

// update is one thing that pages must know; exactly one field beside Place is set.
type update struct {
	Place   string    `json:"place,omitempty"`
	Message *message  `json:"message,omitempty"`
	Busy    time.Time `json:"busy,omitzero"`
	Session *session  `json:"session,omitempty"`
	// Reset is the ID of a session that was cleared by the page.
	Reset sessionstore.ID `json:"reset,omitempty"`
}

// session is what is stored of one.
type session struct {
	ID         sessionstore.ID `json:"id"`
	Generation uint64          `json:"generation"`
	Items      []item          `json:"items"`
	// More says that older items were left out.
	More bool `json:"more,omitempty"`
}

// item is one stored item. Raw is its JSON as a string, so that the page can show its very bytes.
type item struct {
	Seq  uint64 `json:"seq"`
	Turn string `json:"turn"`
	Raw  string `json:"raw"`
}

func newHub(w *world, store sessionstore.Store) *hub {
	return &hub{world: w, store: store, clients: map[chan update]struct{}{}, seen: map[sessionstore.ID]stamp{}}
}

// run watches until ctx ends.
func (h *hub) run(ctx context.Context) {
	var all sync.WaitGroup
	defer all.Wait()
	all.Go(func() { h.watchLINE(ctx) })
	all.Go(func() {
		// It ends with ctx, or with the platform.
		_ = h.world.discord.Watch(ctx, func(c discordfake.Change) { h.onDiscord(ctx, c) })
	})
	tick := time.NewTicker(refresh)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			for _, p := range h.world.places {
				h.refresh(ctx, p)
			}
		}
	}
}

func (h *hub) watchLINE(ctx context.Context) {
	for ctx.Err() == nil {
		updates, cancel := h.world.line.Subscribe(backlog)
		for open := true; open; {
			var u linefake.Update
			select {
			case <-ctx.Done():
				cancel()
				return
			case u, open = <-updates:
				if open {
					h.onLINE(ctx, u)
				}
			}
		}
		// Too far behind, or the platform has ended: pages begin anew.
		h.disconnect()
		select {
		case <-ctx.Done():
		case <-time.After(refresh):
		}
	}
}

func (h *hub) onLINE(ctx context.Context, u linefake.Update) {
	p := h.world.at("line", u.Chat)
	switch {
	case p == nil:
	case u.Bubble != nil:
		m := h.world.bubble(p, *u.Bubble)
		h.publish(update{Place: p.ID, Message: &m})
		h.refresh(ctx, p)
	case !u.Loading.IsZero():
		h.publish(update{Place: p.ID, Busy: u.Loading})
	}
}

func (h *hub) onDiscord(ctx context.Context, c discordfake.Change) {
	p := h.world.at("discord", c.Room)
	switch {
	case p == nil:
	case c.Kind == discordfake.Typing:
		h.publish(update{Place: p.ID, Busy: time.Now().Add(discordTyping)})
	default:
		m := h.world.post(p, c.Post)
		m.Deleted = m.Deleted || c.Kind == discordfake.Deleted
		h.publish(update{Place: p.ID, Message: &m})
		h.refresh(ctx, p)
	}
}

// refresh hands out the sessions of a place that have changed.
func (h *hub) refresh(ctx context.Context, p *place) {
	h.refreshing.Lock()
	defer h.refreshing.Unlock()
	done := map[sessionstore.ID]bool{}
	for _, who := range p.People {
		if done[who.Session] {
			continue
		}
		done[who.Session] = true
		s, now, err := h.read(ctx, who.Session)
		if err != nil {
			continue // the store is closing, or busy: there is a next time
		}
		h.mu.Lock()
		changed := h.seen[who.Session] != now
		h.seen[who.Session] = now
		h.mu.Unlock()
		if changed {
			h.publish(update{Session: s})
		}
	}
}

// read returns what is stored of a session.
func (h *hub) read(ctx context.Context, id sessionstore.ID) (*session, stamp, error) {
	generation, err := h.store.Generation(ctx, id)
	if err != nil {
		return nil, stamp{}, err
	}
	items, err := h.store.Items(ctx, id, keepItems+1)
	if err != nil {
		return nil, stamp{}, err
	}
	s := &session{ID: id, Generation: generation, Items: []item{}}
	if s.More = len(items) > keepItems; s.More {
		items = items[1:]
	}
	now := stamp{generation: generation, items: len(items)}
	for _, i := range items {
		s.Items = append(s.Items, item{i.Seq, i.Turn, string(i.Raw)})
		now.last = i.Seq
	}
	return s, now, nil
}

// publish hands an update to every page. One that does not keep up is disconnected and begins anew.
func (h *hub) publish(u update) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for c := range h.clients {
		select {
		case c <- u:
		default:
			close(c)
			delete(h.clients, c)
		}
	}
}

func (h *hub) disconnect() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for c := range h.clients {
		close(c)
		delete(h.clients, c)
	}
}

// join adds a page; leave takes it away.
func (h *hub) join() chan update {
	c := make(chan update, backlog)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.clients[c] = struct{}{}
	return c
}

func (h *hub) leave(c chan update) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.clients, c)
}

// snapshot is all that a page begins with.
type snapshot struct {
	Places   []placeState `json:"places"`
	Sessions []*session   `json:"sessions"`
}

type placeState struct {
	*place
	Messages []message `json:"messages"`
	Busy     time.Time `json:"busy,omitzero"`
}

func (h *hub) snapshot(ctx context.Context) (snapshot, error) {
	var s snapshot
	done := map[sessionstore.ID]bool{}
	for _, p := range h.world.places {
		state := placeState{place: p, Messages: p.messages()}
		if until := p.busy(); until.After(time.Now()) {
			state.Busy = until
		}
		s.Places = append(s.Places, state)
		for _, who := range p.People {
			if done[who.Session] {
				continue
			}
			done[who.Session] = true
			stored, _, err := h.read(ctx, who.Session)
			if err != nil {
				return snapshot{}, err
			}
			s.Sessions = append(s.Sessions, stored)
		}
	}
	return s, nil
}
