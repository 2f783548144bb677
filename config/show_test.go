package config_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"botd/config"
)

func TestShownConfigurationReadsBackTheSame(t *testing.T) {
	t.Parallel()
	cfg, problems := config.Parse("example.yaml", []byte(config.Example()+`
mcp:
  shop: {command: shop-mcp, args: [--fast, ""], env: {SHOP_TOKEN: "${DISCORD_TOKEN}"}, dir: /srv}
  search: {url: "https://mcp.example.com/mcp", headers: {Authorization: "Bearer ${DISCORD_TOKEN}"}, tools: [web]}
`), config.Options{LookupEnv: lookup(exampleEnv)})
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	text, err := cfg.YAML()
	if err != nil {
		t.Fatal(err)
	}
	shown := string(text)
	for _, secret := range cfg.Secrets() {
		if strings.Contains(shown, ": "+secret+"\n") {
			t.Errorf("the secret %q is shown in\n%s", secret, shown)
		}
	}
	// With the secrets put back, what is shown means the same.
	p := cfg.Providers["openai"].OpenAI
	l, d := cfg.Channels["line"].LINE, cfg.Channels["discord"].Discord
	for _, pair := range [][2]string{
		{"api_key: ", p.APIKey.Reveal()},
		{"X-Title: ", p.Headers["X-Title"].Reveal()},
		{"SHOP_TOKEN: ", cfg.MCP["shop"].Env["SHOP_TOKEN"].Reveal()},
		{"Authorization: ", cfg.MCP["search"].Headers["Authorization"].Reveal()},
		{"channel_secret: ", l.ChannelSecret.Reveal()},
		{"channel_access_token: ", l.ChannelAccessToken.Reveal()},
		{"token: ", d.Token.Reveal()},
	} {
		for _, quote := range []string{"'", `"`} {
			shown = strings.Replace(shown, " "+pair[0]+quote+config.Redacted+quote, " "+pair[0]+pair[1], 1)
		}
	}
	again, problems := config.Parse("shown.yaml", []byte(shown), config.Options{})
	if err := problems.Err(); err != nil {
		t.Fatalf("%v\n%s", err, shown)
	}
	if diff := cmp.Diff(cfg, again, cmp.Comparer(func(a, b []string) bool { return strings.Join(a, " ") == strings.Join(b, " ") })); diff != "" {
		t.Errorf("read back (-want +got):\n%s\nshown:\n%s", diff, shown)
	}
}

func TestSecretsAreAllFound(t *testing.T) {
	t.Parallel()
	cfg, _ := config.Parse("example.yaml", []byte(config.Example()), config.Options{LookupEnv: lookup(exampleEnv)})
	if diff := cmp.Diff([]string{"botd", "d", "s", "sk-x", "t"}, cfg.Secrets()); diff != "" {
		t.Errorf("secrets (-want +got):\n%s", diff)
	}
}
