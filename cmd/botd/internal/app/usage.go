package app

import (
	"time"

	"botd/agent/usage"
	"botd/config"
)

// buildBudgets makes the prices and bounds of the configuration, nil for a store that keeps no counters.
func buildBudgets(cfg *config.Config, s store) *usage.Budgets {
	u := cfg.Usage
	o := usage.Options{
		Prices: usage.Prices{}, Currency: u.Currency, Person: limitsOf(u.Person), Channel: limitsOf(u.Channel),
		PersonOn: map[string]usage.Limits{}, ChannelOn: map[string]usage.Limits{},
	}
	// The configuration was checked; an unknown zone leaves UTC.
	o.Location, _ = time.LoadLocation(u.Timezone)
	for ref, p := range u.Prices {
		o.Prices[ref] = usage.Price{Input: *p.Input, Cached: p.Cached, Output: *p.Output}
	}
	for name, c := range cfg.Channels {
		o.PersonOn[name], o.ChannelOn[name] = limitsOf(c.Usage.Person), limitsOf(c.Usage.Channel)
	}
	budgets, err := usage.New(s, o)
	if err != nil {
		return nil
	}
	return budgets
}

func limitsOf(a config.Allowance) usage.Limits {
	return usage.Limits{
		DayTokens: int64(a.DayTokens), MonthTokens: int64(a.MonthTokens), DayCost: micros(a.DayCost), MonthCost: micros(a.MonthCost),
	}
}

// micros is an amount in millionths; one that is given and is nothing allows the least there is.
func micros(amount *float64) int64 {
	if amount == nil {
		return 0
	}
	return max(int64(*amount*1e6), 1)
}
