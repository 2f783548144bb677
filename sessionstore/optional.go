package sessionstore

import (
	"context"
	"errors"
	"time"
)

// The interfaces below are optional and found by type assertion.

// Errors of the optional interfaces.
var (
	// ErrNoArchive is returned by Restore when the session has no such archive, or has it no longer.
	ErrNoArchive = errors.New("no such archive")
	// ErrChanged is returned by Rewrite when the session was changed, other than by appends, since the
	// revision was read; nothing was written.
	ErrChanged = errors.New("session was changed since")
	// ErrNotEmpty is returned by Fork when the session to be made holds items already.
	ErrNotEmpty = errors.New("session is not empty")
)

// Archive describes what a session held before it was cleared.
type Archive struct {
	// Generation is the one that the items belonged to; it identifies the archive within its session.
	Generation uint64
	// Items counts them.
	Items int
	// At is when the session was cleared, Until when the archive is forgotten.
	At, Until time.Time
}

// Archiver is implemented by stores in which a clear can be undone for some time.
type Archiver interface {
	// ArchiveTime is how long what is cleared now can be restored, 0 when not at all.
	ArchiveTime() time.Duration
	// Archives returns what can be restored, the latest first. Clearing a session that holds no items
	// makes no archive.
	Archives(ctx context.Context, id ID) ([]Archive, error)
	// Restore makes an archive the session's items again and adds one to the session's generation, so that
	// runs begun before are refused. What the session held until then becomes an archive. ErrNoArchive.
	Restore(ctx context.Context, id ID, generation uint64) error
}

// Eraser is implemented by stores that can make a session really gone.
type Eraser interface {
	// Erase deletes the session and everything that was said in it: items, archives, and, where the store
	// keeps the journal too, events and deliveries, pending or kept. When it returns nil, no byte of their
	// text is left in the store's files. Backups and what the disk keeps below the file system are out
	// of its reach. The generation outlives the session: a late write of a run begun before is refused with
	// ErrStale. Erasing a session that does not exist is no error. When Erase fails it can be repeated.
	Erase(ctx context.Context, id ID) error
}

// Scrubber is implemented by stores in which something of what was deleted can be left in the files.
type Scrubber interface {
	// Scrub overwrites what is left of items, records and all else that was deleted, so that no byte of it is
	// in the store's files when it returns nil. Erase does so by itself; after deleting records, Scrub is
	// called once all of them are gone, since it may take time in proportion to the free room in the files.
	// When Scrub fails it can be repeated.
	Scrub(ctx context.Context) error
}

// Rewrite replaces the oldest items of a session by others, as compaction does.
type Rewrite struct {
	// Revision is the session's revision, read before the items that are being replaced.
	Revision uint64
	// Through is the Seq of the last item replaced: all up to it are. It must not lie within what an
	// earlier rewrite put in place.
	Through uint64
	// Items are shown in their place, at most as many as were ever appended up to Through. Raw, Origin,
	// Turn and At are read; At is now when it is zero. Their Seqs are the last ones up to Through.
	Items []Item
}

// Rewriter is implemented by stores that can show a session in another form than it was written in.
type Rewriter interface {
	// Revision counts the changes to the session other than appends: clears, pops, rewrites, restores.
	Revision(ctx context.Context, id ID) (uint64, error)
	// Rewrite changes what Items and Pop see; History stays as it is. Items appended since the revision was
	// read are kept and follow. All or nothing. ErrChanged.
	Rewrite(ctx context.Context, id ID, r Rewrite) error
	// History returns up to limit items as they were appended, oldest first, whose Seq is greater than
	// after. An empty result means that there are no more.
	History(ctx context.Context, id ID, after uint64, limit int) ([]Item, error)
}

// Forker is implemented by stores that can begin a session with another one's items.
type Forker interface {
	// Fork gives the session to, which must be empty, the items that from shows up to the one with the Seq
	// through; those that were replaced by a rewrite, when through lies among them. They keep their Seq,
	// Turn, At and Origin. The generation of to goes up by one. from is not changed. ErrNotEmpty.
	Fork(ctx context.Context, from, to ID, through uint64) error
}
