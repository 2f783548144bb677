package boltstore

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"botd/channels"
	"botd/channels/dispatch"
	"botd/sessionstore"
	"botd/sessionstore/memstore"
	"botd/sessionstore/storetest"
)

var (
	testKey  = bytes.Repeat([]byte{0x4b}, KeyLen)
	otherKey = bytes.Repeat([]byte{0x4c}, KeyLen)
)

// TestEncrypted runs every suite over encrypted files.
func TestEncrypted(t *testing.T) {
	t.Parallel()
	encrypted := func(t *testing.T) *DB { return openTest(t, Options{Key: testKey}) }
	for name, suite := range map[string]func(*testing.T){
		"Store":   func(t *testing.T) { storetest.Store(t, func(t *testing.T) sessionstore.Store { return encrypted(t) }) },
		"Lister":  func(t *testing.T) { storetest.Lister(t, func(t *testing.T) storetest.Listing { return encrypted(t) }) },
		"Journal": func(t *testing.T) { storetest.Journal(t, func(t *testing.T) storetest.Both { return encrypted(t) }) },
		"Durable": func(t *testing.T) {
			storetest.Durable(t, func(t *testing.T, path string) storetest.Both {
				return openTest(t, Options{Path: path, Key: testKey})
			})
		},
		"Expiry": func(t *testing.T) {
			storetest.Expiry(t, func(t *testing.T, dedupeFor time.Duration) storetest.Both {
				return openTest(t, Options{DedupeFor: dedupeFor, Key: testKey})
			})
		},
		"Archiver": func(t *testing.T) {
			storetest.Archiver(t, func(t *testing.T, archiveFor time.Duration) storetest.Archiving {
				return openTest(t, Options{ArchiveFor: archiveFor, Key: testKey})
			})
		},
		"Eraser": func(t *testing.T) { storetest.Eraser(t, func(t *testing.T) storetest.Erasing { return encrypted(t) }) },
		"Rewriter": func(t *testing.T) {
			storetest.Rewriter(t, func(t *testing.T) storetest.Rewriting { return encrypted(t) })
		},
		"Inspector": func(t *testing.T) {
			storetest.Inspector(t, func(t *testing.T) storetest.Inspecting { return encrypted(t) })
		},
		"Model": testEncryptedModel,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			suite(t)
		})
	}
}

func testEncryptedModel(t *testing.T) {
	dir, rounds := t.TempDir(), 0
	open := func(path string) storetest.Modelled {
		return unsynced(mustOpen(t, Options{Path: path, Key: testKey}))
	}
	storetest.Model(t,
		func() storetest.Modelled { return memstore.New() },
		func() storetest.Modelled {
			rounds++
			return open(filepath.Join(dir, fmt.Sprint(rounds, ".db")))
		},
		func(s storetest.Modelled) storetest.Modelled {
			must(t, s.Close())
			return open(s.(*DB).opts.Path)
		},
		func(s storetest.Modelled) {
			must(t, s.(*DB).Verify(t.Context()))
			must(t, s.Close())
			must(t, os.Remove(s.(*DB).opts.Path))
		})
}

// fillEverywhere leaves a word in everything that a store keeps of a session.
func fillEverywhere(t *testing.T, db *DB, id sessionstore.ID, word string) {
	t.Helper()
	ctx := t.Context()
	for n := range 20 {
		say(t, db, id, fmt.Sprint("t", n), word)
		if n == 9 {
			must(t, db.Clear(ctx, id))
		}
	}
	say(t, db, id, "big", strings.Repeat(word, 10_000))
	revision, err := db.Revision(ctx, id)
	must(t, err)
	must(t, db.Rewrite(ctx, id, sessionstore.Rewrite{Revision: revision, Through: 3, Items: []sessionstore.Item{{Raw: []byte(`{"summary":"` + word + `"}`)}}}))
	must(t, db.Fork(ctx, id, id+"-fork", 5))
	for n, dead := range []string{"", "", "", "of " + word, ""} {
		event := channels.Inbound{ID: fmt.Sprint("e", n), Parts: []channels.Part{{Type: channels.Text, Text: word}}}
		entries, err := db.Put(ctx, []dispatch.Routed{{Session: id, Event: event}})
		must(t, err)
		must(t, db.Fail(ctx, []uint64{entries[0].Seq}, "failed at "+word))
		if n == 0 {
			continue // pending
		}
		generation, err := db.Generation(ctx, id)
		must(t, err)
		name := fmt.Sprint("d", n)
		must(t, db.Commit(ctx, dispatch.TurnResult{
			Session: id, Turn: name, Generation: generation, Consumed: []uint64{entries[0].Seq}, Dead: dead,
			Replies: []dispatch.Delivery{{Message: channels.Outbound{ID: name, Parts: event.Parts}}},
		}))
		if state := []dispatch.State{"", "", dispatch.Dead, dispatch.Held, dispatch.Unknown}[n]; state != "" {
			must(t, db.Settle(ctx, name, dispatch.Outcome{State: state, Reason: "because of " + word}))
		}
	}
}

