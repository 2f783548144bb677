package boltstore

import (
	"log/slog"
	"os"
	"time"
)

// Options say where the file is and how long things are kept. Only Path is needed.
type Options struct {
	// Path is the file; it is made when it does not exist, its folder is not. Beside it lies a lock file,
	// Path with ".lock" appended.
	Path string
	// Logger gets what an operator should know. Nil discards it.
	Logger *slog.Logger
	// LockTimeout is how long Open waits for another process to release the file. Default 2 s.
	LockTimeout time.Duration
	// DedupeFor is how long an event is remembered after it was put. Default 7 days.
	DedupeFor time.Duration
	// KeepFor is how long dead letters and deliveries that are dead or unknown stay visible. Default
	// 30 days.
	KeepFor time.Duration
	// ArchiveFor is how long a cleared session can be restored. Default 30 days; negative: not at all.
	ArchiveFor time.Duration
	// Key encrypts what is said in sessions and journal: KeyLen random bytes, see ParseKey. Nil: not
	// encrypted. Which of the two a file is, is settled when it is made.
	Key []byte
	// MaxSize is the largest size of the file in bytes, at least MinMaxSize. Near it, writes that do not
	// make room give ErrFull. 0: no limit but the disk's.
	MaxSize int
	// AllowNetwork opens the file although it lies on a network file system. The operator then sees to it
	// that one machine at a time does.
	AllowNetwork bool
	// OpenFile opens the file; nil is os.OpenFile.
	OpenFile func(name string, flag int, perm os.FileMode) (*os.File, error)
}

// MinMaxSize is the smallest Options.MaxSize: the file grows in steps of half of it.
const MinMaxSize = 2 * allocSize

// allocSize is by how much bbolt makes the file larger at a time, its own default.
const allocSize = 16 << 20

const day = 24 * time.Hour

func (o Options) withDefaults() Options {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	setDefault(&o.LockTimeout, 2*time.Second)
	setDefault(&o.DedupeFor, 7*day)
	setDefault(&o.KeepFor, 30*day)
	setDefault(&o.ArchiveFor, 30*day)
	return o
}

func setDefault(d *time.Duration, v time.Duration) {
	if *d == 0 {
		*d = v
	}
}
