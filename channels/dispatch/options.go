package dispatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"reflect"
	"time"

	"botd/agent"
	"botd/agent/usage"
	"botd/channels"
	"botd/sessionstore"
)

// Engine runs one turn. The sequence ends with a Final event or with an error, an *agent.Error where
// the cause is known. Run writes nothing; stopping the iteration or ending ctx ends the run.
type Engine interface {
	Run(ctx context.Context, t agent.Turn) iter.Seq2[agent.Event, error]
}

// GroupRule says which messages in groups and rooms are answered. Direct chats are always answered.
type GroupRule string

// The rules. The zero value is Mention.
const (
	// Mention answers messages that speak to the bot, see channels.Inbound.Mentioned.
	Mention GroupRule = "mention"
	// All answers every message.
	All GroupRule = "all"
	// Ignore answers nothing.
	Ignore GroupRule = "ignore"
)

// MidRun says what becomes of a message that a person sends while an earlier one of theirs is being
// answered.
type MidRun string

// The policies. The zero value is Queue.
const (
	// Queue answers it afterwards.
	Queue MidRun = "queue"
	// Interrupt ends the run and answers both together, on the newer one's reply handle. What tools have
	// done until then is done, and may be done again. A person who never pauses interrupts five times at
	// most; messages of others in between, and an answer that is being committed, are not interrupted.
	Interrupt MidRun = "interrupt"
)

// Channel is one bot account and the rules for it.
type Channel struct {
	Adapter channels.Adapter
	// Agent names the agent that answers; empty for the engine's default.
	Agent  string
	Groups GroupRule
	Scope  Scope
	// Admins are the platform's IDs of people who may change a memory that several people share, as may those
	// whom the platform itself reports to be in charge of the place (channels.Speaker.Admin). Where a person
	// has a memory of their own, everybody is in charge of theirs.
	Admins []string
	// MergeWindow, when positive, is how long a turn waits for the same person to go on: messages that
	// follow each other within it are answered together, on the newest one's reply handle. A person who
	// never pauses waits five windows at most. 0: every message is a turn of its own.
	MergeWindow time.Duration
	MidRun      MidRun
	// NoPreview turns live previews off for an adapter that can show them.
	NoPreview bool
}

// Options configures a Dispatcher. Channels, Engine, Store and Journal are required; zero values of the
// rest stand for the defaults named.
type Options struct {
	Channels []Channel
	Engine   Engine
	Store    sessionstore.Store
	// Journal may be the same value as Store; see the package comment.
	Journal Journal
	// Logger gets one line for each turn and each failure, never message text. Default: nothing is logged.
	Logger *slog.Logger
	// Observer is told of turns and deliveries that ended. Default: nobody.
	Observer Observer

	// Budgets counts what turns cost and says who may have more. Default: nothing is counted or bounded. The
	// counters are written with the journal, which must be a sessionstore.Tallier.
	Budgets *usage.Budgets

	// MaxConcurrent bounds the turns that run at once. Default 32.
	MaxConcurrent int
	// MaxHistory bounds the items of a session that a turn is given, the newest ones. Default 200.
	MaxHistory int
	// TurnTimeout bounds one run of the engine. Default 5 minutes.
	TurnTimeout time.Duration
	// Grace is how long running turns and due deliveries may go on after Run's context has ended.
	// Default 20 seconds; negative: not at all.
	Grace time.Duration
	// MaxAttempts bounds the runs of one turn whose failures may pass. Default 4.
	MaxAttempts int
	// MaxRetryWait bounds a wait that the provider asks for between two runs: after a longer one the turn
	// is given up at once, because a notice now is better than an answer in an hour. Default 5 minutes.
	MaxRetryWait time.Duration

	// MaxSends bounds the sends that run at once on each channel. Default 8.
	MaxSends int
	// SendTimeout bounds one send. Default 1 minute.
	SendTimeout time.Duration
	// MaxDeliveryAge is how long a delivery is tried before it is given up. Default 24 hours.
	MaxDeliveryAge time.Duration
}

