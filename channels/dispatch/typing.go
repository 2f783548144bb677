package dispatch

import (
	"context"
	"time"

	"botd/channels"
)

// typingTimeout bounds one sign of work.
const typingTimeout = 5 * time.Second

// startTyping shows the sign of work at once and keeps it up until the returned function is called,
// which waits for the last call to end: nothing may follow the answer.
func (d *Dispatcher) startTyping(ctx context.Context, t *turn) (stop func()) {
	every := t.channel.info.TypingEvery
	if t.channel.typer == nil || every <= 0 {
		return func() {}
	}
	asked := t.asked()
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			d.typing(ctx, t.channel.typer, asked)
			if sleep(ctx, every) != nil {
				return
			}
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}

func (d *Dispatcher) typing(ctx context.Context, typer channels.Typer, e Entry) {
	ctx, cancel := context.WithTimeout(ctx, typingTimeout)
	defer cancel()
	err := guard(func() error { return typer.Typing(ctx, e.Event.Address) })
	if err != nil && ctx.Err() == nil {
		d.logFor(e).Debug("typing not shown", "err", err)
	}
}

// previewTimeout bounds one update of a preview: it must not hold up the engine.
const previewTimeout = 2 * time.Second

// preview shows an answer while it is written. It opens with the first text, and gives up for good at
// the first failure: the answer itself comes from the outbox in any case.
type preview struct {
	d    *Dispatcher
	ctx  context.Context
	turn *turn
	live channels.Live
	off  bool
}

func (d *Dispatcher) newPreview(ctx context.Context, t *turn) *preview {
	return &preview{d: d, ctx: ctx, turn: t, off: t.channel.streamer == nil}
}

func (p *preview) write(text string) {
	if p.off {
		return
	}
	ctx, cancel := context.WithTimeout(p.ctx, previewTimeout)
	defer cancel()
	err := guard(func() (err error) {
		if p.live == nil {
			// The view outlives this write, so it gets the context of the whole run.
			p.live, err = p.turn.channel.streamer.Stream(p.ctx, outbound(p.turn.id+"/0", p.turn.asked()))
			if err != nil {
				p.live = nil
				return err
			}
		}
		return p.live.Write(ctx, text)
	})
	if err != nil {
		p.fail(err)
	}
}

func (p *preview) close() {
	if p.live == nil {
		return
	}
	if err := guard(p.live.Close); err != nil {
		p.fail(err)
	}
}

func (p *preview) fail(err error) {
	p.off = true
	if p.ctx.Err() == nil {
		p.d.logFor(p.turn.asked()).Debug("preview given up", "turn", p.turn.id, "err", err)
	}
}
