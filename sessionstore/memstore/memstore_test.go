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

func TestArchiver(t *testing.T) {
	t.Parallel()
	storetest.Archiver(t, func(_ *testing.T, archiveFor time.Duration) storetest.Archiving {
		s := memstore.New()
		s.ArchiveFor = archiveFor
		return s
	})
}

func TestEraser(t *testing.T) {
	t.Parallel()
	storetest.Eraser(t, func(*testing.T) storetest.Erasing { return memstore.New() })
}

func TestRewriter(t *testing.T) {
	t.Parallel()
	storetest.Rewriter(t, func(*testing.T) storetest.Rewriting { return memstore.New() })
}

func TestInspector(t *testing.T) {
	t.Parallel()
	storetest.Inspector(t, func(*testing.T) storetest.Inspecting { return memstore.New() })
}

func TestRecorder(t *testing.T) {
	t.Parallel()
	storetest.Recorder(t, func(*testing.T) storetest.Recording { return memstore.New() })
}

func TestTallier(t *testing.T) {
	t.Parallel()
	storetest.Tallier(t, func(*testing.T) storetest.Counting { return memstore.New() })
}
