package discord

import (
	"testing"

	"botd/channels/discord/discordfake"
)

// TestSpeaker_AdminByCommand: an interaction tells what the person may do in the room.
func TestSpeaker_AdminByCommand(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := started(t)
		tests := map[string]struct {
			rights uint64
			room   string
			want   bool
		}{
			"no rights":                   {0, s.room, false},
			"ADMINISTRATOR":               {1 << 3, s.room, true},
			"MANAGE_GUILD":                {1 << 5, s.room, true},
			"MANAGE_MESSAGES":             {1 << 13, s.room, true},
			"MANAGE_MESSAGES in a thread": {1 << 13, s.thread, true},
			"every other right":           {(1<<53 - 1) &^ (1<<3 | 1<<5 | 1<<13), s.room, false},
			"rights elsewhere":            {1 << 3, s.direct, false},
		}
		for name, tt := range tests {
			s.srv.Permit(s.ada.ID, tt.rights)
			if _, in := s.command(s.ada.ID, tt.room, "reset"); in.Speaker.Admin != tt.want {
				t.Errorf("%s: admin %v, want %v", name, in.Speaker.Admin, tt.want)
			}
		}
	})
}

// TestSpeaker_AdminOddPermissions: what cannot be read gives nobody rights, and costs no command.
func TestSpeaker_AdminOddPermissions(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := started(t)
		for n, odd := range []any{nil, "", "-8", "0x8", "8 ", "99999999999999999999999", 8, true, []string{"8"}} {
			s.srv.Dispatch("INTERACTION_CREATE", map[string]any{
				"id": "1", "application_id": "2", "type": 2, "token": "t", "channel_id": s.room, "guild_id": s.guild,
				"member": map[string]any{"user": s.ada, "permissions": odd}, "data": map[string]any{"name": "reset", "type": 1},
			})
			s.wait()
			all := s.sink.all()
			if len(all) != n+1 {
				t.Fatalf("permissions %#v: %d events, want %d", odd, len(all), n+1)
			}
			if all[n].Speaker.Admin {
				t.Errorf("permissions %#v make an admin", odd)
			}
		}
	})
}

// TestSpeaker_AdminByMessage: a message tells no permissions, so only the guild's owner is known.
func TestSpeaker_AdminByMessage(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newScene(t)
		s.srv.SetOwner(s.guild, s.ada.ID)
		s.run()
		s.wait()
		admin := func(when string, user discordfake.User, room string, want bool) {
			t.Helper()
			if in := s.hear(discordfake.Saying{From: user.ID, Room: room, Text: s.mention("/reset")}); in.Speaker.Admin != want {
				t.Errorf("%s: %s is an admin: %v, want %v", when, user.Username, in.Speaker.Admin, want)
			}
		}
		s.srv.Permit(s.bob.ID, 1<<3)
		admin("at first", s.ada, s.room, true)
		admin("at first", s.ada, s.thread, true)
		admin("at first", s.bob, s.room, false)
		admin("in a direct chat", s.ada, s.direct, false)

		other, _ := s.srv.Guild("Elsewhere")
		admin("in a guild of somebody else", s.ada, s.srv.Room(other, "general"), false)

		s.srv.SetOwner(s.guild, s.bob.ID)
		s.wait()
		admin("after a change", s.ada, s.room, false)
		admin("after a change", s.bob, s.room, true)
		s.srv.Dispatch("GUILD_UPDATE", map[string]any{"id": s.guild, "name": "New name"})
		s.wait()
		admin("after a change of the name", s.bob, s.room, true)
	})
}
