package discordfake_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"botd/channels/discord/discordfake"
)

// TestMadeKeepsIDs asserts that a world made at a given time has the same IDs in every run, and messages
// have not.
func TestMadeKeepsIDs(t *testing.T) {
	t.Parallel()
	world := func() (ids []string, message string) {
		s, err := discordfake.New(discordfake.Options{Made: time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		ann := s.Person("Ann")
		guild, role := s.Guild("Guild")
		room := s.Room(guild, "general")
		m, err := s.Say(discordfake.Saying{From: ann.ID, Room: s.DM(ann.ID), Text: "hello"})
		if err != nil {
			t.Fatal(err)
		}
		return []string{s.Bot().ID, ann.ID, guild, role, room, s.DM(ann.ID)}, m.ID
	}
	ids, message := world()
	time.Sleep(2 * time.Millisecond) // IDs count milliseconds
	again, other := world()
	if diff := cmp.Diff(ids, again); diff != "" {
		t.Errorf("another run has other IDs (-first +second):\n%s", diff)
	}
	if message == other || len(message) != len(ids[0]) {
		t.Errorf("messages %s and %s, want IDs of their own", message, other)
	}
}
