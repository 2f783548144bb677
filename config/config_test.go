package config_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"botd/config"
)

// exampleEnv is an environment with every variable of the example.
var exampleEnv = map[string]string{
	"OPENAI_API_KEY": "sk-x", "LINE_CHANNEL_SECRET": "s", "LINE_CHANNEL_ACCESS_TOKEN": "t", "DISCORD_TOKEN": "d",
}

func parse(t *testing.T, text string, env map[string]string) *config.Config {
	t.Helper()
	cfg, problems := config.Parse("botd.yaml", []byte(text), config.Options{LookupEnv: lookup(env)})
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	return cfg
}

const agentRefusal = "Sorry, I cannot help with that."

const minimal = `
providers: {local: {type: offline}}
agents: {a: {models: [local/x]}}
channels: {c: {type: console}}
`

func TestDefaults(t *testing.T) {
	t.Parallel()
	got := parse(t, minimal, nil)
	want := &config.Config{
		Store:     "bbolt://./data/botd.db",
		Server:    config.Server{Listen: ":8080"},
		Providers: map[string]config.Provider{"local": {Type: config.Offline}},
		Agents: map[string]config.Agent{"a": {
			Instructions: "You are a helpful assistant in a chat. Answer briefly, in the language of the person who asks.",
			Models:       []string{"local/x"},
			Guards:       config.Guards{Refusal: agentRefusal},
			MaxTurns:     10,
		}},
		Channels: map[string]config.Channel{"c": {
			Type: config.Console, Agent: "a", Groups: config.GroupsMention, MidRun: config.MidRunQueue,
			Session: config.ChannelSession{Scope: config.ScopeDefault},
			Console: &config.ConsoleChannel{Listen: "127.0.0.1:8081"},
		}},
		Session: config.Session{Scope: config.ScopeDefault, History: config.History{MaxItems: 200, MaxTokens: 32000}},
		Usage:   config.Usage{Currency: "USD", Timezone: "UTC"},
		Log:     config.Log{Level: "info", Format: "auto"},
		Limits:  config.Limits{MaxConcurrentTurns: 64, TurnTimeout: 3 * time.Minute, Grace: 20 * time.Second},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("config (-want +got):\n%s", diff)
	}
}

func TestEveryValueIsRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "prompt.md"), []byte("Be kind.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "token"), []byte("from-file\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	got, problems := config.Parse(filepath.Join(dir, "botd.yaml"), []byte(`
store: bbolt:///var/lib/botd/botd.db
server: {listen: "127.0.0.1:9000", public_url: "https://bot.shop.test"}
providers:
  azure: {api_key: "${KEY}", base_url: "https://r.openai.azure.com/openai/v1", api: responses}
  lan: {base_url: "http://10.0.0.2/v1", dialect: openai, api: chat, api_key_file: token,
    headers: {X-Org: "${S}"}, models: {org/model: {window: 8192}}}
agents:
  b:
    instructions_file: prompt.md
    models: [azure/gpt, lan/org/model]
    tools: [clock]
    temperature: 0
    max_output_tokens: 1_000
    max_turns: 3
    handoffs: [c]
  c:
    description: Knows keys.
    models: [azure/gpt]
    instructions: "$${KEY} is ${KEY}"
    tools: [mcp.shop, mcp.web.look.up]
    consults: [e]
    guards: {max_input_chars: 500, block_input: ['(?i)bomb'], block_output: ['\d{16}$'], refusal: No.}
  e: {description: Knows nothing., models: [lan/org/model], instructions_file: prompt.md}
mcp:
  shop: {command: shop-mcp, args: [--fast], env: {LEVEL: debug, TOKEN: "${KEY}"}, dir: /srv}
  web: {url: "http://127.0.0.1:4/mcp", headers: {Authorization: "Bearer ${T}", X-Key_file: token}, tools: [look.up]}
channels:
  l:
    {type: line, agent: b, groups: ignore, merge_window: 1500ms, mid_run: interrupt, admins: [U1, U2], session: {scope: room}, channel_secret: "${S}",
     channel_access_token_file: token, webhook_path: /hook, api_base: "http://127.0.0.1:1", data_api_base: "http://127.0.0.1:2"}
  d: {type: discord, agent: c, token: "${T}", message_content: true, api_base: "http://127.0.0.1:3"}
session: {scope: user, history: {max_items: "${N}", max_tokens: 9000, compact: true}}
log: {level: debug, format: json}
limits: {max_concurrent_turns: 2, turn_timeout: 1m30s, grace: 0s}
`), config.Options{LookupEnv: lookup(map[string]string{"KEY": "k: [", "S": "s", "T": "t", "N": "70"})})
	for _, p := range problems {
		if p.Path != "providers.azure.api_key" && p.Path != "providers.lan.base_url" {
			t.Error(p)
		}
	}
	want := &config.Config{
		Store:  "bbolt:///var/lib/botd/botd.db",
		Server: config.Server{Listen: "127.0.0.1:9000", PublicURL: "https://bot.shop.test"},
		Providers: map[string]config.Provider{
			"azure": {Type: config.OpenAI, OpenAI: &config.OpenAIProvider{
				APIKey: config.NewSecret("k: ["), BaseURL: "https://r.openai.azure.com/openai/v1", API: "responses", Dialect: "azure",
			}},
			"lan": {Type: config.OpenAI, OpenAI: &config.OpenAIProvider{
				APIKey: config.NewSecret("from-file"), BaseURL: "http://10.0.0.2/v1", API: "chat", Dialect: "openai",
				Headers: map[string]config.Secret{"X-Org": config.NewSecret("s")}, Models: map[string]config.Model{"org/model": {Window: 8192}},
			}},
		},
		MCP: map[string]config.MCPServer{
			"shop": {
				Command: "shop-mcp", Args: []string{"--fast"}, Dir: "/srv",
				Env: map[string]config.Secret{"LEVEL": config.NewSecret("debug"), "TOKEN": config.NewSecret("k: [")},
			},
			"web": {
				URL: "http://127.0.0.1:4/mcp", Tools: []string{"look.up"},
				Headers: map[string]config.Secret{"Authorization": config.NewSecret("Bearer t"), "X-Key": config.NewSecret("from-file")},
			},
		},
		Agents: map[string]config.Agent{
			"b": {
				Instructions: "Be kind.", Models: []string{"azure/gpt", "lan/org/model"}, Tools: []string{"clock"},
				Temperature: new(float64), MaxOutputTokens: 1000, MaxTurns: 3,
				Handoffs: []string{"c"}, Guards: config.Guards{Refusal: agentRefusal},
			},
			"c": {
				Description: "Knows keys.", Instructions: "${KEY} is k: [", Models: []string{"azure/gpt"}, MaxTurns: 10,
				Tools: []string{"mcp.shop", "mcp.web.look.up"}, Consults: []string{"e"},
				Guards: config.Guards{MaxInputChars: 500, BlockInput: []string{`(?i)bomb`}, BlockOutput: []string{`\d{16}$`}, Refusal: "No."},
			},
			"e": {Description: "Knows nothing.", Instructions: "Be kind.", Models: []string{"lan/org/model"}, MaxTurns: 10, Guards: config.Guards{Refusal: agentRefusal}},
		},
		Channels: map[string]config.Channel{
			"l": {
				Type: config.LINE, Agent: "b", Groups: config.GroupsIgnore, MergeWindow: 1500 * time.Millisecond,
				MidRun: config.MidRunInterrupt, Admins: []string{"U1", "U2"}, Session: config.ChannelSession{Scope: config.ScopeRoom},
				LINE: &config.LINEChannel{
					ChannelSecret: config.NewSecret("s"), ChannelAccessToken: config.NewSecret("from-file"),
					WebhookPath: "/hook", APIBase: "http://127.0.0.1:1", DataAPIBase: "http://127.0.0.1:2",
				},
			},
			"d": {
				Type: config.Discord, Agent: "c", Groups: config.GroupsMention, MidRun: config.MidRunQueue,
				Session: config.ChannelSession{Scope: config.ScopeUser},
				Discord: &config.DiscordChannel{Token: config.NewSecret("t"), MessageContent: true, APIBase: "http://127.0.0.1:3"},
			},
		},
		Session: config.Session{Scope: config.ScopeUser, History: config.History{MaxItems: 70, MaxTokens: 9000, Compact: true}},
		Usage:   config.Usage{Currency: "USD", Timezone: "UTC"},
		Log:     config.Log{Level: "debug", Format: "json"},
		Limits:  config.Limits{MaxConcurrentTurns: 2, TurnTimeout: 90 * time.Second},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("config (-want +got):\n%s", diff)
	}
}

func TestVariablesCannotChangeTheStructure(t *testing.T) {
	t.Parallel()
	cfg := parse(t, minimal+"server: {public_url: \"${U}\"}\n", map[string]string{"U": "https://a.example"})
	if got := cfg.Server.PublicURL; got != "https://a.example" {
		t.Errorf("public_url = %q", got)
	}
	_, problems := config.Parse("botd.yaml", []byte(minimal+"server:\n  listen: ${U}\n"),
		config.Options{LookupEnv: lookup(map[string]string{"U": ":1\nstore: memory:"})})
	if problems.Err() == nil {
		t.Error("a variable with line breaks was taken as YAML")
	}
}

