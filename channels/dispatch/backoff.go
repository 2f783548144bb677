package dispatch

import (
	"context"
	"fmt"
	"hash/fnv"
	"runtime"
	"runtime/debug"
	"time"
)

// backoff returns how long to wait after the given number of failures: first doubled with each failure
// up to limit, less a jitter of up to half. The jitter is a function of the key, so that what failed
// together does not come back together.
func backoff(first, limit time.Duration, failures int, key string) time.Duration {
	wait := limit
	if shift := max(failures-1, 0); shift < 30 && first<<shift < limit {
		wait = first << shift
	}
	h := fnv.New32a()
	fmt.Fprintf(h, "%s#%d", key, failures)
	return wait - time.Duration(float64(wait)/2*float64(h.Sum32())/(1<<32))
}

// sleep waits, or returns the error of ctx when that ends first.
func sleep(ctx context.Context, wait time.Duration) error {
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// panicError is what a panic in an adapter or the engine is turned into. The value that was panicked
// with may hold message text; it is kept only when it is an error of the Go runtime.
type panicError struct {
	what  string
	stack []byte
}

func (e *panicError) Error() string { return "panic: " + e.what }

// guard calls f and turns a panic in it into an error.
func guard(f func() error) (err error) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case runtime.Error:
			err = &panicError{what: p.Error(), stack: debug.Stack()}
		default:
			err = &panicError{what: fmt.Sprintf("a value of type %T", p), stack: debug.Stack()}
		}
	}()
	return f()
}
