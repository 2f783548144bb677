package console

import (
	"crypto/rand"
	"fmt"
	"strings"
	"sync"
	"time"

	"botd/channels"
)

// maxRooms is how many rooms are remembered; of those that nobody watches the oldest go first.
const maxRooms = 1000

// Message is an answer as clients see it.
type Message struct {
	ID string `json:"id"`
	// Delivery is the ID that the answer was sent under.
	Delivery string    `json:"-"`
	Text     string    `json:"text"`
	ReplyTo  string    `json:"reply_to,omitempty"`
	At       time.Time `json:"at"`
}

// key names a room: a direct chat by its person, else by the room.
type key struct {
	direct bool
	name   string
}

func keyOf(a channels.Address) key { return key{a.Kind == channels.Direct, a.Room} }

// update is something for the clients of a room. Without a message it is the text of a preview or, when
// that is empty too, the sign of work.
type update struct {
	message *Message
	preview string
}

// rooms keeps what was shown.
type rooms struct {
	keep int
	// boot tells the messages of this process from those of an earlier one.
	boot string

	mu    sync.Mutex
	seq   int
	rooms map[key]*room
}

type room struct {
	messages []Message
	clients  map[*client]struct{}
	used     int // the number of the last message of all rooms when this one was used
}

// client is one stream of events.
type client struct {
	updates chan update
}

func newRooms(keep int) *rooms {
	return &rooms{keep: keep, boot: strings.ToLower(rand.Text()[:8]), rooms: map[key]*room{}}
}

// at returns a room. Called with mu held.
func (r *rooms) at(k key) *room {
	rm, ok := r.rooms[k]
	if !ok {
		if len(r.rooms) >= maxRooms {
			r.forgetOldest()
		}
		rm = &room{clients: map[*client]struct{}{}}
		r.rooms[k] = rm
	}
	rm.used = r.seq
	return rm
}

func (r *rooms) forgetOldest() {
	var oldest key
	found := false
	for k, rm := range r.rooms {
		if len(rm.clients) == 0 && (!found || rm.used < r.rooms[oldest].used) {
			oldest, found = k, true
		}
	}
	delete(r.rooms, oldest)
}

// show adds an answer, unless its delivery was shown before, and returns its ID.
func (r *rooms) show(k key, m Message) (id string, fresh bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	rm := r.at(k)
	for _, old := range rm.messages {
		if old.Delivery == m.Delivery {
			return old.ID, false
		}
	}
	r.seq++
	m.ID, m.At = fmt.Sprintf("%s-%d", r.boot, r.seq), time.Now()
	rm.messages = append(rm.messages, m)
	if len(rm.messages) > r.keep {
		rm.messages = append([]Message(nil), rm.messages[len(rm.messages)-r.keep:]...)
	}
	rm.publish(update{message: &m})
	return m.ID, true
}

func (r *rooms) typing(k key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.at(k).publish(update{})
}

func (r *rooms) preview(k key, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.at(k).publish(update{preview: text})
}

// has reports whether id is a message shown in the room.
func (r *rooms) has(k key, id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range r.at(k).messages {
		if m.ID == id {
			return true
		}
	}
	return false
}

// watch returns the messages after the one with the ID last, and a client for what comes. The client's
// channel is closed when it falls too far behind.
func (r *rooms) watch(k key, last string) ([]Message, *client) {
	r.mu.Lock()
	defer r.mu.Unlock()
	rm := r.at(k)
	missed := rm.messages
	for i, m := range missed {
		if m.ID == last {
			missed = missed[i+1:]
			break
		}
	}
	c := &client{updates: make(chan update, 256)}
	rm.clients[c] = struct{}{}
	return append([]Message(nil), missed...), c
}

func (r *rooms) leave(k key, c *client) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if rm, ok := r.rooms[k]; ok {
		delete(rm.clients, c)
	}
}

// publish hands an update to every client. One that does not keep up loses signs of work and previews, and
// its stream when it would lose a message: it then comes back with the last ID that it saw.
func (rm *room) publish(u update) {
	for c := range rm.clients {
		select {
		case c.updates <- u:
		default:
			if u.message != nil {
				close(c.updates)
				delete(rm.clients, c)
			}
		}
	}
}
