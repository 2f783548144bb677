package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"botd/sessionstore"
)

// Recording is a store that keeps records.
type Recording interface {
	sessionstore.Store
	sessionstore.Recorder
}

// Recorder checks the contract of sessionstore.Recorder.
func Recorder(t *testing.T, open func(t *testing.T) Recording) {
	runAll(t, open, []check[Recording]{
		{"WriteReadDelete", recordWritten},
		{"ValuesAreCopies", recordCopies},
		{"VersionsDecide", recordVersions},
		{"VersionsAreNeverUsedTwice", recordVersionsGrow},
		{"OneOfManyWins", recordRace},
		{"AllOrNone", recordAllOrNone},
		{"ListedInOrderByPage", recordsListed},
		{"NothingForNoLimit", recordsNothing},
		{"OverWhenItsTimeIs", recordOver},
		{"RefusesWhatIsInvalid", recordInvalid},
		{"SessionsAreApart", recordApart},
		{"CancelledAndClosed", recordClosed},
	})
}

func change(t *testing.T, s sessionstore.Recorder, changes ...sessionstore.RecordChange) {
	t.Helper()
	must(t, "ChangeRecords", s.ChangeRecords(t.Context(), changes...))
}

// setTo writes a record whatever it is.
func setTo(kind, key, value string) sessionstore.RecordChange {
	return sessionstore.RecordChange{Kind: kind, Key: key, Value: json.RawMessage(value), Version: sessionstore.AnyVersion}
}

func unset(kind, key string) sessionstore.RecordChange {
	return sessionstore.RecordChange{Kind: kind, Key: key, Version: sessionstore.AnyVersion}
}

func record(t *testing.T, s sessionstore.Recorder, kind, key string) sessionstore.Record {
	t.Helper()
	r, err := s.Record(t.Context(), kind, key)
	must(t, fmt.Sprintf("Record(%q, %q)", kind, key), err)
	return r
}

// wantRecord checks the value of a record, "" for one that must not exist.
func wantRecord(t *testing.T, s sessionstore.Recorder, kind, key, value string) {
	t.Helper()
	if value == "" {
		_, err := s.Record(t.Context(), kind, key)
		wantErr(t, fmt.Sprintf("Record(%q, %q)", kind, key), err, sessionstore.ErrNoRecord)
		return
	}
	if got := record(t, s, kind, key); string(got.Value) != value {
		t.Errorf("Record(%q, %q) holds %s, want %s", kind, key, got.Value, value)
	}
}

// recordKeys lists the keys of a kind, read page by page.
func recordKeys(t *testing.T, s sessionstore.Recorder, kind, prefix string, page int) (keys []string) {
	t.Helper()
	list := pages(t, "Records", page, func(r sessionstore.Record) string { return r.Key },
		func(ctx context.Context, after string, limit int) ([]sessionstore.Record, error) {
			return s.Records(ctx, kind, prefix, after, limit)
		})
	for _, r := range list {
		if r.Kind != kind {
			t.Errorf("Records of kind %q gives one of kind %q", kind, r.Kind)
		}
		keys = append(keys, r.Key)
	}
	return keys
}

func recordWritten(t *testing.T, s Recording) {
	wantRecord(t, s, "link", "a", "")
	before := time.Now().Add(-2 * time.Second)
	until := time.Now().Add(time.Hour).UTC().Truncate(time.Millisecond)
	change(t, s, sessionstore.RecordChange{Kind: "link", Key: "a", Value: json.RawMessage(` {"x": 1} `), Until: until})
	r := record(t, s, "link", "a")
	if r.Kind != "link" || r.Key != "a" || string(r.Value) != ` {"x": 1} ` || r.Version == 0 || r.At.Before(before) || !r.Until.Equal(until) {
		t.Errorf("Record() = %+v", r)
	}
	wantRecord(t, s, "link", "b", "")
	wantRecord(t, s, "lin", "ka", "")
	wantRecord(t, s, "block", "a", "")
	change(t, s, setTo("link", "a", `null`))
	if r := record(t, s, "link", "a"); string(r.Value) != `null` || !r.Until.IsZero() {
		t.Errorf("Record() after a second write = %+v", r)
	}
	change(t, s, unset("link", "a"))
	wantRecord(t, s, "link", "a", "")
	change(t, s, unset("link", "a"))
	change(t, s)
}

