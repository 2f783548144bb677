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

// configuration is the gateway's, as a file would hold it; what differs from run to run comes by
// variables, but for the keys of the provider.
const configuration = `
store: ${STORE}
server: {listen: "127.0.0.1:0"}
providers:
  model: {%s}
agents:
  assistant:
    instructions: |
      You are botd's demonstration assistant, in a chat on LINE or Discord. Be friendly and brief: answer in a
      few sentences, in the language of the person. You remember the conversation. Ask the clock tool for times
      and dates.
    models: ["${MODEL}"]
    tools: [clock]
channels:
  line:
    type: line
    channel_secret: ${LINE_SECRET}
    channel_access_token: ${LINE_TOKEN}
    webhook_path: ${WEBHOOK_PATH}
    api_base: ${LINE_BASE}
    data_api_base: ${LINE_BASE}
    admins: ["${LINE_ADMIN}"]
  discord:
    type: discord
    token: ${DISCORD_TOKEN}
    api_base: ${DISCORD_BASE}
    admins: ["${DISCORD_ADMIN}"]
limits: {grace: 3s}
`

func newGateway(o Options, data string, w *world) (*app.App, error) {
	path, err := filepath.Abs(filepath.Join(data, "botd.db"))
	if err != nil {
		return nil, fmt.Errorf("find the folder of the data: %w", err)
	}
	variables := map[string]string{
		"STORE": "bbolt://" + path, "MODEL": "model/offline", "API_KEY": o.APIKey, "BASE_URL": o.BaseURL,
		"WEBHOOK_PATH": webhookPath, "LINE_SECRET": w.bot.Secret, "LINE_TOKEN": w.bot.Token, "LINE_BASE": w.line.URL(),
		"LINE_ADMIN": w.host("line"), "DISCORD_ADMIN": w.host("discord"),
		"DISCORD_TOKEN": w.discordToken, "DISCORD_BASE": w.discord.URL(),
	}
	provider, models := "type: offline", map[string]agent.Model{"model": offline.New(offline.Options{WordDelay: o.WordDelay})}
	if o.real() {
		provider, models = "type: openai", nil
		variables["MODEL"] = "model/" + o.Model
		if o.APIKey != "" {
			provider += ", api_key: \"${API_KEY}\""
		}
		if o.BaseURL != "" {
			provider += ", base_url: \"${BASE_URL}\""
		}
	}
	cfg, problems := config.Parse("demo.yaml", fmt.Appendf(nil, configuration, provider), config.Options{
		LookupEnv: func(name string) (string, bool) {
			v, ok := variables[name]
			return v, ok
		},
		Stores: app.Stores(), Tools: app.Tools(),
	})
	if err := problems.Err(); err != nil {
		return nil, fmt.Errorf("configure the gateway: %w", err)
	}
	gateway, err := app.New(cfg, app.Options{Logger: o.Logger, Version: o.Version, Models: models})
	if err != nil {
		return nil, fmt.Errorf("start the gateway: %w", err)
	}
	return gateway, nil
}

// real reports whether a real model answers.
func (o Options) real() bool { return o.APIKey != "" || o.BaseURL != "" }
