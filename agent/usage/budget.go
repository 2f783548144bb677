package usage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"botd/sessionstore"
)

// Period is a span of the calendar.
type Period string

// The periods.
const (
	Day   Period = "day"
	Month Period = "month"
)

// Key is how the keys of the period's counters begin, without a slash at the end.
func (p Period) Key(at time.Time) string {
	if p == Day {
		return "day/" + at.Format(time.DateOnly)
	}
	return "month/" + at.Format("2006-01")
}

// end is when the period that holds a time is over.
func (p Period) end(at time.Time) time.Time {
	y, m, d := at.Date()
	if p == Day {
		return time.Date(y, m, d+1, 0, 0, 0, 0, at.Location())
	}
	return time.Date(y, m+1, 1, 0, 0, 0, 0, at.Location())
}

// Limits bound what may be spent; 0 is no bound.
type Limits struct {
	// DayTokens and MonthTokens count input and output together.
	DayTokens   int64 `json:"day_tokens,omitempty"`
	MonthTokens int64 `json:"month_tokens,omitempty"`
	// DayCost and MonthCost are in millionths of the currency. Calls without a price cost nothing.
	DayCost   int64 `json:"day_cost_micros,omitempty"`
	MonthCost int64 `json:"month_cost_micros,omitempty"`
}

// Over returns the limits with those of o that are set in the place of its own.
func (l Limits) Over(o Limits) Limits {
	for _, f := range []struct {
		to   *int64
		from int64
	}{{&l.DayTokens, o.DayTokens}, {&l.MonthTokens, o.MonthTokens}, {&l.DayCost, o.DayCost}, {&l.MonthCost, o.MonthCost}} {
		if f.from != 0 {
			*f.to = f.from
		}
	}
	return l
}

// of returns the bounds on tokens and cost of a period.
func (l Limits) of(p Period) (tokens, cost int64) {
	if p == Day {
		return l.DayTokens, l.DayCost
	}
	return l.MonthTokens, l.MonthCost
}

// Account is a person or a channel.
type Account struct {
	Channel string
	// User is empty for the channel's own account.
	User string
}

// key names the account in the keys of counters and overrides.
func (a Account) key() string {
	if a.User == "" {
		return Subject{Channel: a.Channel}.channel()
	}
	return Subject{Channel: a.Channel, User: a.User}.person()
}

// Options configures Budgets.
type Options struct {
	Prices Prices
	// Currency is the code of the currency of the prices, as it is shown ("USD").
	Currency string
	// Location is where days and months begin; nil: UTC.
	Location *time.Location
	// Person and Channel are what each person and each channel may spend.
	Person, Channel Limits
	// PersonOn and ChannelOn are laid over them for single channels, by name.
	PersonOn, ChannelOn map[string]Limits
}

// Budgets knows what may be spent and what was.
type Budgets struct {
	opts     Options
	counters sessionstore.Tallier
	// records is nil where the store keeps none: there are no overrides then.
	records sessionstore.Recorder
}

// ErrNoCounters is returned when the store keeps no counters.
var ErrNoCounters = errors.New("the store keeps no counters of usage")

// ErrNoRecords is returned when an override is to be written to a store that keeps no records.
var ErrNoRecords = errors.New("the store keeps no records")

// New returns the budgets over a store; ErrNoCounters when it is no sessionstore.Tallier.
func New(s any, o Options) (*Budgets, error) {
	if o.Location == nil {
		o.Location = time.UTC
	}
	counters, ok := s.(sessionstore.Tallier)
	if !ok {
		return nil, ErrNoCounters
	}
	records, _ := s.(sessionstore.Recorder)
	return &Budgets{opts: o, counters: counters, records: records}, nil
}

// Meter returns a meter for a turn that begins now.
func (b *Budgets) Meter(s Subject) *Meter {
	return NewMeter(s, b.opts.Prices, time.Now().In(b.opts.Location))
}

// Add adds to the counters outside of a commit, for what a turn has cost that came to nothing.
func (b *Budgets) Add(ctx context.Context, tallies []sessionstore.Tally) error {
	if len(tallies) == 0 {
		return nil
	}
	return b.counters.AddTallies(ctx, tallies...)
}

// Currency is the code of the currency of costs.
func (b *Budgets) Currency() string { return b.opts.Currency }

// Counts returns one counter, zero when there is none.
func (b *Budgets) Counts(ctx context.Context, key string) (sessionstore.Counts, error) {
	found, err := b.counters.Tallies(ctx, key, "", 1)
	if err != nil {
		return sessionstore.Counts{}, fmt.Errorf("read usage: %w", err)
	}
	// Other keys that begin with this one come after it.
	if len(found) == 0 || found[0].Key != key {
		return sessionstore.Counts{}, nil
	}
	return found[0].Counts, nil
}

// Standing is how one account stands in one period.
type Standing struct {
	Account Account
	Period  Period
	// Counts is what was spent, since the last reset.
	Counts sessionstore.Counts
	// Tokens and Cost are the bounds, 0 for none; Cost is in millionths.
	Tokens, Cost int64
	// Ends is when the period is over.
	Ends time.Time
}

// Used is how many tokens were used.
func (s Standing) Used() int64 { return s.Counts.InputTokens + s.Counts.OutputTokens }

// Left is what is left of tokens and cost; -1 where there is no bound, never less otherwise than 0.
func (s Standing) Left() (tokens, costMicros int64) {
	tokens, costMicros = -1, -1
	if s.Tokens > 0 {
		tokens = max(s.Tokens-s.Used(), 0)
	}
	if s.Cost > 0 {
		costMicros = max(s.Cost-s.Counts.CostMicros, 0)
	}
	return tokens, costMicros
}

