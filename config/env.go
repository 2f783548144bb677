package config

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// DefaultModel is the model of a configuration from the environment that names none.
const DefaultModel = "gpt-5.4-mini"

// DefaultConsoleListen is where a console channel listens unless told otherwise.
const DefaultConsoleListen = "127.0.0.1:8081"

// nothingSet is what a newcomer reads who starts the program without anything.
const nothingSet = `there is no configuration file and no known environment variable is set. Three ways to begin:
     botd demo   see everything at work, with no account and no key
     botd chat   talk to the bot in this terminal
     botd init   write a short configuration, botd.yaml; then: botd run
   or set OPENAI_API_KEY and one of
     LINE_CHANNEL_SECRET with LINE_CHANNEL_ACCESS_TOKEN, or DISCORD_TOKEN
   and run botd again`

// environment collects a configuration from variables.
type environment struct {
	lookup   func(string) (string, bool)
	yaml     strings.Builder
	problems Problems
}

// get returns whether NAME or, where allowed, NAME_FILE is set to something, as the YAML line for the last key
// of path. The line is empty when a problem was reported.
func (e *environment) get(name, path string, file bool) (line string, ok bool) {
	key := path[strings.LastIndexByte(path, '.')+1:]
	_, set := e.value(name)
	_, fileSet := "", false
	if file {
		_, fileSet = e.value(name + "_FILE")
	}
	switch {
	case set && fileSet:
		e.problems = append(e.problems, Problem{Severity: SeverityError, Path: path, Message: fmt.Sprintf("both %s and %s_FILE are set", name, name), Remedy: "unset one of the two"})
		return "", true
	case set:
		return fmt.Sprintf("%s: \"${%s}\"\n", key, name), true
	case fileSet:
		return fmt.Sprintf("%s_file: \"${%s_FILE}\"\n", key, name), true
	}
	return "", false
}

func (e *environment) value(name string) (string, bool) {
	v, ok := e.lookup(name)
	return v, ok && v != ""
}

func (e *environment) missing(name, path, remedy string) {
	e.problems = append(e.problems, Problem{Severity: SeverityError, Path: path, Message: "the environment variable " + name + " is not set", Remedy: remedy})
}

// FromEnv builds the configuration from the environment alone:
//
//	OPENAI_API_KEY, OPENAI_BASE_URL     the provider
//	BOTD_MODEL                          the model (default: DefaultModel); "offline" is the built-in one
//	BOTD_INSTRUCTIONS                   what the assistant is told
//	LINE_CHANNEL_SECRET, LINE_CHANNEL_ACCESS_TOKEN   a channel named line
//	DISCORD_TOKEN                       a channel named discord
//	BOTD_STORE, BOTD_LISTEN, BOTD_PUBLIC_URL, BOTD_LOG_LEVEL, BOTD_LOG_FORMAT
//
// Secrets can be named by a file: OPENAI_API_KEY_FILE and so on. With a model and no platform there is a
// channel named console on loopback, at BOTD_CONSOLE_LISTEN. Without any of the first six kinds there is nothing to build.
func FromEnv(o Options) (*Config, Problems) {
	if o.LookupEnv == nil {
		o.LookupEnv = os.LookupEnv
	}
	e := &environment{lookup: o.LookupEnv}
	text, ok := e.build()
	if !ok {
		return nil, Problems{{Severity: SeverityError, Message: nothingSet}}
	}
	if slices.ContainsFunc(e.problems, func(p Problem) bool { return !p.OfChannel() && p.Severity == SeverityError }) {
		return nil, e.problems
	}
	cfg, problems := Parse("", []byte(text), o)
	for i := range problems { // the text was made here: places in it mean nothing to anybody
		problems[i].Line, problems[i].Column, problems[i].Snippet = 0, 0, ""
	}
	return cfg, append(e.problems, problems...)
}

// NothingSet reports that there is neither a file nor a variable to configure anything.
func (ps Problems) NothingSet() bool { return len(ps) == 1 && ps[0].Message == nothingSet }

