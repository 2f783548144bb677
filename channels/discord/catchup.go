package discord

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"botd/channels"
)

// DefaultCatchUp is how far back the adapter looks for what it missed.
const DefaultCatchUp = 24 * time.Hour

const (
	// overlap is read again in guilds, where one position stands for all rooms: events of different rooms
	// need not come in the order of their IDs. What was accepted before has the same ID.
	overlap = time.Minute
	// holdWait bounds how long new messages are held back so that older ones come first.
	holdWait = 15 * time.Second
	// guildWait is how long after READY a guild may be told of and still be looked into.
	guildWait = 30 * time.Second
	// catchRooms, catchPages and catchEvents bound one round: rooms looked into, pages of 100 messages in
	// each, and events made of them in all.
	catchRooms  = 200
	catchPages  = 10
	catchEvents = 500
	// catchTries is how often a room is asked for while that fails in passing.
	catchTries = 5
)

// round fetches what was said while nobody listened. A resumed session has no gap; a new one has: at READY
// a round begins with the direct chats that are known, and each guild adds the rooms in which something was
// said since. Until it is over the read positions stand still, so that a crash repeats it.
type round struct {
	since  string    // read everything up to here, in guilds
	held   time.Time // new messages are held back until then at most
	cancel context.CancelFunc
	done   chan struct{} // closed when it is over
	wake   chan struct{}

	mu     sync.Mutex
	guilds map[string]struct{} // not told of yet
	jobs   []missed
	rooms  int
}

// missed is one room to look into.
type missed struct {
	room  room
	guild string
	after string
}

