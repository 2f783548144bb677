package app_test

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"botd/agent"
	"botd/agent/agenttest"
	"botd/channels/dispatch"
	"botd/channels/line/linefake"
	"botd/cmd/botd/internal/app"
	"botd/config"
)

// talk is a conversation with a gateway that has one channel.
type talk struct {
	*running
	channel *stub
	log     *logBuffer
	said    int
}

// converse runs a gateway whose providers answer by a script. The channel has the agent front.
func converse(t *testing.T, yaml string, env map[string]string, models map[string]agent.Model) *talk {
	t.Helper()
	cfg, problems := config.Parse("botd.yaml", []byte("store: \"memory:\"\nserver: {listen: \"127.0.0.1:0\"}\n"+yaml), config.Options{
		LookupEnv: func(name string) (string, bool) { v, ok := env[name]; return v, ok },
		Stores:    app.Stores(), Tools: app.Tools(),
	})
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	channel := &stub{name: "one"}
	c := channel.channel()
	c.Agent = "front"
	log := &logBuffer{}
	g := run(t, cfg, app.Options{Channels: []dispatch.Channel{c}, Models: models, Logger: slog.New(slog.NewJSONHandler(log, nil))})
	return &talk{running: g, channel: channel, log: log}
}

// say says something and returns the answer.
func (c *talk) say(t *testing.T, text string) string {
	t.Helper()
	c.said++
	if err := c.Dispatcher().Accept(t.Context(), message("one", strconv.Itoa(c.said), text)); err != nil {
		t.Fatal(err)
	}
	await(t, fmt.Sprintf("answer %d", c.said), func() bool { return len(c.channel.texts()) >= c.said })
	return c.channel.texts()[c.said-1]
}

// inputOf is the conversation in a request.
func inputOf(req *agent.Request) string {
	var b strings.Builder
	for _, raw := range req.Input {
		b.Write(raw)
		b.WriteByte('\n')
	}
	return b.String()
}

// toolOf is a tool that a request shows.
func toolOf(req *agent.Request, name string) (agent.ToolSpec, bool) {
	for _, spec := range req.Tools {
		if spec.Name == name {
			return spec, true
		}
	}
	return agent.ToolSpec{}, false
}

func TestAnAgentHandsTheConversationOver(t *testing.T) {
	t.Parallel()
	model := agenttest.ModelFunc(func(_ int, req *agent.Request) agenttest.Step {
		if strings.Contains(req.Instructions, "You greet.") {
			return agenttest.Use("c1", "transfer_to_orders", "{}")
		}
		return agenttest.Say("orders speaking")
	})
	c := converse(t, `
providers: {p: {type: offline}}
agents:
  front: {models: [p/m], instructions: You greet., handoffs: [orders]}
  orders: {models: [p/m], instructions: You take orders., description: Knows parcels.}
`, nil, map[string]agent.Model{"p": model})
	if got := c.say(t, "where is my parcel?"); got != "orders speaking" {
		t.Errorf("answer %q", got)
	}
	asked := model.Requests()
	if spec, ok := toolOf(asked[0], "transfer_to_orders"); !ok || !strings.Contains(spec.Description, "Knows parcels.") {
		t.Errorf("the tool of the hand-off: %+v", spec)
	}
	if !strings.Contains(inputOf(asked[1]), "where is my parcel?") {
		t.Error("the one who takes over does not see the conversation")
	}
	c.say(t, "and now?")
	if asked = model.Requests(); len(asked) != 3 || !strings.Contains(asked[2].Instructions, "You take orders.") {
		t.Errorf("%d requests; the next turn did not stay with the one who took over", len(asked))
	}
}

func TestAnAgentAsksAnotherOne(t *testing.T) {
	t.Parallel()
	model := agenttest.ModelFunc(func(_ int, req *agent.Request) agenttest.Step {
		input := inputOf(req)
		switch {
		case strings.Contains(req.Instructions, "You translate."):
			if strings.Contains(input, "private matter") {
				return agenttest.Say("I was shown too much")
			}
			return agenttest.Say("konnichiwa")
		case strings.Contains(input, "konnichiwa"):
			return agenttest.Say("it means konnichiwa")
		default:
			return agenttest.Use("c1", "ask_translator", `{"input":"hello"}`)
		}
	})
	c := converse(t, `
providers: {p: {type: offline}}
agents:
  front: {models: [p/m], consults: [translator]}
  translator: {models: [p/m], instructions: You translate., description: Knows Japanese.}
`, nil, map[string]agent.Model{"p": model})
	if got := c.say(t, "a private matter, and: hello in Japanese?"); got != "it means konnichiwa" {
		t.Errorf("answer %q", got)
	}
}

