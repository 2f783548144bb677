package discord

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"botd/channels"
)

const (
	// ackWait bounds an acknowledgement: Discord takes it for three seconds. (Discord documentation,
	// Receiving and Responding to Interactions.)
	ackWait = 2500 * time.Millisecond
	// ackTries is how often it is sent when the first attempts get no answer; a second one after a lost
	// answer is refused as already acknowledged.
	ackTries = 3
	ackPause = 150 * time.Millisecond
	// ackLimit bounds the acknowledgements under way.
	ackLimit = 64
)

// onEvent takes every event from discordgo. It runs on the library's reading goroutine, under its locks:
// it must not wait, and must not call the session.
func (a *Adapter) onEvent(ctx context.Context, l *link, event string, raw json.RawMessage) {
	if ctx.Err() != nil {
		return
	}
	err := contained(func() error {
		switch event {
		case "READY":
			var r struct {
				User   lenient[user] `json:"user"`
				Guilds listOf[guild] `json:"guilds"`
			}
			if err := json.Unmarshal(raw, &r); err != nil {
				return err
			}
			a.dir.setSelf(r.User.v.ID)
			l.ready.Store(true)
			l.alive.Store(true)
			a.health.up()
			a.log.Info("connected to discord", "user", r.User.v.ID)
			var guilds []string
			for g := range r.Guilds.all {
				guilds = append(guilds, g.ID)
			}
			a.beginCatchUp(ctx, guilds)
		case "GUILD_CREATE":
			var g guild
			if err := json.Unmarshal(raw, &g); err != nil {
				return err
			}
			a.dir.join(g)
			if r := a.round.Load(); r != nil {
				r.told(g.ID, g.Channels, g.Threads)
			}
		case "RESUMED":
			l.alive.Store(true)
			a.health.up()
			a.log.Info("session with discord resumed")
		case "MESSAGE_CREATE":
			a.take(l, arrival{event: event, raw: raw})
		case "INTERACTION_CREATE":
			i, _, err := decodeInteraction(raw)
			if err != nil {
				return err
			}
			if i.Type != interactCommand || i.Data.v.Type > commandChat {
				return nil
			}
			a.take(l, a.acknowledge(ctx, arrival{event: event, raw: raw}, i))
		default:
			return a.dir.observe(event, raw)
		}
		return nil
	})
	if err != nil {
		a.log.Warn("event set aside", "event", event, "err", err)
	}
}

// take puts an event on its way to the sink, and cuts the connection when too much waits there: Discord
// keeps what follows for a resume.
func (a *Adapter) take(l *link, arrived arrival) {
	if a.intake.push(arrived) {
		l.wire.Load().end(errBacklog)
	}
}

// acknowledge starts the first response to an interaction, which must not wait for anything before it:
// a person sees "thinking" at once, whatever is queued.
func (a *Adapter) acknowledge(ctx context.Context, arrived arrival, i *interaction) arrival {
	done, ok := make(chan struct{}), new(bool)
	arrived.acked, arrived.ok = done, ok
	select {
	case a.acks <- struct{}{}:
	default:
		a.log.Warn("interaction not acknowledged: too many at once", "event_id", i.ID)
		close(done)
		return arrived
	}
	a.tasks.Go(func() {
		defer func() {
			<-a.acks
			close(done)
		}()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), ackWait)
		defer cancel()
		err := contained(func() error { return a.sendAck(ctx, i) })
		if *ok = err == nil; err != nil {
			a.log.Warn("interaction not acknowledged: its answer goes to the room", "event_id", i.ID, "err", err)
		}
	})
	return arrived
}

func (a *Adapter) sendAck(ctx context.Context, i *interaction) error {
	for n := 1; ; n++ {
		err := a.rest.deferInteraction(ctx, i.ID, i.Token)
		if err == nil || codeOf(err) == codeAlreadyAcknowledged {
			return nil
		}
		if channels.KindOf(err) != channels.Transient || n == ackTries || sleep(ctx, ackPause) != nil {
			return err
		}
	}
}

// commandInbound turns a slash command into an event: a message with the command as its text.
func (a *Adapter) commandInbound(ctx context.Context, raw json.RawMessage, acked bool) (channels.Inbound, error) {
	i, who, err := decodeInteraction(raw)
	if err != nil {
		return channels.Inbound{}, err
	}
	data := i.Data.v
	var text strings.Builder
	text.WriteString("/" + data.Name)
	for o := range data.Options.all {
		text.WriteString(" " + optionText(o.Value.v))
	}
	r := reply{}
	if acked {
		r.Interaction = &token{ID: i.ID, App: i.ApplicationID, Token: i.Token}
	}
	var kind *roomType
	if i.Channel.v.ID == i.ChannelID.v {
		kind = &i.Channel.v.Type
		a.dir.addRoom(i.Channel.v)
	}
	return channels.Inbound{
		ID:      i.ID,
		Kind:    channels.Message,
		Address: a.address(ctx, i.ChannelID.v, i.GuildID.v, kind, who.ID),
		Time:    snowflakeTime(i.ID),
		Speaker: channels.Speaker{
			ID: who.ID, Name: who.name(i.Member.v.nickname), Locale: i.Locale.v,
			Admin: i.Member.v.Permissions.v.inCharge() || a.dir.owns(who.ID, i.GuildID.v),
		},
		Mentioned: true,
		Parts:     []channels.Part{{Type: channels.Text, Text: text.String()}},
		Reply:     r.encode(),
	}, nil
}

// optionText is the value of a command's option as a person would have typed it.
func optionText(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return strings.TrimSpace(s)
	}
	return string(raw)
}