func recordCopies(t *testing.T, s Recording) {
	value := []byte(`"mine"`)
	change(t, s, sessionstore.RecordChange{Kind: "note", Key: "a", Value: value})
	copy(value, `"oops"`)
	wantRecord(t, s, "note", "a", `"mine"`)
	copy(record(t, s, "note", "a").Value, `"oops"`)
	wantRecord(t, s, "note", "a", `"mine"`)
	list, err := s.Records(t.Context(), "note", "", "", sessionstore.All)
	must(t, "Records", err)
	copy(list[0].Value, `"oops"`)
	wantRecord(t, s, "note", "a", `"mine"`)
}

func recordVersions(t *testing.T, s Recording) {
	ctx := t.Context()
	c := setTo("setting", "a", `1`)
	c.Version = 7
	wantErr(t, "changing what does not exist", s.ChangeRecords(ctx, c), sessionstore.ErrChanged)
	c.Version = 0
	change(t, s, c)
	wantErr(t, "making what exists", s.ChangeRecords(ctx, c), sessionstore.ErrChanged)
	first := record(t, s, "setting", "a").Version
	c.Version, c.Value = first, json.RawMessage(`2`)
	change(t, s, c)
	wantErr(t, "changing it again from the old version", s.ChangeRecords(ctx, c), sessionstore.ErrChanged)
	wantRecord(t, s, "setting", "a", `2`)
	c.Value = nil
	wantErr(t, "deleting the old version", s.ChangeRecords(ctx, c), sessionstore.ErrChanged)
	c.Version = record(t, s, "setting", "a").Version
	change(t, s, c)
	wantRecord(t, s, "setting", "a", "")
	c.Version = 0
	change(t, s, c) // it must not exist, and does not
}

func recordVersionsGrow(t *testing.T, s Recording) {
	seen := map[uint64]bool{}
	for range 5 {
		change(t, s, setTo("setting", "a", `1`))
		v := record(t, s, "setting", "a").Version
		if v == 0 || v == sessionstore.AnyVersion || seen[v] {
			t.Errorf("version %d, seen before: %t", v, seen[v])
		}
		seen[v] = true
	}
}

// recordRace lets many count in one record, each by reading it and writing it back.
func recordRace(t *testing.T, s Recording) {
	const callers, each = 8, 10
	change(t, s, setTo("count", "a", `0`))
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for done := 0; done < each; {
				r, err := s.Record(t.Context(), "count", "a")
				if err != nil {
					t.Errorf("Record() = %v, want nil", err)
					return
				}
				var n int
				if err := json.Unmarshal(r.Value, &n); err != nil {
					t.Errorf("the record holds %s", r.Value)
					return
				}
				c := sessionstore.RecordChange{Kind: "count", Key: "a", Value: json.RawMessage(fmt.Sprint(n + 1)), Version: r.Version}
				switch err := s.ChangeRecords(t.Context(), c); {
				case err == nil:
					done++
				case !errors.Is(err, sessionstore.ErrChanged):
					t.Errorf("ChangeRecords() = %v, want nil or ErrChanged", err)
					return
				}
			}
		})
	}
	all.Wait()
	wantRecord(t, s, "count", "a", fmt.Sprint(callers*each))
}

