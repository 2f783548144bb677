package dispatch

import (
	"context"
	"fmt"
	"time"

	"botd/agent"
	"botd/agent/usage"
	"botd/sessionstore"
)

// overBudget begins to count a turn, and returns what is said instead of an answer when the person or the
// channel has used up what they may.
func (d *Dispatcher) overBudget(t *turn) (*speech, error) {
	if d.opts.Budgets == nil {
		return nil, nil
	}
	at := t.asked().Event.Address
	subject := usage.Subject{Session: t.lane.id, Channel: at.Channel, User: at.User}
	exhausted, ok, err := d.opts.Budgets.Check(t.ctx, subject)
	if err != nil {
		return nil, fmt.Errorf("check budget: %w", err)
	}
	if ok {
		t.meter = d.opts.Budgets.Meter(subject)
		return nil, nil
	}
	d.logFor(t.asked()).Info("budget used up", "turn", t.id, "period", string(exhausted.Period), "person", exhausted.Account.User != "")
	says := d.notice(t.asked(), textBudget)
	says.part.Text = fmt.Sprintf(says.part.Text, exhausted.Ends.Format("2006-01-02 15:04 MST"))
	return &says, nil
}

// spent is where the engine tells what a turn costs, nil where nobody counts.
func (t *turn) spent() func(agent.Spending) {
	if t.meter == nil {
		return nil
	}
	return t.meter.Spend
}

// tallies takes what the turn has cost and is not counted yet.
func (t *turn) tallies(answered bool, by string) []sessionstore.Tally {
	if t.meter == nil {
		return nil
	}
	return t.meter.Tallies(answered, by)
}

// accountTimeout bounds the counting of what came to nothing, also while the dispatcher is being cut off.
const accountTimeout = 5 * time.Second

// account counts what a turn has cost whose commit could not.
func (d *Dispatcher) account(t *turn, tallies []sessionstore.Tally) {
	if len(tallies) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(d.hard), accountTimeout)
	defer cancel()
	if err := d.opts.Budgets.Add(ctx, tallies); err != nil {
		d.logFor(t.asked()).Warn("usage not counted", "turn", t.id, "err", err)
	}
}
