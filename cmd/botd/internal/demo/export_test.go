package demo

// DiscordCommands returns the names of the slash commands that the gateway has registered on Discord.
func (d *Demo) DiscordCommands() []string {
	names, _ := d.world.discord.Commands()
	return names
}
