package console

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"botd/channels"
	"botd/channels/render"
)

// Defaults of Options.
const (
	DefaultUser = "you"
	DefaultName = "botd"
	DefaultKeep = 500
)

// terminalRoom is the room of the chat in the terminal.
const terminalRoom = "terminal"

// typingEvery is how often the sign of work is renewed; clients let it go when it is not.
const typingEvery = 5 * time.Second

// Options configure an Adapter.
type Options struct {
	// Channel is the configured name of the channel. Required.
	Channel string
	// Name is what people call the bot in a room, DefaultName when empty.
	Name string

	// In and Out are the terminal; without them there is none.
	In  io.Reader
	Out io.Writer
	// User is the ID of the person at the terminal, DefaultUser when empty.
	User string
	// Prompt is written when the terminal waits for input, nothing when empty: leave it empty when In is no
	// terminal.
	Prompt string
	// Rewrite says that Out understands the ANSI sequences to erase a line, and shows the sign of work.
	Rewrite bool

	// Answered, when set, is called after each line was handed in, and the next line is handed in once it returns:
	// it can wait for the answer, as a person would.
	Answered func(context.Context)

	// Listen is the loopback host:port that Run serves HTTP on; empty for none.
	Listen string
	// Keep is how many messages are kept for clients that come back, in each room; DefaultKeep when 0.
	Keep int
}

// Adapter is one console channel.
type Adapter struct {
	opts     Options
	rooms    *rooms
	terminal *terminal
	// handed is closed when every line of the terminal was handed in.
	handed chan struct{}
	// ended is closed when Run returns.
	ended   chan struct{}
	endOnce sync.Once
}

var (
	_ channels.Adapter  = (*Adapter)(nil)
	_ channels.Webhook  = (*Adapter)(nil)
	_ channels.Typer    = (*Adapter)(nil)
	_ channels.Streamer = (*Adapter)(nil)
)

// New returns an adapter.
func New(o Options) (*Adapter, error) {
	if o.Channel == "" {
		return nil, errors.New("console: no channel name")
	}
	if (o.In == nil) != (o.Out == nil) {
		return nil, errors.New("console: a terminal needs both In and Out")
	}
	if o.Listen != "" && !isLoopback(o.Listen) {
		return nil, fmt.Errorf("console: %q is no loopback address: there is no authentication, so nobody else may reach it", o.Listen)
	}
	if o.Name == "" {
		o.Name = DefaultName
	}
	if o.User == "" {
		o.User = DefaultUser
	}
	if o.Keep == 0 {
		o.Keep = DefaultKeep
	}
	a := &Adapter{opts: o, rooms: newRooms(o.Keep), ended: make(chan struct{})}
	if o.In != nil {
		a.terminal, a.handed = newTerminal(o), make(chan struct{})
	}
	return a, nil
}

// Info implements channels.Adapter.
func (a *Adapter) Info() channels.Info {
	return channels.Info{Channel: a.opts.Channel, Platform: "console", TypingEvery: typingEvery}
}

// Compose implements channels.Adapter. There is no limit of length and no markup to translate, so an answer
// is one send.
func (a *Adapter) Compose(m channels.Outbound) []channels.Outbound {
	var texts []string
	for _, p := range m.Parts {
		text := strings.Trim(p.Text, "\n")
		if p.Type == channels.Markdown && render.Plain(text) == "" {
			continue
		}
		if render.Visible(text) {
			texts = append(texts, text)
		}
	}
	if len(texts) == 0 {
		return nil
	}
	m.Parts = []channels.Part{{Type: channels.Text, Text: strings.Join(texts, "\n\n")}}
	return []channels.Outbound{m}
}

