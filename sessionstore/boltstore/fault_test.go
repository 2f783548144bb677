package boltstore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"botd/channels"
	"botd/channels/dispatch"
	"botd/sessionstore"
)

// bulk is an item of about n bytes.
func bulk(n int) []sessionstore.Item {
	return []sessionstore.Item{{Raw: []byte(`{"x":"` + strings.Repeat("x", n) + `"}`)}}
}

// wantItems checks how many items a session holds.
func wantItems(t *testing.T, db *DB, id sessionstore.ID, want int) {
	t.Helper()
	items, err := db.Items(t.Context(), id, sessionstore.All)
	if err != nil || len(items) != want {
		t.Errorf("Items(%q) = %d items, %v, want %d", id, len(items), err, want)
	}
}

// TestFull checks that a full file refuses what does not fit, clearly, keeps what it has, and still takes
// what makes room.
func TestFull(t *testing.T) {
	t.Parallel()
	db := openTest(t, Options{MaxSize: MinMaxSize})
	ctx := t.Context()
	if err := db.Commit(ctx, dispatch.TurnResult{Session: "s", Replies: []dispatch.Delivery{{Message: channels.Outbound{ID: "d"}}}}); err != nil {
		t.Fatal(err)
	}
	written := fillUp(t, db)
	if err := db.Settle(ctx, "d", dispatch.Outcome{State: dispatch.Delivered}); err != nil {
		t.Errorf("Settle in a full file = %v, want nil", err)
	}
	if _, err := db.Pop(ctx, "big"); err != nil {
		t.Errorf("Pop in a full file = %v, want nil", err)
	}
	wantItems(t, db, "big", written-1)
	if err := db.Close(); err != nil {
		t.Errorf("Close() = %v, want nil", err)
	}
	db = openTest(t, Options{Path: db.opts.Path})
	if err := db.Append(ctx, "big", sessionstore.Batch{Items: bulk(1 << 20)}); err != nil {
		t.Errorf("Append without limit = %v, want nil", err)
	}
	wantItems(t, db, "big", written)
	if _, err := Open(Options{Path: db.opts.Path, MaxSize: MinMaxSize - 1}); err == nil {
		t.Error("Open() with a limit that is too small = nil, want an error")
	}
}

// fillUp appends until there is no room and returns how many items went in.
func fillUp(t *testing.T, db *DB) (written int) {
	t.Helper()
	for written < 1000 {
		err := db.Append(t.Context(), "big", sessionstore.Batch{Turn: fmt.Sprint(written), Items: bulk(256 << 10)})
		if err == nil {
			written++
			continue
		}
		if !errors.Is(err, ErrFull) || errors.Is(err, ErrFailed) || written == 0 {
			t.Fatalf("Append after %d = %v, want ErrFull", written, err)
		}
		if err := db.Err(); err != nil {
			t.Fatalf("Err() of a full store = %v, want nil", err)
		}
		wantItems(t, db, "big", written)
		return written
	}
	t.Fatal("the file never was full")
	return 0
}

// TestFullLetsFreeingThrough checks that what makes room is not refused together with what needs it.
func TestFullLetsFreeingThrough(t *testing.T) {
	t.Parallel()
	db := openTest(t, Options{MaxSize: MinMaxSize})
	ctx := t.Context()
	if err := db.Commit(ctx, dispatch.TurnResult{Session: "s", Replies: []dispatch.Delivery{{Message: channels.Outbound{ID: "d"}}}}); err != nil {
		t.Fatal(err)
	}
	open := gate(t, db)
	var wg sync.WaitGroup
	var bigErr, settleErr error
	wg.Go(func() {
		bigErr = db.Append(ctx, "big", sessionstore.Batch{Items: append(bulk(12<<20), bulk(12<<20)...)})
	})
	wg.Go(func() { settleErr = db.Settle(ctx, "d", dispatch.Outcome{State: dispatch.Delivered}) })
	open()
	wg.Wait()
	if !errors.Is(bigErr, ErrFull) {
		t.Errorf("Append of more than fits = %v, want ErrFull", bigErr)
	}
	if settleErr != nil {
		t.Errorf("Settle beside it = %v, want nil", settleErr)
	}
}

