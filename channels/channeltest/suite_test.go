package channeltest_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"botd/channels/channeltest"
)

// faultVariable makes the test of a faulty adapter, which is to fail, run in a process of its own.
const faultVariable = "BOTD_CHANNELTEST_FAULT"

func TestMain(m *testing.M) {
	if os.Getenv(faultVariable) != "" {
		channeltest.SetPatience(500 * time.Millisecond)
	}
	os.Exit(m.Run())
}

// TestAdapter asserts that the suite has nothing against an adapter that is right; in a process of its
// own, whatever it has against one that is not.
func TestAdapter(t *testing.T) {
	channeltest.Run(t, func(*testing.T) *channeltest.Rig { return rig(os.Getenv(faultVariable)) })
}

// TestSuiteFindsFaults asserts that each fault fails the case that is meant for it.
func TestSuiteFindsFaults(t *testing.T) {
	t.Parallel()
	if os.Getenv(faultVariable) != "" {
		t.Skip("this process tests one faulty adapter")
	}
	for fault, want := range map[string]string{
		"changes its facts":             "facts_are_fixed",
		"is not deterministic":          "compose/is_pure",
		"changes its input":             "compose/is_pure",
		"shows nothing":                 "compose/nothing_to_show",
		"cuts long answers off":         "compose/long_answer",
		"has no idempotency key":        "send/once_under_one_ID",
		"ignores its context":           "send/cancelled",
		"tells message text in errors":  "send/failures/down",
		"tells credentials in errors":   "send/failures/refused",
		"returns plain errors":          "send/failures/too_fast",
		"calls every failure permanent": "send/failures/down",
		"mixes up reply handles":        "send/answers_its_event",
		"calls a group direct":          "events/say_who_and_where",
		"does not tell mentions":        "events/mention",
		"is always mentioned":           "events/mention",
		"gives every event one ID":      "events/in_order_with_IDs_of_their_own",
		"loses the order of events":     "events/in_order_with_IDs_of_their_own",
		"renames what is redelivered":   "events/redelivered_under_the_same_ID",
		"passes junk on":                "events/junk",
		"fails when it ends":            "run/ends_with_its_context",
		"leaves a goroutine":            "run/ends_with_its_context",
		"does not type":                 "optional/typing",
		"mixes up names":                "optional/profile",
		"leaves previews":               "optional/stream",
	} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			name := "^TestAdapter$"
			for part := range strings.SplitSeq(want, "/") {
				name += "/^" + part + "$"
			}
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", name, "-test.timeout=30s")
			cmd.Env = append(os.Environ(), faultVariable+"="+fault)
			out, err := cmd.CombinedOutput()
			if err == nil || !strings.Contains(string(out), "--- FAIL: TestAdapter/"+want) {
				t.Errorf("the suite has nothing against an adapter that %s:\n%s", fault, out)
			}
		})
	}
}