// build writes the YAML that the environment stands for.
func (e *environment) build() (text string, ok bool) {
	model, provider := e.provider()
	channels := e.channels()
	instructions, instructed := e.get("BOTD_INSTRUCTIONS", "agents.assistant.instructions", true)
	if provider == "" && channels == "" && !instructed && len(e.problems) == 0 {
		return "", false
	}
	if provider == "" && !slices.ContainsFunc(e.problems, func(p Problem) bool { return !p.OfChannel() }) {
		e.missing("OPENAI_API_KEY", "providers", "set it, or set OPENAI_BASE_URL and BOTD_MODEL for another server, or BOTD_MODEL=offline for the built-in model")
	}
	if channels == "" {
		channels = e.console()
	}
	e.section("store", "BOTD_STORE", "")
	e.section("listen", "BOTD_LISTEN", "server")
	e.section("public_url", "BOTD_PUBLIC_URL", "server")
	e.section("level", "BOTD_LOG_LEVEL", "log")
	e.section("format", "BOTD_LOG_FORMAT", "log")
	fmt.Fprintf(&e.yaml, "providers:\n%sagents:\n  assistant:\n    models: [%q]\n", provider, model)
	if instructed {
		e.yaml.WriteString("    " + instructions)
	}
	e.yaml.WriteString("channels:\n" + channels)
	return e.yaml.String(), true
}

// section writes one key from one variable, below a section that is opened at its first key.
func (e *environment) section(key, name, section string) {
	line, ok := e.get(name, key, false)
	if !ok {
		return
	}
	if section == "" {
		e.yaml.WriteString(line)
		return
	}
	head := section + ":\n"
	if !strings.Contains(e.yaml.String(), head) {
		e.yaml.WriteString(head)
	}
	e.yaml.WriteString("  " + line)
}

// provider returns the model reference and the providers section, empty when nothing names a model.
func (e *environment) provider() (model, section string) {
	name, named := e.value("BOTD_MODEL")
	if name == "offline" || strings.HasPrefix(name, "offline/") {
		return "offline/offline", "  offline:\n    type: offline\n"
	}
	key, haveKey := e.get("OPENAI_API_KEY", "providers.openai.api_key", true)
	base, haveBase := e.get("OPENAI_BASE_URL", "providers.openai.base_url", false)
	if !haveKey && !haveBase {
		if named {
			e.missing("OPENAI_API_KEY", "providers", "set it, or set OPENAI_BASE_URL for a server that needs no key")
		}
		return "", ""
	}
	if haveBase && !named {
		e.missing("BOTD_MODEL", "agents.assistant.models", "set it to a model that the server at OPENAI_BASE_URL has")
	}
	if !named {
		name = DefaultModel
	}
	section = "  openai:\n    type: openai\n"
	for _, line := range []string{key, base} {
		if line != "" {
			section += "    " + line
		}
	}
	return "openai/" + strings.TrimPrefix(escapeDollar(name), "openai/"), section
}

func escapeDollar(s string) string { return strings.ReplaceAll(s, "$", "$$") }

func (e *environment) channels() (section string) {
	secret, haveSecret := e.get("LINE_CHANNEL_SECRET", "channels.line.channel_secret", true)
	token, haveToken := e.get("LINE_CHANNEL_ACCESS_TOKEN", "channels.line.channel_access_token", true)
	switch {
	case haveSecret && haveToken:
		if secret != "" && token != "" {
			section += "  line:\n    type: line\n    " + secret + "    " + token
		}
	case haveSecret:
		e.missing("LINE_CHANNEL_ACCESS_TOKEN", "channels.line.channel_access_token", "set it too: LINE Developers Console, your channel, tab Messaging API")
	case haveToken:
		e.missing("LINE_CHANNEL_SECRET", "channels.line.channel_secret", "set it too: LINE Developers Console, your channel, tab Basic settings")
	}
	if token, _ := e.get("DISCORD_TOKEN", "channels.discord.token", true); token != "" {
		section += "  discord:\n    type: discord\n    " + token
	}
	return section
}

// console is the channel of an environment without a platform, which is a surprise unless it was asked for.
func (e *environment) console() (section string) {
	section = "  console:\n    type: console\n"
	if line, ok := e.get("BOTD_CONSOLE_LISTEN", "channels.console.listen", false); ok {
		return section + "    " + line
	}
	if len(e.problems) == 0 {
		e.problems = append(e.problems, Problem{
			Severity: SeverityWarning, Path: "channels",
			Message: "no LINE or Discord account is set, so the bot can be reached only from this machine, at http://" + DefaultConsoleListen,
			Remedy:  "set LINE_CHANNEL_SECRET with LINE_CHANNEL_ACCESS_TOKEN, or DISCORD_TOKEN; to mean it, set BOTD_CONSOLE_LISTEN",
		})
	}
	return section
}
