package discordfake_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"botd/channels/discord/discordfake"
)

func TestREST_WhoMayAsk(t *testing.T) {
	auth, agent := "Bot "+discordfake.DefaultToken, "DiscordBot (test, 1)"
	tests := map[string]struct {
		method, path, body string
		header             http.Header
		status, code       int
	}{
		"v10":            {"GET", "/api/v10/users/@me", "", http.Header{"Authorization": {auth}, "User-Agent": {agent}}, 200, 0},
		"v9":             {"GET", "/api/v9/users/@me", "", http.Header{"Authorization": {auth}, "User-Agent": {agent}}, 200, 0},
		"v8":             {"GET", "/api/v8/users/@me", "", http.Header{"Authorization": {auth}, "User-Agent": {agent}}, 400, 50041},
		"no token":       {"GET", "/api/v10/users/@me", "", http.Header{"User-Agent": {agent}}, 401, 0},
		"no prefix":      {"GET", "/api/v10/users/@me", "", http.Header{"Authorization": {discordfake.DefaultToken}, "User-Agent": {agent}}, 401, 0},
		"wrong token":    {"GET", "/api/v10/users/@me", "", http.Header{"Authorization": {"Bot x"}, "User-Agent": {agent}}, 401, 0},
		"another agent":  {"GET", "/api/v10/users/@me", "", http.Header{"Authorization": {auth}, "User-Agent": {"curl/8"}}, 403, 0},
		"unknown route":  {"GET", "/api/v10/nothing", "", http.Header{"Authorization": {auth}, "User-Agent": {agent}}, 404, 0},
		"another method": {"DELETE", "/api/v10/users/@me", "", http.Header{"Authorization": {auth}, "User-Agent": {agent}}, 404, 0},
		"no JSON":        {"POST", "/api/v10/users/@me/channels", "hello", http.Header{"Authorization": {auth}, "User-Agent": {agent}}, 400, 50109},
		"a form":         {"POST", "/api/v10/users/@me/channels", "a=b", http.Header{"Authorization": {auth}, "User-Agent": {agent}, "Content-Type": {"application/x-www-form-urlencoded"}}, 400, 50109},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				c := newClient(t, discordfake.Options{})
				if a := c.request(tt.method, tt.path, tt.body, tt.header); a.status != tt.status || a.Code != tt.code {
					t.Errorf("got %d, code %d; want %d, %d", a.status, a.Code, tt.status, tt.code)
				}
			})
		})
	}
}

// town is a client with a person and places.
type town struct {
	*client
	ada, bob             discordfake.User
	guild, role          string
	room, thread, direct string
}

func newTown(t *testing.T, o discordfake.Options) *town {
	t.Helper()
	w := &town{client: newClient(t, o)}
	w.ada, w.bob = w.Person("Ada"), w.Person("Bob")
	w.guild, w.role = w.Guild("Guild")
	w.room = w.Room(w.guild, "general")
	w.thread = w.Thread(w.room, "talk")
	w.direct = w.DM(w.ada.ID)
	return w
}

func (w *town) say(room, text string) discordfake.Message {
	w.t.Helper()
	m, err := w.Say(discordfake.Saying{From: w.ada.ID, Room: room, Text: text})
	if err != nil {
		w.t.Fatal(err)
	}
	return m
}

