package usage_test

import (
	"strings"
	"testing"
	"time"

	"botd/agent"
	"botd/agent/usage"
	"botd/sessionstore"
	"botd/sessionstore/memstore"
)

var cached = 0.1

func spending(in, hit, out int) agent.Spending {
	return agent.Spending{Agent: "a", Provider: "p", Model: "org/m", Usage: agent.Usage{Requests: 1, InputTokens: in, CachedTokens: hit, OutputTokens: out}}
}

func TestCostCountsCachedInputByItsOwnPrice(t *testing.T) {
	t.Parallel()
	prices := usage.Prices{"p/org/m": {Input: 1, Cached: &cached, Output: 8}}
	if got, ok := prices.Cost(spending(1000, 400, 100)); got != 1440 || !ok {
		t.Errorf("cost %d, %v; want 1440", got, ok)
	}
	if _, ok := (usage.Prices{}).Cost(spending(1, 0, 1)); ok {
		t.Error("a model without a price has one")
	}
}

func TestMeterTalliesEveryViewOnce(t *testing.T) {
	t.Parallel()
	m := usage.NewMeter(usage.Subject{Session: "s", Channel: "c", User: "u/1"}, nil, time.Date(2026, 12, 4, 1, 0, 0, 0, time.UTC))
	m.Spend(spending(10, 0, 5))
	m.Spend(spending(20, 0, 5))
	var keys []string
	for _, tally := range m.Tallies(true, "a") {
		keys = append(keys, tally.Key)
		if c := tally.Counts; c.InputTokens != 30 || c.OutputTokens != 10 || c.Requests != 2 || c.Unpriced != 2 {
			t.Errorf("%s: %+v", tally.Key, c)
		}
	}
	want := "day/2026-12-04/agent/a day/2026-12-04/channel/c day/2026-12-04/model/p/org/m day/2026-12-04/person/c/u/1 day/2026-12-04/total " +
		"month/2026-12/agent/a month/2026-12/channel/c month/2026-12/model/p/org/m month/2026-12/person/c/u/1 month/2026-12/total session/s"
	if got := strings.Join(keys, " "); got != want {
		t.Errorf("keys\n%s\nwant\n%s", got, want)
	}
	if again := m.Tallies(false, ""); again != nil {
		t.Errorf("counted twice: %v", again)
	}
}

func TestBudgetIsExhaustedPerPersonAndBeginsAnewAfterReset(t *testing.T) {
	t.Parallel()
	store := memstore.New()
	if _, ok := any(store).(sessionstore.Tallier); !ok {
		t.Fatal("the store keeps no counters")
	}
	b, err := usage.New(store, usage.Options{Person: usage.Limits{DayTokens: 15}})
	if err != nil {
		t.Fatal(err)
	}
	ann := usage.Subject{Session: "s", Channel: "c", User: "ann"}
	m := b.Meter(ann)
	m.Spend(spending(10, 0, 5))
	if err := b.Add(t.Context(), m.Tallies(true, "a")); err != nil {
		t.Fatal(err)
	}
	check := func(s usage.Subject, want bool) {
		t.Helper()
		if _, ok, err := b.Check(t.Context(), s); ok != want || err != nil {
			t.Errorf("%s may go on: %v, %v; want %v", s.User, ok, err, want)
		}
	}
	check(ann, false)
	check(usage.Subject{Session: "s", Channel: "c", User: "an"}, true)
	account := usage.Account{Channel: "c", User: "ann"}
	if err := b.Reset(t.Context(), account); err != nil {
		t.Fatal(err)
	}
	check(ann, true)
	st, err := b.Standing(t.Context(), account, usage.Day)
	if tokens, cost := st.Left(); err != nil || tokens != 15 || cost != -1 {
		t.Errorf("left %d, %d, %v; want 15 and no bound", tokens, cost, err)
	}
	if err := b.SetLimits(t.Context(), account, usage.Limits{DayTokens: 5}, false); err != nil {
		t.Fatal(err)
	}
	if st, err := b.Standing(t.Context(), account, usage.Day); err != nil || st.Tokens != 5 {
		t.Errorf("%+v, %v; want a bound of 5", st, err)
	}
}
