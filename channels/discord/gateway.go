package discord

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/bwmarrin/discordgo"

	"botd/channels"
)

// Gateway opcodes that the wire knows. (Discord documentation, Opcodes and Status Codes.)
const (
	opHeartbeat      = 1
	opIdentify       = 2
	opReconnect      = 7
	opInvalidSession = 9
	opHello          = 10
	opACK            = 11
)

// Errors of Run: what the operator must mend. They are wrapped with what to do.
var (
	// ErrToken: Discord refuses the bot token.
	ErrToken = errors.New("discord refuses the bot token")
	// ErrIntent: the application has no right to an intent that is asked for.
	ErrIntent = errors.New("discord refuses an intent")
	// ErrSharding: the bot is in too many guilds for one connection.
	ErrSharding = errors.New("discord requires sharding")
	// ErrProtocol: Discord no longer speaks this version of its protocol.
	ErrProtocol = errors.New("discord refuses the gateway protocol")
)

// closeError is the close code with which Discord ended a connection.
type closeError struct{ code int }

func (e closeError) Error() string {
	return fmt.Sprintf("discord closed the connection with code %d", e.code)
}

// fatal returns the error of Run for a close code after which no reconnect can succeed, nil for any other.
// (Discord documentation, Opcodes and Status Codes, Gateway Close Event Codes.)
func (a *Adapter) fatal(code int) error {
	switch code {
	case 4004:
		return a.tokenError()
	case 4010, 4011:
		return fmt.Errorf("%w (close code %d): the bot has joined more guilds than one gateway connection may serve", ErrSharding, code)
	case 4012:
		return fmt.Errorf("%w (close code 4012): update botd", ErrProtocol)
	case 4013, 4014:
		if a.messageContent {
			return fmt.Errorf("%w (close code %d): switch on Message Content Intent under Bot in the Discord developer portal, or set message_content: false", ErrIntent, code)
		}
		return fmt.Errorf("%w (close code %d): no privileged intent was asked for; look at the application in the Discord developer portal", ErrIntent, code)
	}
	return nil
}

func (a *Adapter) tokenError() error {
	return &channels.Error{Kind: channels.Unauthorized, Err: fmt.Errorf("%w: copy it anew from Bot, Reset Token, in the Discord developer portal", ErrToken)}
}

// intents are what the adapter listens to: guilds for rooms and roles, messages in guilds and in direct
// chats. Interactions need none.
func (a *Adapter) intents() discordgo.Intent {
	i := discordgo.IntentGuilds | discordgo.IntentGuildMessages | discordgo.IntentDirectMessages
	if a.messageContent {
		i |= discordgo.IntentMessageContent
	}
	return i
}

const (
	firstBackoff = time.Second
	maxBackoff   = 5 * time.Minute
	// stableAfter is how long a connection must last to count as a success.
	stableAfter = time.Minute
	// maxResumes is how many resumes in a row may come to nothing before the session is given up.
	maxResumes = 3
)

// supervise keeps one gateway connection up until ctx ends, and returns nil then, or the error that the
// operator must mend.
func (a *Adapter) supervise(ctx context.Context) error {
	var l *link
	failures := 0
	for {
		if failures > 0 {
			if sleep(ctx, backoff(failures)) != nil {
				return nil
			}
		}
		if a.intake.waitDrained(ctx) != nil {
			return nil
		}
		if l == nil {
			fresh, err := a.prepare(ctx)
			if ctx.Err() != nil {
				return nil
			}
			if channels.KindOf(err) == channels.Unauthorized || errors.Is(err, ErrIntent) {
				return err
			}
			if err != nil {
				failures++
				a.health.down(err)
				a.log.Warn("gateway not reached", "attempt", failures, "err", err)
				continue
			}
			l = fresh
		}
		resuming, began := l.ready.Load(), time.Now()
		usable, err := a.connect(ctx, l)
		if ctx.Err() != nil {
			return nil
		}
		a.health.down(err)
		v := a.judge(l, err, usable, resuming)
		if v.fatal != nil {
			return v.fatal
		}
		if !usable {
			a.log.Error("the discord library did not return; its session is abandoned", "err", err)
		}
		a.log.Info("gateway connection ended", "err", err, "resumable", !v.discard, "lasted", time.Since(began).Round(time.Millisecond))
		if v.discard {
			l = nil
		}
		if time.Since(began) >= stableAfter {
			failures = 0
		}
		failures++
		if v.invalid && sleep(ctx, time.Second+rand.N(4*time.Second)) != nil {
			return nil
		}
	}
}

