package app_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"botd/agent"
	"botd/channels"
	"botd/channels/dispatch"
	"botd/channels/line/linefake"
	"botd/cmd/botd/internal/app"
	"botd/config"
)

// stub is a channel made of functions.
type stub struct {
	name string
	run  func(context.Context, channels.Sink) error

	mu   sync.Mutex
	sent []string
}

func (s *stub) Info() channels.Info { return channels.Info{Channel: s.name, Platform: "stub"} }

func (s *stub) Compose(m channels.Outbound) []channels.Outbound { return []channels.Outbound{m} }

func (s *stub) Run(ctx context.Context, sink channels.Sink) error {
	if s.run == nil {
		<-ctx.Done()
		return nil
	}
	return s.run(ctx, sink)
}

func (s *stub) Send(_ context.Context, m channels.Outbound) (channels.Receipt, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent = append(s.sent, m.PlainText())
	return channels.Receipt{}, nil
}

func (s *stub) texts() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.sent)
}

func (s *stub) channel() dispatch.Channel { return dispatch.Channel{Adapter: s} }

func message(channel, id, text string) channels.Inbound {
	return channels.Inbound{
		ID: id, Kind: channels.Message, Time: time.Now(), Mentioned: true,
		Address: channels.Address{Channel: channel, Kind: channels.Direct, Room: "room", User: "user"},
		Speaker: channels.Speaker{ID: "user"}, Parts: []channels.Part{{Type: channels.Text, Text: text}},
	}
}

// configuration is one with an agent and no channel.
func configuration(t *testing.T, extra string) *config.Config {
	t.Helper()
	cfg, problems := config.Parse("botd.yaml", []byte(`
server: {listen: "127.0.0.1:0"}
providers: {echo: {type: offline}}
agents: {a: {models: [echo/echo]}}
`+extra), config.Options{})
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	return cfg
}

// states collects what the service manager is told.
type states struct {
	mu  sync.Mutex
	all []string
}

func (s *states) notify(state string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, state)
}

func (s *states) seen() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.all)
}

// running is an App that runs.
type running struct {
	*app.App
	states states
	end    func() error
}

func run(t *testing.T, cfg *config.Config, o app.Options) *running {
	t.Helper()
	r := &running{}
	o.Notify = r.states.notify
	var err error
	if r.App, err = app.New(cfg, o); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	r.end = sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
	t.Cleanup(func() { _ = r.end() })
	await(t, "READY", func() bool { return slices.Contains(r.states.seen(), "READY=1") })
	return r
}

func TestNewSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	busy, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { busy.Close() })
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "file"), "this is no folder")
	writeFile(t, filepath.Join(dir, "other.db"), strings.Repeat("this is no database ", 1000))
	one := []dispatch.Channel{(&stub{name: "one"}).channel()}
	tests := []struct {
		name string
		cfg  func(*config.Config)
		opts app.Options
		want string
	}{
		{"no channel", func(*config.Config) {}, app.Options{}, "no channel"},
		{"unknown store", func(c *config.Config) { c.Store = "nothing:" }, app.Options{Channels: one}, "unknown scheme"},
		{"store below a file", func(c *config.Config) { c.Store = "bbolt://" + filepath.Join(dir, "file", "botd.db") }, app.Options{Channels: one}, "folder of the store"},
		{"store that is no database", func(c *config.Config) { c.Store = "bbolt://" + filepath.Join(dir, "other.db") }, app.Options{Channels: one}, "open store"},
		{"address in use", func(c *config.Config) { c.Server.Listen = busy.Addr().String() }, app.Options{Channels: one}, "server.listen"},
		{"two channels of one name", func(*config.Config) {}, app.Options{Channels: append(one, one...)}, "one"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			cfg := configuration(t, "store: \"memory:\"\n")
			tt.cfg(cfg)
			if _, err := app.New(cfg, tt.opts); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("New() = %v, want an error that says %q", err, tt.want)
			}
		})
	}
}

func TestAStoreHasOneProcess(t *testing.T) {
	t.Parallel()
	cfg := configuration(t, "store: bbolt://"+filepath.Join(t.TempDir(), "data", "botd.db")+"\n")
	o := app.Options{Channels: []dispatch.Channel{(&stub{name: "one"}).channel()}}
	first, err := app.New(cfg, o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := app.New(cfg, o); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("a second gateway on the same store: %v", err)
	}
	first.Close()
	second, err := app.New(cfg, o)
	if err != nil {
		t.Fatalf("after the first was closed: %v", err)
	}
	second.Close()
}

