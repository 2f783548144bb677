package app

import (
	"crypto/sha256"
	"fmt"
	"log/slog"
	"maps"
	"slices"

	"botd/agent"
	"botd/agent/mcp"
	"botd/agent/offline"
	"botd/agent/openai"
	"botd/agent/tools"
	"botd/config"
)

// providers makes the model of a provider. A new kind of provider is one line here.
var providers = map[config.ProviderType]func(config.Provider, *slog.Logger) (agent.Model, error){
	config.OpenAI:  newOpenAI,
	config.Offline: func(config.Provider, *slog.Logger) (agent.Model, error) { return offline.New(offline.Options{}), nil },
}

// builtinTools are the tools that agents can be given by name.
var builtinTools = map[string]agent.Tool{
	tools.ClockName: tools.NewClock(tools.ClockOptions{}),
}

// Tools returns the names of the tools that agents can be given, sorted.
func Tools() []string { return slices.Sorted(maps.Keys(builtinTools)) }

// The names of the configuration for what the provider package numbers.
var (
	apis     = map[string]openai.API{"auto": openai.Auto, "responses": openai.Responses, "chat": openai.Chat}
	dialects = map[string]openai.Dialect{"openai": openai.OpenAI, "azure": openai.Azure, "generic": openai.Generic}
)

func newOpenAI(p config.Provider, log *slog.Logger) (agent.Model, error) {
	return openai.New(openai.Options{
		BaseURL: p.OpenAI.BaseURL, APIKey: p.OpenAI.APIKey.Reveal(), Headers: revealed(p.OpenAI.Headers),
		API: apis[p.OpenAI.API], Dialect: dialects[p.OpenAI.Dialect], Logger: log,
	})
}

// revealed are the values of secrets by name.
func revealed(secrets map[string]config.Secret) map[string]string {
	out := make(map[string]string, len(secrets))
	for name, s := range secrets {
		out[name] = s.Reveal()
	}
	return out
}

// buildEngine makes the engine with every configured agent.
func buildEngine(cfg *config.Config, servers map[string]*mcp.Server, hooks agent.Hooks, o Options) (*agent.Engine, error) {
	models, err := buildModels(cfg, o)
	if err != nil {
		return nil, err
	}
	var agents []agent.Agent
	for _, name := range slices.Sorted(maps.Keys(cfg.Agents)) {
		built, err := buildAgent(cfg, name, models, servers)
		if err != nil {
			return nil, fmt.Errorf("set up agent %s: %w", name, err)
		}
		agents = append(agents, built)
	}
	history := cfg.Session.History
	engine, err := agent.New(agent.Options{
		Hooks: hooks, Agents: agents, Logger: o.Logger, Secret: identifierKey(cfg),
		Budget: agent.Budget{MaxItems: history.MaxItems, MaxTokens: history.MaxTokens}, Compact: history.Compact,
	})
	if err != nil {
		return nil, fmt.Errorf("set up agents: %w", err)
	}
	return engine, nil
}

// buildModels makes the model of every provider, by the provider's name.
func buildModels(cfg *config.Config, o Options) (map[string]agent.Model, error) {
	models := maps.Clone(o.Models)
	if models == nil {
		models = map[string]agent.Model{}
	}
	for name, p := range cfg.Providers {
		if models[name] != nil {
			continue
		}
		m, err := providers[p.Type](p, o.Logger.With("provider", name))
		if err != nil {
			return nil, fmt.Errorf("set up provider %s: %w", name, err)
		}
		models[name] = m
	}
	return models, nil
}

func buildAgent(cfg *config.Config, name string, models map[string]agent.Model, servers map[string]*mcp.Server) (agent.Agent, error) {
	a := cfg.Agents[name]
	built := agent.Agent{
		Name: name, Description: a.Description, Instructions: a.Instructions, Temperature: a.Temperature,
		MaxOutputTokens: a.MaxOutputTokens, MaxModelCalls: a.MaxTurns,
		Handoffs: a.Handoffs, Consults: a.Consults, Refusal: a.Guards.Refusal,
	}
	for _, ref := range a.Models {
		provider, model, _ := config.ModelRef(ref)
		built.Models = append(built.Models, agent.ModelRef{
			Model: models[provider], Name: model, Provider: provider, Window: windowOf(cfg.Providers[provider], model),
		})
	}
	some := map[string][]string{}
	for _, tool := range a.Tools {
		server, own, isMCP := config.MCPRef(tool)
		switch {
		case !isMCP:
			built.Tools = append(built.Tools, builtinTools[tool])
		case own == "":
			built.Toolsets = append(built.Toolsets, servers[server])
		default:
			some[server] = append(some[server], own)
		}
	}
	for _, server := range slices.Sorted(maps.Keys(some)) {
		built.Toolsets = append(built.Toolsets, servers[server].Only(some[server]...))
	}
	var err error
	built.InputGuards, built.OutputGuards, err = buildGuards(a.Guards)
	return built, err
}

// windowOf is the window of a provider's model, 0 when it is not known.
func windowOf(p config.Provider, model string) int {
	if p.OpenAI == nil {
		return 0
	}
	return p.OpenAI.Models[model].Window
}

// DefaultAgent names the agent that answers where none is named: the first by name.
func DefaultAgent(cfg *config.Config) string {
	return slices.Min(slices.Collect(maps.Keys(cfg.Agents)))
}

// identifierKey keys the opaque identifiers that providers see instead of sessions and people. It is made
// from a secret that exists anyway, so that they are the same after a restart and nobody else can make
// them; they change with that secret.
func identifierKey(cfg *config.Config) []byte {
	h := sha256.New()
	fmt.Fprint(h, "botd identifiers")
	for _, name := range slices.Sorted(maps.Keys(cfg.Providers)) {
		if p := cfg.Providers[name].OpenAI; p != nil {
			fmt.Fprintf(h, "\x00%s", p.APIKey.Reveal())
			for _, name := range slices.Sorted(maps.Keys(p.Headers)) {
				fmt.Fprintf(h, "\x00%s", p.Headers[name].Reveal()) // the key may be in one of them
			}
		}
	}
	return h.Sum(nil)
}
