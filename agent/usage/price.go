package usage

import (
	"math"

	"botd/agent"
)

// Price is what a million tokens cost, in the currency of the price table.
type Price struct {
	Input, Output float64
	// Cached is the price of input that the provider had in its cache; nil: that of Input.
	Cached *float64
}

// Prices are the prices by provider/model.
type Prices map[string]Price

// Cost returns the price of what was used, in millionths of the currency, rounded up; ok is false when
// the table does not know the model.
func (p Prices) Cost(s agent.Spending) (micros int64, ok bool) {
	price, ok := p[s.Provider+"/"+s.Model]
	if !ok {
		return 0, false
	}
	cached := price.Input
	if price.Cached != nil {
		cached = *price.Cached
	}
	u := s.Usage
	fresh := max(u.InputTokens-u.CachedTokens, 0)
	cost := float64(fresh)*price.Input + float64(u.CachedTokens)*cached + float64(u.OutputTokens)*price.Output
	// Prices are decimal fractions, which floating point meets only nearly.
	return int64(math.Ceil(cost - 1e-6)), true
}
