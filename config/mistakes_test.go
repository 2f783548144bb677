package config_test

import (
	"slices"
	"strings"
	"testing"

	"botd/config"
)

// right is a configuration without a mistake, into which each is planted.
const right = `store: bbolt://./botd.db
server:
  listen: ":8080"
  public_url: https://bot.shop.test
providers:
  openai: {api_key: "${KEY}"}
agents:
  concierge: {models: [openai/gpt-5.4-mini]}
channels:
  shop:
    type: line
    agent: concierge
    groups: mention
    channel_secret: ${SECRET}
    channel_access_token: ${TOKEN}
`

// TestTenMistakesOfAFirstConfiguration plants what people get wrong, one by one, and looks whether the place
// and the way out are told.
func TestTenMistakesOfAFirstConfiguration(t *testing.T) {
	t.Parallel()
	env := map[string]string{"KEY": "planted-key", "SECRET": "planted-secret", "TOKEN": "planted-token"}
	if _, problems := config.Parse("botd.yaml", []byte(right), config.Options{LookupEnv: lookup(env)}); len(problems) > 0 {
		t.Fatalf("without a mistake: %v", problems)
	}
	for _, tt := range []struct {
		name, old, planted string
		line, column       int
		severity           config.Severity
		message, remedy    string
	}{
		{"a typing mistake in a key", "public_url:", "pubilc_url:", 4, 3, config.SeverityError, `pubilc_url`, `did you mean "public_url"`},
		{"a tab", "  listen:", "\tlisten:", 3, 1, config.SeverityError, "a tab is used", "indent with spaces"},
		{"a wrong type", "{models: [openai/gpt-5.4-mini]}", "{models: openai/gpt-5.4-mini}", 8, 23, config.SeverityError, "must be a list", "[one, two]"},
		{"a secret that is not set", "${SECRET}", "${LINE_SECRET}", 14, 21, config.SeverityError, "LINE_SECRET is not set", "set it"},
		{"an agent that does not exist", "agent: concierge", "agent: consierge", 12, 12, config.SeverityError, `no agent named "consierge"`, `did you mean "concierge"`},
		{"a name twice", "agents:\n", "agents:\n  concierge: {models: [openai/gpt-5.4-mini]}\n", 9, 3, config.SeverityError, "given twice", "remove one"},
		{"an address that is none", "https://bot.shop.test", "bot.shop.test", 4, 15, config.SeverityError, "not an http or https URL", "https://host"},
		{"a port that cannot be", `":8080"`, `":80800"`, 3, 11, config.SeverityError, `invalid port "80800"`, "from 1 to 65535"},
		{"a token in both forms", "    channel_access_token: ${TOKEN}\n", "    channel_access_token: ${TOKEN}\n    channel_id: \"1234567890\"\n", 16, 5, config.SeverityError, "channel_id", "keep one"},
		{"a bot that answers everybody", "groups: mention", "groups: all", 13, 13, config.SeverityWarning, "answers everything that anybody says", "groups: mention"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			text := strings.Replace(right, tt.old, tt.planted, 1)
			if text == right {
				t.Fatal("nothing was planted")
			}
			_, problems := config.Parse("botd.yaml", []byte(text), config.Options{LookupEnv: lookup(env)})
			alone := slices.DeleteFunc(slices.Clone(problems), func(p config.Problem) bool { return p.Severity != tt.severity })
			if len(alone) != 1 {
				t.Fatalf("want one %s, the planted one: %v", tt.severity, problems)
			}
			p := alone[0]
			if p.Line != tt.line || p.Column != tt.column || p.Severity != tt.severity {
				t.Errorf("%s at %d:%d, want %s at %d:%d", p.Severity, p.Line, p.Column, tt.severity, tt.line, tt.column)
			}
			if !strings.Contains(p.Message, tt.message) || !strings.Contains(p.Remedy, tt.remedy) {
				t.Errorf("problem: %s\nremedy: %s", p.Message, p.Remedy)
			}
			if strings.Contains(p.String(), "planted-") {
				t.Errorf("a secret is shown: %s", p)
			}
			lines := strings.Split(p.Snippet, "\n")
			for i, line := range lines {
				if strings.HasPrefix(line, ">") && (i+1 == len(lines) || !strings.Contains(lines[i+1], "^")) {
					t.Errorf("no caret below the place:\n%s", p.Snippet)
				}
			}
		})
	}
}
