package discord

import (
	"context"
	"errors"
	"testing"
	"time"
)

// TestLink_LibraryDoesNotReturn: a deadlock inside discordgo costs its session, not the adapter. It is real
// time here: a goroutine that waits for a lock stops the clock of a bubble.
func TestLink_LibraryDoesNotReturn(t *testing.T) {
	t.Parallel()
	a := unconnected(t)
	l, err := a.newLink(t.Context(), "ws://discord.test/gateway")
	if err != nil {
		t.Fatal(err)
	}
	l.limit, l.grace = 20*time.Millisecond, 20*time.Millisecond
	l.dg.Lock()
	defer l.dg.Unlock()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if usable, err := l.open(ctx); usable || !errors.Is(err, errCutOff) {
		t.Errorf("open: usable %v, %v; want it given up", usable, err)
	}
	if v := a.judge(l, errCutOff, false, true); !v.discard || v.fatal != nil {
		t.Errorf("verdict %+v, want the session thrown away", v)
	}
}
