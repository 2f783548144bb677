package config

import (
	"fmt"
	"maps"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// validator checks what a single value cannot tell: names, addresses, and what belongs together.
type validator struct {
	*decoder
	cfg  *Config
	opts Options
	// secrets are the credentials of channels seen so far, with the path of each.
	secrets map[Secret]string
}

func (v *validator) problem(path, remedy, format string, args ...any) {
	v.errorf(v.where(path), path, remedy, format, args...)
}

func (v *validator) warning(path, remedy, format string, args ...any) {
	v.report(SeverityWarning, v.where(path), path, fmt.Sprintf(format, args...), remedy)
}

func (v *validator) validate() {
	v.secrets = map[Secret]string{}
	v.store()
	v.listen("server.listen", v.cfg.Server.Listen)
	v.publicURL()
	v.observing()
	v.adminSocket()
	for _, name := range slices.Sorted(maps.Keys(v.cfg.Providers)) {
		v.provider(name)
	}
	if len(v.cfg.Agents) == 0 && !v.undecoded("agents", v.cfg.Agents == nil) {
		v.problem("agents", "add one:\n          agents:\n            assistant:\n              models: [openai/gpt-5.4-mini]", "no agent is configured")
	}
	for _, name := range slices.Sorted(maps.Keys(v.cfg.MCP)) {
		v.mcpServer(name, v.cfg.MCP[name])
	}
	for _, name := range slices.Sorted(maps.Keys(v.cfg.Agents)) {
		v.agent(name, v.cfg.Agents[name])
	}
	v.history()
	v.usage()
	if len(v.cfg.Channels) == 0 && !v.undecoded("channels", v.cfg.Channels == nil) {
		v.warning("channels", "add a channel, or talk to the bot in the terminal: botd chat", "no channel is configured, so nobody can reach the bot")
	}
	for _, name := range slices.Sorted(maps.Keys(v.cfg.Channels)) {
		v.channel(name)
	}
	v.listeners()
}

// undecoded reports that path is given but was of a wrong type, which is a problem of its own.
func (v *validator) undecoded(path string, empty bool) bool {
	_, given := v.marks[path]
	return given && empty
}

func (v *validator) store() {
	if v.cfg.Store == "" {
		return
	}
	scheme, rest, ok := strings.Cut(v.cfg.Store, ":")
	switch {
	case !ok || strings.ContainsAny(scheme, `/\.`):
		v.problem("store", `write bbolt:///absolute/path, bbolt://./relative/path or "memory:", the last in quotes`, "store must be a URL, not a bare path")
	case v.opts.Stores != nil && !slices.Contains(v.opts.Stores, scheme):
		v.problem("store", "use one of: "+storeSchemes(v.opts.Stores), "store has the unknown scheme %s", quote(scheme))
	case scheme == "memory" && rest != "":
		v.problem("store", `write "memory:" alone, in quotes`, "the memory store takes no path")
	case scheme == "memory":
		v.warning("store", "use bbolt:// to keep conversations", "the store is in memory: conversations and unanswered messages are lost at every restart")
	case scheme == "bbolt":
		if _, err := BoltPath(v.cfg.Store); err != nil {
			v.problem("store", "write bbolt:///absolute/path or bbolt://./relative/path", "%v", err)
		}
	}
}

// storeSchemes lists the schemes as they are written, of which one that stands alone needs quotes.
func storeSchemes(schemes []string) string {
	written := make([]string, len(schemes))
	for i, s := range schemes {
		if written[i] = s + "://…"; s == "memory" {
			written[i] = `"memory:"`
		}
	}
	return strings.Join(written, ", ")
}

// BoltPath returns the file path in a bbolt URL.
func BoltPath(storeURL string) (string, error) {
	path, ok := strings.CutPrefix(storeURL, "bbolt://")
	switch {
	case !ok:
		return "", fmt.Errorf("store %s is not a bbolt:// URL", quote(storeURL))
	case strings.HasPrefix(path, "/") || strings.HasPrefix(path, "./") || strings.HasPrefix(path, "../"):
	default:
		return "", fmt.Errorf("the path in %s begins with neither / nor ./", quote(storeURL))
	}
	if strings.HasSuffix(path, "/") {
		return "", fmt.Errorf("the path in %s names a folder, not a file", quote(storeURL))
	}
	return path, nil
}

// listen checks a host:port; it reports whether the address is usable.
func (v *validator) listen(path, addr string) (host string, ok bool) {
	if addr == "" {
		return "", false
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		v.problem(path, `write "host:port", or ":8080" for every interface (an IPv6 host in brackets)`, "%s must be host:port, not %s", path, quote(addr))
		return "", false
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		v.problem(path, "use a port from 1 to 65535 (0 lets the system choose)", "%s has the invalid port %s", path, quote(port))
		return "", false
	}
	if strings.ContainsAny(host, " /") {
		v.problem(path, "write a host name or IP address, without http://", "%s has the invalid host %s", path, quote(host))
		return "", false
	}
	return host, true
}

// url checks an http or https URL.
func (v *validator) url(path, text string) (*url.URL, bool) {
	if text == "" {
		return nil, false // its own problem was reported
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		v.problem(path, "write it as https://host or https://host/path", "%s is not an http or https URL", path)
		return nil, false
	}
	if u.User != nil {
		v.problem(path, "remove user and password from the URL", "%s holds credentials", path)
		return nil, false
	}
	return u, true
}

func (v *validator) publicURL() {
	if v.cfg.Server.PublicURL == "" {
		return
	}
	u, ok := v.url("server.public_url", v.cfg.Server.PublicURL)
	switch {
	case !ok:
	case u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Fragment != "":
		v.problem("server.public_url", "write only https://host; webhook paths are added to it", "server.public_url must not have a path")
	case u.Scheme != "https" && !isLoopback(u.Hostname()):
		v.warning("server.public_url", "put a TLS proxy in front and write its https:// address", "server.public_url is not https, which platforms demand of webhooks")
	case exampleHost.MatchString(u.Hostname()):
		v.warning("server.public_url", "write the https:// address under which this server is reached, or remove it when no channel is LINE",
			"server.public_url is an example: nobody can be reached at %s", u.Hostname())
	}
}

// exampleHost matches names that are reserved for documents (RFC 2606).
var exampleHost = regexp.MustCompile(`(?i)(^|\.)(example\.(com|net|org)|example|invalid)$`)

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func (v *validator) provider(name string) {
	p := v.cfg.Providers[name]
	if p.OpenAI == nil {
		return
	}
	path := "providers." + name
	u, ok := v.url(path+".base_url", p.OpenAI.BaseURL)
	if !ok {
		return
	}
	if p.OpenAI.Dialect == "" {
		p.OpenAI.Dialect = dialectOf(u.Hostname())
	}
	v.providerHeaders(path, p.OpenAI)
	v.providerModels(name, path, p.OpenAI)
	_, given := v.marks[path+".api_key"]
	if p.OpenAI.APIKey.IsZero() && !given && p.OpenAI.Dialect != "generic" && credentialHeader(p.OpenAI.Headers) == "" {
		v.problem(path+".api_key", "add api_key: ${OPENAI_API_KEY} or api_key_file: /path/to/file", "%s.api_key is missing", path)
	}
	if u.Scheme == "http" && (!p.OpenAI.APIKey.IsZero() || len(p.OpenAI.Headers) > 0) && !isLoopback(u.Hostname()) {
		v.warning(path+".base_url", "use https:// unless the network between is trusted", "%s.base_url sends the key and all messages unencrypted", path)
	}
}

// dialectOf tells the dialect from the host of the API.
func dialectOf(host string) string {
	switch {
	case host == "api.openai.com" || strings.HasSuffix(host, ".api.openai.com"):
		return "openai"
	case strings.HasSuffix(host, ".openai.azure.com") || strings.HasSuffix(host, ".services.ai.azure.com"):
		return "azure"
	default:
		return "generic"
	}
}

func (v *validator) agent(name string, a Agent) {
	path := "agents." + name
	if _, given := v.marks[path+".models"]; given && a.Models != nil && len(a.Models) == 0 {
		v.problem(path+".models", "add at least one provider/model", "%s.models is empty", path)
	}
	for i, ref := range a.Models {
		v.modelRef(fmt.Sprintf("%s.models[%d]", path, i), ref)
	}
	if len(name) > maxAgentName {
		v.problem(path, "use a shorter name", "the agent's name is %d characters long, and may have %d", len(name), maxAgentName)
	}
	v.tools(path, a.Tools)
	v.helpers(name, path+".handoffs", a.Handoffs)
	v.helpers(name, path+".consults", a.Consults)
	v.patterns(path+".guards.block_input", a.Guards.BlockInput)
	v.patterns(path+".guards.block_output", a.Guards.BlockOutput)
}

// ModelRef splits provider/model at the first slash; a model's name may have more of them.
func ModelRef(ref string) (provider, model string, ok bool) {
	provider, model, ok = strings.Cut(ref, "/")
	return provider, model, ok && provider != "" && model != ""
}

func (v *validator) modelRef(path, ref string) {
	if ref == "" {
		return // its own problem was reported
	}
	provider, _, ok := ModelRef(ref)
	if !ok {
		v.problem(path, "write provider/model, for example openai/gpt-5.4-mini", "%s is not provider/model", quote(ref))
		return
	}
	if _, ok := v.cfg.Providers[provider]; !ok {
		v.unknownName(path, "provider", provider, slices.Sorted(maps.Keys(v.cfg.Providers)))
	}
}

// unknownName reports a reference to something that is not defined.
func (v *validator) unknownName(path, what, name string, defined []string) {
	var remedy string
	switch near := nearest(name, defined); {
	case near != "":
		remedy = fmt.Sprintf("did you mean %q?", near)
	case len(defined) > 0:
		remedy = fmt.Sprintf("use one of: %s", strings.Join(defined, ", "))
	default:
		remedy = fmt.Sprintf("define it under %ss", what)
	}
	v.problem(path, remedy, "there is no %s named %s", what, quote(name))
}
