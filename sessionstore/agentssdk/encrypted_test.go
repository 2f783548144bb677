package agentssdk_test

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"botd/sessionstore"
	"botd/sessionstore/agentssdk"
)

// vector is one line of what the SDK's own key derivation and cipher gave.
type vector struct {
	Key       string          `json:"encryption_key"`
	Session   sessionstore.ID `json:"session_id"`
	Plain     string          `json:"plaintext"`
	Timestamp int64           `json:"timestamp"`
	Envelope  json.RawMessage `json:"envelope"`
}

func vectors(t testing.TB) []vector {
	t.Helper()
	data, err := os.ReadFile(testdata("encrypted_vectors.json"))
	if err != nil {
		t.Fatal(err)
	}
	var vs []vector
	if err := json.Unmarshal(data, &vs); err != nil {
		t.Fatal(err)
	}
	return vs
}

func newKey(t testing.TB, s string) *agentssdk.Key {
	t.Helper()
	k, err := agentssdk.NewKey(s)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestEnvelopesOfTheSDKOpen(t *testing.T) {
	t.Parallel()
	for i, v := range vectors(t) {
		rows := each(agentssdk.Row{Number: 7, Session: v.Session, Raw: v.Envelope})
		got, faults := collect(t, agentssdk.Decrypt(rows, newKey(t, v.Key), 0))
		if len(faults) > 0 || len(got) != 1 {
			t.Fatalf("vector %d: %q", i, faults)
		}
		want := agentssdk.Row{Number: 7, Session: v.Session, At: time.Unix(v.Timestamp, 0).UTC(), Raw: []byte(v.Plain)}
		if diff := cmp.Diff(want, got[0]); diff != "" {
			t.Errorf("vector %d (-want +got):\n%s", i, diff)
		}
	}
}

func TestEnvelopesThatDoNotOpenAreFaults(t *testing.T) {
	t.Parallel()
	v := vectors(t)[0]
	other := agentssdk.Row{Number: 1, Session: "enc:U2", Raw: v.Envelope}
	mine := agentssdk.Row{Number: 1, Session: v.Session, Raw: v.Envelope}
	broken := func(payload string) agentssdk.Row {
		return agentssdk.Row{Number: 1, Session: v.Session, Raw: fmt.Appendf(nil, `{"__enc__":1,"v":1,"kid":"hkdf-v1","payload":%s}`, payload)}
	}
	for name, tt := range map[string]struct {
		row  agentssdk.Row
		key  string
		ttl  time.Duration
		want string
	}{
		"another session's":     {other, v.Key, 0, agentssdk.ReasonWrongKey},
		"another key":           {mine, "My-secret", 0, agentssdk.ReasonWrongKey},
		"too old":               {mine, v.Key, time.Hour, agentssdk.ReasonExpired},
		"empty token":           {broken(`""`), v.Key, 0, agentssdk.ReasonWrongKey},
		"token that is a list":  {broken(`[1]`), v.Key, 0, agentssdk.ReasonWrongKey},
		"token that is cut off": {broken(`"gAAAAABlU_EAAAECAwQFBgcICQoLDA0ODw=="`), v.Key, 0, agentssdk.ReasonWrongKey},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, faults := collect(t, agentssdk.Decrypt(each(tt.row), newKey(t, tt.key), tt.ttl))
			want := []string{(&agentssdk.Fault{Number: 1, Session: tt.row.Session, Reason: tt.want}).Error()}
			if diff := cmp.Diff(want, faults); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestRowsThatAreNoEnvelopePass(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{
		`{"role":"user"}`,
		`{"__enc__":2,"v":1,"kid":"k","payload":"p"}`,
		`{"__enc__":"1","v":1,"kid":"k","payload":"p"}`,
		`{"__enc__":1,"kid":"k","payload":"p"}`,
		`{"__enc__":1,"v":1,"payload":"p"}`,
		`{"__enc__":1,"v":1,"kid":"k"}`,
	} {
		got, faults := collect(t, agentssdk.Decrypt(each(agentssdk.Row{Session: "s", Raw: []byte(raw)}), newKey(t, "k"), time.Second))
		if len(faults) > 0 || len(got) != 1 || string(got[0].Raw) != raw {
			t.Errorf("%s: got %v, %q", raw, got, faults)
		}
	}
}

func TestTheTimeToLiveCountsFromSealing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		key := newKey(t, "k")
		sealed, _ := collect(t, agentssdk.Encrypt(each(agentssdk.Row{Session: "s", Raw: []byte(`{"n":1}`)}), key))
		if string(sealed[0].Raw) == `{"n":1}` {
			t.Fatal("not encrypted")
		}
		time.Sleep(600 * time.Second)
		if got, _ := collect(t, agentssdk.Decrypt(each(sealed...), key, 600*time.Second)); len(got) != 1 {
			t.Error("refused at its very age")
		}
		time.Sleep(2 * time.Second)
		if got, faults := collect(t, agentssdk.Decrypt(each(sealed...), key, 600*time.Second)); len(got) != 0 {
			t.Errorf("taken when too old: %v, %q", got, faults)
		}
	})
}

func TestAnEmptyKeyIsRefused(t *testing.T) {
	t.Parallel()
	if _, err := agentssdk.NewKey(""); err == nil {
		t.Error("no error")
	}
	if got := fmt.Sprintf("%v %+v %#v %s", newKey(t, "hunter2"), newKey(t, "hunter2"), newKey(t, "hunter2"), newKey(t, "hunter2")); got != "<redacted> <redacted> <redacted> <redacted>" {
		t.Errorf("a key prints as %s", got)
	}
}

func FuzzDecrypt(f *testing.F) {
	for _, v := range vectors(f) {
		f.Add(v.Key, string(v.Session), []byte(v.Envelope))
	}
	f.Add("AAAA", "s", []byte(`{"__enc__":true,"v":1,"kid":"","payload":"gA=="}`))
	f.Fuzz(func(t *testing.T, key, id string, raw []byte) {
		if key == "" {
			return
		}
		k := newKey(t, key)
		row := agentssdk.Row{Session: sessionstore.ID(id), Raw: raw}
		// Whatever comes in, nothing panics; and what is sealed here opens again.
		_, _ = collect(t, agentssdk.Decrypt(each(row), k, 0))
		row.Raw = []byte(`{"n":1}`)
		sealed, _ := collect(t, agentssdk.Encrypt(each(row), k))
		if got, faults := collect(t, agentssdk.Decrypt(each(sealed...), k, 0)); len(got) != 1 || string(got[0].Raw) != `{"n":1}` {
			t.Errorf("got %v, %q", got, faults)
		}
	})
}
