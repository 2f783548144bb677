package line

import (
	"fmt"
	"testing"
	"time"

	"botd/channels"
)

// TestMemoryIsBounded: what an adapter remembers does not grow with its age, and what is used stays.
func TestMemoryIsBounded(t *testing.T) {
	t.Parallel()
	t.Run("messages sent", func(t *testing.T) {
		t.Parallel()
		var s sentSet
		for i := range 3 * maxSent {
			s.add(fmt.Sprint(i), fmt.Sprint(i))
		}
		if len(s.ids) != maxSent || len(s.order) != maxSent {
			t.Errorf("%d and %d kept, want %d", len(s.ids), len(s.order), maxSent)
		}
		for i, want := range map[int]bool{0: false, 2*maxSent - 1: false, 2 * maxSent: true, 3*maxSent - 1: true} {
			if s.has(fmt.Sprint(i)) != want {
				t.Errorf("message %d known: %v, want %v", i, !want, want)
			}
		}
	})
	t.Run("profiles", func(t *testing.T) {
		t.Parallel()
		var c profileCache
		now := time.Unix(0, 0)
		key := func(i int) profileKey { return profileKey{"C", fmt.Sprint(i)} }
		for i := range 3 * maxProfiles {
			c.put(key(i), channels.Speaker{Name: fmt.Sprint(i)}, now.Add(time.Hour))
			c.put(key(i), channels.Speaker{Name: fmt.Sprint(i)}, now.Add(time.Hour))
			if _, known := c.get(key(0), now); !known {
				t.Fatalf("the profile used all the time was dropped at %d", i)
			}
		}
		if len(c.by) != maxProfiles || c.order.Len() != maxProfiles {
			t.Errorf("%d and %d kept, want %d", len(c.by), c.order.Len(), maxProfiles)
		}
		if _, known := c.get(key(1), now); known {
			t.Error("an old profile was kept")
		}
	})
}