func TestREST_Refusals(t *testing.T) {
	long := strings.Repeat("👋", 2000)
	tests := map[string]struct {
		ask          func(w *town) answer
		status, code int
	}{
		"2000 code points":  {func(w *town) answer { return w.do("POST", "/channels/"+w.room+"/messages", `{"content":"`+long+`"}`) }, 200, 0},
		"2001 code points":  {func(w *town) answer { return w.do("POST", "/channels/"+w.room+"/messages", `{"content":"`+long+`x"}`) }, 400, 50035},
		"2001 with a blank": {func(w *town) answer { return w.do("POST", "/channels/"+w.room+"/messages", `{"content":" `+long+` "}`) }, 200, 0},
		"empty":             {func(w *town) answer { return w.do("POST", "/channels/"+w.room+"/messages", `{"content":""}`) }, 400, 50006},
		"blank":             {func(w *town) answer { return w.do("POST", "/channels/"+w.room+"/messages", `{"content":" \n"}`) }, 400, 50006},
		"nothing":           {func(w *town) answer { return w.do("POST", "/channels/"+w.room+"/messages", `{}`) }, 400, 50006},
		"an embed alone": {func(w *town) answer {
			return w.do("POST", "/channels/"+w.room+"/messages", `{"embeds":[{"title":"x"}]}`)
		}, 200, 0},
		"long nonce": {func(w *town) answer {
			return w.do("POST", "/channels/"+w.room+"/messages", `{"content":"x","nonce":"12345678901234567890123456"}`)
		}, 400, 50035},
		"odd nonce": {func(w *town) answer {
			return w.do("POST", "/channels/"+w.room+"/messages", `{"content":"x","nonce":1.5}`)
		}, 400, 50035},
		"odd parse": {func(w *town) answer {
			return w.do("POST", "/channels/"+w.room+"/messages", `{"content":"x","allowed_mentions":{"parse":["all"]}}`)
		}, 400, 50035},
		"parse and list": {func(w *town) answer {
			return w.do("POST", "/channels/"+w.room+"/messages", `{"content":"x","allowed_mentions":{"parse":["users"],"users":["1"]}}`)
		}, 400, 50035},
		"long list": {func(w *town) answer {
			return w.do("POST", "/channels/"+w.room+"/messages", `{"content":"x","allowed_mentions":{"users":["1"`+strings.Repeat(`,"1"`, 100)+`]}}`)
		}, 400, 50035},
		"unknown room": {func(w *town) answer { return w.do("POST", "/channels/1/messages", `{"content":"x"}`) }, 404, 10003},
		"deleted room": {func(w *town) answer {
			w.DeleteRoom(w.room)
			return w.do("POST", "/channels/"+w.room+"/messages", `{"content":"x"}`)
		}, 404, 10003},
		"hidden room": {func(w *town) answer { w.Deny(w.room, discordfake.View); return w.do("GET", "/channels/"+w.room, "") }, 403, 50001},
		"left guild": {func(w *town) answer {
			w.Kick(w.guild)
			return w.do("POST", "/channels/"+w.room+"/messages", `{"content":"x"}`)
		}, 403, 50001},
		"may not send": {func(w *town) answer {
			w.Deny(w.room, discordfake.Send)
			return w.do("POST", "/channels/"+w.room+"/messages", `{"content":"x"}`)
		}, 403, 50013},
		"may not type": {func(w *town) answer {
			w.Deny(w.room, discordfake.Send)
			return w.do("POST", "/channels/"+w.room+"/typing", "")
		}, 403, 50013},
		"person refuses": {func(w *town) answer {
			w.Shut(w.ada.ID)
			return w.do("POST", "/channels/"+w.direct+"/messages", `{"content":"x"}`)
		}, 403, 50007},
		"archived": {func(w *town) answer {
			w.Archive(w.thread, false)
			return w.do("POST", "/channels/"+w.thread+"/messages", `{"content":"x"}`)
		}, 200, 0},
		"locked": {func(w *town) answer {
			w.Archive(w.thread, true)
			return w.do("POST", "/channels/"+w.thread+"/messages", `{"content":"x"}`)
		}, 400, 50083},
		"edit in an archived thread": {func(w *town) answer {
			m := w.do("POST", "/channels/"+w.thread+"/messages", `{"content":"x"}`)
			w.Archive(w.thread, false)
			return w.do("PATCH", "/channels/"+w.thread+"/messages/"+m.ID, `{"content":"y"}`)
		}, 400, 50083},
		"edit another's": {func(w *town) answer {
			return w.do("PATCH", "/channels/"+w.room+"/messages/"+w.say(w.room, "x").ID, `{"content":"y"}`)
		}, 403, 50005},
		"delete another's": {func(w *town) answer {
			return w.do("DELETE", "/channels/"+w.room+"/messages/"+w.say(w.room, "x").ID, "")
		}, 403, 50013},
		"unknown message": {func(w *town) answer { return w.do("GET", "/channels/"+w.room+"/messages/1", "") }, 404, 10008},
		"reply to nothing": {func(w *town) answer {
			return w.do("POST", "/channels/"+w.room+"/messages", `{"content":"x","message_reference":{"message_id":"1"}}`)
		}, 400, 50035},
		"reply to nothing, if need be": {func(w *town) answer {
			return w.do("POST", "/channels/"+w.room+"/messages", `{"content":"x","message_reference":{"message_id":"1","fail_if_not_exists":false}}`)
		}, 200, 0},
		"reply without history": {func(w *town) answer {
			w.Deny(w.room, discordfake.ReadHistory)
			return w.do("POST", "/channels/"+w.room+"/messages", `{"content":"x","message_reference":{"message_id":"`+w.say(w.room, "x").ID+`"}}`)
		}, 400, 160002},
		"reply to the system": {func(w *town) answer {
			m, err := w.Say(discordfake.Saying{From: w.ada.ID, Room: w.room, Type: discordfake.TypeJoin})
			if err != nil {
				w.t.Fatal(err)
			}
			return w.do("POST", "/channels/"+w.room+"/messages", `{"content":"x","message_reference":{"message_id":"`+m.ID+`"}}`)
		}, 400, 50035},
		"page too large": {func(w *town) answer { return w.do("GET", "/channels/"+w.room+"/messages?limit=101", "") }, 400, 50035},
		"chat with a bot": {func(w *town) answer {
			return w.do("POST", "/users/@me/channels", `{"recipient_id":"`+w.OtherBot("Robot").ID+`"}`)
		}, 400, 50007},
		"chat with nobody":    {func(w *town) answer { return w.do("POST", "/users/@me/channels", `{"recipient_id":"1"}`) }, 400, 50035},
		"thread without name": {func(w *town) answer { return w.do("POST", "/channels/"+w.room+"/threads", `{"name":"  ","type":11}`) }, 400, 50035},
		"thread, odd time": {func(w *town) answer {
			return w.do("POST", "/channels/"+w.room+"/threads", `{"name":"x","auto_archive_duration":5}`)
		}, 400, 50035},
		"thread in a thread": {func(w *town) answer { return w.do("POST", "/channels/"+w.thread+"/threads", `{"name":"x"}`) }, 400, 50024},
		"thread in a chat":   {func(w *town) answer { return w.do("POST", "/channels/"+w.direct+"/threads", `{"name":"x"}`) }, 400, 50024},
		"thread, not allowed": {func(w *town) answer {
			w.Deny(w.room, discordfake.CreateThreads)
			return w.do("POST", "/channels/"+w.room+"/threads", `{"name":"x"}`)
		}, 403, 50013},
		"thread from nothing": {func(w *town) answer { return w.do("POST", "/channels/"+w.room+"/messages/1/threads", `{"name":"x"}`) }, 404, 10008},
		"commands of another": {func(w *town) answer { return w.do("PUT", "/applications/1/commands", `[]`) }, 403, 20012},
		"command with capitals": {func(w *town) answer {
			return w.do("PUT", "/applications/"+w.Bot().ID+"/commands", `[{"name":"Help","description":"x"}]`)
		}, 400, 50035},
		"command without description": {func(w *town) answer { return w.do("PUT", "/applications/"+w.Bot().ID+"/commands", `[{"name":"help"}]`) }, 400, 50035},
		"two commands of one name": {func(w *town) answer {
			return w.do("PUT", "/applications/"+w.Bot().ID+"/commands", `[{"name":"a","description":"x"},{"name":"a","description":"y"}]`)
		}, 400, 50035},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newTown(t, discordfake.Options{})
				if a := tt.ask(w); a.status != tt.status || a.Code != tt.code {
					t.Errorf("got %d, code %d; want %d, %d: %s", a.status, a.Code, tt.status, tt.code, a.body)
				}
			})
		})
	}
}

