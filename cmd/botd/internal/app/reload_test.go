package app_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"botd/channels/line/linefake"
	"botd/cmd/botd/internal/app"
	"botd/cmd/botd/internal/obs"
	"botd/config"
)

// source is a configuration that a test changes while the gateway runs.
type source struct {
	w    *world
	mu   sync.Mutex
	text string
}

func (s *source) set(old, replacement string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text = strings.Replace(s.text, old, replacement, 1)
}

func (s *source) load() (*config.Config, config.Problems) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return config.Parse("botd.yaml", []byte(s.text), config.Options{Stores: app.Stores(), Tools: app.Tools(), LookupEnv: s.w.env})
}

// startReloadable runs a gateway whose configuration can be changed.
func (w *world) startReloadable(t *testing.T) (*app.App, *source, *logBuffer) {
	t.Helper()
	s := &source{w: w, text: w.yaml("127.0.0.1:0")}
	cfg, problems := s.load()
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	buf := &logBuffer{}
	log, err := obs.NewLogger(obs.LogOptions{Writer: buf, Format: "json"})
	if err != nil {
		t.Fatal(err)
	}
	g, err := app.New(cfg, app.Options{Logger: log, Load: s.load})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- g.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("run gateway: %v", err)
		}
	})
	for until := time.Now().Add(patience); g.Ready() != nil; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("not ready: %v\n%s", g.Ready(), buf)
		}
	}
	w.bot.SetWebhook("http://" + g.Addr() + "/webhook")
	return g, s, buf
}

func reload(t *testing.T, g *app.App) app.ReloadResult {
	t.Helper()
	r, err := g.Reload(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestReload_ChangesWhatCanAndTellsWhatCannot(t *testing.T) {
	t.Parallel()
	w := newWorld(t, linefake.BotConfig{})
	w.extra = "metrics: {listen: \"127.0.0.1:0\"}\n"
	g, s, log := w.startReloadable(t)

	if r := reload(t, g); !r.OK || len(r.Applied)+len(r.Restart) != 0 {
		t.Errorf("nothing has changed: %+v", r)
	}
	s.set("memory: {models: [offline/offline]", "memory: {instructions: Be kind., models: [offline/offline]")
	s.set("metrics: {listen: \"127.0.0.1:0\"}", "metrics: {listen: \"127.0.0.1:1\"}\nlimits: {turn_timeout: 1m}")
	r := reload(t, g)
	if got := fmt.Sprint(r.Applied, r.Restart); !r.OK || got != "[{agents.memory.instructions changed} {limits.turn_timeout changed}] [{metrics.listen changed}]" {
		t.Errorf("ok %v, %s; %s", r.OK, got, r.Error)
	}
	s.set("memory: {", "memory: {instrutcions: x, ")
	if r := reload(t, g); r.OK || r.Problems.Err() == nil || len(r.Applied) != 0 {
		t.Errorf("a configuration with a mistake: %+v", r)
	}
	if last := g.LastReload(); last == nil || last.OK {
		t.Errorf("last reload: %+v", last)
	}
	if !strings.Contains(log.String(), "did you mean") {
		t.Errorf("the log does not say how to mend it:\n%s", log)
	}
	scrape := func() string {
		res, err := http.Get("http://" + g.MetricsAddr() + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(body)
	}
	const up = `botd_channel_up{channel="discord",platform="discord"} 1`
	await(t, "the gateway of Discord", func() bool { return strings.Contains(scrape(), up) })
	body := scrape()
	for _, want := range []string{
		`botd_config_reloads_total{result="failed"} 1`, `botd_config_reloads_total{result="ok"} 2`, "botd_config_last_reload_successful 0",
		"botd_store_up 1",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("metrics without %s:\n%s", want, body)
		}
	}
}

// TestReload_LosesNothingUnderLoad changes an agent's instructions and one channel's token again and again
// while people write, and counts the answers.
func TestReload_LosesNothingUnderLoad(t *testing.T) {
	t.Parallel()
	w := newWorld(t, linefake.BotConfig{Token: "planted-first-token"})
	g, s, log := w.startReloadable(t)
	const people, each, pace = 20, 20, 100 * time.Millisecond // 200 messages a second
	chats := make([]*linefake.Chat, people)
	var talking sync.WaitGroup
	for i := range chats {
		ann := w.line.AddUser(linefake.UserConfig{Name: fmt.Sprint("Ann ", i)})
		chats[i] = w.bot.Direct(ann)
		talking.Go(func() {
			tick := time.NewTicker(pace)
			defer tick.Stop()
			for n := range each {
				<-tick.C
				if _, r := chats[i].Say(t.Context(), ann, fmt.Sprint("message ", n)); r.Status != http.StatusOK {
					t.Errorf("message %d of %d: %+v", n, i, r)
				}
			}
		})
	}
	instructions := "instructions: one, models: [offline/offline]"
	s.set("echo: {models: [echo/echo]}", "echo: {"+instructions+"}")
	for n := range 8 {
		time.Sleep(each * pace / 10)
		s.set("instructions: ", fmt.Sprintf("instructions: changed %d ", n))
		if n == 3 { // from the long-lived token to those that the program gets itself
			s.set(`channel_access_token: "${TOKEN}"`, fmt.Sprintf("channel_id: %q", w.bot.ChannelID))
		}
		if r := reload(t, g); !r.OK || len(r.Applied) == 0 {
			t.Fatalf("reload %d: %+v", n, r)
		}
	}
	talking.Wait()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for i, chat := range chats {
		if _, err := chat.Await(ctx, each); err != nil {
			t.Fatalf("chat %d: %v\n%s", i, err, log)
		}
	}
	if strings.Contains(log.String(), "panic") {
		t.Errorf("the log tells of a panic:\n%s", log)
	}
}
