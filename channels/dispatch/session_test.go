package dispatch_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"botd/channels"
	"botd/channels/dispatch"
	"botd/sessionstore"
)

var update = flag.Bool("update", false, "write golden files")

var scopes = []dispatch.Scope{"", dispatch.ScopeUser, dispatch.ScopeRoom, dispatch.ScopeUserInRoom, dispatch.ScopeThread}

// TestSessionID_Golden keeps the IDs as they are stored in databases everywhere: the golden file may
// grow and must never change.
func TestSessionID_Golden(t *testing.T) {
	t.Parallel()
	addresses := []channels.Address{
		{Channel: "line-shop", Kind: channels.Direct, Room: "U4af", User: "U4af"},
		{Channel: "line-shop", Kind: channels.Direct, Room: "U4af"},
		{Channel: "line-shop", Kind: channels.Group, Room: "C9ab", User: "U4af"},
		{Channel: "line-shop", Kind: channels.Group, Room: "C9ab"},
		{Channel: "discord", Kind: channels.Direct, Room: "555", User: "22"},
		{Channel: "discord", Kind: channels.Room, Room: "11", User: "22"},
		{Channel: "discord", Kind: channels.Room, Room: "11"},
		{Channel: "discord", Kind: channels.Room, Room: "11", Thread: "33", User: "22"},
		{Channel: "discord", Kind: channels.Room, Room: "11", Thread: "33"},
		{Channel: "a:b%", Kind: channels.Room, Room: "c:d", Thread: "e%3Af", User: "g:h"},
		{Channel: strings.Repeat("long", 130), Kind: channels.Direct, Room: "r", User: "u"},
	}
	var got bytes.Buffer
	for _, scope := range scopes {
		for _, a := range addresses {
			id := dispatch.SessionID(scope, a)
			a.Channel = fmt.Sprintf("%.12s", a.Channel)
			fmt.Fprintf(&got, "%-12s %-6s %-12s room=%s thread=%s user=%s\n\t%s\n", scope, a.Kind, a.Channel, a.Room, a.Thread, a.User, id)
		}
	}
	golden := filepath.Join("testdata", "session_ids.golden")
	if *update {
		if err := os.WriteFile(golden, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("session IDs changed (-want +got):\n%s", diff)
	}
}

func TestScope_Validate(t *testing.T) {
	t.Parallel()
	for _, s := range scopes {
		if err := s.Validate(); err != nil {
			t.Errorf("%q: %v", s, err)
		}
	}
	if err := dispatch.Scope("planet").Validate(); err == nil || !strings.Contains(err.Error(), "user_in_room") {
		t.Errorf("unknown scope: %v, want an error that names the known ones", err)
	}
}

// identity is what a scope tells apart, as a comparable value.
func identity(scope dispatch.Scope, a channels.Address) [4]string {
	if a.Kind == channels.Direct {
		if a.User == "" {
			return [4]string{a.Channel, "direct", a.Room}
		}
		return [4]string{a.Channel, "user", a.User}
	}
	var place [4]string
	switch {
	case a.Thread != "" && scope != dispatch.ScopeRoom:
		place = [4]string{a.Channel, "thread", a.Thread}
	default:
		place = [4]string{a.Channel, string(a.Kind), a.Room}
	}
	switch {
	case a.User == "":
	case scope == dispatch.ScopeUser:
		return [4]string{a.Channel, "user", a.User}
	case scope == dispatch.ScopeUserInRoom, scope == "" && a.Kind == channels.Room && a.Thread == "":
		place[3] = "by " + a.User
	}
	return place
}

// FuzzSessionID checks that addresses share a session exactly when the scope says so.
func FuzzSessionID(f *testing.F) {
	f.Add(uint8(0), uint8(0), uint8(0), "c", "r", "", "u", "c", "r", "", "u")
	f.Add(uint8(0), uint8(1), uint8(1), "c", "r:user:u", "", "", "c", "r", "", "u")
	f.Add(uint8(3), uint8(1), uint8(1), "c", "r", "", "u", "c", "r%3Auser%3Au", "", "")
	f.Add(uint8(0), uint8(2), uint8(2), "c:room", "r", "", "", "c", "room:r", "", "")
	f.Add(uint8(4), uint8(2), uint8(2), "c", "r", "t", "u", "c", "r", "t%", "u")
	f.Add(uint8(1), uint8(0), uint8(2), "c", "u", "", "u", "c", "r", "t", "u")
	kinds := []channels.RoomKind{channels.Direct, channels.Group, channels.Room}
	f.Fuzz(func(t *testing.T, scope, k1, k2 uint8, c1, r1, t1, u1, c2, r2, t2, u2 string) {
		s := scopes[int(scope)%len(scopes)]
		a := channels.Address{Channel: c1, Kind: kinds[int(k1)%3], Room: r1, Thread: t1, User: u1}
		b := channels.Address{Channel: c2, Kind: kinds[int(k2)%3], Room: r2, Thread: t2, User: u2}
		x, y := dispatch.SessionID(s, a), dispatch.SessionID(s, b)
		for _, id := range []sessionstore.ID{x, y} {
			if err := id.Validate(); err != nil {
				t.Fatal(err)
			}
		}
		if same := identity(s, a) == identity(s, b); same != (x == y) {
			t.Errorf("scope %q: %+v → %s, %+v → %s; want the same: %v", s, a, x, b, y, same)
		}
	})
}
