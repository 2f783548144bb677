package discord

import (
	"container/list"
	"context"
	"encoding/json"
	"sync"
	"time"

	"botd/channels"
)

const (
	// knownRooms and knownRoles bound what is remembered of guilds.
	knownRooms = 8192
	knownRoles = 4096
	// roomWait bounds the look-up of a thread's parent, with its repetitions.
	roomWait = 5 * time.Second
)

// directory remembers what guilds tell of their owners, rooms and roles. It is safe for concurrent use.
type directory struct {
	mu    sync.Mutex
	self  string // the bot's user ID
	rooms *lru[room]
	roles *lru[string]
	own   map[string]string // guild ID → the role that Discord manages for the bot
	owner map[string]string // guild ID → the user ID of its owner
}

func newDirectory() *directory {
	return &directory{rooms: newLRU[room](knownRooms), roles: newLRU[string](knownRoles), own: map[string]string{}, owner: map[string]string{}}
}

func (d *directory) setSelf(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.self = id
}

// me returns the bot's user ID, empty before it is known.
func (d *directory) me() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.self
}

func (d *directory) room(id string) (room, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.rooms.get(id)
}

func (d *directory) addRoom(r room) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.rooms.put(r.ID, r)
}

func (d *directory) roleName(id string) (string, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.roles.get(id)
}

// ownRole reports that a role is the one that Discord manages for the bot in a guild.
func (d *directory) ownRole(guild, id string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return id != "" && d.own[guild] == id
}

// owns reports that a person is the owner of a guild.
func (d *directory) owns(user, guild string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return user != "" && d.owner[guild] == user
}

// join learns the owner, the rooms and the roles of a guild.
func (d *directory) join(g guild) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.setOwner(g)
	for _, rooms := range []listOf[room]{g.Channels, g.Threads} {
		for r := range rooms.all {
			d.rooms.put(r.ID, r)
		}
	}
	for r := range g.Roles.all {
		d.addRole(g.ID, r)
	}
}

// observe learns from the later events about guilds. Events that tell nothing are ignored.
func (d *directory) observe(event string, raw json.RawMessage) error {
	switch event {
	case "GUILD_DELETE":
		var g struct {
			ID string `json:"id"`
		}
		if err := json.Unmarshal(raw, &g); err != nil {
			return err
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.own, g.ID)
		delete(d.owner, g.ID)
	case "GUILD_UPDATE":
		var g guild
		if err := json.Unmarshal(raw, &g); err != nil {
			return err
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		d.setOwner(g)
	case "GUILD_ROLE_CREATE", "GUILD_ROLE_UPDATE":
		var g struct {
			GuildID string `json:"guild_id"`
			Role    role   `json:"role"`
		}
		if err := json.Unmarshal(raw, &g); err != nil {
			return err
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		d.addRole(g.GuildID, g.Role)
	case "CHANNEL_CREATE", "CHANNEL_UPDATE", "THREAD_CREATE", "THREAD_UPDATE":
		var r room
		if err := json.Unmarshal(raw, &r); err != nil {
			return err
		}
		d.addRoom(r)
	}
	return nil
}

// setOwner notes the owner of a guild. The caller holds d.mu.
func (d *directory) setOwner(g guild) {
	if owner := g.OwnerID.v; owner != "" {
		d.owner[g.ID] = owner
	}
}

// addRole notes a role. The caller holds d.mu.
func (d *directory) addRole(guild string, r role) {
	d.roles.put(r.ID, r.Name.v)
	if bot := r.Tags.v.BotID.v; bot != "" && bot == d.self {
		d.own[guild] = r.ID
	}
}

// lookUp returns a room from memory, or asks Discord once and remembers the answer. A passing failure is
// tried again for a short while; ok is false when the room stays unknown.
func (a *Adapter) lookUp(ctx context.Context, id string) (r room, ok bool) {
	if r, ok := a.dir.room(id); ok {
		return r, true
	}
	ctx, cancel := context.WithTimeout(ctx, roomWait)
	defer cancel()
	for n := 1; ; n++ {
		r, err := a.rest.room(ctx, id)
		if err == nil {
			a.dir.addRoom(r)
			return r, true
		}
		switch kind := channels.KindOf(err); {
		case kind != channels.Transient && kind != channels.RateLimited, sleep(ctx, max(backoff(n), retryAfter(err))) != nil:
			a.log.Warn("room not looked up", "room", id, "err", err)
			return room{}, false
		}
	}
}

// lru is a map that forgets what was not used for longest.
type lru[V any] struct {
	limit int
	order *list.List // of *entry[V], newest first
	byKey map[string]*list.Element
}

type entry[V any] struct {
	key   string
	value V
}

func newLRU[V any](limit int) *lru[V] {
	return &lru[V]{limit: limit, order: list.New(), byKey: map[string]*list.Element{}}
}

func (l *lru[V]) get(key string) (v V, ok bool) {
	e, ok := l.byKey[key]
	if !ok {
		return v, false
	}
	l.order.MoveToFront(e)
	return e.Value.(*entry[V]).value, true
}

func (l *lru[V]) put(key string, v V) {
	if e, ok := l.byKey[key]; ok {
		e.Value.(*entry[V]).value = v
		l.order.MoveToFront(e)
		return
	}
	l.byKey[key] = l.order.PushFront(&entry[V]{key, v})
	if l.order.Len() > l.limit {
		oldest := l.order.Back()
		l.order.Remove(oldest)
		delete(l.byKey, oldest.Value.(*entry[V]).key)
	}
}
