package line_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"

	"botd/channels/line"
	"botd/channels/line/internal/spectest"
	"botd/channels/line/linefake"
)

// judge is a transport that judges requests and answers by LINE's own documents.
type judge struct {
	t    *testing.T
	next http.RoundTripper
	docs []judged
	seen map[string]int // calls by method and path of the document
}

type judged struct {
	doc    *openapi3.T
	router routers.Router
}

func newJudge(t *testing.T, base string, next http.RoundTripper, documents ...string) *judge {
	t.Helper()
	j := &judge{t: t, next: next, seen: map[string]int{}}
	for _, name := range documents {
		doc := spectest.Load(t, name)
		// The documents name LINE's hosts, also for single paths.
		doc.Servers = openapi3.Servers{{URL: base}}
		for _, p := range doc.Paths.Map() {
			p.Servers = nil
			for _, op := range p.Operations() {
				op.Servers = nil
			}
		}
		if token := doc.Paths.Value("/oauth2/v3/token"); token != nil {
			// The validator cannot choose between two kinds of form; ours is the second.
			form := token.Post.RequestBody.Value.Content["application/x-www-form-urlencoded"]
			form.Schema = form.Schema.Value.OneOf[1]
		}
		router, err := gorillamux.NewRouter(doc)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		j.docs = append(j.docs, judged{doc, router})
	}
	return j
}

// bodies are the schemas of which LINE's documents leave the inside to a discriminator.
var bodies = map[string]string{
	"/v2/bot/message/reply": "ReplyMessageRequest",
	"/v2/bot/message/push":  "PushMessageRequest",
}

func (j *judge) RoundTrip(r *http.Request) (*http.Response, error) {
	body := take(&r.Body)
	in := &openapi3filter.RequestValidationInput{Request: r, Options: &openapi3filter.Options{AuthenticationFunc: authenticated}}
	var doc *openapi3.T
	for _, d := range j.docs {
		if route, params, err := d.router.FindRoute(r); err == nil {
			in.Route, in.PathParams, doc = route, params, d.doc
		}
	}
	if doc == nil {
		j.t.Errorf("%s %s is in no document of LINE's", r.Method, r.URL.Path)
		return j.next.RoundTrip(r)
	}
	what := r.Method + " " + in.Route.Path
	j.seen[what]++
	if err := openapi3filter.ValidateRequest(r.Context(), in); err != nil {
		j.t.Errorf("%s: request: %v", what, err)
	}
	if schema := bodies[in.Route.Path]; schema != "" {
		if err := spectest.Check(doc, schema, body); err != nil {
			j.t.Errorf("%s: request: %v\n%s", what, err, body)
		}
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	res, err := j.next.RoundTrip(r)
	if err != nil || res.StatusCode/100 != 2 {
		return res, err
	}
	answer := take(&res.Body)
	out := &openapi3filter.ResponseValidationInput{RequestValidationInput: in, Status: res.StatusCode, Header: res.Header}
	out.SetBodyBytes(answer)
	if err := openapi3filter.ValidateResponse(context.Background(), out); err != nil {
		j.t.Errorf("%s: answer: %v\n%s", what, err, answer)
	}
	return res, nil
}

// take returns a body and puts it back.
func take(body *io.ReadCloser) []byte {
	if *body == nil {
		return nil
	}
	b, _ := io.ReadAll(*body)
	*body = io.NopCloser(bytes.NewReader(b))
	return b
}

func authenticated(_ context.Context, in *openapi3filter.AuthenticationInput) error {
	if !strings.HasPrefix(in.RequestValidationInput.Request.Header.Get("Authorization"), "Bearer ") {
		return errors.New("no bearer token")
	}
	return nil
}

// TestEveryCallIsValidByLINEsDocuments makes every call that the adapter knows.
func TestEveryCallIsValidByLINEsDocuments(t *testing.T) {
	t.Parallel()
	synctest.Test(t, everyCall)
}

func everyCall(t *testing.T) {
	w := newWorld(t)
	j := newJudge(t, w.fake.URL(), w.fake.Transport(), "messaging-api.yml", "channel-access-token.yml")
	client := &http.Client{Transport: j}
	tokens, err := line.NewStatelessTokens(line.StatelessOptions{ChannelID: w.bot.ChannelID, Secret: w.bot.Secret, APIBase: w.fake.URL(), HTTPClient: client})
	if err != nil {
		t.Fatal(err)
	}
	a := w.adapter(func(o *line.Options) { o.HTTPClient, o.Token, o.Tokens = client, "", tokens })
	group, room := w.bot.Group(w.alice), w.bot.Room(w.alice)
	mention := linefake.Text{Text: "@Shop hi", Mentions: []linefake.Mention{{At: "@Shop", Self: true}}}
	for _, c := range []*linefake.Chat{w.chat, group, room} {
		in := w.post(c, w.alice, mention)
		answer := "An **answer** with <tags> & \"quotes\" 🍎.\n\n"
		if c == w.chat {
			answer = strings.Repeat(answer, 25000/len(answer)+100) // more than one call takes
		}
		for _, m := range w.answer(in, answer) {
			if _, err := a.Send(t.Context(), m); err != nil {
				t.Error(err)
			}
		}
		if err := a.Typing(t.Context(), in.Address); err != nil {
			t.Error(err)
		}
		if _, err := a.Profile(t.Context(), in.Address); err != nil {
			t.Error(err)
		}
	}
	for _, m := range []linefake.Media{
		{Type: "image", Data: []byte("jpeg"), MIME: "image/jpeg"},
		{Type: "video", Data: []byte("mp4"), MIME: "video/mp4", Preparing: 3},
	} {
		r, err := a.OpenMedia(t.Context(), w.ref(m))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(r); err != nil || string(got) != string(m.Data) {
			t.Errorf("got %q, %v", got, err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
	end := run(t, a, w.sink)
	synctest.Wait()
	if err := end(); err != nil {
		t.Error(err)
	}
	for _, call := range []string{
		"POST /v2/bot/message/reply", "POST /v2/bot/message/push", "POST /v2/bot/chat/loading/start", "GET /v2/bot/info",
		"GET /v2/bot/profile/{userId}", "GET /v2/bot/group/{groupId}/member/{userId}", "GET /v2/bot/room/{roomId}/member/{userId}",
		"POST /oauth2/v3/token", "GET /v2/bot/message/{messageId}/content", "GET /v2/bot/message/{messageId}/content/transcoding",
	} {
		if j.seen[call] == 0 {
			t.Errorf("%s was not called", call)
		}
	}
}
