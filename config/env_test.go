package config_test

import (
	"maps"
	"strings"
	"testing"

	"botd/config"
)

func TestFromEnv(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		env  map[string]string
		want func(*config.Config) bool
	}{
		{
			name: "a key alone gives a console",
			env:  map[string]string{"OPENAI_API_KEY": "k"},
			want: func(c *config.Config) bool {
				p := c.Providers["openai"].OpenAI
				return p.APIKey.Reveal() == "k" && p.BaseURL == config.OpenAIBaseURL && p.Dialect == "openai" &&
					c.Agents["assistant"].Models[0] == "openai/"+config.DefaultModel && len(c.Channels) == 1 && c.Channels["console"].Console != nil
			},
		},
		{
			name: "both platforms",
			env:  map[string]string{"OPENAI_API_KEY": "k", "LINE_CHANNEL_SECRET": "s", "LINE_CHANNEL_ACCESS_TOKEN": "t", "DISCORD_TOKEN": "d"},
			want: func(c *config.Config) bool {
				return len(c.Channels) == 2 && c.Channels["line"].LINE.ChannelSecret.Reveal() == "s" &&
					c.Channels["line"].LINE.WebhookPath == "/webhook/line" && c.Channels["discord"].Discord.Token.Reveal() == "d" &&
					c.Channels["discord"].Agent == "assistant"
			},
		},
		{
			name: "a local server without a key",
			env:  map[string]string{"OPENAI_BASE_URL": "http://127.0.0.1:11434/v1", "BOTD_MODEL": "qwen3", "DISCORD_TOKEN": "d"},
			want: func(c *config.Config) bool {
				return c.Agents["assistant"].Models[0] == "openai/qwen3" && c.Providers["openai"].OpenAI.Dialect == "generic"
			},
		},
		{
			name: "the built-in model",
			env:  map[string]string{"BOTD_MODEL": "offline", "DISCORD_TOKEN": "d"},
			want: func(c *config.Config) bool { return c.Providers["offline"].Type == config.Offline },
		},
		{
			name: "the built-in model alone",
			env:  map[string]string{"BOTD_MODEL": "offline", "BOTD_CONSOLE_LISTEN": "127.0.0.1:9999"},
			want: func(c *config.Config) bool { return c.Channels["console"].Console.Listen == "127.0.0.1:9999" },
		},
		{
			name: "everything else",
			env: map[string]string{
				"OPENAI_API_KEY": "k", "BOTD_STORE": "memory:", "BOTD_LISTEN": "127.0.0.1:0",
				"BOTD_PUBLIC_URL": "https://b.example", "BOTD_LOG_LEVEL": "debug", "BOTD_LOG_FORMAT": "text", "BOTD_INSTRUCTIONS": "Be \"kind\": ${X} $$",
			},
			want: func(c *config.Config) bool {
				return c.Store == "memory:" && c.Server.Listen == "127.0.0.1:0" && c.Server.PublicURL == "https://b.example" &&
					c.Log == config.Log{Level: "debug", Format: "text"} && c.Agents["assistant"].Instructions == "Be \"kind\": ${X} $$"
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			cfg, problems := config.Load("", config.Options{LookupEnv: lookup(tt.env)})
			if err := problems.Err(); err != nil {
				t.Fatal(err)
			}
			if !tt.want(cfg) {
				t.Errorf("config = %+v", cfg)
			}
		})
	}
}

func TestFromEnvSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		env  map[string]string
		want []string
	}{
		{"nothing at all", nil, []string{"botd demo", "botd chat", "botd init", "OPENAI_API_KEY", "DISCORD_TOKEN"}},
		{"empty variables count as unset", map[string]string{"OPENAI_API_KEY": "", "DISCORD_TOKEN": ""}, []string{"botd demo"}},
		{"half of LINE", map[string]string{"OPENAI_API_KEY": "k", "LINE_CHANNEL_SECRET": "s"}, []string{"LINE_CHANNEL_ACCESS_TOKEN is not set"}},
		{"the other half, alone", map[string]string{"LINE_CHANNEL_ACCESS_TOKEN": "t"}, []string{"LINE_CHANNEL_SECRET is not set"}},
		{"no model", map[string]string{"DISCORD_TOKEN": "d"}, []string{"OPENAI_API_KEY is not set", "BOTD_MODEL=offline"}},
		{"a server without a model", map[string]string{"OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}, []string{"BOTD_MODEL is not set"}},
		{"a model without a server", map[string]string{"BOTD_MODEL": "gpt-5.2"}, []string{"OPENAI_API_KEY is not set"}},
		{"half of LINE, and no model", map[string]string{"LINE_CHANNEL_SECRET": "s"}, []string{"LINE_CHANNEL_ACCESS_TOKEN is not set", "OPENAI_API_KEY is not set"}},
		{"half of LINE, and a bad value", map[string]string{"OPENAI_API_KEY": "k", "LINE_CHANNEL_SECRET": "s", "BOTD_LISTEN": "nowhere"}, []string{"LINE_CHANNEL_ACCESS_TOKEN is not set", "nowhere"}},
		{"instructions alone", map[string]string{"BOTD_INSTRUCTIONS": "Be kind."}, []string{"OPENAI_API_KEY is not set"}},
		{"value and file", map[string]string{"OPENAI_API_KEY": "k", "OPENAI_API_KEY_FILE": "/x"}, []string{"both OPENAI_API_KEY and OPENAI_API_KEY_FILE"}},
		{"a bad value", map[string]string{"OPENAI_API_KEY": "k", "BOTD_LISTEN": "nowhere"}, []string{"server.listen", "nowhere"}},
		{"a file that is missing", map[string]string{"OPENAI_API_KEY_FILE": "/does/not/exist"}, []string{"the file does not exist"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, problems := config.Load("", config.Options{LookupEnv: lookup(tt.env)})
			err := problems.Err()
			if err == nil {
				t.Fatal("no error")
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error does not say %q:\n%v", want, err)
				}
			}
		})
	}
}

// TestFromEnvKeepsWhatChannelsDoNotConcern asserts that a faulty channel is told, and leaves the rest usable for
// who needs no channel.
func TestFromEnvKeepsWhatChannelsDoNotConcern(t *testing.T) {
	t.Parallel()
	for name, env := range map[string]map[string]string{
		"half of LINE":           {"LINE_CHANNEL_SECRET": "s"},
		"the other half":         {"LINE_CHANNEL_ACCESS_TOKEN": "t"},
		"LINE twice":             {"LINE_CHANNEL_SECRET": "s", "LINE_CHANNEL_SECRET_FILE": "/x", "LINE_CHANNEL_ACCESS_TOKEN": "t"},
		"Discord twice":          {"DISCORD_TOKEN": "d", "DISCORD_TOKEN_FILE": "/x"},
		"Discord without a file": {"DISCORD_TOKEN_FILE": "/does/not/exist"},
		"an impossible token":    {"DISCORD_TOKEN": "Bot d"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env["OPENAI_API_KEY"] = "k"
			cfg, problems := config.Load("", config.Options{LookupEnv: lookup(env)})
			if len(problems) != 1 || problems.Err() == nil || !problems[0].OfChannel() {
				t.Errorf("problems, want one of a channel: %v", problems)
			}
			if cfg == nil || cfg.Providers["openai"].OpenAI.APIKey.Reveal() != "k" || len(cfg.Agents["assistant"].Models) != 1 {
				t.Errorf("config = %+v", cfg)
			}
		})
	}
}

func TestFromEnvWarnsOfABotThatNobodyElseReaches(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		env  map[string]string
		want bool
	}{
		"a key alone":            {nil, true},
		"a console by intention": {map[string]string{"BOTD_CONSOLE_LISTEN": "127.0.0.1:9999"}, false},
		"a platform":             {map[string]string{"DISCORD_TOKEN": "d"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := map[string]string{"OPENAI_API_KEY": "k"}
			maps.Copy(env, tt.env)
			cfg, problems := config.Load("", config.Options{LookupEnv: lookup(env)})
			if err := problems.Err(); err != nil {
				t.Fatal(err)
			}
			if c := cfg.Channels["console"].Console; tt.want && c.Listen != config.DefaultConsoleListen {
				t.Errorf("the console listens on %s", c.Listen)
			}
			got := strings.Contains(problems.String(), "only from this machine, at http://"+config.DefaultConsoleListen)
			if got != tt.want || len(problems) > 1 {
				t.Errorf("warned %t, want %t: %v", got, tt.want, problems)
			}
		})
	}
}
