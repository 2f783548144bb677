package config_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"botd/config"
)

const before = `
server: {public_url: "https://bot.shop.test"}
providers: {offline: {type: offline}, openai: {api_key: "${KEY}"}}
agents:
  a: {models: [offline/x], instructions: one}
  b: {models: [openai/gpt-5.4-mini]}
channels:
  c: {type: console, agent: a}
  l: {type: line, agent: a, channel_secret: "${S}", channel_access_token: "${T}"}
`

func TestDiffNamesWhatChanged(t *testing.T) {
	t.Parallel()
	env := func(token string) map[string]string {
		return map[string]string{"KEY": "planted-key", "S": "planted-secret", "T": token}
	}
	one := parse(t, before, env("planted-token"))
	if got := config.Diff(one, parse(t, before, env("planted-token"))); len(got) != 0 {
		t.Errorf("equal configurations differ: %v", got)
	}
	two := parse(t, `
server: {public_url: "https://bot.shop.test", listen: ":9"}
providers: {offline: {type: offline}, openai: {api_key: "${KEY}"}}
agents:
  a: {models: [offline/x, openai/gpt-5.4-mini], instructions: two}
  z: {models: [openai/gpt-5.4-mini]}
channels:
  c: {type: discord, agent: a, token: "${S}"}
  l: {type: line, agent: z, channel_secret: "${S}x", channel_access_token: "${T}"}
limits: {grace: 1s}
`, env("planted-other"))
	want := []config.Change{
		{Path: "server.listen", Kind: config.Changed},
		{Path: "agents.a.instructions", Kind: config.Changed},
		{Path: "agents.a.models", Kind: config.Changed},
		{Path: "agents.b", Kind: config.Removed},
		{Path: "agents.z", Kind: config.Added},
		{Path: "channels.c.type", Kind: config.Changed},
		{Path: "channels.l.agent", Kind: config.Changed},
		{Path: "channels.l.channel_secret", Kind: config.Changed},
		{Path: "channels.l.channel_access_token", Kind: config.Changed},
		{Path: "limits.grace", Kind: config.Changed},
	}
	if diff := cmp.Diff(want, config.Diff(one, two)); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
}