func TestREST_Pings(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newTown(t, discordfake.Options{NoLimits: true})
		question := w.say(w.room, "hello").ID
		text := "@everyone <@" + w.ada.ID + "> <@" + w.bob.ID + "> <@&" + w.role + "> <@1>"
		all := []string{w.ada.ID, w.bob.ID, w.role, "everyone"}
		tests := map[string][]string{
			`{"content":%q}`:                                                                      all,
			`{"content":%q,"allowed_mentions":{}}`:                                                nil,
			`{"content":%q,"allowed_mentions":{"parse":[]}}`:                                      nil,
			`{"content":%q,"allowed_mentions":{"parse":["users"]}}`:                               {w.ada.ID, w.bob.ID},
			`{"content":%q,"allowed_mentions":{"parse":["roles"],"users":["` + w.bob.ID + `"]}}`:  {w.bob.ID, w.role},
			`{"content":%q,"allowed_mentions":{"parse":["everyone"],"roles":["` + w.role + `"]}}`: {w.role, "everyone"},
			`{"content":%q,"allowed_mentions":{"parse":[],"replied_user":true}}`:                  nil,
		}
		for body, want := range tests {
			a := w.do("POST", "/channels/"+w.room+"/messages", fmt.Sprintf(body, text))
			posts := w.BotPosts(w.room)
			if diff := cmp.Diff(want, posts[len(posts)-1].Pings); diff != "" || a.status != 200 {
				t.Errorf("%s: status %d, pings (-want +got):\n%s", body, a.status, diff)
			}
		}
		for allowed, want := range map[string][]string{
			``: {w.ada.ID}, `,"allowed_mentions":{"parse":[]}`: nil, `,"allowed_mentions":{"parse":[],"replied_user":true}`: {w.ada.ID},
		} {
			w.do("POST", "/channels/"+w.room+"/messages", `{"content":"x","message_reference":{"message_id":"`+question+`"}`+allowed+`}`)
			posts := w.BotPosts(w.room)
			if diff := cmp.Diff(want, posts[len(posts)-1].Pings); diff != "" {
				t.Errorf("reply%s: pings (-want +got):\n%s", allowed, diff)
			}
		}
	})
}

