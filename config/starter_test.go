package config_test

import (
	"regexp"
	"strings"
	"testing"

	"botd/config"
)

// commentedKey matches a line of the starter that is meant to be uncommented.
var commentedKey = regexp.MustCompile(`(?m)^(  )# ((?:  )?[a-z_]+:(?: .*)?)$`)

func TestStarter(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		offline bool
		env     map[string]string
	}{
		"with a key":   {false, map[string]string{"OPENAI_API_KEY": "k"}},
		"with nothing": {true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := config.Starter(tt.offline)
			if n := strings.Count(text, "\n"); n > 45 {
				t.Errorf("%d lines: it is to be read at a glance", n)
			}
			cfg, problems := config.Parse("botd.yaml", []byte(text), config.Options{LookupEnv: lookup(tt.env)})
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			if len(cfg.Providers) != 1 || len(cfg.Agents) != 1 || len(cfg.Channels) != 1 || cfg.Channels["console"].Console == nil {
				t.Errorf("config = %+v", cfg)
			}

			// Everything that is commented out is right too.
			env := map[string]string{"LINE_CHANNEL_SECRET": "s", "LINE_CHANNEL_ACCESS_TOKEN": "t", "DISCORD_TOKEN": "d", "OPENAI_API_KEY": "k"}
			whole := commentedKey.ReplaceAllString(text, "$1$2")
			cfg, problems = config.Parse("botd.yaml", []byte(whole), config.Options{LookupEnv: lookup(env)})
			if len(problems) > 0 {
				t.Fatalf("uncommented:\n%s\n%v", whole, problems)
			}
			if len(cfg.Channels) != 3 || cfg.Channels["line"].LINE == nil || cfg.Channels["discord"].Discord == nil || cfg.Server.PublicURL == "" {
				t.Errorf("uncommented: %+v", cfg)
			}
		})
	}
}

func TestPublicURLOfADocument(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]bool{
		"example.com": true, "bot.example.com": true, "bot.Example.Org:8443": true, "example.net": true, "bot.example": true,
		"bot.invalid": true, "myexample.com": false, "example.com.shop.test": false, "bot.shop.test": false,
	} {
		text := "server: {public_url: \"https://" + host + "\"}" + minimal
		_, problems := config.Parse("botd.yaml", []byte(text), config.Options{})
		if err := problems.Err(); err != nil {
			t.Error(err)
		}
		if got := strings.Contains(problems.String(), "is an example"); got != want {
			t.Errorf("%s: warned %t, want %t: %v", host, got, want, problems)
		}
	}
}
