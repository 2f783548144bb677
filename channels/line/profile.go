package line

import (
	"container/list"
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/line/line-bot-sdk-go/v8/linebot/messaging_api"

	"botd/channels"
)

const (
	maxProfiles = 4096
	// profileAge is how long a name is believed, absentAge how long it is believed that there is none.
	profileAge = 6 * time.Hour
	absentAge  = 10 * time.Minute
)

// Profile looks a person up: by the friend's profile in a direct chat, by the member's in a group or
// room. LINE tells nothing of people who blocked the bot, are no friends of it, or gave no consent; the
// speaker then has no name, and there is no error.
func (a *Adapter) Profile(ctx context.Context, to channels.Address) (channels.Speaker, error) {
	if !isID(to.User, 'U') {
		return channels.Speaker{}, &channels.Error{Kind: channels.Permanent, Err: errors.New("get profile: not a user ID of LINE")}
	}
	key := profileKey{to.Room, to.User}
	if s, known := a.profiles.get(key, time.Now()); known {
		return s, nil
	}
	s := channels.Speaker{ID: to.User}
	r := a.api.call(ctx, "get profile", func(api *messaging_api.MessagingApiAPI) (*http.Response, error) {
		switch {
		case isID(to.Room, 'C'):
			res, p, err := api.GetGroupMemberProfileWithHttpInfo(to.Room, to.User)
			if p != nil {
				s.Name = p.DisplayName
			}
			return res, err
		case isID(to.Room, 'R'):
			res, p, err := api.GetRoomMemberProfileWithHttpInfo(to.Room, to.User)
			if p != nil {
				s.Name = p.DisplayName
			}
			return res, err
		}
		res, p, err := api.GetProfileWithHttpInfo(to.User)
		if p != nil {
			s.Name, s.Locale = p.DisplayName, p.Language
		}
		return res, err
	})
	switch {
	case r.accepted():
		a.profiles.put(key, s, time.Now().Add(profileAge))
	case r.status == http.StatusNotFound:
		a.profiles.put(key, s, time.Now().Add(absentAge))
	default:
		return channels.Speaker{}, r.error(kindOf(r))
	}
	return s, nil
}

type profileKey struct{ room, user string }

// profileCache keeps the profiles used last. The zero value is empty.
type profileCache struct {
	mu    sync.Mutex
	by    map[profileKey]*list.Element
	order list.List // of *cachedProfile, the one used last in front
}

type cachedProfile struct {
	key     profileKey
	speaker channels.Speaker
	until   time.Time
}

func (c *profileCache) get(k profileKey, now time.Time) (channels.Speaker, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.by[k]
	if e == nil {
		return channels.Speaker{}, false
	}
	p := e.Value.(*cachedProfile)
	if !now.Before(p.until) {
		c.remove(e)
		return channels.Speaker{}, false
	}
	c.order.MoveToFront(e)
	return p.speaker, true
}

func (c *profileCache) put(k profileKey, s channels.Speaker, until time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.by == nil {
		c.by = map[profileKey]*list.Element{}
	}
	if e := c.by[k]; e != nil {
		c.remove(e)
	}
	c.by[k] = c.order.PushFront(&cachedProfile{k, s, until})
	if c.order.Len() > maxProfiles {
		c.remove(c.order.Back())
	}
}

func (c *profileCache) remove(e *list.Element) {
	delete(c.by, c.order.Remove(e).(*cachedProfile).key)
}