func recordAllOrNone(t *testing.T, s Recording) {
	change(t, s, setTo("link", "a", `"old"`), setTo("link", "b", `"old"`), setTo("block", "a", `"old"`))
	late := setTo("block", "a", `"new"`)
	late.Version = 0
	err := s.ChangeRecords(t.Context(), setTo("link", "a", `"new"`), unset("link", "b"), setTo("link", "c", `"new"`), late)
	wantErr(t, "ChangeRecords of which the last is late", err, sessionstore.ErrChanged)
	for _, key := range []string{"a", "b"} {
		wantRecord(t, s, "link", key, `"old"`)
	}
	wantRecord(t, s, "link", "c", "")
	change(t, s, setTo("link", "a", `"new"`), unset("link", "b"), setTo("link", "c", `"new"`), setTo("block", "a", `"new"`))
	wantRecord(t, s, "link", "a", `"new"`)
	wantRecord(t, s, "link", "b", "")
	wantRecord(t, s, "link", "c", `"new"`)
	wantRecord(t, s, "block", "a", `"new"`)
}

func recordsListed(t *testing.T, s Recording) {
	var want []string
	for i := range 60 {
		want = append(want, fmt.Sprintf("u/%02d", i))
	}
	for i := range want {
		change(t, s, setTo("link", want[(i*7)%len(want)], `1`))
	}
	other := []string{"A", "u", "u.", "u0", "v/1", "ライン", "\xff"}
	for _, key := range other {
		change(t, s, setTo("link", key, `1`))
	}
	change(t, s, setTo("lin", "ku/00", `1`), setTo("linku", "/00", `1`), setTo("aaa", "u/00", `1`))
	all := slices.Sorted(slices.Values(append(slices.Clone(want), other...)))
	for _, page := range []int{1, 7, 1000, sessionstore.All} {
		for prefix, want := range map[string][]string{"u/": want, "": all, "u/3": want[30:40], "x": nil, "\xff": {"\xff"}} {
			if diff := cmp.Diff(want, recordKeys(t, s, "link", prefix, page)); diff != "" {
				t.Errorf("keys with the prefix %q in pages of %d differ (-want +got):\n%s", prefix, page, diff)
			}
		}
	}
	for _, tt := range []struct {
		after string
		want  string
	}{{"", "u/00"}, {"a", "u/00"}, {"u/00", "u/01"}, {"u/000", "u/01"}, {"u/59", ""}, {"w", ""}} {
		list, err := s.Records(t.Context(), "link", "u/", tt.after, 1)
		must(t, "Records", err)
		switch {
		case len(list) == 0 && tt.want != "", len(list) == 1 && list[0].Key != tt.want:
			t.Errorf("Records after %q = %v, want %q", tt.after, list, tt.want)
		}
	}
	if got := recordKeys(t, s, "other", "", 10); got != nil {
		t.Errorf("records of a kind without any: %q", got)
	}
}

func recordsNothing(t *testing.T, s Recording) {
	change(t, s, setTo("link", "a", `1`))
	for _, limit := range []int{0, -1} {
		if list, err := s.Records(t.Context(), "link", "", "", limit); err != nil || len(list) != 0 {
			t.Errorf("Records with limit %d = %v, %v, want none", limit, list, err)
		}
	}
}

func recordOver(t *testing.T, s Recording) {
	past := setTo("pairing", "past", `1`)
	past.Until = time.Now().Add(-time.Second)
	later := setTo("pairing", "later", `1`)
	later.Until = time.Now().Add(time.Hour)
	change(t, s, past, later, setTo("pairing", "ever", `1`))
	wantRecord(t, s, "pairing", "past", "")
	wantRecord(t, s, "pairing", "later", `1`)
	if diff := cmp.Diff([]string{"ever", "later"}, recordKeys(t, s, "pairing", "", 1)); diff != "" {
		t.Errorf("keys differ (-want +got):\n%s", diff)
	}
	past.Until, past.Version, past.Value = time.Time{}, 0, json.RawMessage(`2`)
	change(t, s, past) // what is over does not exist, so it can be made
	wantRecord(t, s, "pairing", "past", `2`)
	later.Until = time.Now().Add(-time.Second)
	change(t, s, later) // ends what lived
	wantRecord(t, s, "pairing", "later", "")
	later.Until = time.Now().Add(time.Hour)
	change(t, s, later)
	wantRecord(t, s, "pairing", "later", `1`)
}

