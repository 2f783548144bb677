package discordfake

import (
	"cmp"
	"math"
	"strconv"
)

// Permit gives a person rights in every room of every guild, as Discord's permission bits; interactions tell
// of them. (Discord documentation, Permissions, Bitwise Permission Flags.)
func (s *Server) Permit(user string, permissions uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.world.users[user].rights = permissions
}

// SetOwner makes a person the owner of a guild, who has all rights there. At first the bot is.
func (s *Server) SetOwner(guildID, user string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.world.guilds[guildID]
	g.owner = user
	s.dispatch("GUILD_UPDATE", Guilds, mustJSON(map[string]any{"id": g.id, "name": g.name, "owner_id": g.owner}), nil)
}

// ownerOf returns the user ID of a guild's owner. The caller holds s.mu.
func (s *Server) ownerOf(g *guild) string { return cmp.Or(g.owner, s.world.bot.ID) }

// allRights are those of an owner: Discord counts them in 53 bits so far.
const allRights = math.MaxUint64 >> 11

// permissions is what a person may do in a guild, as Discord writes it. The caller holds s.mu.
func (s *Server) permissions(guildID string, who *person) string {
	rights := who.rights
	if s.ownerOf(s.world.guilds[guildID]) == who.user.ID {
		rights = allRights
	}
	return strconv.FormatUint(rights, 10)
}
