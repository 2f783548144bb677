package config

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
)

const (
	// maxAgentName leaves room for the agent's name in that of a tool, transfer_to_NAME.
	maxAgentName = 48
	// minCompactItems is the least number of items of which some can be summed up and some kept.
	minCompactItems = 20
)

// tools checks what an agent may use.
func (v *validator) tools(path string, tools []string) {
	seen := map[string]bool{}
	for i, tool := range tools {
		at := fmt.Sprintf("%s.tools[%d]", path, i)
		server, _, isMCP := MCPRef(tool)
		switch {
		case tool == "":
			continue // its own problem was reported
		case seen[tool]:
			v.problem(at, "remove one of the two", "tool %s is listed twice", quote(tool))
		case isMCP:
			v.mcpTool(at, tool)
			if whole := mcpPrefix + server; tool != whole && slices.Contains(tools, whole) {
				v.problem(at, "remove one of the two", "tool %s is one of those that %s stands for", quote(tool), quote(whole))
			}
		case v.opts.Tools != nil && !slices.Contains(v.opts.Tools, tool):
			v.unknownName(at, "tool", tool, v.knownTools())
		}
		seen[tool] = true
	}
}

// knownTools are the names that stand for tools, those of single tools of MCP servers aside.
func (v *validator) knownTools() []string {
	known := slices.Clone(v.opts.Tools)
	for _, server := range slices.Sorted(maps.Keys(v.cfg.MCP)) {
		known = append(known, mcpPrefix+server)
	}
	return known
}

// helpers checks the other agents that an agent names.
func (v *validator) helpers(name, path string, helpers []string) {
	others := slices.DeleteFunc(slices.Sorted(maps.Keys(v.cfg.Agents)), func(other string) bool { return other == name })
	seen := map[string]bool{}
	for i, helper := range helpers {
		at := fmt.Sprintf("%s[%d]", path, i)
		other, known := v.cfg.Agents[helper]
		switch {
		case helper == "":
			continue // its own problem was reported
		case helper == name:
			v.problem(at, "name another agent, or remove it", "agent %s names itself", quote(name))
		case seen[helper]:
			v.problem(at, "remove one of the two", "agent %s is listed twice", quote(helper))
		case !known:
			v.unknownName(at, "agent", helper, others)
		case other.Description == "":
			v.warning(at, "add to agents."+helper+", for example: description: knows prices and stock",
				"agents.%s.description is missing, so that agent %s can only guess from the name when to turn to it", helper, quote(name))
		}
		seen[helper] = true
	}
}

// patterns checks the regular expressions of guards.
func (v *validator) patterns(path string, patterns []string) {
	for i, p := range patterns {
		at := fmt.Sprintf("%s[%d]", path, i)
		re, err := regexp.Compile(p)
		if err != nil {
			reason := "it cannot be read"
			if se, ok := errors.AsType[*syntax.Error](err); ok {
				reason = se.Code.String()
			}
			v.problem(at, `correct it; a character that is meant literally, such as ( or *, needs a \ before it`, "%s is not a regular expression: %s", at, reason)
			continue
		}
		if re.MatchString("") {
			v.problem(at, "write a pattern that needs at least one character", "%s matches every text", at)
		}
	}
}

// history checks that there is something to sum up.
func (v *validator) history() {
	h := v.cfg.Session.History
	if h.Compact && h.MaxItems > 0 && h.MaxItems < minCompactItems {
		v.problem("session.history.compact", fmt.Sprintf("set session.history.max_items to at least %d, or remove compact", minCompactItems),
			"session.history.compact needs more items than max_items: %d lets it see", h.MaxItems)
	}
}

// credentialHeader returns the header that holds a credential, empty when there is none.
func credentialHeader(headers map[string]Secret) string {
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		if strings.EqualFold(name, "authorization") || strings.EqualFold(name, "api-key") {
			return name
		}
	}
	return ""
}

func (v *validator) providerHeaders(path string, p *OpenAIProvider) {
	v.headers(path, p.Headers)
	if name := credentialHeader(p.Headers); name != "" && !p.APIKey.IsZero() {
		v.problem(path+".headers."+name, "keep one of the two", "%s has both api_key and the header %s", path, name)
	}
}

// ownHeaders are set for each request by its content.
var ownHeaders = []string{"Accept", "Connection", "Content-Length", "Content-Type", "Host", "Transfer-Encoding"}

// headers checks headers that are added to requests.
func (v *validator) headers(path string, headers map[string]Secret) {
	seen := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		at := path + ".headers." + name
		canonical := http.CanonicalHeaderKey(name)
		if other, ok := seen[canonical]; ok {
			v.problem(at, "remove one of the two", "headers %s and %s are the same", other, name)
		}
		if slices.Contains(ownHeaders, canonical) {
			v.problem(at, "remove it", "the header %s is set by the program itself", name)
		}
		seen[canonical] = name
	}
}

// providerModels warns of what is said of models that no agent asks, which mostly is a slip.
func (v *validator) providerModels(provider, path string, p *OpenAIProvider) {
	var asked []string
	for _, a := range v.cfg.Agents {
		for _, ref := range a.Models {
			if of, model, ok := ModelRef(ref); ok && of == provider {
				asked = append(asked, model)
			}
		}
	}
	for _, model := range slices.Sorted(maps.Keys(p.Models)) {
		if slices.Contains(asked, model) {
			continue
		}
		remedy := "name it in the models of an agent, or remove it"
		if near := nearest(model, asked); near != "" {
			remedy = fmt.Sprintf("did you mean %q?", near)
		}
		v.warning(path+".models."+model, remedy, "no agent asks the model %s of provider %s", quote(model), quote(provider))
	}
}