// Exhausted reports that nothing is left.
func (s Standing) Exhausted() bool {
	tokens, cost := s.Left()
	return tokens == 0 || cost == 0
}

// Check returns the first exhausted standing of those that a turn would go on, the person's before the
// channel's; ok is true when there is none. It reads only what has a bound.
func (b *Budgets) Check(ctx context.Context, s Subject) (exhausted Standing, ok bool, err error) {
	for _, a := range s.accounts() {
		for _, p := range []Period{Day, Month} {
			st, bound, err := b.standing(ctx, a, p, false)
			if err != nil {
				return Standing{}, false, err
			}
			if bound && st.Exhausted() {
				return st, false, nil
			}
		}
	}
	return Standing{}, true, nil
}

func (s Subject) accounts() []Account {
	accounts := []Account{{Channel: s.Channel}}
	if s.User != "" {
		accounts = []Account{{Channel: s.Channel, User: s.User}, {Channel: s.Channel}}
	}
	return accounts
}

// Standing returns how an account stands in a period, whether bounded or not.
func (b *Budgets) Standing(ctx context.Context, a Account, p Period) (Standing, error) {
	st, _, err := b.standing(ctx, a, p, true)
	return st, err
}

func (b *Budgets) standing(ctx context.Context, a Account, p Period, always bool) (st Standing, bound bool, err error) {
	now := time.Now().In(b.opts.Location)
	o, err := b.override(ctx, a)
	if err != nil {
		return Standing{}, false, err
	}
	st = Standing{Account: a, Period: p, Ends: p.end(now)}
	st.Tokens, st.Cost = b.limits(a, o).of(p)
	if bound = st.Tokens > 0 || st.Cost > 0; !bound && !always {
		return st, false, nil
	}
	if st.Counts, err = b.Counts(ctx, p.Key(now)+"/"+a.key()); err != nil {
		return Standing{}, false, err
	}
	base := o.Forgiven[p.Key(now)]
	st.Counts.InputTokens = max(st.Counts.InputTokens-base.InputTokens, 0)
	st.Counts.OutputTokens = max(st.Counts.OutputTokens-base.OutputTokens, 0)
	st.Counts.CostMicros = max(st.Counts.CostMicros-base.CostMicros, 0)
	return st, bound, nil
}

func (b *Budgets) limits(a Account, o override) Limits {
	switch {
	case o.Unlimited:
		return Limits{}
	case a.User == "":
		return b.opts.Channel.Over(b.opts.ChannelOn[a.Channel]).Over(o.Limits)
	}
	return b.opts.Person.Over(b.opts.PersonOn[a.Channel]).Over(o.Limits)
}

// overrideKind is the kind of the records that change the budget of one account.
const overrideKind = "budget"

// override is what an operator has decided about one account.
type override struct {
	Limits    Limits `json:"limits,omitzero"`
	Unlimited bool   `json:"unlimited,omitempty"`
	// Forgiven is what was spent in a period when it was reset, by the key of the period.
	Forgiven map[string]sessionstore.Counts `json:"forgiven,omitempty"`
}

func (b *Budgets) override(ctx context.Context, a Account) (override, error) {
	o, _, err := b.readOverride(ctx, a)
	return o, err
}

func (b *Budgets) readOverride(ctx context.Context, a Account) (o override, version uint64, err error) {
	if b.records == nil {
		return override{}, 0, nil
	}
	rec, err := b.records.Record(ctx, overrideKind, a.key())
	if errors.Is(err, sessionstore.ErrNoRecord) {
		return override{}, 0, nil
	}
	if err != nil {
		return override{}, 0, fmt.Errorf("read budget: %w", err)
	}
	if err := json.Unmarshal(rec.Value, &o); err != nil {
		return override{}, 0, fmt.Errorf("read budget of %s: %w", a.Channel, err)
	}
	return o, rec.Version, nil
}

// SetLimits gives an account limits of its own, laid over the configured ones. Zero limits, with unlimited
// false, take that back.
func (b *Budgets) SetLimits(ctx context.Context, a Account, l Limits, unlimited bool) error {
	return b.change(ctx, a, func(o *override) error {
		o.Limits, o.Unlimited = l, unlimited
		return nil
	})
}

// Reset lets an account begin its day and its month anew. The counters themselves stay.
func (b *Budgets) Reset(ctx context.Context, a Account) error {
	now := time.Now().In(b.opts.Location)
	return b.change(ctx, a, func(o *override) error {
		o.Forgiven = map[string]sessionstore.Counts{}
		for _, period := range periods(now) {
			c, err := b.Counts(ctx, period+"/"+a.key())
			if err != nil {
				return err
			}
			o.Forgiven[period] = c
		}
		return nil
	})
}

// change rewrites the override of an account, again when somebody else has changed it meanwhile.
func (b *Budgets) change(ctx context.Context, a Account, edit func(*override) error) error {
	if b.records == nil {
		return ErrNoRecords
	}
	for {
		o, version, err := b.readOverride(ctx, a)
		if err != nil {
			return err
		}
		if err := edit(&o); err != nil {
			return err
		}
		var value json.RawMessage
		if o.Unlimited || o.Limits != (Limits{}) || len(o.Forgiven) > 0 {
			if value, err = json.Marshal(o); err != nil {
				return fmt.Errorf("write budget: %w", err)
			}
		} else if version == 0 {
			return nil
		}
		err = b.records.ChangeRecords(ctx, sessionstore.RecordChange{Kind: overrideKind, Key: a.key(), Value: value, Version: version})
		if !errors.Is(err, sessionstore.ErrChanged) {
			return err
		}
	}
}
