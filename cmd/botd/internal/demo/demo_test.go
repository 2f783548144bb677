package demo_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"botd/cmd/botd/internal/demo"
)

// patience bounds every wait for something that must happen.
const patience = 20 * time.Second

// running is a demonstration that runs until the test ends or stop is called.
type running struct {
	*demo.Demo
	stop func()
}

func start(t *testing.T, o demo.Options) *running {
	t.Helper()
	if o.Listen == "" {
		o.Listen = "127.0.0.1:0"
	}
	d, err := demo.New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- d.Run(ctx) }()
	stop := sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	t.Cleanup(stop)
	return &running{d, stop}
}

// page is a client of the events.
type page struct {
	t     *testing.T
	url   string
	lines *bufio.Scanner
	// Places and Sessions are those of the snapshot.
	Places []struct {
		ID     string
		People []struct{ ID, Name, Session string }
	}
}

// change is an update.
type change struct {
	Place   string
	Message *struct {
		Bot  bool
		Text string
	}
	Session *struct {
		ID    string
		Items []struct{ Raw string }
	}
	Reset string
}

func open(t *testing.T, url string) *page {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/api/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { res.Body.Close() })
	p := &page{t: t, url: url, lines: bufio.NewScanner(res.Body)}
	p.lines.Buffer(nil, 1<<20)
	p.next("snapshot", p)
	return p
}

// next reads the next event, which must be of the given name.
func (p *page) next(name string, into any) {
	p.t.Helper()
	event := ""
	for p.lines.Scan() {
		if e, ok := strings.CutPrefix(p.lines.Text(), "event: "); ok {
			event = e
		}
		if data, ok := strings.CutPrefix(p.lines.Text(), "data: "); ok {
			if event != name {
				p.t.Fatalf("event %s, want %s: %s", event, name, data)
			}
			if err := json.Unmarshal([]byte(data), into); err != nil {
				p.t.Fatal(err)
			}
			return
		}
	}
	p.t.Fatalf("the stream ended: %v", p.lines.Err())
}

// await reads updates until one is right.
func (p *page) await(right func(change) bool) change {
	p.t.Helper()
	for {
		var c change
		p.next("update", &c)
		if right(c) {
			return c
		}
	}
}

func (p *page) answer(place, holds string) {
	p.t.Helper()
	p.await(func(c change) bool {
		return c.Place == place && c.Message != nil && c.Message.Bot && strings.Contains(c.Message.Text, holds)
	})
}

func (p *page) person(place, name string) (id, session string) {
	p.t.Helper()
	for _, at := range p.Places {
		for _, who := range at.People {
			if at.ID == place && who.Name == name {
				return who.ID, who.Session
			}
		}
	}
	p.t.Fatalf("nobody is called %s in %s", name, place)
	return "", ""
}

func (p *page) say(place, name, text string, mention bool) {
	p.t.Helper()
	id, _ := p.person(place, name)
	p.post("/api/say", map[string]any{"place": place, "person": id, "text": text, "mention": mention}, http.StatusNoContent)
}

func (p *page) post(path string, body any, want int) {
	p.t.Helper()
	raw, err := json.Marshal(body)
	if err != nil {
		p.t.Fatal(err)
	}
	res, err := http.Post(p.url+path, "application/json", strings.NewReader(string(raw)))
	if err != nil {
		p.t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != want {
		text, _ := io.ReadAll(res.Body)
		p.t.Fatalf("POST %s: status %d, want %d: %s", path, res.StatusCode, want, text)
	}
}

func TestEveryChatIsAnsweredAndRemembersByItself(t *testing.T) {
	t.Parallel()
	p := open(t, start(t, demo.Options{}).URL())
	for place, name := range map[string]string{
		"line-direct": "Aiko", "line-group": "Ben", "discord-direct": "Dana", "discord-room": "Eli",
	} {
		_, session := p.person(place, name)
		p.say(place, name, "my name is "+name, true)
		p.answer(place, name)
		p.await(func(c change) bool {
			return c.Session != nil && c.Session.ID == session && len(c.Session.Items) == 2 &&
				strings.Contains(c.Session.Items[0].Raw, "my name is "+name)
		})
		p.say(place, name, "what is my name?", true)
		p.answer(place, name)
	}
}

func TestGroupsKeepQuietUnlessMentioned(t *testing.T) {
	t.Parallel()
	p := open(t, start(t, demo.Options{}).URL())
	for place, name := range map[string]string{"line-group": "Aiko", "discord-room": "Dana"} {
		p.say(place, name, "among ourselves", false)
		p.say(place, name, "remember the umbrella", true)
		c := p.await(func(c change) bool { return c.Place == place && c.Message != nil && c.Message.Bot })
		if !strings.Contains(c.Message.Text, "umbrella") {
			t.Errorf("%s: the first answer is %q, want the one to the message that mentions the bot", place, c.Message.Text)
		}
	}
}

func TestResetForgetsOneSession(t *testing.T) {
	t.Parallel()
	p := open(t, start(t, demo.Options{}).URL())
	p.say("line-direct", "Aiko", "my name is Aiko", false)
	p.answer("line-direct", "Aiko")
	p.say("discord-direct", "Dana", "my name is Dana", false)
	p.answer("discord-direct", "Dana")

	id, session := p.person("line-direct", "Aiko")
	p.post("/api/reset", map[string]any{"place": "line-direct", "person": id}, http.StatusNoContent)
	p.await(func(c change) bool { return c.Session != nil && c.Session.ID == session && len(c.Session.Items) == 0 })
	p.say("line-direct", "Aiko", "what is my name?", false)
	p.answer("line-direct", "not told me your name")
	p.say("discord-direct", "Dana", "what is my name?", false)
	p.answer("discord-direct", "Dana")
}

// TestTheHostMayResetAGroup asserts that the person whom a page begins with is in charge of what is shared
// with others, and that the others are not. In the room on Discord everybody has a memory of their own.
func TestTheHostMayResetAGroup(t *testing.T) {
	t.Parallel()
	p := open(t, start(t, demo.Options{}).URL())
	for place, host := range map[string]string{"line-group": "Aiko", "discord-room": "Dana"} {
		p.say(place, host, "remember the umbrella", true)
		p.answer(place, "umbrella")
		if place == "line-group" {
			for _, command := range []string{"/undo", "/reset"} {
				p.say(place, "Ben", command, true)
				p.answer(place, "only an admin")
			}
		}
		p.say(place, host, "what do you remember?", true)
		p.answer(place, "umbrella")
		p.say(place, host, "/undo", true)
		p.answer(place, "forgotten")
		p.say(place, host, "/reset", true)
		p.answer(place, "forgotten")
		p.say(place, host, "what do you remember?", true)
		p.answer(place, "nothing yet")
	}
}

// TestDiscordOffersWhatHelpNames asserts that the slash commands which Discord offers are those that the
// gateway understands.
func TestDiscordOffersWhatHelpNames(t *testing.T) {
	t.Parallel()
	d := start(t, demo.Options{})
	p := open(t, d.URL())
	p.say("discord-direct", "Dana", "/help", false)
	help := p.await(func(c change) bool { return c.Place == "discord-direct" && c.Message != nil && c.Message.Bot })
	var want []string
	for _, line := range regexp.MustCompile(`(?m)^/(\w+)`).FindAllStringSubmatch(help.Message.Text, -1) {
		want = append(want, line[1])
	}
	slices.Sort(want)
	if len(want) < 3 {
		t.Fatalf("the help names the commands %q: %s", want, help.Message.Text)
	}
	// They are registered beside everything else.
	var got []string
	for deadline := time.Now().Add(patience); len(got) == 0 && time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		got = slices.Sorted(slices.Values(d.DiscordCommands()))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("commands that Discord offers (-in the help +offered):\n%s", diff)
	}
}

