package boltstore

import (
	"bytes"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"botd/agent"
	"botd/sessionstore"
)

// FuzzDecode checks that no content of a record, however damaged, makes a decoder panic: it either is what
// was written or is told to be damaged.
func FuzzDecode(f *testing.F) {
	key := itemKey(1, itemClass, 1, 1)
	h := newHeader("s", time.Unix(1, 0))
	h.recent = appendBytes(nil, "t1")
	a := archive{generation: 1, next: 2, recent: h.recent, at: time.Unix(1, 0)}
	in := inboxRecord{session: "s", event: []byte(`{"id":"e"}`), reason: "r"}
	out := outboxRecord{state: stateWaiting, id: "d", session: "s", message: []byte(`{"id":"d"}`)}
	letter := deadLetter{reason: "r", inboxRecord: in}
	for _, rec := range [][]byte{
		encodeItem(key, sessionstore.Item{Turn: "t", Origin: "o", Raw: []byte(`{}`)}),
		h.encode(key), a.encode(key), in.encode(key), out.encode(key), letter.encode(key),
	} {
		f.Add(rec[sealLen:])
		f.Add(rec[sealLen : len(rec)/2])
	}
	f.Add([]byte{})
	f.Add(bytes.Repeat([]byte{0xff}, 40))
	f.Fuzz(func(t *testing.T, payload []byte) {
		rec := seal(key, append(newRecord(len(payload)), payload...))
		check := func(err error) {
			if err != nil && !errors.Is(err, ErrCorrupt) {
				t.Errorf("decoding %x = %v, want ErrCorrupt", payload, err)
			}
		}
		_, err := decodeItem(key, rec)
		check(err)
		h, err := decodeHeader(key, rec)
		check(err)
		if h.recent.has("t1") && h.recent.count() == 0 {
			t.Error("an empty list has a turn")
		}
		_, err = decodeArchive(key, rec)
		check(err)
		in, err := decodeInbox(key, rec)
		check(err)
		if err == nil {
			_, err = in.entry(1)
			check(err)
		}
		out, err := decodeOutbox(key, rec)
		check(err)
		if err == nil {
			_, err = out.delivery()
			check(err)
		}
		_, err = decodeDeadLetter(key, rec)
		check(err)
		_, _, err = decodeTomb(key, rec)
		check(err)
	})
}

// TestSeal checks that a record is refused when a bit of it, or its place, has changed.
func TestSeal(t *testing.T) {
	t.Parallel()
	key := itemKey(1, itemClass, 1, 1)
	rec := encodeItem(key, sessionstore.Item{Turn: "t", Raw: []byte(`{"a":1}`)})
	if _, err := unseal(key, rec); err != nil {
		t.Fatal(err)
	}
	for i := range rec {
		bad := bytes.Clone(rec)
		bad[i] ^= 0x10
		if _, err := unseal(key, bad); !errors.Is(err, ErrCorrupt) {
			t.Errorf("unseal with byte %d changed = %v, want ErrCorrupt", i, err)
		}
	}
	for n := range rec {
		if _, err := unseal(key, rec[:n]); !errors.Is(err, ErrCorrupt) {
			t.Errorf("unseal of %d bytes = %v, want ErrCorrupt", n, err)
		}
	}
	if _, err := unseal(itemKey(1, itemClass, 1, 2), rec); !errors.Is(err, ErrCorrupt) {
		t.Errorf("unseal in another place = %v, want ErrCorrupt", err)
	}
}

func TestHeaderRoundTrip(t *testing.T) {
	t.Parallel()
	want := header{
		id: "日本", generation: math.MaxUint64, revision: 1 << 40, epoch: 7, nextEpoch: math.MaxUint32, next: 3, items: 2,
		view: 5, through: 1, recent: appendBytes(appendBytes(nil, "t1"), "t2"),
		created: time.Unix(1, 2).UTC(), updated: time.Unix(0, math.MaxInt64).UTC(),
		usage: agent.Usage{Requests: 1, InputTokens: math.MaxInt, CachedTokens: 2, OutputTokens: 3, ReasoningTokens: 4, Estimated: true},
	}
	key := headerKey(9)
	got, err := decodeHeader(key, want.encode(key))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(header{})); diff != "" {
		t.Errorf("header differs (-want +got):\n%s", diff)
	}
}

// TestKeysSort checks that the keys of a session lie in the order that the layout counts on.
func TestKeysSort(t *testing.T) {
	t.Parallel()
	keys := [][]byte{
		turnKey(1, 1, "a"), turnKey(1, 1, "b"), turnKey(1, 2, "a"),
		itemKey(1, viewClass, 1, 1), itemKey(1, viewClass, 2, 1),
		itemKey(1, itemClass, 1, 1), itemKey(1, itemClass, 1, 255), itemKey(1, itemClass, 1, 256), itemKey(1, itemClass, 2, 1),
		itemKey(1, itemClass, math.MaxUint32, math.MaxUint64), headerKey(1),
		turnKey(2, 1, "a"), headerKey(2), turnKey(256, 1, "a"),
	}
	for i := 1; i < len(keys); i++ {
		if bytes.Compare(keys[i-1], keys[i]) >= 0 {
			t.Errorf("key %x does not come before %x", keys[i-1], keys[i])
		}
	}
}