func TestExampleIsValidAndShowsEveryKey(t *testing.T) {
	t.Parallel()
	cfg, problems := config.Parse("example.yaml", []byte(config.Example()), config.Options{LookupEnv: lookup(exampleEnv)})
	if len(problems) != 1 || problems[0].Path != "server.public_url" || problems.Err() != nil {
		t.Fatalf("problems, want a warning of the address alone: %v", problems)
	}
	for _, key := range keysOf(reflect.TypeOf(*cfg)) {
		if !strings.Contains(config.Example(), "\n"+key+":") && !strings.Contains(config.Example(), " "+key+":") {
			t.Errorf("the example does not show the key %s", key)
		}
	}
	// What the example calls defaults are the defaults.
	defaults := parse(t, minimal, nil)
	for _, pair := range [][2]any{
		{defaults.Store, cfg.Store},
		{defaults.Server.Listen, cfg.Server.Listen},
		{defaults.Session, cfg.Session},
		{defaults.Log, cfg.Log},
		{defaults.Limits, cfg.Limits},
		{defaults.Channels["c"].Console, cfg.Channels["console"].Console},
		{defaults.Agents["a"].Instructions, cfg.Agents["assistant"].Instructions},
		{defaults.Channels["c"].MergeWindow, cfg.Channels["line"].MergeWindow},
	} {
		if diff := cmp.Diff(pair[0], pair[1]); diff != "" {
			t.Errorf("default and example (-default +example):\n%s", diff)
		}
	}
}

func keysOf(typ reflect.Type) (keys []string) {
	for f := range typ.Fields() {
		if key := f.Tag.Get("yaml"); key != "" {
			keys = append(keys, key)
		}
		inner := f.Type
		for inner.Kind() == reflect.Map || inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		if inner.Kind() == reflect.Struct && inner != reflect.TypeFor[config.Secret]() {
			keys = append(keys, keysOf(inner)...)
		}
	}
	return keys
}

// TestEveryKeyIsDocumented reads the source: a field with a key has a comment of its own or its group's.
func TestEveryKeyIsDocumented(t *testing.T) {
	t.Parallel()
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	fields := 0
	for _, name := range names {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			st, ok := n.(*ast.StructType)
			if !ok {
				return true
			}
			documented := false
			for _, f := range st.Fields.List {
				if f.Tag == nil || !strings.Contains(f.Tag.Value, "yaml:") {
					continue
				}
				fields++
				documented = f.Doc != nil || documented && strings.Contains(f.Tag.Value, "data_api_base")
				if !documented {
					t.Errorf("%s: %s has no comment", name, f.Names[0].Name)
				}
			}
			return true
		})
	}
	if fields < 30 {
		t.Errorf("only %d fields seen", fields)
	}
}

func TestSecretShowsNothing(t *testing.T) {
	t.Parallel()
	const planted = "hunter2-hunter2"
	cfg := parse(t, "providers: {p: {api_key: \"${T}\"}}\nagents: {a: {models: [p/x]}}\n", map[string]string{"T": planted})
	provider := cfg.Providers["p"].OpenAI
	if got := provider.APIKey.Reveal(); got != planted {
		t.Fatalf("Reveal() = %q", got)
	}
	var log bytes.Buffer
	logger := slog.New(slog.NewJSONHandler(&log, nil))
	logger.Info("x", "secret", provider.APIKey, "provider", provider, "config", cfg)
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "secret", provider.APIKey, "provider", provider)
	marshalled, err := json.Marshal(cfg)
	if err != nil {
		t.Fatal(err)
	}
	shown := []string{log.String(), string(marshalled), errors.Join(fmt.Errorf("x: %v", *provider)).Error()}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		shown = append(shown, fmt.Sprintf(verb, provider.APIKey), fmt.Sprintf(verb, *provider), fmt.Sprintf(verb, &provider.APIKey))
	}
	for _, s := range shown {
		if strings.Contains(s, planted) || strings.Contains(s, fmt.Sprintf("%x", planted)) {
			t.Errorf("the secret is shown in %q", s)
		}
	}
	if !strings.Contains(fmt.Sprint(provider.APIKey), config.Redacted) || fmt.Sprint(config.Secret{}) != "" {
		t.Error("a secret does not tell whether it is set")
	}
}

func TestLoadFileThatCannotBeRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	large := filepath.Join(dir, "large.yaml")
	if err := os.WriteFile(large, bytes.Repeat([]byte("# x\n"), 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct{ path, want string }{
		"missing": {filepath.Join(dir, "none.yaml"), "the file does not exist"},
		"folder":  {dir, "not a regular file"},
		"large":   {large, "larger than"},
	} {
		_, problems := config.Load(tt.path, config.Options{})
		err := problems.Err()
		if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), tt.path) {
			t.Errorf("%s: error = %v, want one that names %s and says %q", name, err, tt.path, tt.want)
		}
		if _, ok := errors.AsType[*config.Error](err); !ok {
			t.Errorf("%s: error is a %T", name, err)
		}
	}
}

func TestTypeFromAVariable(t *testing.T) {
	t.Parallel()
	cfg := parse(t, `
providers: {local: {type: "${KIND}"}}
agents: {a: {models: [local/x]}}
channels: {c: {type: "${PLATFORM}", token: "${T}"}}
`, map[string]string{"KIND": "offline", "PLATFORM": "discord", "T": "d"})
	if d := cfg.Channels["c"].Discord; d == nil || d.Token.Reveal() != "d" || cfg.Providers["local"].Type != config.Offline {
		t.Errorf("config = %+v", cfg)
	}
}
