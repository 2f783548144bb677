package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// adminCommands are the commands of scripts that talk to a gateway and to its model:
//
//	model NAME          start a model and set the variable NAME to its URL
//	asked N             wait until the model has been asked N times in all
//	answer TEXT…        let the model answer, and all that it is asked later
//	say URL USER TEXT…  say something on the console channel at URL
//	await PATTERN COMMAND…   run a command until its output matches
//	stale FILE          leave a socket behind as a process does that is killed
//	damage FILE         overwrite the middle of a file
//	unescaped FILE      fail when FILE holds anything that moves a terminal's cursor
func adminCommands(into map[string]func(*testscript.TestScript, bool, []string)) map[string]func(*testscript.TestScript, bool, []string) {
	into["model"] = startModel
	into["asked"] = asked
	into["answer"] = letAnswer
	into["say"] = say
	into["await"] = await
	into["stale"] = stale
	into["damage"] = damage
	into["unescaped"] = unescaped
	return into
}

// patience bounds every wait for something that must happen.
const patience = 20 * time.Second

// model speaks Chat Completions and answers nothing until it is let.
type model struct {
	mu     sync.Mutex
	asked  int
	answer string
	let    chan struct{}
}

// models are the models by the folder of their script.
var models sync.Map

func modelOf(ts *testscript.TestScript) *model {
	m, ok := models.Load(ts.Getenv("WORK"))
	if !ok {
		ts.Fatalf("there is no model")
	}
	return m.(*model)
}

func startModel(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: model NAME")
	}
	m := &model{let: make(chan struct{})}
	srv := httptest.NewServer(m)
	key := ts.Getenv("WORK")
	models.Store(key, m)
	ts.Defer(func() {
		models.Delete(key)
		srv.CloseClientConnections()
		srv.Close()
	})
	ts.Setenv(args[0], srv.URL)
}

func (m *model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/chat/completions") {
		http.NotFound(w, r)
		return
	}
	var asked struct {
		Stream bool `json:"stream"`
	}
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil || !asked.Stream {
		http.Error(w, "want a request for a stream", http.StatusBadRequest)
		return
	}
	m.mu.Lock()
	m.asked++
	m.mu.Unlock()
	select {
	case <-m.let:
	case <-r.Context().Done():
		return
	}
	m.mu.Lock()
	text, _ := json.Marshal(m.answer)
	m.mu.Unlock()
	w.Header().Set("Content-Type", "text/event-stream")
	const chunk = `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":%s,"finish_reason":%s}]}` + "\n\n"
	fmt.Fprintf(w, chunk, `{"role":"assistant","content":`+string(text)+`}`, "null")
	fmt.Fprintf(w, chunk, `{}`, `"stop"`)
	fmt.Fprint(w, "data: [DONE]\n\n")
}

func asked(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: asked N")
	}
	m := modelOf(ts)
	n := 0
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		m.mu.Lock()
		n = m.asked
		m.mu.Unlock()
		if fmt.Sprint(n) == args[0] {
			return
		}
	}
	ts.Fatalf("the model was asked %d times, want %s", n, args[0])
}

func letAnswer(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: answer TEXT...")
	}
	m := modelOf(ts)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.answer = strings.Join(args, " ")
	close(m.let)
}

func say(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: say URL USER TEXT...")
	}
	body, err := json.Marshal(map[string]string{"user": args[1], "text": unquote(strings.Join(args[2:], " "))})
	ts.Check(err)
	res, err := http.Post(args[0]+"/messages", "application/json", bytes.NewReader(body))
	ts.Check(err)
	defer res.Body.Close()
	if res.StatusCode != http.StatusAccepted {
		ts.Fatalf("the console answers %s", res.Status)
	}
}

// unquote makes ESC of \e, which scripts cannot hold.
func unquote(s string) string { return strings.ReplaceAll(s, `\e`, "\x1b") }

func await(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: await PATTERN command...")
	}
	want, err := regexp.Compile("(?m)" + args[0])
	ts.Check(err)
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		_ = ts.Exec(args[1], args[2:]...) // what is awaited may not exist yet
		if want.MatchString(ts.ReadFile("stdout")) {
			return
		}
	}
	ts.Fatalf("the output never matched %s:\n%s\n%s", args[0], ts.ReadFile("stdout"), ts.ReadFile("stderr"))
}

func stale(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: stale FILE")
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: ts.MkAbs(args[0]), Net: "unix"})
	ts.Check(err)
	l.SetUnlinkOnClose(false)
	l.Close()
}

func damage(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: damage FILE")
	}
	path := ts.MkAbs(args[0])
	text, err := os.ReadFile(path)
	ts.Check(err)
	at := bytes.LastIndex(text, []byte("the one to damage"))
	if at < 0 {
		ts.Fatalf("%s does not hold what is to be damaged", args[0])
	}
	for at >= 0 {
		text[at] ^= 0xff
		at = bytes.LastIndex(text, []byte("the one to damage"))
	}
	ts.Check(os.WriteFile(path, text, 0o600))
}

func unescaped(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: unescaped FILE")
	}
	for _, r := range ts.ReadFile(args[0]) {
		if r != '\n' && !visible(r) {
			ts.Fatalf("%s holds %q", args[0], r)
		}
	}
}
