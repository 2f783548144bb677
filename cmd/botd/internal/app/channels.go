package app

import (
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"

	"botd/channels"
	"botd/channels/console"
	"botd/channels/discord"
	"botd/channels/dispatch"
	"botd/channels/line"
	"botd/config"
)

// channelType is how one kind of channel is made.
type channelType struct {
	// adapter makes the adapter.
	adapter func(b builder, name string, c config.Channel) (channels.Adapter, error)
	// path returns the path of the channel's webhook; nil for platforms that do not call us.
	path func(config.Channel) string
	// webhook makes the handler for the channels that share a path.
	webhook func(channels.Sink, []channels.Adapter) http.Handler
}

// channelTypes are the platforms. A new one is one line here.
var channelTypes = map[config.ChannelType]channelType{
	config.LINE:    {adapter: newLINE, path: func(c config.Channel) string { return c.LINE.WebhookPath }, webhook: lineWebhook},
	config.Discord: {adapter: newDiscord},
	config.Console: {adapter: newConsole},
}

// builder is what channels are made with.
type builder struct {
	cfg *config.Config
	log *slog.Logger
}

// channel is one channel that was built.
type channel struct {
	dispatch.Channel
	path    string
	webhook func(channels.Sink, []channels.Adapter) http.Handler
}

// buildChannels makes every configured channel, and adds those of the options.
func buildChannels(cfg *config.Config, o Options) ([]channel, error) {
	var built []channel
	for _, name := range slices.Sorted(maps.Keys(cfg.Channels)) {
		c := cfg.Channels[name]
		kind, ok := channelTypes[c.Type]
		if !ok {
			return nil, fmt.Errorf("set up channel %s: this program has no channels of type %s", name, c.Type)
		}
		adapter, err := kind.adapter(builder{cfg, o.Logger}, name, c)
		if err != nil {
			return nil, fmt.Errorf("set up channel %s: %w", name, err)
		}
		ch := channel{Channel: dispatch.Channel{
			Adapter: adapter, Agent: c.Agent, Groups: dispatch.GroupRule(c.Groups),
			Scope: scopeOf(c.Session.Scope), MergeWindow: c.MergeWindow,
			MidRun: dispatch.MidRun(c.MidRun), Admins: c.Admins,
		}, webhook: kind.webhook}
		if kind.path != nil {
			ch.path = kind.path(c)
		}
		built = append(built, ch)
	}
	for _, c := range o.Channels {
		built = append(built, channel{Channel: c})
	}
	return built, nil
}

// scopeOf is the scope as the dispatcher takes it, for whom the default is the zero value.
func scopeOf(s config.Scope) dispatch.Scope {
	if s == config.ScopeDefault {
		return ""
	}
	return dispatch.Scope(s)
}

func newLINE(b builder, name string, c config.Channel) (channels.Adapter, error) {
	o := line.Options{
		Channel: name, Secret: c.LINE.ChannelSecret.Reveal(), Token: c.LINE.ChannelAccessToken.Reveal(),
		APIBase: c.LINE.APIBase, DataBase: c.LINE.DataAPIBase, Logger: b.log,
	}
	if c.LINE.ChannelID != "" {
		tokens, err := line.NewStatelessTokens(line.StatelessOptions{ChannelID: c.LINE.ChannelID, Secret: o.Secret, APIBase: o.APIBase})
		if err != nil {
			return nil, err
		}
		o.Tokens = tokens
	}
	return line.New(o)
}

func lineWebhook(sink channels.Sink, adapters []channels.Adapter) http.Handler {
	bots := make([]*line.Adapter, len(adapters))
	for i, a := range adapters {
		bots[i] = a.(*line.Adapter)
	}
	return line.Handler(sink, bots...)
}

func newDiscord(b builder, name string, c config.Channel) (channels.Adapter, error) {
	return discord.New(discord.Options{
		Channel: name, Token: c.Discord.Token.Reveal(), MessageContent: c.Discord.MessageContent,
		APIBase: c.Discord.APIBase, Cursor: newCursor(b.cfg, name, b.log), Logger: b.log,
	})
}

func newConsole(_ builder, name string, c config.Channel) (channels.Adapter, error) {
	return console.New(console.Options{Channel: name, Listen: c.Console.Listen})
}