// TestEncryptedFileHidesText looks for what was said in the raw files, and for the session's ID, which is
// not hidden, after it was erased.
func TestEncryptedFileHidesText(t *testing.T) {
	t.Parallel()
	const word = "SECRET-WORD"
	dir := t.TempDir()
	db := openTest(t, Options{Path: filepath.Join(dir, "botd.db"), Key: testKey})
	fillEverywhere(t, db, "session-name", word)
	var backup bytes.Buffer
	must(t, db.Backup(t.Context(), &backup))
	if bytes.Contains(backup.Bytes(), []byte(word)) {
		t.Error("the word is in the backup")
	}
	if n := occurrences(t, dir, word); n != 0 {
		t.Errorf("the word is in the file %d times", n)
	}
	if occurrences(t, dir, "session-name") == 0 {
		t.Error("session IDs are hidden, which the documentation denies")
	}
	must(t, db.Compact(t.Context()))
	must(t, db.Erase(t.Context(), "session-name"))
	must(t, db.Erase(t.Context(), "session-name-fork"))
	for _, left := range []string{word, "session-name"} {
		if n := occurrences(t, dir, left); n != 0 {
			t.Errorf("%s is left in the file %d times", left, n)
		}
	}
	must(t, db.view(t.Context(), func(tx *readTx) error {
		if n := tx.bucket(dekBucket).Stats().KeyN; n != 0 {
			t.Errorf("%d keys are left", n)
		}
		return nil
	}))
}

// TestPlainFileShowsText proves that the search of TestEncryptedFileHidesText would find something.
func TestPlainFileShowsText(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := openTest(t, Options{Path: filepath.Join(dir, "botd.db")})
	fillEverywhere(t, db, "s", "SECRET-WORD")
	if n := occurrences(t, dir, "SECRET-WORD"); n < 10_000 {
		t.Errorf("the word is in the file %d times, want more", n)
	}
}

func TestWrongKey(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name         string
		made, opened []byte
		want         string
	}{
		{"another key", testKey, otherKey, "another key"},
		{"no key", testKey, nil, "no key is given"},
		{"a key for a plain file", nil, testKey, "not encrypted"},
		{"a key that is too short", testKey, testKey[:16], "32 bytes"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "botd.db")
			db := mustOpen(t, Options{Path: path, Key: test.made})
			say(t, db, "s", "t", "hello")
			must(t, db.Close())
			before, err := os.ReadFile(path)
			must(t, err)

			_, err = Open(Options{Path: path, Key: test.opened})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("Open() = %v, want an error with %q", err, test.want)
			}
			if len(test.opened) != 16 && !errors.Is(err, ErrKey) {
				t.Errorf("Open() = %v, want ErrKey", err)
			}
			after, err := os.ReadFile(path)
			must(t, err)
			if !bytes.Equal(before, after) {
				t.Error("the refused file was changed")
			}
			wantItems(t, openTest(t, Options{Path: path, Key: test.made}), "s", 1)
		})
	}
}

func TestRekey(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "botd.db")
	db := openTest(t, Options{Path: path, Key: testKey})
	for n := range 300 {
		say(t, db, sessionstore.ID(fmt.Sprint("s", n)), "t", "hello")
	}
	wrapped := wrappings(t, db)
	must(t, db.Rekey(t.Context(), otherKey))
	say(t, db, "s0", "t2", "after")
	wantItems(t, db, "s0", 2)
	must(t, db.Close())
	raw, err := os.ReadFile(path)
	must(t, err)
	for _, w := range wrapped {
		if bytes.Contains(raw, w) {
			t.Fatal("a session key wrapped with the old key is left in the file")
		}
	}
	if _, err := Open(Options{Path: path, Key: testKey}); !errors.Is(err, ErrKey) {
		t.Errorf("Open() with the old key = %v, want ErrKey", err)
	}
	again := openTest(t, Options{Path: path, Key: otherKey})
	wantItems(t, again, "s0", 2)
	wantItems(t, again, "s299", 1)
	if err := again.Rekey(t.Context(), otherKey[:5]); err == nil {
		t.Error("Rekey() with a short key = nil, want an error")
	}
	plain := openTest(t, Options{})
	if err := plain.Rekey(t.Context(), testKey); !errors.Is(err, ErrKey) {
		t.Errorf("Rekey() of a plain file = %v, want ErrKey", err)
	}
}

// wrappings returns all session keys as they are stored.
func wrappings(t *testing.T, db *DB) (list [][]byte) {
	t.Helper()
	must(t, db.view(t.Context(), func(tx *readTx) error {
		return tx.bucket(dekBucket).ForEach(func(number, rec []byte) error {
			k, err := decodeSessionKey(number, rec)
			list = append(list, bytes.Clone(k.wrapped))
			return err
		})
	}))
	return list
}