func (o Options) withDefaults() Options {
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if o.Observer == nil {
		o.Observer = nobody{}
	}
	o.MaxConcurrent = cmp.Or(o.MaxConcurrent, 32)
	o.MaxHistory = cmp.Or(o.MaxHistory, 200)
	o.TurnTimeout = cmp.Or(o.TurnTimeout, 5*time.Minute)
	o.Grace = max(cmp.Or(o.Grace, 20*time.Second), 0)
	o.MaxAttempts = cmp.Or(o.MaxAttempts, 4)
	o.MaxRetryWait = cmp.Or(o.MaxRetryWait, 5*time.Minute)
	o.MaxSends = cmp.Or(o.MaxSends, 8)
	o.SendTimeout = cmp.Or(o.SendTimeout, time.Minute)
	o.MaxDeliveryAge = cmp.Or(o.MaxDeliveryAge, 24*time.Hour)
	return o
}

func (o Options) validate() error {
	var errs []error
	if o.Engine == nil {
		errs = append(errs, errors.New("no engine"))
	}
	if o.Store == nil {
		errs = append(errs, errors.New("no store"))
	}
	if o.Journal == nil {
		errs = append(errs, errors.New("no journal"))
	}
	for _, n := range []struct {
		name  string
		value int64
	}{
		{"MaxConcurrent", int64(o.MaxConcurrent)},
		{"MaxHistory", int64(o.MaxHistory)},
		{"TurnTimeout", int64(o.TurnTimeout)},
		{"MaxAttempts", int64(o.MaxAttempts)},
		{"MaxRetryWait", int64(o.MaxRetryWait)},
		{"MaxSends", int64(o.MaxSends)},
		{"SendTimeout", int64(o.SendTimeout)},
		{"MaxDeliveryAge", int64(o.MaxDeliveryAge)},
	} {
		if n.value < 0 {
			errs = append(errs, fmt.Errorf("%s is negative", n.name))
		}
	}
	return errors.Join(errs...)
}

// validate reports what is wrong with a channel's rules.
func (c Channel) validate() error {
	if c.Adapter == nil {
		return errors.New("no adapter")
	}
	switch c.Groups {
	case "", Mention, All, Ignore:
	default:
		return fmt.Errorf("unknown group rule %q (want mention, all, ignore or nothing)", string(c.Groups))
	}
	switch c.MidRun {
	case "", Queue, Interrupt:
	default:
		return fmt.Errorf("unknown policy %q for messages during a run (want queue, interrupt or nothing)", string(c.MidRun))
	}
	if c.MergeWindow < 0 {
		return errors.New("MergeWindow is negative")
	}
	return c.Scope.Validate()
}

// sameValue reports whether two interfaces hold the same value.
func sameValue(a, b any) bool {
	t := reflect.TypeOf(a)
	return t == reflect.TypeOf(b) && t.Comparable() && a == b
}

// Observer is told what happened, for metrics. Its methods are called from the goroutine that did the
// work and must return at once.
type Observer interface {
	// TurnEnded is called once for each run that ended, whatever its end.
	TurnEnded(TurnReport)
	// SendEnded is called once for each attempt to deliver.
	SendEnded(SendReport)
}

// TurnEnd is how one run of a turn ended.
type TurnEnd string

// The ends of a run.
const (
	// Answered: committed with an answer.
	Answered TurnEnd = "answered"
	// Retried: failed, to be run again.
	Retried TurnEnd = "retried"
	// SetAside: given up with a notice; its events are dead letters.
	SetAside TurnEnd = "set aside"
	// Dropped: stopped by a command, overtaken by a reset, or cut off by the end of the process.
	Dropped TurnEnd = "dropped"
)

// TurnReport describes one run of a turn.
type TurnReport struct {
	Channel string
	Session sessionstore.ID
	Turn    string
	End     TurnEnd
	// Agent is the agent that answered, empty when none did.
	Agent string
	// Events is the number of messages answered together, Replies that of the sends committed.
	Events, Replies int
	// Waited is the time from acceptance of the oldest event to the start, Ran that of the engine,
	// Committed that of the commit.
	Waited, Ran, Committed time.Duration
	Usage                  agent.Usage
}

// SendReport describes one attempt to deliver.
type SendReport struct {
	Channel string
	// Delivery is the delivery's ID; what comes before its slash is the turn's.
	Delivery string
	State    State
	// Kind is the kind of the error, and meaningful only when Err is not nil.
	Kind channels.ErrorKind
	Err  error
	// Took is the time of the attempt, Age that since the commit.
	Took, Age time.Duration
}

type nobody struct{}

func (nobody) TurnEnded(TurnReport) {}
func (nobody) SendEnded(SendReport) {}
