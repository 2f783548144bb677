package main_test

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The rooms of the house and the rooms they may import, beside themselves and what lies below them only
// when it is listed. The picture of it is docs/architecture.md.
var mayImport = map[string][]string{
	"sessionstore":                               {},
	"sessionstore/boltstore":                     {"sessionstore", "channels", "channels/dispatch", "agent"},
	"sessionstore/boltstore/internal/storebench": {"sessionstore", "sessionstore/boltstore", "sessionstore/sqlstore", "channels", "channels/dispatch", "agent"},
	"sessionstore/memstore":                      {"sessionstore", "channels", "channels/dispatch", "agent"},
	"sessionstore/storetest":                     {"sessionstore", "channels", "channels/dispatch", "agent"},
	"sessionstore/sqlstore":                      {"sessionstore", "sessionstore/internal/attempt", "sessionstore/internal/envelope"},
	"sessionstore/redisstore":                    {"sessionstore", "sessionstore/internal/attempt", "sessionstore/internal/envelope"},
	"sessionstore/conversations":                 {"sessionstore"},
	"sessionstore/agentssdk":                     {"sessionstore", "sessionstore/internal/envelope"},
	"sessionstore/internal/dbtest":               {"sessionstore"},
	"sessionstore/internal/envelope":             {},
	"sessionstore/internal/attempt":              {},
	"channels":                                   {},
	"channels/render":                            {},
	"channels/channeltest":                       {"channels"},
	"channels/console":                           {"channels", "channels/render"},
	"channels/line":                              {"channels", "channels/render"},
	"channels/line/linefake":                     {},
	"channels/line/internal/spectest":            {},
	"channels/discord":                           {"channels", "channels/render"},
	"channels/discord/discordfake":               {},
	"channels/dispatch":                          {"channels", "agent", "agent/usage", "sessionstore"},
	"agent":                                      {"sessionstore"},
	"agent/openai":                               {"agent"},
	"agent/usage":                                {"agent", "sessionstore"},
	"agent/mcp":                                  {"agent"},
	"agent/offline":                              {"agent"},
	"agent/tools":                                {"agent"},
	"agent/agenttest":                            {"agent"},
	"config":                                     {},
}

// Modules that only some rooms may import, and why.
var onlyIn = map[string]struct {
	rooms []string
	why   string
}{
	"github.com/line/line-bot-sdk-go/v8": {[]string{"channels/line"}, "the LINE SDK is an implementation detail of one adapter"},
	"github.com/bwmarrin/discordgo":      {[]string{"channels/discord"}, "discordgo can be replaced in one place"},
	"github.com/openai/openai-go/v3":     {[]string{"agent/openai", "sessionstore/conversations"}, "items are raw JSON everywhere else"},
	"go.etcd.io/bbolt":                   {[]string{"sessionstore/boltstore"}, "values are valid only inside a transaction"},
	"modernc.org/sqlite":                 {[]string{"sessionstore/sqlstore", "sessionstore/agentssdk", "sessionstore/conversations"}, "SQL stays with the stores"},
	"github.com/jackc/pgx/v5":            {[]string{"sessionstore/sqlstore", "sessionstore/internal/dbtest"}, "SQL stays with the stores"},
	"github.com/go-sql-driver/mysql":     {[]string{"sessionstore/sqlstore", "sessionstore/internal/dbtest"}, "SQL stays with the stores"},
	"github.com/redis/go-redis/v9":       {[]string{"sessionstore/redisstore"}, "Redis stays with its store"},
	"github.com/goccy/go-yaml":           {[]string{"config"}, "positions and strictness live in one place"},
	"github.com/yuin/goldmark":           {[]string{"channels/render"}, "one reading of Markdown"},
	"text/template":                      {nil, "it finds methods by name, for which the linker keeps every method of every type: 34 MB become 56"},
	"html/template":                      {nil, "as text/template"},
}

type goPackage struct {
	ImportPath string
	Imports    []string
}

func TestImportsPointOneWay(t *testing.T) {
	t.Parallel()
	for _, p := range listPackages(t) {
		room := strings.TrimPrefix(p.ImportPath, "botd/")
		if strings.HasPrefix(room, "cmd/") {
			continue // the command sees everything
		}
		allowed, known := mayImport[room]
		if !known {
			t.Errorf("package %s has no place in the house: add it to mayImport and to docs/architecture.md", room)
			continue
		}
		for _, imp := range p.Imports {
			if other, ok := strings.CutPrefix(imp, "botd/"); ok && !slices.Contains(allowed, other) {
				t.Errorf("%s imports %s; it may import only %v", room, other, allowed)
			}
		}
	}
}

func TestLibrariesStayInTheirRooms(t *testing.T) {
	t.Parallel()
	for _, p := range listPackages(t) {
		room := strings.TrimPrefix(p.ImportPath, "botd/")
		for _, imp := range p.Imports {
			for module, rule := range onlyIn {
				if (imp == module || strings.HasPrefix(imp, module+"/")) && !slices.Contains(rule.rooms, room) {
					t.Errorf("%s imports %s, which only %v may: %s", room, imp, rule.rooms, rule.why)
				}
			}
			if imp == "testing" && !strings.HasSuffix(room, "test") {
				t.Errorf("%s imports testing outside a test package", room)
			}
		}
	}
}

func TestArchitecturePageNamesEveryRoom(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range listPackages(t) {
		room := strings.TrimPrefix(p.ImportPath, "botd/")
		if !strings.Contains(string(page), "`"+room+"`") {
			t.Errorf("docs/architecture.md does not name `%s`", room)
		}
	}
}

func listPackages(t *testing.T) []goPackage {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Imports", "./...")
	cmd.Dir = filepath.Join("..", "..")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var pkgs []goPackage
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p goPackage
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return pkgs
		} else if err != nil {
			t.Fatal(err)
		}
		pkgs = append(pkgs, p)
	}
}
