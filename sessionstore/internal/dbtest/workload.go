package dbtest

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"botd/sessionstore"
)

// The reference workload: turns go round the sessions, each reads the newest items and appends two, of
// about 210 and 580 bytes. With -benchtime=20000x every session has 20 turns.
const (
	WorkloadSessions = 1000
	workloadRead     = 40
)

// Workload runs the reference workload with 1, 8 and 64 callers, each on a store of its own, and reports
// turns per second and the medians of reading and appending.
func Workload(b *testing.B, open func(b *testing.B) sessionstore.Store) {
	for _, callers := range []int{1, 8, 64} {
		b.Run(fmt.Sprint("callers=", callers), func(b *testing.B) {
			s := open(b)
			defer s.Close()
			workload(b, s, callers)
		})
	}
}

func workload(b *testing.B, s sessionstore.Store, callers int) {
	user := `{"role":"user","content":"` + strings.Repeat("x", 170) + `"}`
	assistant := `{"type":"message","role":"assistant","content":[{"type":"output_text","text":"` + strings.Repeat("y", 480) + `"}]}`
	var next atomic.Int64
	reads, appends := make([][]time.Duration, callers), make([][]time.Duration, callers)
	b.ResetTimer()
	began := time.Now()
	var wg sync.WaitGroup
	for c := range callers {
		wg.Go(func() {
			for {
				n := int(next.Add(1)) - 1
				if n >= b.N {
					return
				}
				id := sessionstore.ID(fmt.Sprint("line-bench:user:", n%WorkloadSessions))
				t0 := time.Now()
				items, err := s.Items(b.Context(), id, workloadRead)
				t1 := time.Now()
				if err != nil {
					b.Error(err)
					return
				}
				// Turns of one session may overtake each other at the end of a round; by one, at most.
				if want := min(workloadRead, 2*(n/WorkloadSessions)); len(items) < want-2*callers {
					b.Errorf("turn %d read %d items, want about %d", n, len(items), want)
					return
				}
				err = s.Append(b.Context(), id, sessionstore.Batch{Turn: fmt.Sprint(n), Items: Items(user, assistant)})
				if err != nil {
					b.Error(err)
					return
				}
				reads[c], appends[c] = append(reads[c], t1.Sub(t0)), append(appends[c], time.Since(t1))
			}
		})
	}
	wg.Wait()
	took := time.Since(began)
	b.StopTimer()
	b.ReportMetric(float64(b.N)/took.Seconds(), "turns/s")
	b.ReportMetric(median(reads), "µs-read-p50")
	b.ReportMetric(median(appends), "µs-append-p50")
}

func median(parts [][]time.Duration) float64 {
	all := slices.Concat(parts...)
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return float64(all[len(all)/2].Microseconds())
}
