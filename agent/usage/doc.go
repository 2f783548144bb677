// Package usage counts what answers cost and holds people and channels to what they may spend.
//
// A Meter gathers the calls to models of one turn. Its tallies go into the commit of the turn, so that what is
// counted is neither lost nor counted twice. Budgets reads the counters back and says what is left.
//
// # Counters
//
// Days and months are those of Options.Location. The user of a person may hold any character, as it stands last.
//
//	day/2026-12-04/total                     month/2026-12/…   likewise
//	day/2026-12-04/channel/line-shop
//	day/2026-12-04/agent/concierge
//	day/2026-12-04/model/openai/gpt-5.4-mini
//	day/2026-12-04/person/line-shop/U4af…
//	session/line-shop:user:U4af…
//
// # Bounds
//
// A turn is let begin as long as anything of the budget is left, and is not stopped when it uses up more: turns
// that run side by side can exceed a budget by what they cost.
//
// # Concurrency
//
// Meter and Budgets are safe for concurrent use.
package usage
