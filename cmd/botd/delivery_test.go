package main

import (
	"bytes"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"botd/channels"
	"botd/channels/dispatch"
	"botd/sessionstore/boltstore"
)

// journal makes a file with a held delivery and a dead event, and returns flags that lead to it.
func journal(t *testing.T) (flags []string) {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "botd.db")
	db, err := boltstore.Open(boltstore.Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	at := channels.Address{Channel: "line", Kind: channels.Direct, Room: "U1", User: "U1"}
	text := []channels.Part{{Type: channels.Text, Text: "text \x1b[2J\nof it"}}
	fresh, err := db.Put(t.Context(), []dispatch.Routed{{Session: "line:user:U1", Event: channels.Inbound{
		ID: "e1", Kind: channels.Message, Address: at, Time: time.Now(), Parts: text, Speaker: channels.Speaker{ID: "U1", Name: "Eve\x1b]0;x\x07"},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	err = db.Commit(t.Context(), dispatch.TurnResult{
		Session: "line:user:U1", Turn: "t1", Consumed: []uint64{fresh[0].Seq}, Dead: "the model failed",
		Replies: []dispatch.Delivery{{Session: "line:user:U1", Created: time.Now(), Message: channels.Outbound{ID: "t1/0", To: at, Parts: text}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Settle(t.Context(), "t1/0", dispatch.Outcome{State: dispatch.Held, Reason: "quota exhausted"}); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	cfg := filepath.Join(dir, "botd.yaml")
	if err := writeNew(cfg, false, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "store: bbolt://%s\nadmin: {socket: off}\n", path)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return []string{"--config", cfg}
}

func TestDeliveriesAndEventsFromTheCommandLine(t *testing.T) {
	t.Parallel()
	flags := journal(t)
	for _, step := range []struct {
		args string
		code int
		// want are parts of standard output, or of standard error when the code is not 0.
		want []string
		not  []string
	}{
		{"delivery ls", 0, []string{"held", "line:user:U1", "line U1", "quota exhausted"}, []string{"text"}},
		{"delivery ls --text", 0, []string{`text \x1b[2J\nof it`}, nil},
		{"delivery ls --state held --json --text", 0, []string{`"reason": "quota exhausted"`, `"text": "text \u001b[2J\nof it"`}, nil},
		{"delivery ls --state dead", 0, []string{"NUMBER"}, []string{"U1"}},
		{"delivery drop 1", 0, []string{"1: dropped"}, nil},
		{"delivery drop 1", 1, []string{"delivery 1 is dead already"}, nil},
		{"delivery ls --state dead", 0, []string{"dropped by an operator"}, nil},
		{"delivery retry 1 2", 3, []string{"no delivery 2"}, nil},
		{"delivery ls --state waiting", 0, []string{"waiting"}, nil},
		{"delivery drop --json 1", 0, []string{`"seq": 1`}, nil},
		{"event ls", 0, []string{"the model failed", `Eve\x1b]0;x\x07`}, []string{"text"}},
		{"event ls --text", 0, []string{`text \x1b[2J\nof it`}, nil},
		{"event revive 1", 0, []string{"1: to be answered"}, nil},
		{"event revive 1", 3, []string{"no dead event 1"}, nil},
		{"status", 0, []string{"messages not answered yet           1"}, nil},
	} {
		var stdout, stderr bytes.Buffer
		p := &process{ctx: t.Context(), stdin: strings.NewReader(""), stdout: &stdout, stderr: &stderr}
		if code := execute(append(strings.Fields(step.args), flags...), p); code != step.code {
			t.Errorf("botd %s: exit code %d, want %d\n%s%s", step.args, code, step.code, &stdout, &stderr)
		}
		out := stdout.String()
		if step.code != 0 {
			out = stderr.String()
		}
		for _, want := range step.want {
			if !strings.Contains(out, want) {
				t.Errorf("botd %s lacks %q:\n%s", step.args, want, out)
			}
		}
		for _, not := range step.not {
			if strings.Contains(out, not) {
				t.Errorf("botd %s holds %q:\n%s", step.args, not, out)
			}
		}
		if strings.Contains(stdout.String()+stderr.String(), "\x1b") {
			t.Errorf("botd %s moves the cursor", step.args)
		}
	}
}