func TestLife(t *testing.T) {
	t.Parallel()
	cfg := configuration(t, "store: \"memory:\"\n")
	g, err := app.New(cfg, app.Options{Channels: []dispatch.Channel{(&stub{name: "one"}).channel()}})
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Ready(); err == nil {
		t.Error("ready before Run")
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- g.Run(ctx) }()
	await(t, "readiness", func() bool { return g.Ready() == nil })
	if code, body := request(t, http.MethodGet, "http://"+g.Addr()+"/healthz", nil); code != http.StatusOK || !strings.Contains(string(body), "ok") {
		t.Errorf("healthz: %d %s", code, body)
	}
	if err := g.Run(ctx); err == nil {
		t.Error("a second Run was allowed")
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("Run() = %v after its context ended", err)
	}
	if err := g.Ready(); err == nil {
		t.Error("ready after Run")
	}
	if err := g.Run(t.Context()); err == nil {
		t.Error("Run after the end was allowed")
	}
}

func TestTheServiceManagerIsTold(t *testing.T) {
	t.Parallel()
	g := run(t, configuration(t, "store: \"memory:\"\n"), app.Options{Channels: []dispatch.Channel{(&stub{name: "one"}).channel()}})
	if err := g.end(); err != nil {
		t.Error(err)
	}
	if got := strings.Join(g.states.seen(), " "); got != "READY=1 STOPPING=1" {
		t.Errorf("told %q", got)
	}
}

func TestSystemdNotify(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "notify") //nolint:usetesting // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	for _, name := range []string{filepath.Join(dir, "s"), fmt.Sprintf("@botd-test-%d", os.Getpid())} {
		socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
		if err != nil {
			t.Fatal(err)
		}
		defer socket.Close()
		app.SystemdNotify(name, func(err error) { t.Error(err) })("READY=1")
		buf := make([]byte, 100)
		n, err := socket.Read(buf)
		if err != nil || string(buf[:n]) != "READY=1" {
			t.Errorf("on %s: %q, %v", name, buf[:n], err)
		}
	}
	if app.SystemdNotify("", nil) != nil {
		t.Error("there is somebody to tell without a socket")
	}
	warned := 0
	warn := func(error) { warned++ }
	if app.SystemdNotify("vsock:1:2", warn) != nil || warned != 1 {
		t.Error("no warning for an address that is not supported")
	}
	app.SystemdNotify(filepath.Join(dir, "nobody"), warn)("READY=1")
	if warned != 2 {
		t.Error("no warning for a socket that nobody reads")
	}
}

// TestFailuresOfOneChannel has channels fail in every way beside one that works.
func TestFailuresOfOneChannel(t *testing.T) {
	t.Parallel()
	works := &stub{name: "works"}
	broken := map[string]func(context.Context, channels.Sink) error{
		"errs":   func(context.Context, channels.Sink) error { return errors.New("token revoked") },
		"panics": func(context.Context, channels.Sink) error { panic("planted words of a person") },
		"ends":   func(context.Context, channels.Sink) error { return nil },
		"nil map": func(context.Context, channels.Sink) error {
			var m map[string]int
			m["x"] = 1 //nolint:staticcheck // it is to panic
			return nil
		},
	}
	all := []dispatch.Channel{works.channel()}
	for name, f := range broken {
		all = append(all, (&stub{name: name, run: f}).channel())
	}
	g := run(t, configuration(t, "store: \"memory:\"\n"), app.Options{
		Channels: all, Models: map[string]agent.Model{"echo": echo(0)},
	})
	url := "http://" + g.Addr() + "/readyz"
	await(t, "every broken channel to be seen", func() bool {
		_, body := request(t, http.MethodGet, url, nil)
		return strings.Count(string(body), `"failed"`) == len(broken)
	})
	code, body := request(t, http.MethodGet, url, nil)
	if code != http.StatusOK || !strings.Contains(string(body), `"status":"degraded"`) {
		t.Errorf("readyz: %d %s", code, body)
	}
	for _, want := range []string{"token revoked", "ended by itself", "nil map"} {
		if !strings.Contains(string(body), want) {
			t.Errorf("readyz does not say %q: %s", want, body)
		}
	}
	if strings.Contains(string(body), "planted") {
		t.Errorf("readyz shows what a panic held: %s", body)
	}
	if err := g.Dispatcher().Accept(t.Context(), message("works", "1", "hello #hello#")); err != nil {
		t.Fatal(err)
	}
	await(t, "an answer on the channel that works", func() bool { return len(works.texts()) == 1 })
}