func recordInvalid(t *testing.T, s Recording) {
	long := strings.Repeat("k", sessionstore.MaxRecordKeyLen)
	change(t, s, setTo(long[:sessionstore.MaxRecordKindLen], long, `1`))
	wantRecord(t, s, long[:sessionstore.MaxRecordKindLen], long, `1`)
	whole := `"` + strings.Repeat("v", sessionstore.MaxRecordLen-2) + `"`
	change(t, s, setTo("k", "whole", whole))
	wantRecord(t, s, "k", "whole", whole)
	for _, tt := range []struct {
		name string
		last []sessionstore.RecordChange
		want error
	}{
		{"no kind", []sessionstore.RecordChange{setTo("", "a", `1`)}, sessionstore.ErrInvalidRecord},
		{"no key", []sessionstore.RecordChange{setTo("k", "", `1`)}, sessionstore.ErrInvalidRecord},
		{"long kind", []sessionstore.RecordChange{setTo(long[:sessionstore.MaxRecordKindLen+1], "a", `1`)}, sessionstore.ErrInvalidRecord},
		{"long key", []sessionstore.RecordChange{setTo("k", long+"k", `1`)}, sessionstore.ErrInvalidRecord},
		{"zero byte in the kind", []sessionstore.RecordChange{setTo("k\x00", "a", `1`)}, sessionstore.ErrInvalidRecord},
		{"zero byte in the key", []sessionstore.RecordChange{unset("k", "\x00")}, sessionstore.ErrInvalidRecord},
		{"no JSON", []sessionstore.RecordChange{setTo("k", "a", `{`)}, sessionstore.ErrInvalidRecord},
		{"empty value", []sessionstore.RecordChange{setTo("k", "a", ``)}, sessionstore.ErrInvalidRecord},
		{"twice", []sessionstore.RecordChange{setTo("k", "a", `1`), unset("k", "a")}, sessionstore.ErrInvalidRecord},
		{"long value", []sessionstore.RecordChange{setTo("k", "a", whole+" ")}, sessionstore.ErrTooLarge},
	} {
		err := s.ChangeRecords(t.Context(), append([]sessionstore.RecordChange{setTo("k", "good", `1`)}, tt.last...)...)
		wantErr(t, "ChangeRecords with "+tt.name, err, tt.want)
		wantRecord(t, s, "k", "good", "")
	}
	for _, name := range [][2]string{{"", ""}, {"k", ""}, {"", "k"}, {"k\x00", "good"}, {long, long + long}} {
		wantRecord(t, s, name[0], name[1], "")
	}
}

// recordApart checks that records are none of a session's and sessions none of theirs.
func recordApart(t *testing.T, s Recording) {
	ses := session{t, s, "a"}
	change(t, s, setTo("setting", "a", `1`))
	ses.wantEmpty()
	ses.append("t", hello)
	ses.clear()
	wantRecord(t, s, "setting", "a", `1`)
	change(t, s, unset("setting", "a"))
	ses.append("t2", world)
	ses.want(world)
}

func recordClosed(t *testing.T, s Recording) {
	change(t, s, setTo("k", "a", `1`))
	calls := map[string]func(ctx context.Context) error{
		"Record":        func(ctx context.Context) error { _, err := s.Record(ctx, "k", "a"); return err },
		"Records":       func(ctx context.Context) error { _, err := s.Records(ctx, "k", "", "", 1); return err },
		"ChangeRecords": func(ctx context.Context) error { return s.ChangeRecords(ctx, setTo("k", "a", `2`)) },
	}
	ended, end := context.WithCancel(t.Context())
	end()
	for name, call := range calls {
		wantErr(t, name+" with an ended context", call(ended), context.Canceled)
	}
	wantRecord(t, s, "k", "a", `1`)
	must(t, "Close", s.Close())
	for name, call := range calls {
		wantErr(t, name+" after Close", call(t.Context()), sessionstore.ErrClosed)
	}
}
