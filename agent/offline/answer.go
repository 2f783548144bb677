package offline

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"botd/agent"
)

// clockTool is the tool that answers questions about the time.
const clockTool = "clock"

const (
	intro = "I am botd's built-in offline model: no AI, just a few fixed rules, so that you can see the gateway work without a key."
	hints = "Try: **my name is …**, **what is my name?**, **remember …**, **what do you remember?**, **what time is it in Tokyo?**"
)

var (
	nameIs     = regexp.MustCompile(`(?i)\b(?:my name is|i am called|call me|ich heiße|je m'appelle|me llamo)\s+([\p{L}\p{M}][\p{L}\p{M}'’-]*)|(?:名前は|わたしは|私は)\s*([\p{L}\p{M}ー]+?)(?:です|と言います|$)`)
	nameAsked  = regexp.MustCompile(`(?i)\b(?:what(?:'s|’s| is) my name|who am i|wie heiße ich|comment je m'appelle|cómo me llamo)\b|私の名前は(?:何|なん)`)
	rememberIt = regexp.MustCompile(`(?is)^\W*(?:please\s+)?(?:remember|merke? dir|覚えて[:：]?)\s*(?:that\s+|:\s*|,\s*)?(.+)$`)
	recall     = regexp.MustCompile(`(?i)\b(?:what|which|do|did)\b.*\bremember\b|\brecall\b|何を覚えて`)
	timeAsked  = regexp.MustCompile(`(?i)\b(?:time|clock|date|today|day is it|uhr|uhrzeit|spät|heure|hora)\b|何時|時刻|今日|几点|幾點|몇\s*시|กี่โมง`)
	zoneNamed  = regexp.MustCompile(`\b[A-Z][A-Za-z]+/[A-Z][A-Za-z_]+\b`)
	help       = regexp.MustCompile(`(?i)^\W*(?:help|what can you do|hilfe|aide|ayuda|ヘルプ)\W*$`)
)

// cities are the places whose zone the model knows by heart.
var cities = []struct{ name, zone string }{
	{"tokyo", "Asia/Tokyo"},
	{"東京", "Asia/Tokyo"},
	{"taipei", "Asia/Taipei"},
	{"bangkok", "Asia/Bangkok"},
	{"singapore", "Asia/Singapore"},
	{"seoul", "Asia/Seoul"},
	{"delhi", "Asia/Kolkata"},
	{"sydney", "Australia/Sydney"},
	{"london", "Europe/London"},
	{"paris", "Europe/Paris"},
	{"berlin", "Europe/Berlin"},
	{"madrid", "Europe/Madrid"},
	{"new york", "America/New_York"},
	{"chicago", "America/Chicago"},
	{"los angeles", "America/Los_Angeles"},
	{"san francisco", "America/Los_Angeles"},
	{"são paulo", "America/Sao_Paulo"},
	{"sao paulo", "America/Sao_Paulo"},
}

// answer gives the text of the answer, or the call of a tool whose output it needs first.
func answer(c conversation, req *agent.Request) (text string, call json.RawMessage) {
	last := strings.TrimSpace(c.last().text)
	earlier := c.bySpeaker()
	switch {
	case c.toolOutput != "":
		return tellTime(c.toolOutput), nil
	case nameAsked.MatchString(last):
		if name := knownName(earlier); name != "" {
			return "Your name is **" + name + "**: you told me, and I remember.", nil
		}
		return "You have not told me your name yet. Say **my name is …** and ask again.", nil
	case recall.MatchString(last):
		return tellMemories(earlier), nil
	case nameIs.MatchString(last):
		return "Nice to meet you, **" + nameIn(last) + "**! I will remember your name.", nil
	case rememberIt.MatchString(last):
		return "I will remember: " + quote(rememberIt.FindStringSubmatch(last)[1]), nil
	case timeAsked.MatchString(last):
		if canCall(req, clockTool) {
			id := fmt.Sprintf("call_%d", len(req.Input))
			return "", agent.FunctionCall(id, clockTool, clockArgs(last))
		}
		return "I would ask the clock tool for that, but I was given none.", nil
	case help.MatchString(last):
		return intro + "\n\n" + hints, nil
	case len(earlier) == 0:
		return "Hello! " + intro + "\n\nYou said: " + quote(last) + "\n\n" + hints, nil
	}
	return fmt.Sprintf("You said: %s\n\nBefore that you said %s, and I remember all of it; the first was: %s\n\n%s",
		quote(last), plural(len(earlier), "thing", "things"), quote(earlier[0]), hints), nil
}

func canCall(req *agent.Request, name string) bool {
	return !req.NoTools && slices.ContainsFunc(req.Tools, func(s agent.ToolSpec) bool { return s.Name == name })
}

func clockArgs(text string) string {
	zone := zoneNamed.FindString(text)
	lower := strings.ToLower(text)
	for _, city := range cities {
		if zone == "" && strings.Contains(lower, city.name) {
			zone = city.zone
		}
	}
	if zone == "" {
		return "{}"
	}
	return `{"zone":"` + zone + `"}`
}

// tellTime puts the output of the clock in words.
func tellTime(output string) string {
	var r struct{ Local, Zone, Weekday string }
	if json.Unmarshal([]byte(output), &r) != nil || len(r.Local) < len("2006-01-02T15:04") {
		return "I asked the clock tool, and it answered: " + quote(output)
	}
	return fmt.Sprintf("I asked the clock tool: it is **%s** on %s, %s (%s).", r.Local[11:16], r.Weekday, r.Local[:10], r.Zone)
}

func nameIn(text string) string {
	m := nameIs.FindStringSubmatch(text)
	if m == nil {
		return ""
	}
	return m[1] + m[2]
}

// knownName is the name that was told last.
func knownName(earlier []string) string {
	for _, text := range slices.Backward(earlier) {
		if name := nameIn(text); name != "" {
			return name
		}
	}
	return ""
}

func tellMemories(earlier []string) string {
	var b strings.Builder
	if name := knownName(earlier); name != "" {
		b.WriteString("\n- your name is **" + name + "**")
	}
	for _, text := range earlier {
		if m := rememberIt.FindStringSubmatch(strings.TrimSpace(text)); m != nil && !recall.MatchString(text) {
			b.WriteString("\n- " + quote(m[1]))
		}
	}
	if b.Len() == 0 {
		return fmt.Sprintf("You have asked me to remember nothing yet, but I know %s you said before. Say **remember …** and ask again.",
			plural(len(earlier), "thing", "things"))
	}
	return "I remember:\n" + b.String()
}

// quoteLen bounds what the model repeats, in characters.
const quoteLen = 200

func quote(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if r := []rune(text); len(r) > quoteLen {
		text = string(r[:quoteLen]) + "…"
	}
	return "“" + text + "”"
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