func TestREST_Nonce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newTown(t, discordfake.Options{})
		send := func(room, nonce, enforce string) answer {
			return w.do("POST", "/channels/"+room+"/messages", `{"content":"x","nonce":`+nonce+`,"enforce_nonce":`+enforce+`}`)
		}
		first := send(w.room, `"a"`, "true")
		if again := send(w.room, `"a"`, "true"); again.ID != first.ID {
			t.Error("the same nonce made another message")
		}
		if other := send(w.room, `"a"`, "false"); other.ID == first.ID {
			t.Error("the nonce was enforced though not asked to")
		}
		if elsewhere := send(w.direct, `"a"`, "true"); elsewhere.ID == first.ID {
			t.Error("the nonce reaches into another room")
		}
		number := send(w.direct, `42`, "true")
		if again := send(w.direct, `42`, "true"); again.ID != number.ID {
			t.Error("a number is no nonce")
		}
		time.Sleep(10 * time.Minute)
		if late := send(w.direct, `42`, "true"); late.ID == number.ID {
			t.Error("the nonce is remembered for ever")
		}
		last := send(w.room, `"b"`, "true")
		w.Delete(w.room, last.ID)
		if again := send(w.room, `"b"`, "true"); again.status != 404 || again.Code != 10008 {
			t.Errorf("nonce of a deleted message: %d, code %d", again.status, again.Code)
		}
	})
}

func TestREST_History(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newTown(t, discordfake.Options{})
		var ids []string
		for range 5 {
			ids = append(ids, w.say(w.direct, "x").ID)
		}
		w.Delete(w.direct, ids[3])
		tests := map[string][]int{
			"":                          {4, 2, 1, 0},
			"?limit=2":                  {4, 2},
			"?after=" + ids[1]:          {4, 2},
			"?limit=1&after=" + ids[0]:  {1},
			"?before=" + ids[2]:         {1, 0},
			"?limit=1&before=" + ids[2]: {1},
			"?after=" + ids[4]:          nil,
		}
		list := func(query string) []string {
			var page []discordfake.Message
			if err := json.Unmarshal([]byte(w.do("GET", "/channels/"+w.direct+"/messages"+query, "").body), &page); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, m := range page {
				got = append(got, m.ID)
			}
			return got
		}
		for query, want := range tests {
			var wanted []string
			for _, i := range want {
				wanted = append(wanted, ids[i])
			}
			if diff := cmp.Diff(wanted, list(query)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", query, diff)
			}
		}
		time.Sleep(5 * time.Second)
		w.Deny(w.direct, discordfake.ReadHistory)
		if got := list(""); got != nil {
			t.Errorf("without the right to read: %v", got)
		}
	})
}

