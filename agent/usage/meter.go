package usage

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"botd/agent"
	"botd/sessionstore"
)

// Subject is on whose account a turn goes.
type Subject struct {
	Session sessionstore.ID
	// Channel is the configured name of the channel, User the platform's ID of the person; empty when the
	// platform does not tell: such turns count for the channel alone.
	Channel, User string
}

// Meter gathers what one turn costs.
type Meter struct {
	subject Subject
	prices  Prices
	periods [2]string

	mu    sync.Mutex
	total sessionstore.Counts
	by    map[string]sessionstore.Counts
}

// NewMeter returns a meter for a turn that begins at a time, in whose location days and months end.
func NewMeter(s Subject, prices Prices, at time.Time) *Meter {
	return &Meter{subject: s, prices: prices, periods: periods(at), by: map[string]sessionstore.Counts{}}
}

// periods are the names of the day and the month of a time.
func periods(at time.Time) [2]string {
	return [2]string{Day.Key(at), Month.Key(at)}
}

// Spend adds one call to a model.
func (m *Meter) Spend(s agent.Spending) {
	c := sessionstore.Counts{
		Requests: int64(s.Usage.Requests), InputTokens: int64(s.Usage.InputTokens), CachedTokens: int64(s.Usage.CachedTokens),
		OutputTokens: int64(s.Usage.OutputTokens), ReasoningTokens: int64(s.Usage.ReasoningTokens),
	}
	if s.Usage.Estimated {
		c.Estimated = c.Requests
	}
	if cost, ok := m.prices.Cost(s); ok {
		c.CostMicros = cost
	} else {
		c.Unpriced = c.Requests
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.total = m.total.Add(c)
	for _, key := range []string{"agent/" + s.Agent, "model/" + s.Provider + "/" + s.Model} {
		m.by[key] = m.by[key].Add(c)
	}
}

// Total is what was spent so far.
func (m *Meter) Total() sessionstore.Counts {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.total
}

// Tallies returns what is to be added to the counters, sorted by key, and begins anew: what was returned once
// is not returned again. answered counts the turn itself, as one given by an agent.
func (m *Meter) Tallies(answered bool, by string) []sessionstore.Tally {
	m.mu.Lock()
	defer m.mu.Unlock()
	if answered {
		m.total.Turns++
		if by != "" {
			c := m.by["agent/"+by]
			c.Turns++
			m.by["agent/"+by] = c
		}
	}
	if m.total == (sessionstore.Counts{}) {
		return nil
	}
	counts := maps.Clone(m.by)
	counts["total"] = m.total
	counts["channel/"+m.subject.Channel] = m.total
	if m.subject.User != "" {
		counts[m.subject.person()] = m.total
	}
	var tallies []sessionstore.Tally
	for _, period := range m.periods {
		for key, c := range counts {
			tallies = append(tallies, sessionstore.Tally{Key: period + "/" + key, Counts: c})
		}
	}
	if m.subject.Session != "" {
		tallies = append(tallies, sessionstore.Tally{Key: SessionKey(m.subject.Session), Counts: m.total})
	}
	tallies = slices.DeleteFunc(tallies, func(t sessionstore.Tally) bool { return len(t.Key) > sessionstore.MaxRecordKeyLen })
	slices.SortFunc(tallies, func(a, b sessionstore.Tally) int { return cmp.Compare(a.Key, b.Key) })
	m.total, m.by = sessionstore.Counts{}, map[string]sessionstore.Counts{}
	return tallies
}

// SessionKey is the key of a session's counter.
func SessionKey(id sessionstore.ID) string { return "session/" + string(id) }

func (s Subject) person() string  { return "person/" + s.Channel + "/" + s.User }
func (s Subject) channel() string { return "channel/" + s.Channel }
