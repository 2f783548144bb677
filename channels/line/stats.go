package line

import "sync/atomic"

// Stats counts what the webhook has seen since the adapter was made.
type Stats struct {
	// Webhooks counts webhooks with a good signature, Rejected those without one or for another bot.
	Webhooks, Rejected uint64
	// Accepted counts events that the sink took, Refused those that it did not, Ignored those that mean
	// nothing to a gateway, Quarantined those that could not be understood.
	Accepted, Refused, Ignored, Quarantined uint64
}

type counters struct{ webhooks, rejected, accepted, refused, ignored, quarantined atomic.Uint64 }

// Stats returns the counts so far.
func (a *Adapter) Stats() Stats {
	return Stats{
		Webhooks: a.stats.webhooks.Load(), Rejected: a.stats.rejected.Load(),
		Accepted: a.stats.accepted.Load(), Refused: a.stats.refused.Load(),
		Ignored: a.stats.ignored.Load(), Quarantined: a.stats.quarantined.Load(),
	}
}