// Send implements channels.Adapter.
func (a *Adapter) Send(ctx context.Context, m channels.Outbound) (channels.Receipt, error) {
	if err := ctx.Err(); err != nil {
		return channels.Receipt{}, &channels.Error{Kind: channels.Transient, Err: err}
	}
	var h handle
	if len(m.Reply) > 0 {
		if err := json.Unmarshal(m.Reply, &h); err != nil {
			return channels.Receipt{}, &channels.Error{Kind: channels.Permanent, Err: errors.New("reply handle is not the console's")}
		}
	}
	id, fresh := a.rooms.show(keyOf(m.To), Message{Delivery: m.ID, Text: m.PlainText(), ReplyTo: h.Event})
	if fresh && a.isTerminal(m.To) {
		if err := a.terminal.show(m.PlainText()); err != nil {
			return channels.Receipt{}, &channels.Error{Kind: channels.Gone, Err: fmt.Errorf("write to the terminal: %w", err)}
		}
	}
	return channels.Receipt{MessageIDs: []string{id}}, nil
}

// Typing implements channels.Typer.
func (a *Adapter) Typing(ctx context.Context, to channels.Address) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	a.rooms.typing(keyOf(to))
	if a.isTerminal(to) {
		return a.terminal.typing()
	}
	return nil
}

// Stream implements channels.Streamer.
func (a *Adapter) Stream(_ context.Context, m channels.Outbound) (channels.Live, error) {
	return &live{adapter: a, to: m.To}, nil
}

// live is the preview of one answer.
type live struct {
	adapter *Adapter
	to      channels.Address
	text    strings.Builder
}

func (l *live) Write(_ context.Context, text string) error {
	l.text.WriteString(text)
	l.adapter.rooms.preview(keyOf(l.to), l.text.String())
	if l.adapter.isTerminal(l.to) {
		return l.adapter.terminal.preview(text)
	}
	return nil
}

func (l *live) Close() error { return nil }

func (a *Adapter) isTerminal(to channels.Address) bool {
	return a.terminal != nil && to.Kind == channels.Direct && to.Room == terminalRoom
}

// InputEnded is closed when the terminal's input has ended and every line of it was handed in; nil without
// a terminal. Answers are still written until Run is told to end.
func (a *Adapter) InputEnded() <-chan struct{} { return a.handed }

// Run implements channels.Adapter: it reads the terminal and serves HTTP. Reading that cannot be
// interrupted, as of a real terminal, goes on in the background until it returns by itself.
func (a *Adapter) Run(ctx context.Context, sink channels.Sink) error {
	defer a.endOnce.Do(func() { close(a.ended) })
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var all sync.WaitGroup
	failed := make(chan error, 1)
	if a.opts.Listen != "" {
		all.Go(func() {
			if err := a.serve(ctx, sink); err != nil {
				failed <- err
				cancel()
			}
		})
	}
	if a.terminal != nil {
		all.Go(func() { a.converse(ctx, sink) })
	}
	<-ctx.Done()
	a.endOnce.Do(func() { close(a.ended) })
	all.Wait()
	select {
	case err := <-failed:
		return err
	default:
		return nil
	}
}

// converse hands in each line of the terminal.
func (a *Adapter) converse(ctx context.Context, sink channels.Sink) {
	defer close(a.handed)
	for line := range a.terminal.lines(ctx) {
		in := channels.Inbound{
			ID: newID(), Kind: channels.Message, Time: time.Now(), Mentioned: true,
			Address: channels.Address{Channel: a.opts.Channel, Kind: channels.Direct, Room: terminalRoom, User: a.opts.User},
			Speaker: channels.Speaker{ID: a.opts.User, Name: a.opts.User},
			Parts:   []channels.Part{{Type: channels.Text, Text: line}},
		}
		in.Reply = handle{Event: in.ID}.encode()
		if err := sink.Accept(ctx, in); err != nil && ctx.Err() == nil {
			a.terminal.say("(not taken, please try again)")
		} else if a.opts.Answered != nil && ctx.Err() == nil {
			a.opts.Answered(ctx)
		}
	}
}

// handle is the reply handle of an event.
type handle struct {
	Event string `json:"event"`
}

func (h handle) encode() []byte {
	raw, err := json.Marshal(h)
	if err != nil {
		panic(err) // a string is always JSON
	}
	return raw
}

func newID() string { return "c-" + rand.Text() }
