package memstore_test

import (
	"testing"

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
