package boltstore

import (
	"testing"
	"time"

	"botd/sessionstore/storetest"
)

func TestArchiver(t *testing.T) {
	t.Parallel()
	storetest.Archiver(t, func(t *testing.T, archiveFor time.Duration) storetest.Archiving {
		return openTest(t, Options{ArchiveFor: archiveFor})
	})
}

func TestEraser(t *testing.T) {
	t.Parallel()
	storetest.Eraser(t, func(t *testing.T) storetest.Erasing { return openTest(t, Options{}) })
}

func TestRewriter(t *testing.T) {
	t.Parallel()
	storetest.Rewriter(t, func(t *testing.T) storetest.Rewriting { return openTest(t, Options{}) })
}

func TestInspector(t *testing.T) {
	t.Parallel()
	storetest.Inspector(t, func(t *testing.T) storetest.Inspecting { return openTest(t, Options{}) })
}

func TestRecorder(t *testing.T) {
	t.Parallel()
	storetest.Recorder(t, func(t *testing.T) storetest.Recording { return openTest(t, Options{}) })
}

func TestTallier(t *testing.T) {
	t.Parallel()
	storetest.Tallier(t, func(t *testing.T) storetest.Counting { return openTest(t, Options{}) })
}
