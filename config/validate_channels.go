package config

import (
	"maps"
	"net"
	"slices"
	"strings"
)

func (v *validator) channel(name string) {
	ch := v.cfg.Channels[name]
	path := "channels." + name
	v.channelAgent(path, &ch)
	if ch.Session.Scope == "" {
		ch.Session.Scope = v.cfg.Session.Scope
	}
	if ch.Groups == GroupsAll && ch.Console == nil {
		v.warning(path+".groups", "use groups: mention unless the rooms are meant for the bot",
			"%s answers everything that anybody says in its rooms", path)
	}
	switch {
	case ch.LINE != nil:
		v.line(name, path, ch.LINE)
	case ch.Discord != nil:
		v.discord(path, ch)
	case ch.Console != nil:
		if host, ok := v.listen(path+".listen", ch.Console.Listen); ok && !isLoopback(host) {
			v.problem(path+".listen", "listen on 127.0.0.1; there is no authentication", "%s.listen is not a loopback address", path)
		}
	}
	v.cfg.Channels[name] = ch
}

func (v *validator) channelAgent(path string, ch *Channel) {
	names := slices.Sorted(maps.Keys(v.cfg.Agents))
	_, given := v.marks[path+".agent"]
	_, known := v.cfg.Agents[ch.Agent]
	switch {
	case known || len(names) == 0:
	case ch.Agent != "":
		v.unknownName(path+".agent", "agent", ch.Agent, names)
	case given: // its own problem was reported
	case len(names) == 1:
		ch.Agent = names[0]
	default:
		v.problem(path+".agent", "add agent: with one of: "+strings.Join(names, ", "), "%s.agent is missing, and there are several agents", path)
	}
}

// ownPaths are served by botd itself.
var ownPaths = []string{"/healthz", "/readyz"}

func (v *validator) line(name, path string, l *LINEChannel) {
	if _, given := v.marks[path+".webhook_path"]; !given {
		l.WebhookPath = "/webhook/" + name
	}
	switch p := l.WebhookPath; {
	case p == "": // its own problem was reported
	case p[0] != '/' || p == "/" || strings.ContainsAny(p, "?#{} %") || strings.Contains(p, "//") || strings.Contains(p, "/."):
		v.problem(path+".webhook_path", "write a plain path such as /webhook/"+name, "%s.webhook_path is not a usable path", path)
	case slices.Contains(ownPaths, p):
		v.problem(path+".webhook_path", "write another path such as /webhook/"+name, "%s.webhook_path is used by botd itself", path)
	}
	v.apiBase(path+".api_base", l.APIBase)
	v.apiBase(path+".data_api_base", l.DataAPIBase)
	if strings.Trim(l.ChannelID, "0123456789") != "" {
		v.problem(path+".channel_id", "copy the Channel ID, which is digits alone, from the tab Basic settings of the channel in the LINE Developers Console", "%s.channel_id is not a channel ID", path)
	}
	v.secret(path+".channel_secret", l.ChannelSecret)
	v.secret(path+".channel_access_token", l.ChannelAccessToken)
	if v.cfg.Server.PublicURL == "" && isOfficial(l.APIBase) {
		v.warning(path, "set server.public_url to the https:// address of this server, and register that address followed by "+l.WebhookPath+" in the LINE Developers Console",
			"LINE needs a public https address to deliver messages to, and server.public_url is not set")
	}
}

func isOfficial(apiBase string) bool { return apiBase == "https://api.line.me" }

func (v *validator) discord(path string, ch Channel) {
	v.apiBase(path+".api_base", ch.Discord.APIBase)
	v.secret(path+".token", ch.Discord.Token)
	if ch.Groups == GroupsAll && !ch.Discord.MessageContent {
		v.problem(path+".groups", "add message_content: true and switch on the Message Content Intent in the Discord Developer Portal, or use groups: mention",
			"groups: all needs message_content, without which Discord hides the text of messages that do not mention the bot")
	}
}

func (v *validator) apiBase(path, text string) {
	if u, ok := v.url(path, text); ok && u.Scheme == "http" && !isLoopback(u.Hostname()) {
		v.problem(path, "use https://; http is only for tests on this machine", "%s would send the token unencrypted", path)
	}
}

// secret reports a credential that two channels share: both would answer the same messages.
func (v *validator) secret(path string, s Secret) {
	if s.IsZero() {
		return
	}
	if other, ok := v.secrets[s]; ok {
		v.problem(path, "give each channel its own credentials, or remove one of the two", "%s is the same secret as %s", path, other)
		return
	}
	v.secrets[s] = path
}

// listeners reports two listeners on one address.
func (v *validator) listeners() {
	used := map[string]string{}
	add := func(path, addr string) {
		_, port, err := net.SplitHostPort(addr)
		if err != nil || port == "0" {
			return
		}
		if other, ok := used[port]; ok {
			v.problem(path, "use another port", "%s uses the same port as %s", path, other)
			return
		}
		used[port] = path
	}
	add("server.listen", v.cfg.Server.Listen)
	add("metrics.listen", v.cfg.Metrics.Listen)
	for _, name := range slices.Sorted(maps.Keys(v.cfg.Channels)) {
		if c := v.cfg.Channels[name].Console; c != nil {
			add("channels."+name+".listen", c.Listen)
		}
	}
}
