package discordfake

import (
	"fmt"
	"hash/fnv"
	"math"
	"net/http"
	"strconv"
	"time"
)

// limits counts requests as Discord does: per route and top-level resource, and over all. Discord publishes
// no numbers for routes; these are of the order that is seen.
type limits struct {
	windows map[string]*window
	global  window
}

type window struct {
	ends time.Time
	used int
}

// rule is how many requests a bucket takes per period.
type rule struct {
	limit  int
	period time.Duration
}

var (
	defaultRule = rule{10, 2 * time.Second}
	rules       = map[string]rule{
		"POST /channels/{channel}/messages":            {5, 5 * time.Second},
		"PATCH /channels/{channel}/messages/{message}": {5, 5 * time.Second},
		"POST /channels/{channel}/typing":              {5, 5 * time.Second},
		"GET /channels/{channel}/messages":             {10, time.Second},
	}
	// globalRule is 50 requests a second. (Discord documentation, Rate Limits, Global Rate Limit.)
	globalRule = rule{50, time.Second}
)

func newLimits() limits { return limits{windows: map[string]*window{}} }

// take counts one request. It returns the headers for its answer, or the refusal.
func (l *limits) take(pattern, major string, interaction bool) (answer, bool) {
	now := time.Now()
	if !interaction {
		if wait := l.global.take(globalRule, now); wait > 0 {
			f := GlobalLimit(wait)
			return answer{status: f.Status, header: f.Header, body: []byte(f.Body)}, true
		}
	}
	r, ok := rules[pattern]
	if !ok {
		r = defaultRule
	}
	key := pattern + " " + major
	w := l.windows[key]
	if w == nil {
		w = &window{}
		l.windows[key] = w
	}
	wait := w.take(r, now)
	var a answer
	a.set("X-Ratelimit-Bucket", bucketName(pattern))
	a.set("X-Ratelimit-Limit", strconv.Itoa(r.limit))
	a.set("X-Ratelimit-Remaining", strconv.Itoa(max(0, r.limit-w.used)))
	a.set("X-Ratelimit-Reset", fmt.Sprintf("%.3f", float64(w.ends.UnixMilli())/1000))
	a.set("X-Ratelimit-Reset-After", fmt.Sprintf("%.3f", w.ends.Sub(now).Seconds()))
	if wait <= 0 {
		return a, false
	}
	a.status = http.StatusTooManyRequests
	a.set("X-Ratelimit-Scope", "user")
	a.set("Retry-After", wholeSeconds(wait))
	a.set("Content-Type", "application/json")
	a.body = mustJSON(map[string]any{"message": "You are being rate limited.", "retry_after": wait.Seconds(), "global": false})
	return a, true
}

// take counts one request in the window and returns how long it must wait, 0 when it is within the rule.
func (w *window) take(r rule, now time.Time) time.Duration {
	if !now.Before(w.ends) {
		w.ends, w.used = now.Add(r.period), 0
	}
	if w.used >= r.limit {
		return w.ends.Sub(now)
	}
	w.used++
	return 0
}

func bucketName(pattern string) string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(pattern))
	return strconv.FormatUint(h.Sum64(), 16)
}

func wholeSeconds(d time.Duration) string { return strconv.Itoa(int(math.Ceil(d.Seconds()))) }
