package boltstore

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"botd/sessionstore"
)

// TestTurnsInOneTransaction checks that a turn is known to the writes that follow in its transaction, also
// after it went from the header to a key of its own.
func TestTurnsInOneTransaction(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const turns = 3 * recentTurns
		db := openTest(t, Options{})
		open := gate(t, db)
		var wg sync.WaitGroup
		for n := range 2 * turns {
			wg.Go(func() {
				b := sessionstore.Batch{Turn: fmt.Sprint("t", n%turns), Items: bulk(10)}
				if err := db.Append(t.Context(), "s", b); err != nil {
					t.Errorf("Append = %v, want nil", err)
				}
			})
			synctest.Wait()
		}
		open()
		wg.Wait()
		wantItems(t, db, "s", turns)
	})
}