func TestGuardsRefuse(t *testing.T) {
	t.Parallel()
	model := agenttest.ModelFunc(func(_ int, req *agent.Request) agenttest.Step {
		if strings.Contains(inputOf(req), "my card") {
			return agenttest.Say("it is 4111 1111 1111 1111")
		}
		return agenttest.Say("fine")
	})
	c := converse(t, `
providers: {p: {type: offline}}
agents:
  front:
    models: [p/m]
    guards:
      max_input_chars: 20
      block_input: ['(?i)\bbomb\b']
      block_output: ['\b(?:\d[ -]?){15}\d\b']
      refusal: Not here.
`, nil, map[string]agent.Model{"p": model})
	for _, tt := range []struct {
		say, want string
		asked     int
	}{
		{"twenty characters 日本", "fine", 1},
		{"twenty-one characters", "Not here.", 1},
		{"a BOMB?", "Not here.", 1},
		{"bombastic", "fine", 2},
		{"my card?", "Not here.", 3},
	} {
		if got := c.say(t, tt.say); got != tt.want {
			t.Errorf("%q was answered with %q, want %q", tt.say, got, tt.want)
		}
		if got := len(model.Requests()); got != tt.asked {
			t.Errorf("after %q the model was asked %d times, want %d", tt.say, got, tt.asked)
		}
	}
	log := c.log.String()
	for _, guard := range []string{"max_input_chars", "block_input[0]", "block_output[0]"} {
		if strings.Count(log, `"agent":"front","guard":"`+guard+`"`) != 1 {
			t.Errorf("the log does not tell once that %s has refused something:\n%s", guard, log)
		}
	}
	if strings.Contains(log, "BOMB") || strings.Contains(log, "4111") {
		t.Errorf("the log shows what was refused:\n%s", log)
	}
}

// long is a text of about 500 tokens.
func long(mark string) string { return mark + strings.Repeat(" many words of everyday English", 100) }

func TestWhatIsShownOfAConversation(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		session, window string
		first           bool
	}{
		"within the defaults":                  {"", "", true},
		"more than max_tokens":                 {"session: {history: {max_tokens: 1200}}", "", false},
		"more than max_items":                  {"session: {history: {max_items: 3}}", "", false},
		"more than the model's window":         {"", "models: {m: {window: 2500}}", false},
		"a window of another model":            {"", "models: {other: {window: 2500}}", true},
		"max_tokens that are enough for it":    {"session: {history: {max_tokens: 9000}}", "", true},
		"a window that is wide enough for all": {"", "models: {m: {window: 50000}}", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			model := agenttest.ModelFunc(func(int, *agent.Request) agenttest.Step { return agenttest.Say("yes") })
			c := converse(t, fmt.Sprintf(`
providers: {p: {type: openai, base_url: "http://127.0.0.1:1/v1", %s}}
agents: {front: {models: [p/m], max_output_tokens: 500}}
%s
`, tt.window, tt.session), nil, map[string]agent.Model{"p": model})
			for _, mark := range []string{"first", "second", "third", "fourth"} {
				c.say(t, long(mark))
			}
			last := inputOf(model.Requests()[3])
			if got := strings.Contains(last, "first"); got != tt.first {
				t.Errorf("the first message is shown with the fourth: %v, want %v", got, tt.first)
			}
			if !strings.Contains(last, "fourth") {
				t.Error("the message itself is not shown")
			}
		})
	}
}

func TestAConversationIsSummedUp(t *testing.T) {
	t.Parallel()
	for name, history := range map[string]string{
		"for its tokens": "{compact: true, max_tokens: 1500}",
		"for its items":  "{compact: true, max_items: 20}",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			model := agenttest.ModelFunc(func(_ int, req *agent.Request) agenttest.Step {
				if strings.Contains(req.Instructions, "keep the memory of a conversation") {
					return agenttest.Say("the first word was #first#")
				}
				return agenttest.Say("yes")
			})
			c := converse(t, `
providers: {p: {type: offline}}
agents: {front: {models: [p/m]}}
session: {history: `+history+`}
`, nil, map[string]agent.Model{"p": model})
			for mark := range strings.FieldsSeq("alpha beta gamma delta epsilon zeta eta theta iota kappa") {
				c.say(t, long(mark))
			}
			asked := model.Requests()
			last := inputOf(asked[len(asked)-1])
			if !strings.Contains(last, "#first#") || strings.Contains(last, "alpha") {
				t.Errorf("the last request holds no summary in the place of the beginning: %.300s", last)
			}
		})
	}
}

func TestHeadersReachTheProvider(t *testing.T) {
	t.Parallel()
	seen := make(chan http.Header, 1)
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen <- r.Header
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, `data: {"id":"x","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"role":"assistant","content":"from afar"},"finish_reason":null}]}

data: {"id":"x","object":"chat.completion.chunk","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}

data: [DONE]

`)
	}))
	t.Cleanup(provider.Close)
	c := converse(t, fmt.Sprintf(`
providers:
  p:
    base_url: %s/v1
    api: chat
    headers: {X-Tenant: shop, Authorization: "Bearer ${KEY}"}
agents: {front: {models: [p/m]}}
`, provider.URL), map[string]string{"KEY": "planted-key"}, nil)
	if got := c.say(t, "hello"); got != "from afar" {
		t.Errorf("answer %q", got)
	}
	header := <-seen
	if header.Get("X-Tenant") != "shop" || header.Get("Authorization") != "Bearer planted-key" {
		t.Errorf("headers %v", header)
	}
}

func TestALINEChannelNeedsNoLongLivedToken(t *testing.T) {
	t.Parallel()
	w := newWorld(t, linefake.BotConfig{ChannelID: "1234567890"})
	w.start(t, func(cfg *config.Config) {
		l := cfg.Channels["line"].LINE
		l.ChannelID, l.ChannelAccessToken = w.bot.ChannelID, config.Secret{}
	})
	alice := w.line.AddUser(linefake.UserConfig{Name: "Alice"})
	chat := w.bot.Direct(alice)
	say(t, chat, alice, "hello #hello#")
	if got := hear(t, chat, 1); got != "answer to #hello#" {
		t.Errorf("answer %q", got)
	}
}
