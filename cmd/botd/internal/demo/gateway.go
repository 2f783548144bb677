package demo

import (
	"fmt"
	"path/filepath"

	"botd/agent"
	"botd/agent/offline"
	"botd/cmd/botd/internal/app"
	"botd/config"
)

const webhookPath = "/webhook/line"

// instructions are those of the demonstration's agent.
const instructions = `You are botd's demonstration assistant, in a chat on LINE or Discord. Be friendly and brief: answer in a few sentences, in the language of the person. You remember the conversation. Ask the clock tool for times and dates.`

// configuration is the gateway's, as a file would hold it.
const configuration = `
store: %q
server: {listen: "127.0.0.1:0"}
providers:
  model: {type: %s}
agents:
  assistant: {instructions: %q, models: [%q], tools: [clock]}
channels:
  line:
    type: line
    channel_secret: ${LINE_SECRET}
    channel_access_token: ${LINE_TOKEN}
    webhook_path: %q
    api_base: %q
    data_api_base: %q
  discord: {type: discord, token: "${DISCORD_TOKEN}", api_base: %q}
limits: {grace: 3s}
`

func newGateway(o Options, data string, w *world) (*app.App, error) {
	provider, model := "offline", "model/offline"
	if o.real() {
		provider, model = "openai", "model/"+o.Model
	}
	path, err := filepath.Abs(filepath.Join(data, "botd.db"))
	if err != nil {
		return nil, fmt.Errorf("find the folder of the data: %w", err)
	}
	if provider == "openai" {
		provider = "openai, api_key: \"${API_KEY}\""
		if o.BaseURL != "" {
			provider += fmt.Sprintf(", base_url: %q", o.BaseURL)
		}
	}
	source := fmt.Sprintf(configuration, "bbolt://"+path, provider, instructions, model,
		webhookPath, w.line.URL(), w.line.URL(), w.discord.URL())
	secrets := map[string]string{
		"LINE_SECRET": w.bot.Secret, "LINE_TOKEN": w.bot.Token, "DISCORD_TOKEN": w.discordToken, "API_KEY": o.APIKey,
	}
	cfg, problems := config.Parse("demo.yaml", []byte(source), config.Options{
		LookupEnv: func(name string) (string, bool) {
			v, ok := secrets[name]
			return v, ok
		},
		Stores: app.Stores(), Tools: app.Tools(),
	})
	if err := problems.Err(); err != nil {
		return nil, fmt.Errorf("configure the gateway: %w", err)
	}
	models := map[string]agent.Model{}
	if !o.real() {
		models["model"] = offline.New(offline.Options{WordDelay: o.WordDelay})
	}
	gateway, err := app.New(cfg, app.Options{Logger: o.Logger, Version: o.Version, Models: models})
	if err != nil {
		return nil, fmt.Errorf("start the gateway: %w", err)
	}
	return gateway, nil
}

// real reports whether a real model answers.
func (o Options) real() bool { return o.APIKey != "" || o.BaseURL != "" }