// beginCatchUp starts a round after READY, which names the guilds. One still under way is given up: the
// positions have not moved since it began.
func (a *Adapter) beginCatchUp(ctx context.Context, guilds []string) {
	read := a.read.freeze()
	now := time.Now()
	if read[everywhere] == "" || a.reach < 0 {
		a.read.thaw()
		a.read.advance(everywhere, snowflakeAt(now))
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	floor := snowflakeAt(now.Add(-a.reach))
	r := &round{
		since: later(earlier(read[everywhere]), floor), held: now.Add(holdWait), guilds: map[string]struct{}{},
		cancel: cancel, done: make(chan struct{}), wake: make(chan struct{}, 1),
	}
	for _, id := range guilds {
		r.guilds[id] = struct{}{}
	}
	delete(read, everywhere)
	chats := make([]string, 0, len(read))
	for id := range read {
		chats = append(chats, id)
	}
	slices.SortFunc(chats, func(x, y string) int { return compareSnowflakes(read[y], read[x]) })
	for _, id := range chats {
		r.add(missed{room{ID: id, Type: typeDM}, "", later(read[id], floor)})
	}
	if old := a.round.Swap(r); old != nil {
		old.cancel()
	}
	a.tasks.Go(func() {
		defer close(r.done)
		defer cancel()
		a.catchUp(ctx, r)
		if ctx.Err() == nil && a.round.Load() == r {
			a.read.thaw()
		}
	})
}

// told adds the rooms of a guild in which something was said since.
func (r *round) told(guild string, rooms ...listOf[room]) {
	r.mu.Lock()
	if _, waited := r.guilds[guild]; waited {
		delete(r.guilds, guild)
		for _, list := range rooms {
			for c := range list.all {
				if c.Type.holdsMessages() && compareSnowflakes(c.LastMessageID.v, r.since) > 0 {
					r.add(missed{c, guild, r.since})
				}
			}
		}
	}
	r.mu.Unlock()
	signal(r.wake)
}

// add notes a room; past the bound it is only counted.
func (r *round) add(m missed) {
	if r.rooms++; r.rooms <= catchRooms {
		r.jobs = append(r.jobs, m)
	}
}

// next returns the next room, waiting for guilds to be told of; ok is false when the round is over.
func (r *round) next(ctx context.Context, patience <-chan time.Time) (job missed, ok bool) {
	for {
		r.mu.Lock()
		if len(r.jobs) > 0 {
			job = r.jobs[0]
			r.jobs = r.jobs[1:]
			r.mu.Unlock()
			return job, true
		}
		left := len(r.guilds)
		r.mu.Unlock()
		if left == 0 {
			return missed{}, false
		}
		select {
		case <-r.wake:
		case <-patience:
			return missed{}, false
		case <-ctx.Done():
			return missed{}, false
		}
	}
}

// catchUp works a round off.
func (a *Adapter) catchUp(ctx context.Context, r *round) {
	patience := time.NewTimer(guildWait)
	defer patience.Stop()
	events, rooms := 0, 0
	for events < catchEvents {
		job, ok := r.next(ctx, patience.C)
		if !ok {
			break
		}
		rooms++
		n, err := a.catchUpRoom(ctx, job, catchEvents-events)
		events += n
		if err != nil && ctx.Err() == nil {
			a.log.Warn("room not caught up on", "room", job.room.ID, "err", err)
		}
	}
	if ctx.Err() != nil {
		return
	}
	r.mu.Lock()
	left := r.rooms - rooms
	r.mu.Unlock()
	if left > 0 || events >= catchEvents {
		a.log.Warn("not all that was missed is caught up on", "rooms_left", left, "events", events)
	} else if events > 0 {
		a.log.Info("caught up on what was missed", "rooms", rooms, "events", events)
	}
}

// catchUpRoom hands in what was said to the bot in one room, oldest first, up to limit events.
func (a *Adapter) catchUpRoom(ctx context.Context, job missed, limit int) (handed int, err error) {
	after := job.after
	for range catchPages {
		page, err := a.patientPage(ctx, job.room.ID, after)
		if err != nil {
			return handed, err
		}
		var events []channels.Inbound
		for _, raw := range page {
			m, err := decodeMessage(raw)
			if err != nil {
				a.log.Warn("message set aside", "room", job.room.ID, "err", err)
				continue
			}
			after = m.ID
			m.GuildID.v, m.ChannelType = job.guild, &lenient[roomType]{job.room.Type}
			in, ok := a.inbound(ctx, m)
			if ok && in.Mentioned && handed+len(events) < limit {
				events = append(events, in)
			}
		}
		if len(events) > 0 {
			if !a.accept(ctx, ctx.Done(), events) {
				return handed, ctx.Err()
			}
			handed += len(events)
		}
		if job.guild == "" && after != job.after {
			a.read.advance(job.room.ID, after)
		}
		if len(page) < pageSize || handed >= limit {
			return handed, nil
		}
	}
	return handed, nil
}

// patientPage reads one page, waiting out what passes.
func (a *Adapter) patientPage(ctx context.Context, room, after string) ([]json.RawMessage, error) {
	for n := 1; ; n++ {
		page, err := a.rest.messagesAfter(ctx, room, after)
		if err == nil {
			return page, nil
		}
		kind := channels.KindOf(err)
		if kind == channels.RateLimited && retryAfter(err) <= holdWait {
			n-- // a limit is no failure
		}
		if kind != channels.RateLimited && kind != channels.Transient || n >= catchTries || sleep(ctx, max(retryAfter(err), backoff(max(n, 1))/4)) != nil {
			return nil, err
		}
	}
}

// waitCaughtUp waits while a round is under way, but not for long after its beginning.
func (a *Adapter) waitCaughtUp(ctx context.Context, stopping <-chan struct{}) {
	r := a.round.Load()
	if r == nil {
		return
	}
	t := time.NewTimer(time.Until(r.held))
	defer t.Stop()
	select {
	case <-r.done:
	case <-t.C:
	case <-stopping:
	case <-ctx.Done():
	}
}

// snowflakeAt is the smallest ID of a moment.
func snowflakeAt(t time.Time) string {
	return strconv.FormatInt(max(t.UnixMilli()-discordEpoch, 0)<<22, 10)
}

// earlier is an ID that lies the overlap before another one.
func earlier(id string) string {
	t := snowflakeTime(id)
	if t.IsZero() {
		return ""
	}
	return snowflakeAt(t.Add(-overlap))
}

func later(a, b string) string {
	if compareSnowflakes(a, b) > 0 {
		return a
	}
	return b
}

// compareSnowflakes orders IDs by age; an empty one is oldest.
func compareSnowflakes(a, b string) int {
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	return strings.Compare(a, b)
}
