package config

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // zones are known on machines without a database of them
)

// Usage says what models cost and how much may be spent.
type Usage struct {
	// Currency is the code of the currency of all prices and costs here.
	Currency string `yaml:"currency" default:"USD"`
	// Timezone is where days and months begin, as an IANA name (Asia/Tokyo).
	Timezone string `yaml:"timezone" default:"UTC"`
	// Prices are what models cost, by provider/model. Without a price calls count tokens alone.
	Prices map[string]Price `yaml:"prices" names:"any"`
	// Person is what each person may use on each channel.
	Person Allowance `yaml:"person"`
	// Channel is what all people of a channel together may use.
	Channel Allowance `yaml:"channel"`
}

// Price is what a million tokens cost.
type Price struct {
	// Input is the price of a million tokens of input.
	Input *float64 `yaml:"input" min:"0" max:"1000000"`
	// Cached is the price of a million tokens of input that the provider had in its cache; that of input when
	// left out.
	Cached *float64 `yaml:"cached" min:"0" max:"1000000"`
	// Output is the price of a million tokens of output, reasoning included.
	Output *float64 `yaml:"output" min:"0" max:"1000000"`
}

// Allowance bounds what may be used; who has used it up is told so, and when it goes on. An answer that was
// begun is finished.
type Allowance struct {
	// DayTokens bounds the tokens of input and output together in a day; 0 sets no bound.
	DayTokens int `yaml:"day_tokens" min:"0" max:"1000000000000" default:"0"`
	// MonthTokens does so for a month.
	MonthTokens int `yaml:"month_tokens" min:"0" max:"1000000000000" default:"0"`
	// DayCost bounds the money of a day, in usage.currency; there is no bound when it is left out.
	DayCost *float64 `yaml:"day_cost" min:"0" max:"1000000000"`
	// MonthCost does so for a month.
	MonthCost *float64 `yaml:"month_cost" min:"0" max:"1000000000"`
}

// ChannelUsage overrides the bounds of the usage section for one channel; what is left out stays.
type ChannelUsage struct {
	// Person is what each person may use on this channel.
	Person Allowance `yaml:"person"`
	// Channel is what all people of this channel together may use.
	Channel Allowance `yaml:"channel"`
}

var currencyRE = regexp.MustCompile(`^[A-Z]{3}$`)

// usage checks prices and bounds.
func (v *validator) usage() {
	u := v.cfg.Usage
	if u.Currency != "" && !currencyRE.MatchString(u.Currency) {
		v.problem("usage.currency", "write three capital letters, such as USD or JPY", "usage.currency %s is not the code of a currency", quote(u.Currency))
	}
	if _, err := time.LoadLocation(u.Timezone); err != nil || strings.EqualFold(u.Timezone, "local") {
		v.problem("usage.timezone", "write a name such as Asia/Tokyo or UTC", "usage.timezone %s is not the name of a time zone", quote(u.Timezone))
	}
	asked := v.askedModels()
	for _, ref := range slices.Sorted(maps.Keys(u.Prices)) {
		at := "usage.prices." + ref
		switch provider, _, ok := ModelRef(ref); {
		case !ok:
			v.problem(at, "write provider/model", "%s does not name a model", quote(ref))
		case !hasProvider(v.cfg, provider):
			v.unknownName(at, "provider", provider, slices.Sorted(maps.Keys(v.cfg.Providers)))
		case !slices.Contains(asked, ref):
			v.warning(at, "name it in the models of an agent, or remove it", "no agent asks the model %s", quote(ref))
		}
		if p := u.Prices[ref]; p.Input == nil || p.Output == nil {
			v.problem(at, "write both input: and output:, the price of a million tokens", "the price of %s is not complete", quote(ref))
		}
	}
	bounded := boundsCost(u.Person, u.Channel)
	for _, name := range slices.Sorted(maps.Keys(v.cfg.Channels)) {
		c := v.cfg.Channels[name].Usage
		bounded = boundsCost(c.Person, c.Channel) || bounded
	}
	if !bounded {
		return
	}
	for _, ref := range asked {
		if _, ok := u.Prices[ref]; !ok {
			v.warning("usage.prices", fmt.Sprintf("add %s: {input: …, output: …} to usage.prices", ref), "costs are bounded, and %s has no price: it is counted as free", quote(ref))
		}
	}
}

// boundsCost reports whether one of the allowances bounds money.
func boundsCost(all ...Allowance) bool {
	return slices.ContainsFunc(all, func(a Allowance) bool { return a.DayCost != nil || a.MonthCost != nil })
}

// askedModels are the models of all agents, sorted.
func (v *validator) askedModels() []string {
	var asked []string
	for _, a := range v.cfg.Agents {
		asked = append(asked, a.Models...)
	}
	slices.Sort(asked)
	return slices.Compact(asked)
}

func hasProvider(c *Config, name string) bool {
	_, ok := c.Providers[name]
	return ok
}