func TestREST_Threads(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newTown(t, discordfake.Options{})
		m := w.say(w.room, "x")
		a := w.do("POST", "/channels/"+w.room+"/messages/"+m.ID+"/threads", `{"name":"about x"}`)
		if a.ID != m.ID {
			t.Errorf("thread %s, want the message's own ID %s", a.ID, m.ID)
		}
		if again := w.do("POST", "/channels/"+w.room+"/messages/"+m.ID+"/threads", `{"name":"about x"}`); again.Code != 160004 {
			t.Errorf("second thread: %d, code %d", again.status, again.Code)
		}
		for body, want := range map[string]string{`{"name":"x","type":11}`: `"type":11`, `{"name":"x"}`: `"type":12`} {
			if a := w.do("POST", "/channels/"+w.room+"/threads", body); !strings.Contains(a.body, want) {
				t.Errorf("%s: %s", body, a.body)
			}
		}
		if a := w.do("GET", "/channels/"+m.ID, ""); !strings.Contains(a.body, `"parent_id":"`+w.room+`"`) {
			t.Errorf("thread is told as %s", a.body)
		}
	})
}

func TestREST_EditAndDelete(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newTown(t, discordfake.Options{})
		m := w.do("POST", "/channels/"+w.room+"/messages", `{"content":"x"}`)
		if a := w.do("PATCH", "/channels/"+w.room+"/messages/"+m.ID, `{"content":"y <@`+w.ada.ID+`>"}`); a.status != 200 {
			t.Errorf("edit: %d", a.status)
		}
		p := w.BotPosts(w.room)[0]
		if !strings.HasPrefix(p.Content, "y") || p.Edits != 1 || len(p.Pings) > 0 {
			t.Errorf("post %+v, want it edited without a ping", p)
		}
		if a := w.do("DELETE", "/channels/"+w.room+"/messages/"+m.ID, ""); a.status != 204 || len(w.BotPosts(w.room)) != 0 {
			t.Errorf("delete: %d", a.status)
		}
	})
}

func TestREST_RateLimits(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newTown(t, discordfake.Options{})
		for i := range 5 {
			a := w.do("POST", "/channels/"+w.room+"/messages", `{"content":"x"}`)
			if a.status != 200 || a.header.Get("X-RateLimit-Remaining") != fmt.Sprint(4-i) || a.header.Get("X-RateLimit-Bucket") == "" || a.header.Get("X-RateLimit-Reset-After") != "5.000" {
				t.Errorf("request %d: %d, %v", i, a.status, a.header)
			}
		}
		a := w.do("POST", "/channels/"+w.room+"/messages", `{"content":"x"}`)
		if a.status != 429 || a.header.Get("Retry-After") != "5" || a.header.Get("X-RateLimit-Scope") != "user" || !strings.Contains(a.body, `"retry_after":5,`) && !strings.Contains(a.body, `"retry_after":5}`) {
			t.Errorf("past the limit: %d, %v, %s", a.status, a.header, a.body)
		}
		if a := w.do("POST", "/channels/"+w.direct+"/messages", `{"content":"x"}`); a.status != 200 {
			t.Errorf("another room: %d", a.status)
		}
		time.Sleep(5 * time.Second)
		if a := w.do("POST", "/channels/"+w.room+"/messages", `{"content":"x"}`); a.status != 200 {
			t.Errorf("after the wait: %d", a.status)
		}
		time.Sleep(time.Second)
		last := answer{}
		for i := range 60 {
			last = w.do("GET", fmt.Sprintf("/channels/%d", i), "")
		}
		if last.status != 429 || last.header.Get("X-RateLimit-Global") != "true" || last.header.Get("X-RateLimit-Reset-After") != "" {
			t.Errorf("60 requests in a second: %d, %v", last.status, last.header)
		}
		if n := w.InvalidRequests(); n != 11 {
			t.Errorf("%d invalid requests counted", n)
		}
	})
}

