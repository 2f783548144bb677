package boltstore

import (
	"crypto/cipher"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math/bits"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

// schema is the version of the layout described in the package comment.
const schema = 1

// encryptedFlag is added to the schema of an encrypted file, so that a version which knows no encryption
// refuses it.
const encryptedFlag = 1 << 31

// bucketsOf returns the names of the buckets that a file has.
func bucketsOf(master cipher.AEAD) []string {
	if master == nil {
		return bucketNames[:plainBuckets]
	}
	return bucketNames[:]
}

var (
	schemaKey = []byte("schema")
	cleanKey  = []byte("clean")
)

// Open opens the file at opts.Path, making it when it does not exist. Errors: ErrLocked, ErrNetwork,
// ErrSchema, ErrCorrupt, or what the operating system says.
func Open(opts Options) (*DB, error) {
	opts = opts.withDefaults()
	if opts.MaxSize != 0 && opts.MaxSize < MinMaxSize {
		return nil, fmt.Errorf("open %s: MaxSize is %d, want 0 or at least %d", opts.Path, opts.MaxSize, MinMaxSize)
	}
	if !opts.AllowNetwork {
		if err := onNetwork(opts.Path); err != nil {
			return nil, fmt.Errorf("open %s: %w", opts.Path, err)
		}
	}
	lock, err := acquire(opts.Path+".lock", opts.LockTimeout)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", opts.Path, err)
	}
	db, err := open(opts)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", opts.Path, errors.Join(err, lock.release()))
	}
	db.lock = lock
	return db, nil
}

// Endings of the files that are made beside the file and that a crash may leave there.
const (
	newSuffix     = ".new"
	compactSuffix = ".compact"
	backupSuffix  = ".backup-" // and a number
)