// verdict is what the end of a connection means.
type verdict struct {
	fatal error
	// discard: the session cannot be resumed.
	discard bool
	// invalid: Discord said Op 9; it wants one to five seconds of peace.
	invalid bool
}

// judge decides what follows the end of a connection.
func (a *Adapter) judge(l *link, err error, usable, resuming bool) verdict {
	if ce, ok := errors.AsType[closeError](err); ok {
		if fatal := a.fatal(ce.code); fatal != nil {
			return verdict{fatal: fatal}
		}
		switch ce.code {
		case 1000, 1001, 4003, 4005, 4007, 4009:
			return verdict{discard: true}
		}
	}
	if op9, ok := errors.AsType[invalidSession](err); ok {
		return verdict{discard: !op9.resumable || !l.ready.Load(), invalid: true}
	}
	if !usable || !l.ready.Load() {
		return verdict{discard: true}
	}
	_, greeted := l.state()
	switch {
	case l.alive.Load():
		l.failures = 0
	case resuming && greeted:
		if l.failures++; l.failures >= maxResumes {
			return verdict{discard: true}
		}
	}
	return verdict{}
}

// connect opens the link and stays with it until it is over.
func (a *Adapter) connect(ctx context.Context, l *link) (usable bool, err error) {
	if !l.ready.Load() {
		a.identifiedAt = time.Now()
	}
	if usable, err = l.open(ctx); err != nil || !usable {
		return usable, err
	}
	return l.wait(ctx)
}

const (
	// identifyReserve is what of the daily budget is never used: at zero Discord ends all sessions and
	// resets the token. (Discord documentation, Gateway, Session Start Limit.)
	identifyReserve = 50
	// identifyEvery keeps one process within a max_concurrency of 1.
	identifyEvery = 5 * time.Second
)

// prepare makes a new link after asking Discord where the gateway is and what may still be used. It waits
// where the budget of IDENTIFYs asks for it.
func (a *Adapter) prepare(ctx context.Context) (*link, error) {
	if err := a.preflight(ctx); err != nil {
		return nil, err
	}
	for {
		gw, err := a.rest.gatewayBot(ctx)
		if err != nil {
			return nil, fmt.Errorf("ask for the gateway: %w", a.explain(err))
		}
		limit := gw.Limit
		if limit.Remaining >= identifyReserve || limit.Total <= identifyReserve {
			if err := sleep(ctx, identifyEvery-time.Since(a.identifiedAt)); err != nil {
				return nil, err
			}
			if !a.rest.trusts(gw.URL) {
				return nil, errors.New("discord names a gateway that is no web socket, or one without encryption")
			}
			return a.newLink(ctx, gw.URL)
		}
		wait := max(time.Duration(limit.ResetAfter)*time.Millisecond, time.Minute)
		a.health.down(fmt.Errorf("only %d of %d gateway logins are left for today", limit.Remaining, limit.Total))
		a.log.Error("gateway login put off: using up the last ones would make Discord reset the bot token", "remaining", limit.Remaining, "wait", wait)
		if err := sleep(ctx, wait); err != nil {
			return nil, err
		}
	}
}

// explain turns a refused token into the error that Run ends with.
func (a *Adapter) explain(err error) error {
	if channels.KindOf(err) == channels.Unauthorized {
		return a.tokenError()
	}
	return err
}

// backoff returns how long to wait before attempt n after failures in a row, with jitter.
func backoff(n int) time.Duration {
	d := maxBackoff
	if n < 10 {
		d = min(firstBackoff<<(n-1), maxBackoff)
	}
	return d/2 + rand.N(d/2)
}

// sleep waits for d, or for ctx to end, whose error it then returns.
func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