func TestREST_Faults(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newTown(t, discordfake.Options{})
		path := "/channels/" + w.room + "/messages"
		w.Inject(discordfake.Fault{Method: "POST", Path: "/channels/*/messages", Status: 500, Times: 2})
		for i, want := range []int{500, 500, 200} {
			if a := w.do("POST", path, `{"content":"x"}`); a.status != want {
				t.Errorf("request %d: %d, want %d", i, a.status, want)
			}
		}
		lost := discordfake.BadGateway()
		lost.Accept = true
		w.Inject(lost)
		if a := w.do("POST", path, `{"content":"lost"}`); a.status != 502 || len(w.BotPosts(w.room)) != 2 {
			t.Errorf("accepted and lost: %d, %d posts", a.status, len(w.BotPosts(w.room)))
		}
		w.Inject(discordfake.Fault{Path: path, Delay: time.Minute})
		began := time.Now()
		if a := w.do("GET", path, ""); a.status != 200 || time.Since(began) != time.Minute {
			t.Errorf("delayed: %d after %v", a.status, time.Since(began))
		}
		w.Inject(discordfake.Fault{Drop: true, Times: -1})
		for range 3 {
			req, err := http.NewRequestWithContext(t.Context(), "GET", w.URL()+"/api/v10/gateway", nil)
			if err != nil {
				t.Fatal(err)
			}
			if resp, err := w.http.Do(req); err == nil {
				resp.Body.Close()
				t.Error("an answer in spite of the cut")
			}
		}
		statuses := []int{}
		for _, r := range w.Requests() {
			statuses = append(statuses, r.Status)
		}
		if want := []int{500, 500, 200, 502, 200, 0, 0}; !slices.Equal(statuses[:7], want) {
			t.Errorf("recorded %v, want %v", statuses, want)
		}
	})
}

func TestREST_Interactions(t *testing.T) {
	const deferred = `{"type":5,"data":{"flags":64}}`
	bubble(t, func(t *testing.T) {
		w := newTown(t, discordfake.Options{NoLimits: true})
		use := func() discordfake.Interaction {
			i, err := w.Command(w.ada.ID, w.room, "help", "topic", "x")
			if err != nil {
				t.Fatal(err)
			}
			return i
		}
		respond := func(i discordfake.Interaction, body string) answer {
			return w.request("POST", "/api/v10/interactions/"+i.ID+"/"+i.Token+"/callback", body, http.Header{"User-Agent": {"DiscordBot (test, 1)"}})
		}
		hook := func(method, token, rest, body string) answer {
			return w.request(method, "/api/v10/webhooks/"+w.Bot().ID+"/"+token+rest, body, http.Header{"User-Agent": {"DiscordBot (test, 1)"}})
		}

		i := use()
		if a := hook("PATCH", i.Token, "/messages/@original", `{"content":"x"}`); a.Code != 10015 {
			t.Errorf("answer before the acknowledgement: %d, code %d", a.status, a.Code)
		}
		for body, want := range map[string]int{`{"type":1}`: 400, `{"type":4,"data":{"content":""}}`: 400} {
			if a := respond(i, body); a.status != want {
				t.Errorf("%s: %d, want %d", body, a.status, want)
			}
		}
		if a := respond(i, deferred); a.status != 204 {
			t.Errorf("acknowledgement: %d", a.status)
		}
		if a := respond(i, deferred); a.Code != 40060 {
			t.Errorf("second acknowledgement: %d, code %d", a.status, a.Code)
		}
		if a := hook("PATCH", i.Token, "/messages/@original", `{"content":"one"}`); a.status != 200 {
			t.Errorf("edit: %d", a.status)
		}
		more := hook("POST", i.Token, "", `{"content":"two"}`)
		if a := hook("PATCH", i.Token, "/messages/"+more.ID, `{"content":"three"}`); a.status != 200 {
			t.Errorf("edit of a further message: %d", a.status)
		}
		if st := w.Interaction(i.Token); st.Text != "one" || len(st.Followups) != 1 || st.Followups[0].Content != "three" || !st.Ephemeral {
			t.Errorf("interaction %+v", st)
		}
		for _, p := range w.BotPosts(w.room) {
			if p.OnlyFor != w.ada.ID {
				t.Errorf("post %+v is for all", p)
			}
		}
		if a := w.do("GET", "/channels/"+w.room+"/messages", ""); a.body != "[]" {
			t.Errorf("private messages are in the history: %s", a.body)
		}
		if a := hook("DELETE", i.Token, "/messages/@original", ""); a.status != 204 {
			t.Errorf("delete: %d", a.status)
		}
		if a := hook("GET", i.Token, "/messages/@original", ""); a.Code != 10008 {
			t.Errorf("deleted: %d, code %d", a.status, a.Code)
		}
		time.Sleep(15*time.Minute + time.Second)
		if a := hook("POST", i.Token, "", `{"content":"late"}`); a.status != 401 || a.Code != 50027 {
			t.Errorf("after 15 minutes: %d, code %d", a.status, a.Code)
		}

		late := use()
		time.Sleep(4 * time.Second)
		if a := respond(late, deferred); a.Code != 10062 {
			t.Errorf("acknowledgement after 3 s: %d, code %d", a.status, a.Code)
		}
		open := use()
		if a := respond(open, `{"type":4,"data":{"content":"<@`+w.bob.ID+`> @everyone"}}`); a.status != 204 {
			t.Errorf("answer at once: %d", a.status)
		}
		posts := w.BotPosts(w.room)
		if diff := cmp.Diff([]string{w.bob.ID}, posts[len(posts)-1].Pings); diff != "" {
			t.Errorf("an answer to an interaction pings users only (-want +got):\n%s", diff)
		}
		thinking := use()
		respond(thinking, `{"type":5}`)
		hook("POST", thinking.Token, "", `{"content":"first"}`)
		if st := w.Interaction(thinking.Token); st.Text != "first" || len(st.Followups) != 0 {
			t.Errorf("the first message after a deferral does not take its place: %+v", st)
		}
	})
}

