package discord

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"botd/channels"
	"botd/channels/discord/discordfake"
)

// published is Discord's own OpenAPI document.
type published struct{ doc *openapi3.T }

var loadPublished = sync.OnceValues(func() (*openapi3.T, error) {
	dir := os.Getenv("BOTD_SPECS")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared", "specs")
	}
	path := filepath.Join(dir, "discord", "openapi.json")
	if _, err := os.Stat(path); err != nil {
		return nil, err
	}
	return openapi3.NewLoader().LoadFromFile(path)
})

func loadSpec(t testing.TB) published {
	t.Helper()
	doc, err := loadPublished()
	if errors.Is(err, os.ErrNotExist) {
		if os.Getenv("BOTD_REQUIRE_SPECS") != "" {
			t.Fatal("Discord's openapi.json is not here, and BOTD_REQUIRE_SPECS is set")
		}
		t.Skip("Discord's openapi.json is not here: set BOTD_SPECS to a folder that holds discord/openapi.json")
	}
	if err != nil {
		t.Fatalf("load Discord's openapi.json: %v", err)
	}
	return published{doc}
}

// operation finds the operation behind a request's path.
func (p published) operation(method, path string) (*openapi3.Operation, string) {
	parts := strings.Split(path, "/")
	var found *openapi3.Operation
	name, literal := "", -1
	for pattern, item := range p.doc.Paths.Map() {
		names := strings.Split(pattern, "/")
		if len(names) != len(parts) {
			continue
		}
		same := 0
		for i, n := range names {
			switch {
			case n == parts[i]:
				same++
			case !strings.HasPrefix(n, "{"):
				same = -1 << 20
			}
		}
		if op := item.GetOperation(method); op != nil && same > literal {
			found, name, literal = op, method+" "+pattern, same
		}
	}
	if literal < 0 {
		return nil, ""
	}
	return found, name
}

// check judges a JSON text by a schema.
func check(schema *openapi3.SchemaRef, text []byte) error {
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		return err
	}
	return schema.Value.VisitJSON(v, openapi3.EnableJSONSchema2020())
}

// judge checks one request, and the answer that the fake gave.
func (p published) judge(r discordfake.Request) (operation string, err error) {
	op, name := p.operation(r.Method, r.Path)
	if op == nil {
		return "", fmt.Errorf("%s %s is no operation of Discord's", r.Method, r.Path)
	}
	if op.RequestBody == nil {
		if len(r.Body) > 0 {
			return name, fmt.Errorf("%s: a body where none belongs", name)
		}
	} else if err := check(op.RequestBody.Value.Content.Get("application/json").Schema, r.Body); err != nil {
		return name, fmt.Errorf("%s: request: %w", name, err)
	}
	if r.Status < 200 || r.Status > 299 {
		return name, nil
	}
	response := op.Responses.Status(r.Status)
	if response == nil {
		return name, fmt.Errorf("%s: answer %d is not in the document", name, r.Status)
	}
	if media := response.Value.Content.Get("application/json"); media != nil {
		if err := check(media.Schema, r.Answer); err != nil {
			return name, fmt.Errorf("%s: answer: %w", name, err)
		}
	}
	return name, nil
}

// TestEveryRequestIsValid makes the adapter do everything that it does by REST.
func TestEveryRequestIsValid(t *testing.T) {
	spec := loadSpec(t)
	bubble(t, func(t *testing.T) {
		s := started(t, withContent)
		for _, room := range []string{s.thread, s.direct} {
			in := s.hear(discordfake.Saying{From: s.ada.ID, Room: room, Text: s.mention("hello")})
			if _, err := s.send(answer(in, strings.Repeat("**word** 👋 ", 300))); err != nil {
				t.Fatal(err)
			}
			if err := s.a.Typing(t.Context(), in.Address); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Hour)
			if _, err := s.send(answer(in, "late")); err != nil {
				t.Fatal(err)
			}
			_, command := s.command(s.ada.ID, room, "help")
			if _, err := s.send(answer(command, strings.Repeat("many words. ", 300))); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := s.send(channels.Outbound{ID: "x", To: channels.Address{User: s.bob.ID}, Parts: []channels.Part{{Type: channels.Text, Text: "hi"}}}); err != nil {
			t.Fatal(err)
		}
		s.a.dir.rooms = newLRU[room](knownRooms)
		if _, ok := s.a.lookUp(t.Context(), s.thread); !ok {
			t.Fatal("thread not found")
		}
		seen := map[string]int{}
		for _, r := range s.srv.Requests() {
			name, err := spec.judge(r)
			if err != nil {
				t.Errorf("%v\n%s\n%s", err, r.Body, r.Answer)
			}
			seen[name]++
		}
		for _, want := range []string{
			"GET /applications/@me", "GET /gateway/bot", "GET /applications/{application_id}/commands", "PUT /applications/{application_id}/commands",
			"GET /channels/{channel_id}", "POST /channels/{channel_id}/messages", "GET /channels/{channel_id}/messages", "POST /channels/{channel_id}/typing",
			"POST /users/@me/channels", "POST /interactions/{interaction_id}/{interaction_token}/callback",
			"POST /webhooks/{webhook_id}/{webhook_token}", "PATCH /webhooks/{webhook_id}/{webhook_token}/messages/@original",
		} {
			if seen[want] == 0 {
				t.Errorf("%s was not asked for", want)
			}
		}
	})
}

// TestSpecJudges shows that the judge refuses what Discord would.
func TestSpecJudges(t *testing.T) {
	spec := loadSpec(t)
	for body, ok := range map[string]bool{
		`{"content":"x","nonce":"1","enforce_nonce":true,"allowed_mentions":{"parse":[]}}`: true,
		`{"content":5}`: false,
		`{"content":"x","nonce":"12345678901234567890123456"}`: false,
		`{"content":"x","allowed_mentions":{"parse":["all"]}}`: false,
		`{"content":"x","message_reference":{}}`:               false,
	} {
		_, err := spec.judge(discordfake.Request{Method: "POST", Path: "/channels/1/messages", Body: []byte(body)})
		if (err == nil) != ok {
			t.Errorf("%s: %v, want valid: %v", body, err, ok)
		}
	}
	if _, err := spec.judge(discordfake.Request{Method: "POST", Path: "/channels/1/nothing"}); err == nil {
		t.Error("an operation that does not exist is accepted")
	}
}
