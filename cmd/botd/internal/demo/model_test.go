package demo_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"botd/cmd/botd/internal/demo"
)

// TestARealModelAnswers asserts that a server that speaks the OpenAI API takes the place of the built-in
// model, with its key and under its name.
func TestARealModelAnswers(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/chat/completions" {
			http.NotFound(w, r)
			return
		}
		if got := r.Header.Get("Authorization"); got != "Bearer planted-key" {
			t.Errorf("Authorization %q", got)
		}
		var request struct {
			Model    string
			Messages []struct{ Role, Content string }
		}
		if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
			t.Errorf("request: %v", err)
			return
		}
		last := request.Messages[len(request.Messages)-1].Content
		w.Header().Set("Content-Type", "text/event-stream")
		for _, piece := range []string{request.Model, " has ", fmt.Sprint(len(request.Messages)), " messages, last: ", last} {
			text, _ := json.Marshal(piece)
			fmt.Fprintf(w, `data: {"id":"x","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":%s}}]}`+"\n\n", text)
		}
		fmt.Fprint(w, `data: {"id":"x","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n")
	}))
	defer server.Close()
	d := start(t, demo.Options{APIKey: "planted-key", BaseURL: server.URL + "/v1", Model: "some-model"})
	p := open(t, d.URL())
	p.say("discord-direct", "Dana", "ping", false)
	p.answer("discord-direct", "some-model has 2 messages, last: ping")
	p.say("discord-direct", "Dana", "pong", false)
	p.answer("discord-direct", "some-model has 4 messages, last: pong")

	res, err := http.Get(d.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	page, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), "some-model") || strings.Contains(string(page), "planted-key") {
		t.Error("the page does not name the model, or tells the key")
	}
}