func TestREST_Commands(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newTown(t, discordfake.Options{})
		path := "/applications/" + w.Bot().ID + "/commands"
		if a := w.do("GET", path, ""); a.body != "[]" {
			t.Errorf("at first: %s", a.body)
		}
		if a := w.do("PUT", path, `[{"name":"幫助","description":"x","description_localizations":{"de":"y"}}]`); a.status != 200 {
			t.Errorf("overwrite: %d %s", a.status, a.body)
		}
		if a := w.do("GET", path, ""); strings.Contains(a.body, `"de"`) {
			t.Errorf("other languages are told unasked: %s", a.body)
		}
		if a := w.do("GET", path+"?with_localizations=true", ""); !strings.Contains(a.body, `"de"`) {
			t.Errorf("other languages are not told: %s", a.body)
		}
		if names, n := w.Commands(); !slices.Equal(names, []string{"幫助"}) || n != 1 {
			t.Errorf("commands %v, %d overwrites", names, n)
		}
	})
}

func TestWatch(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newTown(t, discordfake.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		var seen []string
		ended := make(chan error)
		go func() {
			ended <- w.Watch(ctx, func(c discordfake.Change) {
				seen = append(seen, fmt.Sprintf("%s %s %q", c.Kind, c.Room, c.Post.Content))
			})
		}()
		synctest.Wait()
		w.say(w.room, "hello")
		w.do("POST", "/channels/"+w.room+"/typing", "")
		m := w.do("POST", "/channels/"+w.room+"/messages", `{"content":"hi"}`)
		w.do("PATCH", "/channels/"+w.room+"/messages/"+m.ID, `{"content":"hi!"}`)
		w.do("DELETE", "/channels/"+w.room+"/messages/"+m.ID, "")
		synctest.Wait()
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("Watch: %v", err)
		}
		want := []string{"posted " + w.room + ` "hello"`, "typing " + w.room + ` ""`, "posted " + w.room + ` "hi"`, "edited " + w.room + ` "hi!"`, "deleted " + w.room + ` "hi!"`}
		if diff := cmp.Diff(want, seen); diff != "" {
			t.Errorf("changes (-want +got):\n%s", diff)
		}
	})
	t.Run("ends with the server", func(t *testing.T) {
		t.Parallel()
		srv, err := discordfake.New(discordfake.Options{})
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error)
		go func() { ended <- srv.Watch(t.Context(), func(discordfake.Change) {}) }()
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
		if err := <-ended; !errors.Is(err, discordfake.ErrClosed) {
			t.Errorf("Watch: %v", err)
		}
	})
}

func TestSay_Mistakes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newTown(t, discordfake.Options{})
		for name, m := range map[string]discordfake.Saying{
			"no person":  {Room: w.room},
			"no room":    {From: w.ada.ID},
			"no message": {From: w.ada.ID, Room: w.room, ReplyTo: "1"},
			"no forward": {From: w.ada.ID, Room: w.room, Forward: "1", FromRoom: w.room},
		} {
			if _, err := w.Say(m); err == nil {
				t.Errorf("%s: no error", name)
			}
		}
		if _, err := w.Command(w.ada.ID, w.room, "help", "odd"); err == nil {
			t.Error("an option without a value: no error")
		}
	})
}
