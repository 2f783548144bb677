package memstore_test

import (
	"testing"
	"time"

	"botd/sessionstore"
	"botd/sessionstore/memstore"
	"botd/sessionstore/storetest"
)

func TestStore(t *testing.T) {
	t.Parallel()
	storetest.Store(t, func(*testing.T) sessionstore.Store { return memstore.New() })
}

func TestLister(t *testing.T) {
	t.Parallel()
	storetest.Lister(t, func(*testing.T) storetest.Listing { return memstore.New() })
}

func TestJournal(t *testing.T) {
	t.Parallel()
	storetest.Journal(t, func(*testing.T) storetest.Both { return memstore.New() })
}

func TestExpiry(t *testing.T) {
	t.Parallel()
	storetest.Expiry(t, func(_ *testing.T, dedupeFor time.Duration) storetest.Both {
		s := memstore.New()
		s.DedupeFor = dedupeFor
		return s
	})
}