// removeLeftovers deletes what a crash left of copies: nothing else would, and they hold conversations.
func removeLeftovers(path string) error {
	names, err := filepath.Glob(globQuote(path) + backupSuffix + "*")
	if err != nil {
		return err
	}
	for _, name := range append(names, path+newSuffix, path+compactSuffix) {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// globQuote makes a path stand for itself in a pattern.
func globQuote(path string) string {
	if runtime.GOOS == "windows" {
		return strings.NewReplacer("[", "[[]", "*", "[*]", "?", "[?]").Replace(path)
	}
	return strings.NewReplacer("\\", "\\\\", "[", "\\[", "*", "\\*", "?", "\\?").Replace(path)
}

func open(opts Options) (*DB, error) {
	var master cipher.AEAD
	if opts.Key != nil {
		var err error
		if master, err = newAEAD(opts.Key); err != nil {
			return nil, err
		}
		opts.Key = nil
	}
	if err := removeLeftovers(opts.Path); err != nil {
		return nil, err
	}
	if err := create(opts, master); err != nil {
		return nil, err
	}
	warm(opts)
	b, err := openBolt(opts, opts.Path)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(opts.Path)
	if err != nil {
		return nil, errors.Join(err, b.Close())
	}
	db := &DB{opts: opts, bolt: b, info: info, master: master}
	db.writer = newWriter(db.commit)
	if err := db.start(); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return db, nil
}

// openBolt opens a file that exists. Without the list of free pages in the file, commits stay small
// whatever was deleted, and a full disk does not forbid to delete; in return, opening after a crash has
// to look for the free pages.
func openBolt(opts Options, path string) (b *bolt.DB, err error) {
	defer recovered(&err, ErrCorrupt)
	b, err = bolt.Open(path, 0o600, &bolt.Options{
		Timeout:         opts.LockTimeout,
		NoFreelistSync:  true,
		FreelistType:    bolt.FreelistMapType,
		InitialMmapSize: initialMmapSize(),
		MaxSize:         opts.MaxSize,
		OpenFile:        opts.OpenFile,
	})
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		err = fmt.Errorf("%w by a program that does not use the lock file", ErrLocked)
	case errors.Is(err, bolterrors.ErrInvalid), errors.Is(err, bolterrors.ErrChecksum), errors.Is(err, bolterrors.ErrVersionMismatch):
		err = fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	if err == nil {
		b.AllocSize = allocSize
	}
	return b, err
}

// initialMmapSize is how much address space to map from the start, so that readers do not make the
// writer wait for a larger mapping. On Windows the file itself would grow to that size, and on 32-bit
// systems address space is scarce.
func initialMmapSize() int {
	if runtime.GOOS == "windows" || bits.UintSize < 64 {
		return 0
	}
	return 1 << 30
}

// create makes the file when it does not exist or is empty. It is written under another name and renamed
// when complete, so that a crash leaves either no file or a good one.
func create(opts Options, master cipher.AEAD) error {
	if info, err := os.Stat(opts.Path); err == nil && info.Size() > 0 {
		return nil
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	tmp := opts.Path + newSuffix
	b, err := bolt.Open(tmp, 0o600, &bolt.Options{Timeout: opts.LockTimeout, OpenFile: opts.OpenFile})
	if err != nil {
		return err
	}
	err = b.Update(func(tx *bolt.Tx) error {
		for _, name := range bucketsOf(master) {
			if _, err := tx.CreateBucket([]byte(name)); err != nil {
				return err
			}
		}
		sys := tx.Bucket([]byte(sysBucket.String()))
		version := uint32(schema)
		if master != nil {
			version |= encryptedFlag
			if err := sys.Put(kcvKey, newKeyCheck(master)); err != nil {
				return err
			}
		}
		if err := sys.Put(schemaKey, binary.BigEndian.AppendUint32(nil, version)); err != nil {
			return err
		}
		return sys.Put(cleanKey, cleanMark())
	})
	if err = errors.Join(err, b.Close()); err != nil {
		return errors.Join(err, os.Remove(tmp))
	}
	return replace(tmp, opts.Path)
}

// replace renames a complete file into its place, durably.
func replace(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return err
	}
	return syncDir(filepath.Dir(to))
}

// syncDir makes the names in a folder durable. Windows has no such call and needs none.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// start checks what the file is, takes the mark of a clean end away and fills the index of the outbox.
func (db *DB) start() (err error) {
	defer recovered(&err, ErrCorrupt)
	if err := checkSchema(db.bolt, db.master); err != nil {
		return err
	}
	err = db.bolt.Update(func(tx *bolt.Tx) error {
		if err := completeBuckets(tx, db.master); err != nil {
			return err
		}
		if tx.Bucket(scrubName) != nil { // a crash cut Erase short
			if err := tx.DeleteBucket(scrubName); err != nil {
				return err
			}
		}
		sys := tx.Bucket([]byte(sysBucket.String()))
		db.crashed = sys.Get(cleanKey) == nil
		return sys.Delete(cleanKey)
	})
	if err != nil {
		return err
	}
	if db.crashed {
		db.opts.Logger.Warn("the file was not closed when it was last used; what was acknowledged is there", "path", db.opts.Path)
	}
	return db.bolt.View(func(tx *bolt.Tx) error { return db.outbox.load(&readTx{bolt: tx, master: db.master}) })
}

// completeBuckets makes the buckets that the file is too old to have.
func completeBuckets(tx *bolt.Tx, master cipher.AEAD) error {
	for _, name := range bucketNames[firstBuckets:plainBuckets] {
		if _, err := tx.CreateBucketIfNotExists([]byte(name)); err != nil {
			return fmt.Errorf("make bucket %s: %w", name, err)
		}
	}
	for _, name := range bucketsOf(master) {
		if tx.Bucket([]byte(name)) == nil {
			return fmt.Errorf("%w: bucket %s is missing", ErrCorrupt, name)
		}
	}
	return nil
}

// checkSchema refuses files that this version does not know or that the master key does not open.
func checkSchema(b *bolt.DB, master cipher.AEAD) error {
	return b.View(func(tx *bolt.Tx) error {
		sys := tx.Bucket([]byte(sysBucket.String()))
		if sys == nil {
			return fmt.Errorf("%w: not a file of this program", ErrCorrupt)
		}
		v := sys.Get(schemaKey)
		if len(v) != 4 {
			return fmt.Errorf("%w: no schema version", ErrCorrupt)
		}
		version := binary.BigEndian.Uint32(v)
		if got := version &^ encryptedFlag; got > schema {
			return fmt.Errorf("%w: schema %d, this version knows up to %d; update the program or restore a backup", ErrSchema, got, schema)
		}
		return checkKey(sys, version&encryptedFlag != 0, master)
	})
}

// markClean leaves the list of free pages in the file, which makes the next opening quick, and notes
// that nothing was interrupted.
func markClean(b *bolt.DB) (err error) {
	defer recovered(&err, ErrCorrupt)
	b.NoFreelistSync = false
	return b.Update(func(tx *bolt.Tx) error {
		return tx.Bucket([]byte(sysBucket.String())).Put(cleanKey, cleanMark())
	})
}

// cleanMark says when and by whom, for whoever looks into the file.
func cleanMark() []byte {
	return fmt.Appendf(nil, "%s pid %d", time.Now().UTC().Format(time.RFC3339), os.Getpid())
}