// TestDiskFails checks that an error of the disk in the middle of a commit ends writing with a clear
// error, leaves reading, and loses nothing that was acknowledged.
func TestDiskFails(t *testing.T) {
	t.Parallel()
	var file *os.File
	opts := Options{OpenFile: func(name string, flag int, perm os.FileMode) (f *os.File, err error) {
		file, err = os.OpenFile(name, flag, perm)
		return file, err
	}}
	db := openTest(t, opts)
	ctx := t.Context()
	for n := range 5 {
		if err := db.Append(ctx, "s", sessionstore.Batch{Turn: fmt.Sprint(n), Items: bulk(10)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := file.Close(); err != nil { // from now on every write fails
		t.Fatal(err)
	}
	for range 3 {
		err := db.Append(ctx, "s", sessionstore.Batch{Turn: "lost", Items: bulk(10)})
		if !errors.Is(err, ErrFailed) {
			t.Fatalf("Append with a failing disk = %v, want ErrFailed", err)
		}
	}
	if !errors.Is(db.Err(), ErrFailed) {
		t.Errorf("Err() = %v, want ErrFailed", db.Err())
	}
	wantItems(t, db, "s", 5)
	if err := db.Close(); err == nil {
		t.Error("Close() of a store that failed = nil, want an error")
	}
	db = openTest(t, Options{Path: db.opts.Path})
	wantItems(t, db, "s", 5)
	if !db.Crashed() {
		t.Error("Crashed() after a failure = false, want true")
	}
}

// damage changes the record under a key.
func damage(t *testing.T, db *DB, b bucket, pick func(c *bolt.Cursor) (key, rec []byte)) {
	t.Helper()
	err := db.bolt.Update(func(tx *bolt.Tx) error {
		key, rec := pick(tx.Bucket([]byte(b.String())).Cursor())
		bad := bytes.Clone(rec)
		bad[len(bad)-2] ^= 1
		return tx.Bucket([]byte(b.String())).Put(bytes.Clone(key), bad)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// item picks an item of the only session by its sequence number.
func item(seq uint64) func(c *bolt.Cursor) (key, rec []byte) {
	return func(c *bolt.Cursor) ([]byte, []byte) { return c.Seek(itemKey(1, itemClass, 1, seq)) }
}

// TestDamagedItems checks that a damaged item hides no other.
func TestDamagedItems(t *testing.T) {
	t.Parallel()
	db := openDamageable(t, Options{})
	ctx := t.Context()
	for n := 1; n <= 6; n++ {
		raw := fmt.Appendf(nil, `{"n":%d}`, n)
		if err := db.Append(ctx, "s", sessionstore.Batch{Turn: fmt.Sprint(n), Items: []sessionstore.Item{{Raw: raw}}}); err != nil {
			t.Fatal(err)
		}
	}
	for _, seq := range []uint64{2, 5, 6} {
		damage(t, db, sesBucket, item(seq))
	}
	items, err := db.Items(ctx, "s", 3)
	if err != nil || len(items) != 3 || items[0].Seq != 1 || items[2].Seq != 4 {
		t.Fatalf("Items(3) = %v, %v, want the three that are good", items, err)
	}
	it, err := db.Pop(ctx, "s")
	if err != nil || it.Seq != 4 {
		t.Fatalf("Pop = item %d, %v, want item 4", it.Seq, err)
	}
	damage(t, db, sesBucket, item(1))
	damage(t, db, sesBucket, item(3))
	if _, err := db.Pop(ctx, "s"); !errors.Is(err, sessionstore.ErrEmpty) {
		t.Errorf("Pop with nothing good left = %v, want ErrEmpty", err)
	}
	var left int
	_ = db.view(ctx, func(tx *readTx) error {
		for range backwards(tx.bucket(sesBucket).Cursor(), 1, itemClass, 1, 0) {
			left++
		}
		return nil
	})
	if left != 3 {
		t.Errorf("%d damaged items are left, want all 3: an operator may want to look at them", left)
	}
}

// TestDamagedEntry checks that a damaged entry of the inbox or the outbox is told and passed over.
func TestDamagedEntry(t *testing.T) {
	t.Parallel()
	db := openDamageable(t, Options{})
	ctx := t.Context()
	var events []dispatch.Routed
	var replies []dispatch.Delivery
	for n := range 3 {
		events = append(events, dispatch.Routed{Session: "s", Event: channels.Inbound{ID: fmt.Sprint(n)}})
		replies = append(replies, dispatch.Delivery{Message: channels.Outbound{ID: fmt.Sprint(n)}})
	}
	if _, err := db.Put(ctx, events); err != nil {
		t.Fatal(err)
	}
	if err := db.Commit(ctx, dispatch.TurnResult{Session: "s", Replies: replies}); err != nil {
		t.Fatal(err)
	}
	second := func(c *bolt.Cursor) ([]byte, []byte) { return c.Seek(u64(2)) }
	damage(t, db, inbBucket, second)
	damage(t, db, outBucket, second)
	good, bad := 0, 0
	count := func(err error) {
		if errors.Is(err, ErrCorrupt) {
			bad++
		} else if err == nil {
			good++
		}
	}
	for _, err := range db.Pending(ctx) {
		count(err)
	}
	for _, err := range db.Due(ctx, time.Now()) {
		count(err)
	}
	if good != 4 || bad != 2 {
		t.Errorf("%d entries are good and %d bad, want 4 and 2", good, bad)
	}
}

// TestOpenDamagedFile checks that a file that is not what it should be is refused and left alone.
func TestOpenDamagedFile(t *testing.T) {
	t.Parallel()
	good := filepath.Join(t.TempDir(), "good.db")
	db := openTest(t, Options{Path: good})
	for n := range 50 {
		if err := db.Append(t.Context(), "s", sessionstore.Batch{Turn: fmt.Sprint(n), Items: bulk(500)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	page := os.Getpagesize()
	for name, make := range map[string]func() []byte{
		"noise":       func() []byte { return bytes.Repeat([]byte("not a database "), 1000) },
		"one byte":    func() []byte { return []byte{0} },
		"no metas":    func() []byte { b := bytes.Clone(content); clear(b[:2*page]); return b },
		"other bolt":  func() []byte { return otherBolt(t) },
		"wiped pages": func() []byte { b := bytes.Clone(content); clear(b[2*page:]); return b },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "botd.db")
			bad := make()
			if err := os.WriteFile(path, bad, 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := Open(Options{Path: path}); !errors.Is(err, ErrCorrupt) {
				t.Errorf("Open() = %v, want ErrCorrupt", err)
			}
			after, err := os.ReadFile(path)
			if err != nil || !bytes.Equal(bad, after) {
				t.Errorf("the file was changed, %v", err)
			}
		})
	}
}

// otherBolt is the content of a bbolt file of another program.
func otherBolt(t *testing.T) []byte {
	path := filepath.Join(t.TempDir(), "other.db")
	b, err := bolt.Open(path, 0o600, nil)
	if err == nil {
		err = errors.Join(b.Update(func(tx *bolt.Tx) error { _, err := tx.CreateBucket([]byte("x")); return err }), b.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// TestOpenNewerSchema checks that a file of a later version is refused and left alone.
func TestOpenNewerSchema(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "botd.db")
	db := openDamageable(t, Options{Path: path})
	err := db.write(t.Context(), 0, func(tx *writeTx) error {
		return tx.put(sysBucket, schemaKey, binary.BigEndian.AppendUint32(nil, schema+1))
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(Options{Path: path}); !errors.Is(err, ErrSchema) {
		t.Errorf("Open() = %v, want ErrSchema", err)
	}
}

// TestOpenEmptyFile checks that a file of no bytes, as a crash may leave it, is taken for no file.
func TestOpenEmptyFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "botd.db")
	for _, name := range []string{path, path + ".new"} {
		if err := os.WriteFile(name, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	db := openTest(t, Options{Path: path})
	wantItems(t, db, "s", 0)
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode of the file = %v, %v, want 0600", info.Mode(), err)
	}
}

// TestOpenLocked checks that a second opening is refused soon, and told by whom.
func TestOpenLocked(t *testing.T) {
	t.Parallel()
	db := openTest(t, Options{})
	began := time.Now()
	_, err := Open(Options{Path: db.opts.Path, LockTimeout: 50 * time.Millisecond})
	if !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), fmt.Sprint("process ", os.Getpid(), " since ")) {
		t.Errorf("second Open() = %v, want ErrLocked by process %d", err, os.Getpid())
	}
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("second Open() took %v", took)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	db = openTest(t, Options{Path: db.opts.Path, LockTimeout: 50 * time.Millisecond})
	if db.Crashed() {
		t.Error("Crashed() after Close = true, want false")
	}
}

// TestOpenWaitsForRelease checks that Open waits for a holder that is about to leave.
func TestOpenWaitsForRelease(t *testing.T) {
	t.Parallel()
	db := openTest(t, Options{})
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := db.Close(); err != nil {
			t.Errorf("Close() = %v, want nil", err)
		}
	})
	openTest(t, Options{Path: db.opts.Path, LockTimeout: 10 * time.Second})
	wg.Wait()
}

func TestOpenNowhere(t *testing.T) {
	t.Parallel()
	if _, err := Open(Options{Path: filepath.Join(t.TempDir(), "missing", "botd.db")}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Open() in a folder that does not exist = %v, want ErrNotExist", err)
	}
}