// TestSwappedRecords puts sealed records in each other's place: none is taken for the other.
func TestSwappedRecords(t *testing.T) {
	t.Parallel()
	db := openDamageable(t, Options{Key: testKey})
	say(t, db, "a", "t1", "one")
	say(t, db, "a", "t2", "two")
	say(t, db, "a", "t3", "three")
	say(t, db, "b", "t1", "other")
	must(t, db.bolt.Update(func(tx *bolt.Tx) error {
		ses := tx.Bucket([]byte("ses"))
		one, two, other := itemKey(1, itemClass, 1, 1), itemKey(1, itemClass, 1, 2), itemKey(2, itemClass, 1, 1)
		first, second := bytes.Clone(ses.Get(one)), bytes.Clone(ses.Get(two))
		return errors.Join(ses.Put(one, second), ses.Put(two, first), ses.Put(other, first))
	}))
	wantItems(t, db, "a", 1)
	wantItems(t, db, "b", 0)
	if err := db.Verify(t.Context()); !errors.Is(err, ErrCorrupt) {
		t.Errorf("Verify() = %v, want ErrCorrupt", err)
	}
}

// TestPlainRecordInEncryptedFile writes a record past the encryption: it is not believed.
func TestPlainRecordInEncryptedFile(t *testing.T) {
	t.Parallel()
	db := openDamageable(t, Options{Key: testKey})
	say(t, db, "a", "t1", "one")
	must(t, db.bolt.Update(func(tx *bolt.Tx) error {
		key := itemKey(1, itemClass, 1, 1)
		return tx.Bucket([]byte("ses")).Put(key, encodeItem(key, sessionstore.Item{Raw: []byte(`{"role":"user","content":"forged"}`)}))
	}))
	wantItems(t, db, "a", 0)
}

// TestEraseKeepsWhatComesLater erases a session whose next event arrives meanwhile: the event is encrypted
// with a key that is not erased.
func TestEraseKeepsWhatComesLater(t *testing.T) {
	t.Parallel()
	db := openTest(t, Options{Key: testKey})
	say(t, db, "a", "t1", "one")
	must(t, db.write(t.Context(), 0, func(tx *writeTx) error { return tx.forget("a") }))
	say(t, db, "a", "t2", "two")
	must(t, db.eraseKeysOf(t.Context(), "a"))
	wantItems(t, db, "a", 1)
	must(t, db.sweep(t.Context()))
}

func TestParseKey(t *testing.T) {
	t.Parallel()
	for _, good := range []string{
		hex.EncodeToString(testKey), strings.ToUpper(hex.EncodeToString(testKey)) + "\n",
		base64.StdEncoding.EncodeToString(testKey), " " + base64.RawURLEncoding.EncodeToString(testKey),
	} {
		if key, err := ParseKey(good); err != nil || !bytes.Equal(key, testKey) {
			t.Errorf("ParseKey(%q) = %x, %v", good, key, err)
		}
	}
	for _, bad := range []string{"", "secret", hex.EncodeToString(testKey[:16]), hex.EncodeToString(testKey) + "00"} {
		if key, err := ParseKey(bad); err == nil || key != nil || bad != "" && strings.Contains(err.Error(), bad) {
			t.Errorf("ParseKey(%q) = %x, %v", bad, key, err)
		}
	}
}

// TestFrozenEncryptedFile opens an encrypted file written by the first version that could. Like the other
// frozen files it is never changed.
func TestFrozenEncryptedFile(t *testing.T) {
	t.Parallel()
	frozen := filepath.Join("testdata", "schema1-encrypted.db")
	path := filepath.Join(t.TempDir(), "botd.db")
	if *update {
		db := openTest(t, Options{Path: path, Key: testKey})
		say(t, db, "plain", "t1", "hello")
		_, err := db.Put(t.Context(), []dispatch.Routed{{Session: "plain", Event: channels.Inbound{ID: "pending"}}})
		must(t, err)
		must(t, db.Commit(t.Context(), dispatch.TurnResult{Session: "plain", Turn: "x", Replies: []dispatch.Delivery{{Message: channels.Outbound{ID: "waiting"}}}}))
		must(t, db.Compact(t.Context()))
		must(t, db.Close())
		trimFile(t, path, frozen)
	}
	content, err := os.ReadFile(frozen)
	must(t, err)
	must(t, os.WriteFile(path, content, 0o600))
	db := openTest(t, Options{Path: path, Key: testKey})
	wantItems(t, db, "plain", 1)
	st, err := db.Stats(t.Context())
	if err != nil || st.Pending != 1 || st.Waiting != 1 {
		t.Errorf("Stats = %+v, %v, want one pending and one waiting", st, err)
	}
	for e, err := range db.Pending(t.Context()) {
		if err != nil || e.Event.ID != "pending" {
			t.Errorf("pending entry = %+v, %v", e, err)
		}
	}
	for d, err := range db.Due(t.Context(), time.Now()) {
		if err != nil || d.Message.ID != "waiting" {
			t.Errorf("due delivery = %+v, %v", d, err)
		}
	}
}

// trimFile copies a file without the room that it grew by and does not use yet.
func trimFile(t *testing.T, from, to string) {
	t.Helper()
	content, err := os.ReadFile(from)
	must(t, err)
	page := os.Getpagesize()
	pages := (len(bytes.TrimRight(content, "\x00")) + page - 1) / page
	must(t, os.WriteFile(to, content[:pages*page], 0o644))
}
