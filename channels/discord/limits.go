package discord

import (
	"errors"
	"net/http"
	"strconv"
	"sync"
	"time"

	"botd/channels"
)

const (
	// invalidLimit is where the adapter stops by itself: Discord bans an address that collects 10 000
	// answers 401, 403 or 429 in ten minutes, and another program may share the address. (Discord
	// documentation, Rate Limits, Invalid Request Limit.)
	invalidLimit   = 5000
	invalidMinutes = 10
	// refusedPause is how long nothing is asked with a token that was refused.
	refusedPause = time.Minute
	// unnamedPause is the wait after a 429 that names none.
	unnamedPause = 5 * time.Second
	// bannedPause is the wait after the proxy before Discord refuses the address and names no time.
	bannedPause = time.Minute
	maxBuckets  = 4096
)

// limits remembers what Discord said of its rate limits, so that no request is sent that is sure to be
// refused. It never sleeps. Safe for concurrent use.
type limits struct {
	mu sync.Mutex
	// global holds for requests with the bot token, address for all from this machine, refused for all with
	// this token.
	global, address, refused time.Time
	names                    map[string]string // method and route → Discord's name of the bucket
	buckets                  map[bucketKey]bucket
	invalid                  [invalidMinutes]struct {
		minute int64
		n      int
	}
}

type bucketKey struct{ name, major string }

type bucket struct {
	remaining int
	resets    time.Time
}

func newLimits() *limits {
	return &limits{names: map[string]string{}, buckets: map[bucketKey]bucket{}}
}

// wait returns how long a request has to wait, 0 when it may go.
func (l *limits) wait(r request) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	until := l.address
	if !r.anonymous {
		until = latest(until, l.global, l.refused)
	}
	if l.countInvalid(now) >= invalidLimit {
		until = latest(until, now.Add(time.Minute))
	}
	if name, ok := l.names[r.method+r.route]; ok {
		key := bucketKey{name, r.major}
		if b, ok := l.buckets[key]; ok && b.remaining <= 0 {
			until = latest(until, b.resets)
		} else if ok {
			// Counted before the answer comes, for those who ask meanwhile.
			b.remaining--
			l.buckets[key] = b
		}
	}
	return max(until.Sub(now), 0)
}

func latest(t time.Time, more ...time.Time) time.Time {
	for _, m := range more {
		if m.After(t) {
			t = m
		}
	}
	return t
}

// learn takes what an answer tells.
func (l *limits) learn(r request, resp *http.Response, failure error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now, h := time.Now(), resp.Header
	switch resp.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests:
		if h.Get("X-RateLimit-Scope") != "shared" {
			l.addInvalid(now)
		}
	}
	if name := h.Get("X-RateLimit-Bucket"); name != "" {
		remaining, err := strconv.Atoi(h.Get("X-RateLimit-Remaining"))
		after, ok := seconds(h.Get("X-RateLimit-Reset-After"))
		if err == nil && ok {
			l.names[r.method+r.route] = name
			l.buckets[bucketKey{name, r.major}] = bucket{remaining, now.Add(after)}
			l.trim(now)
		}
	}
	f, ok := errors.AsType[*channels.Error](failure)
	if !ok {
		return
	}
	switch f.Kind {
	case channels.Unauthorized:
		l.refused = latest(l.refused, now.Add(refusedPause))
	case channels.RateLimited:
		until := now.Add(f.RetryAfter)
		switch e, _ := errors.AsType[*apiError](failure); {
		case e.foreign:
			l.address = latest(l.address, until)
		case e.global:
			l.global = latest(l.global, until)
		default:
			name, ok := l.names[r.method+r.route]
			if !ok {
				name = r.method + r.route
				l.names[name] = name
			}
			l.buckets[bucketKey{name, r.major}] = bucket{0, until}
		}
	}
}

// trim forgets buckets that have been filled again, once there are many.
func (l *limits) trim(now time.Time) {
	if len(l.buckets) <= maxBuckets {
		return
	}
	for k, b := range l.buckets {
		if now.After(b.resets) {
			delete(l.buckets, k)
		}
	}
}

func (l *limits) addInvalid(now time.Time) {
	minute := now.Unix() / 60
	slot := &l.invalid[minute%invalidMinutes]
	if slot.minute != minute {
		slot.minute, slot.n = minute, 0
	}
	slot.n++
}

func (l *limits) countInvalid(now time.Time) (n int) {
	minute := now.Unix() / 60
	for _, slot := range l.invalid {
		if minute-slot.minute < invalidMinutes {
			n += slot.n
		}
	}
	return n
}

// seconds reads a number of seconds with a fraction.
func seconds(s string) (time.Duration, bool) {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || f < 0 || f > 1e6 {
		return 0, false
	}
	return time.Duration(f * float64(time.Second)), true
}
