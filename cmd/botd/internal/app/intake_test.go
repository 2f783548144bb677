package app

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"botd/channels"
	"botd/channels/dispatch"
)

// sinkFunc is a sink that is a function.
type sinkFunc func() error

func (f sinkFunc) Accept(context.Context, ...channels.Inbound) error { return f() }

// TestIntakeRemembersRefusedEvents: readiness tells of events that cannot be kept, until one is kept or
// the refusal is old, and not of those that were turned away for other reasons.
func TestIntakeRemembersRefusedEvents(t *testing.T) {
	t.Parallel()
	full := errors.New("no room for the write")
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	for _, tt := range []struct {
		name    string
		ctx     context.Context
		results []error
		pause   time.Duration
		want    error
	}{
		{name: "nothing came"},
		{name: "kept", results: []error{nil}},
		{name: "refused", results: []error{nil, full}, want: full},
		{name: "still refused", results: []error{full, full}, pause: refusalCounts - time.Second, want: full},
		{name: "refused, then kept", results: []error{full, nil}},
		{name: "refused long ago", results: []error{full}, pause: refusalCounts},
		{name: "draining", results: []error{dispatch.ErrDraining}},
		{name: "refused, then draining", results: []error{full, dispatch.ErrDraining}, want: full},
		{name: "unknown channel", results: []error{dispatch.ErrUnknownChannel}},
		{name: "the sender has left", ctx: canceled, results: []error{context.Canceled}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx := tt.ctx
				if ctx == nil {
					ctx = t.Context()
				}
				var next error
				i := &intake{sink: sinkFunc(func() error { return next })}
				for _, next = range tt.results {
					if err := i.Accept(ctx); !errors.Is(err, next) {
						t.Errorf("Accept() = %v, want %v", err, next)
					}
				}
				time.Sleep(tt.pause)
				if err := i.check(); !errors.Is(err, tt.want) {
					t.Errorf("check() = %v, want %v", err, tt.want)
				}
			})
		})
	}
}