func TestDataIsRememberedAcrossARestart(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "a folder with ${odd} 名前: #1")
	places := map[string]string{
		"line-direct": "Aiko", "line-group": "Ben", "discord-direct": "Dana", "discord-room": "Eli",
	}
	first := start(t, demo.Options{Data: data})
	p := open(t, first.URL())
	for place, name := range places {
		p.say(place, name, "my name is "+name, true)
		p.answer(place, name)
	}
	first.stop()
	p = open(t, start(t, demo.Options{Data: data}).URL())
	for place, name := range places {
		p.say(place, name, "what is my name?", true)
		p.answer(place, "you told me, and I remember")
	}
}

// TestNothingIsLeft asserts that a demonstration without a folder leaves neither files nor goroutines.
func TestNothingIsLeft(t *testing.T) {
	before := goleak.IgnoreCurrent()
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	t.Run("demonstration", func(t *testing.T) {
		p := open(t, start(t, demo.Options{}).URL())
		p.say("line-direct", "Aiko", "hello", false)
		p.answer("line-direct", "")
	})
	left, err := os.ReadDir(dir)
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	http.DefaultClient.CloseIdleConnections()
	goleak.VerifyNone(t, before)
}

func TestServer(t *testing.T) {
	t.Parallel()
	url := start(t, demo.Options{}).URL()
	for _, c := range []struct {
		name, method, path, body string
		change                   func(*http.Request)
		want                     int
	}{
		{"page", "GET", "/", "", nil, 200},
		{"script", "GET", "/main.js", "", nil, 200},
		{"no listing", "GET", "/index.html", "", nil, 404},
		{"page from a link elsewhere", "GET", "/", "", func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }, 200},
		{"another name", "GET", "/", "", func(r *http.Request) { r.Host = "evil.example" }, 403},
		{"events for another site", "GET", "/api/events", "", func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }, 403},
		{"post of another site", "POST", "/api/say", "{}", func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") }, 403},
		{"form", "POST", "/api/say", "{}", func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }, 400},
		{"no JSON", "POST", "/api/say", "x", nil, 400},
		{"unknown field", "POST", "/api/say", `{"admin":1}`, nil, 400},
		{"blank text", "POST", "/api/say", `{"place":"line-direct","person":"x","text":" "}`, nil, 400},
		{"long text", "POST", "/api/say", `{"place":"line-direct","person":"x","text":"` + strings.Repeat("x", 5001) + `"}`, nil, 400},
		{"unknown person", "POST", "/api/say", `{"place":"line-direct","person":"x","text":"x"}`, nil, 404},
		{"reset of nobody", "POST", "/api/reset", `{"place":"nowhere","person":"x"}`, nil, 404},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			req, err := http.NewRequestWithContext(t.Context(), c.method, url+c.path, strings.NewReader(c.body))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Content-Type", "application/json")
			if c.change != nil {
				c.change(req)
			}
			res, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			if res.StatusCode != c.want {
				t.Errorf("status %d, want %d", res.StatusCode, c.want)
			}
			policy := res.Header.Get("Content-Security-Policy")
			if !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") {
				t.Errorf("Content-Security-Policy %q", policy)
			}
		})
	}
}

func TestNewRefusesAPublicAddress(t *testing.T) {
	t.Parallel()
	if _, err := demo.New(demo.Options{Listen: "0.0.0.0:0"}); err == nil {
		t.Error("no error")
	}
}
