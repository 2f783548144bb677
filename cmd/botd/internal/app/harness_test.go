package app_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"botd/agent"
	"botd/agent/agenttest"
	"botd/channels/discord/discordfake"
	"botd/channels/line/linefake"
	"botd/cmd/botd/internal/app"
	"botd/cmd/botd/internal/obs"
	"botd/config"
)

// patience bounds every wait for something that must happen.
const patience = 20 * time.Second

// world is both platforms with a place for the gateway's file.
type world struct {
	line    *linefake.Server
	bot     *linefake.Bot
	discord *discordfake.Server
	dir     string
	// extra is added to the configuration.
	extra string
}

func newWorld(t *testing.T, bot linefake.BotConfig) *world {
	t.Helper()
	w := &world{line: linefake.New(linefake.Options{}), dir: t.TempDir()}
	t.Cleanup(func() { w.line.Close() })
	if err := w.line.Listen("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	w.bot = w.line.AddBot(bot)
	var err error
	if w.discord, err = discordfake.New(discordfake.Options{Token: plantedDiscordToken, NoLimits: true}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.discord.Close() })
	return w
}

const plantedDiscordToken = "planted.discord.token-0123456789"

// yaml is the configuration of a gateway between the platforms.
func (w *world) yaml(listen string) string {
	return fmt.Sprintf(`
store: bbolt://%s
server: {listen: %q}
providers:
  echo: {type: offline}
  offline: {type: offline}
agents:
  echo: {models: [echo/echo]}
  memory: {models: [offline/offline], tools: [clock]}
channels:
  line: {type: line, agent: echo, webhook_path: /webhook, channel_secret: "${SECRET}", channel_access_token: "${TOKEN}",
         api_base: %q, data_api_base: %q}
  discord: {type: discord, agent: echo, token: "${DISCORD}", api_base: %q}
%s`, filepath.Join(w.dir, "botd.db"), listen, w.line.URL(), w.line.URL(), w.discord.URL(), w.extra)
}

func (w *world) env(name string) (string, bool) {
	v, ok := map[string]string{"SECRET": w.bot.Secret, "TOKEN": w.bot.Token, "DISCORD": plantedDiscordToken}[name]
	return v, ok
}

// gateway is one running App.
type gateway struct {
	*app.App
	log  *logBuffer
	stop func()
}

// start runs a gateway until stop or the end of the test, and waits until it is ready.
func (w *world) start(t *testing.T, edit ...func(*config.Config)) *gateway {
	t.Helper()
	return w.startUntil(t, "ready", edit...)
}

// startUntil is start for a gateway that comes to another state.
func (w *world) startUntil(t *testing.T, state string, edit ...func(*config.Config)) *gateway {
	t.Helper()
	cfg, problems := config.Parse("botd.yaml", []byte(w.yaml("127.0.0.1:0")), config.Options{LookupEnv: w.env, Stores: app.Stores(), Tools: app.Tools()})
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	for _, f := range edit {
		f(cfg)
	}
	g := &gateway{log: &logBuffer{}}
	log, err := obs.NewLogger(obs.LogOptions{Writer: g.log, Format: "json", Level: slog.LevelDebug})
	if err != nil {
		t.Fatal(err)
	}
	g.App, err = app.New(cfg, app.Options{Logger: log, Models: map[string]agent.Model{"echo": echo(0)}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- g.Run(ctx) }()
	g.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("run gateway: %v", err)
		}
		if t.Failed() {
			t.Logf("log of the gateway:\n%s", g.log.String())
		}
	})
	t.Cleanup(g.stop)
	w.bot.SetWebhook("http://" + g.Addr() + "/webhook")
	await(t, "the gateway to be "+state, func() bool { return g.readiness(t).Status == state })
	return g
}

func (g *gateway) readiness(t *testing.T) (r app.Readiness) {
	t.Helper()
	_, body := request(t, http.MethodGet, "http://"+g.Addr()+"/readyz", nil)
	if err := json.Unmarshal(body, &r); err != nil {
		t.Fatalf("readyz answered %q: %v", body, err)
	}
	return r
}

func request(t *testing.T, method, url string, body io.Reader) (int, []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, text
}

// await polls until ok: the platforms are real servers, which no fake clock moves.
func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited %s for %s", patience, what)
		}
	}
}

// tagPattern matches the marks by which answers are matched with messages.
var tagPattern = regexp.MustCompile(`#[a-z0-9-]+#`)

// echo answers with the marks of the messages that have no answer yet, so that an answer tells what it
// covers.
func echo(delay time.Duration) *agenttest.Model {
	return agenttest.ModelFunc(func(_ int, req *agent.Request) agenttest.Step {
		var tags []string
		for _, raw := range req.Input {
			if bytes.Contains(raw, []byte(`"role":"user"`)) {
				tags = append(tags, tagPattern.FindAllString(string(raw), -1)...)
			} else {
				tags = nil
			}
		}
		return agenttest.Step{Delay: delay, Text: "answer to " + strings.Join(tags, " ")}
	})
}

// tagsIn counts the marks in the texts.
func tagsIn(texts ...string) map[string]int {
	counts := map[string]int{}
	for _, text := range texts {
		for _, tag := range tagPattern.FindAllString(text, -1) {
			counts[tag]++
		}
	}
	return counts
}

func lineTexts(bubbles []linefake.Bubble) []string {
	texts := make([]string, len(bubbles))
	for i, b := range bubbles {
		texts[i] = b.Text
	}
	return texts
}

func discordTexts(posts []discordfake.Post) []string {
	texts := make([]string, len(posts))
	for i, p := range posts {
		texts[i] = p.Content
	}
	return texts
}

// say posts a text on LINE and demands that it is acknowledged.
func say(t *testing.T, chat *linefake.Chat, user *linefake.User, text string) linefake.Event {
	t.Helper()
	event, result := chat.Say(t.Context(), user, text)
	if !result.OK() {
		t.Fatalf("webhook not acknowledged: %+v", result)
	}
	return event
}

// hear waits for the nth bubble of the bot and returns its text.
func hear(t *testing.T, chat *linefake.Chat, n int) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	bubbles, err := chat.Await(ctx, n)
	if err != nil {
		t.Fatalf("wait for answer %d on LINE: %v", n, err)
	}
	return bubbles[n-1].Text
}

// hearDiscord waits for the nth message of the bot in a room and returns its text.
func (w *world) hearDiscord(t *testing.T, room string, n int) string {
	t.Helper()
	await(t, fmt.Sprintf("answer %d on Discord", n), func() bool { return len(w.discord.BotPosts(room)) >= n })
	return w.discord.BotPosts(room)[n-1].Content
}

// logBuffer collects a log.
type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