// TestStoreTakenAway: while the file is not in its place nothing is acknowledged and readiness says so;
// once it is back, what the platform sends again is answered.
func TestStoreTakenAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t, linefake.BotConfig{})
	g := w.start(t)
	alice := w.line.AddUser(linefake.UserConfig{})
	chat := w.bot.Direct(alice)
	say(t, chat, alice, "before #before#")
	hear(t, chat, 1)

	file := filepath.Join(w.dir, "botd.db")
	if err := os.Rename(file, file+".away"); err != nil {
		t.Fatal(err)
	}
	event, result := chat.Say(t.Context(), alice, "while away #away#")
	if result.OK() {
		t.Error("a message was acknowledged that cannot be kept")
	}
	if r := g.readiness(t); r.Status != "failed" || r.Checks["store"].Status != "failed" {
		t.Errorf("readiness %+v, want a failed store", r)
	}
	if err := os.Rename(file+".away", file); err != nil {
		t.Fatal(err)
	}
	if result := w.bot.Redeliver(t.Context(), event); !result.OK() {
		t.Errorf("not acknowledged with the file back in its place: %+v", result)
	}
	if got := hear(t, chat, 2); !strings.Contains(got, "#away#") {
		t.Errorf("answer %q", got)
	}
	if r := g.readiness(t); r.Status != "ready" {
		t.Errorf("readiness %+v, want ready", r)
	}
}

func TestNotReadyWhenNoChannelWorks(t *testing.T) {
	t.Parallel()
	broken := &stub{name: "broken", run: func(context.Context, channels.Sink) error { return errors.New("token revoked") }}
	g := run(t, configuration(t, "store: \"memory:\"\n"), app.Options{Channels: []dispatch.Channel{broken.channel()}})
	await(t, "503", func() bool {
		code, _ := request(t, http.MethodGet, "http://"+g.Addr()+"/readyz", nil)
		return code == http.StatusServiceUnavailable
	})
	if code, _ := request(t, http.MethodGet, "http://"+g.Addr()+"/healthz", nil); code != http.StatusOK {
		t.Errorf("healthz: %d; a restart mends no token", code)
	}
}

func TestARunningTurnIsFinishedBeforeTheEnd(t *testing.T) {
	t.Parallel()
	one := &stub{name: "one"}
	model := echo(150 * time.Millisecond)
	g := run(t, configuration(t, "store: \"memory:\"\nlimits: {grace: 10s}\n"), app.Options{
		Channels: []dispatch.Channel{one.channel()}, Models: map[string]agent.Model{"echo": model},
	})
	if err := g.Dispatcher().Accept(t.Context(), message("one", "1", "hello #hello#")); err != nil {
		t.Fatal(err)
	}
	await(t, "the model to be asked", func() bool { return len(model.Requests()) == 1 })
	if err := g.end(); err != nil {
		t.Fatal(err)
	}
	if got := one.texts(); len(got) != 1 || got[0] != "answer to #hello#" {
		t.Errorf("sent %q before the end", got)
	}
}

func TestWhatTheGraceCutsOffIsAnsweredAfterTheNextStart(t *testing.T) {
	t.Parallel()
	cfg := configuration(t, "store: bbolt://"+filepath.Join(t.TempDir(), "botd.db")+"\nlimits: {grace: 0s}\n")
	one := &stub{name: "one"}
	model := echo(time.Hour)
	g := run(t, cfg, app.Options{
		Channels: []dispatch.Channel{one.channel()}, Models: map[string]agent.Model{"echo": model},
	})
	if err := g.Dispatcher().Accept(t.Context(), message("one", "1", "hello #hello#")); err != nil {
		t.Fatal(err)
	}
	await(t, "the model to be asked", func() bool { return len(model.Requests()) == 1 })
	if err := g.end(); err != nil {
		t.Fatal(err)
	}
	if got := one.texts(); len(got) != 0 {
		t.Errorf("sent %q though nothing was finished", got)
	}
	g = run(t, cfg, app.Options{
		Channels: []dispatch.Channel{one.channel()}, Models: map[string]agent.Model{"echo": echo(0)},
	})
	await(t, "the answer", func() bool { return len(one.texts()) == 1 })
	if err := g.end(); err != nil {
		t.Fatal(err)
	}
}

func BenchmarkStart(b *testing.B) {
	cfg, problems := config.Parse("botd.yaml", []byte(`
server: {listen: "127.0.0.1:0"}
providers: {echo: {type: offline}}
agents: {a: {models: [echo/echo]}}
store: bbolt://`+filepath.Join(b.TempDir(), "botd.db")), config.Options{})
	if err := problems.Err(); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		ctx, cancel := context.WithCancel(b.Context())
		g, err := app.New(cfg, app.Options{
			Channels: []dispatch.Channel{(&stub{name: "one"}).channel()},
			Notify: func(state string) {
				if state == "READY=1" {
					cancel()
				}
			},
		})
		if err != nil {
			b.Fatal(err)
		}
		if err := g.Run(ctx); err != nil {
			b.Fatal(err)
		}
	}
}
