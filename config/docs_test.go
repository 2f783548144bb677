package config_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"botd/config"
)

var yamlBlock = regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$")

// TestTheConfigurationsInTheDocumentationAreRight reads every YAML block of the guides, with what the rest
// of the file would hold added where a block shows only a part.
func TestTheConfigurationsInTheDocumentationAreRight(t *testing.T) {
	t.Parallel()
	parts := []struct{ key, rest string }{
		{"providers", "providers: {offline: {type: offline}}\n"},
		{"agents", "agents: {assistant: {models: [offline/offline]}}\n"},
		{"channels", "channels: {console: {type: console}}\n"},
	}
	for _, file := range []string{"README.md", "docs/agents.md", "docs/line.md", "docs/discord.md"} {
		text, err := os.ReadFile(filepath.Join("..", filepath.FromSlash(file)))
		if err != nil {
			t.Fatal(err)
		}
		blocks := yamlBlock.FindAllStringSubmatchIndex(string(text), -1)
		if len(blocks) == 0 || len(blocks) != strings.Count(string(text), "```yaml") {
			t.Errorf("%s: %d blocks of YAML read, of %d", file, len(blocks), strings.Count(string(text), "```yaml"))
		}
		for _, b := range blocks {
			line := strings.Count(string(text[:b[2]]), "\n")
			// Problems then tell the lines of the guide.
			block := strings.Repeat("\n", line) + string(text[b[2]:b[3]])
			for _, part := range parts {
				if !regexp.MustCompile(`(?m)^` + part.key + `:`).MatchString(block) {
					block += part.rest
				}
			}
			_, problems := config.Parse(file, []byte(block), config.Options{
				LookupEnv: func(name string) (string, bool) { return fmt.Sprintf("value-of-%s", strings.ToLower(name)), true },
				Stores:    []string{"bbolt", "memory"}, Tools: []string{"clock"},
			})
			for _, p := range problems {
				if p.Path != "server.public_url" || p.Severity != config.SeverityWarning { // the guides have an example's address
					t.Error(p)
				}
			}
		}
	}
}
