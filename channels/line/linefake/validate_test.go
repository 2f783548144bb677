package linefake_test

import (
	"strings"
	"testing"

	"botd/channels/line/linefake"
)

// TestMessagesAreCheckedAsLINEDoes posts one list of messages to each endpoint that takes messages.
func TestMessagesAreCheckedAsLINEDoes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, linefake.Options{}, linefake.BotConfig{})
	alice := w.AddUser(linefake.UserConfig{})
	w.bot.Direct(alice)
	text := func(s string) string { return `{"type":"text","text":"` + s + `"}` }
	postback := func(props string) string {
		return `{"type":"text","text":"a","quickReply":{"items":[{"type":"action","action":{"type":"postback",` + props + `}}]}}`
	}
	for _, tt := range []struct {
		name, messages string
		want           string // a part of the refusal, empty for a message that is taken
	}{
		{"text", text("hello"), ""},
		{"five", strings.Repeat(text("a")+",", 4) + text("a"), ""},
		{"none", "", "Size must be between 1 and 5"},
		{"six", strings.Repeat(text("a")+",", 5) + text("a"), "Size must be between 1 and 5"},
		{"empty text", text(""), "messages[0].text"},
		{"blank text", text(" \\n\\u3000"), "messages[0].text"},
		{"no text", `{"type":"text"}`, "messages[0].text"},
		{"text that is a number", `{"type":"text","text":1}`, "messages[0].text"},
		{"5000 units", text(strings.Repeat("a", 4998) + "🍎"), ""},
		{"5001 units", text(strings.Repeat("a", 4999) + "🍎"), "Length must be between 0 and 5000"},
		{"unknown type", `{"type":"poll"}`, "messages[0].type"},
		{"no type", `{"text":"a"}`, "messages[0].type"},
		{"no object", `"text"`, "messages[0]"},
		{"unknown property", `{"type":"text","text":"a","parseMode":"markdown"}`, "messages[0].parseMode"},
		{"second of two", text("a") + "," + text(""), "messages[1].text"},
		{"literal braces in v2", `{"type":"textV2","text":"if {x}"}`, ""},
		{"stray brace in v2", `{"type":"textV2","text":"a } b"}`, "messages[0].text"},
		{"escaped braces in v2", `{"type":"textV2","text":"{{a}}"}`, ""},
		{"sticker", `{"type":"sticker","packageId":"446","stickerId":"1988"}`, ""},
		{"image over http", `{"type":"image","originalContentUrl":"http://a/b","previewImageUrl":"https://a/b"}`, "messages[0].originalContentUrl"},
		{"quick reply", postback(`"label":"more","data":"d"`), ""},
		{"long label", postback(`"label":"` + strings.Repeat("字", 21) + `","data":"d"`), "action.label"},
		{"label of 20 families", postback(`"label":"` + strings.Repeat("👨‍👩‍👧‍👦", 20) + `","data":"d"`), ""},
		{"long data", postback(`"label":"a","data":"` + strings.Repeat("x", 301) + `"`), "action.data"},
		{"button that opens a page", strings.Replace(postback(`"label":"a","uri":"https://a/b"`), `"postback"`, `"uri"`, 1), ""},
		{"button that runs a script", strings.Replace(postback(`"label":"a","uri":"javascript:x"`), `"postback"`, `"uri"`, 1), "action.uri"},
		{"button that does nothing known", strings.Replace(postback(`"label":"a"`), `"postback"`, `"dance"`, 1), "action.type"},
		{"mention in v2", `{"type":"textV2","text":"{u} hi","substitution":{"u":{"type":"mention","mentionee":{"type":"user","userId":"U1"}}}}`, ""},
		{"substitution of nothing known", `{"type":"textV2","text":"{u} hi","substitution":{"u":{"type":"smell"}}}`, "substitution.u.type"},
		{"substitution that is a string", `{"type":"textV2","text":"{u} hi","substitution":{"u":"x"}}`, "substitution.u"},
		{"emoji", `{"type":"text","text":"$","emojis":[{"index":0,"productId":"5ac","emojiId":"001"}]}`, ""},
		{"emoji without place", `{"type":"text","text":"$","emojis":[{"productId":"5ac","emojiId":"001"}]}`, "emojis[0].index"},
		{"audio", `{"type":"audio","originalContentUrl":"https://a/b","duration":1000}`, ""},
		{"audio of no length", `{"type":"audio","originalContentUrl":"https://a/b","duration":0}`, "duration"},
		{"location", `{"type":"location","title":"a","address":"b","latitude":1,"longitude":-180}`, ""},
		{"location off the map", `{"type":"location","title":"a","address":"b","latitude":91,"longitude":0}`, "latitude"},
		{"template", `{"type":"template","altText":"a","template":{"type":"confirm"}}`, ""},
		{"template of no known type", `{"type":"template","altText":"a","template":{"type":"x"}}`, "template.type"},
		{"sender", `{"type":"text","text":"a","sender":{"name":"Shop"}}`, ""},
		{"sender called LINE", `{"type":"text","text":"a","sender":{"name":"Line Help"}}`, "sender.name"},
		{"flex of nothing", `{"type":"flex","altText":"a","contents":{"type":""}}`, "contents.type"},
		{"flex", `{"type":"flex","altText":"a","contents":{"type":"bubble"}}`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for path, body := range map[string]string{
				"/v2/bot/message/validate/reply": `{"messages":[` + tt.messages + `]}`,
				"/v2/bot/message/validate/push":  `{"messages":[` + tt.messages + `]}`,
				"/v2/bot/message/push":           `{"to":"` + alice.ID + `","messages":[` + tt.messages + `]}`,
			} {
				got := w.call("POST", path, body)
				switch {
				case tt.want == "" && got.status != 200:
					t.Errorf("%s: refused: %s", path, got.body)
				case tt.want != "" && (got.status != 400 || !strings.Contains(string(got.body), tt.want)):
					t.Errorf("%s: got %d %s, want a refusal of %s", path, got.status, got.body, tt.want)
				}
			}
		})
	}
}

func TestRequestsAreChecked(t *testing.T) {
	t.Parallel()
	w := newWorld(t, linefake.Options{}, linefake.BotConfig{})
	alice := w.AddUser(linefake.UserConfig{})
	w.bot.Direct(alice)
	const push = "/v2/bot/message/push"
	good := `{"to":"` + alice.ID + `","messages":[{"type":"text","text":"a"}]}`
	for _, tt := range []struct {
		name, method, path, body string
		opts                     []option
		status                   int
		message                  string
	}{
		{"good", "POST", push, good, nil, 200, ""},
		{"no token", "POST", push, good, []option{header("Authorization", "")}, 401, linefake.NoToken},
		{"wrong token", "POST", push, good, []option{header("Authorization", "Bearer x")}, 401, linefake.InvalidToken},
		{"wrong scheme", "POST", push, good, []option{header("Authorization", "Basic "+w.bot.Token)}, 401, linefake.InvalidToken},
		{"not JSON", "POST", push, `{`, nil, 400, "The request body could not be parsed as JSON (line: 1, column: 1)"},
		{"form", "POST", push, good, []option{header("Content-Type", "text/plain")}, 415, "The content type, text/plain, is not supported"},
		{"unknown property", "POST", push, `{"to":"` + alice.ID + `","chat":1,"messages":[{"type":"text","text":"a"}]}`, nil, 400, "The property, 'chat', in the request body is invalid (line: -, column: -)"},
		{"more than 2 MB", "POST", push, good + strings.Repeat(" ", 2<<20), nil, 413, ""},
		{"unknown path", "GET", "/v2/bot/nothing", "", nil, 404, linefake.NotFound},
		{"loading", "POST", "/v2/bot/chat/loading/start", `{"chatId":"` + alice.ID + `","loadingSeconds":60}`, nil, 202, ""},
		{"loading by default", "POST", "/v2/bot/chat/loading/start", `{"chatId":"` + alice.ID + `"}`, nil, 202, ""},
		{"loading for 61 seconds", "POST", "/v2/bot/chat/loading/start", `{"chatId":"` + alice.ID + `","loadingSeconds":65}`, nil, 400, ""},
		{"loading for 7 seconds", "POST", "/v2/bot/chat/loading/start", `{"chatId":"` + alice.ID + `","loadingSeconds":7}`, nil, 400, ""},
		{"loading for no time", "POST", "/v2/bot/chat/loading/start", `{"chatId":"` + alice.ID + `","loadingSeconds":0}`, nil, 400, ""},
		{"loading in a group", "POST", "/v2/bot/chat/loading/start", `{"chatId":"C` + alice.ID[1:] + `","loadingSeconds":5}`, nil, 400, ""},
		{"mark as read with a made-up token", "POST", "/v2/bot/chat/markAsRead", `{"markAsReadToken":"x"}`, nil, 400, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := w.call(tt.method, tt.path, tt.body, tt.opts...)
			if got.status != tt.status || tt.message != "" && got.message() != tt.message {
				t.Errorf("got %d %s, want %d %s", got.status, got.body, tt.status, tt.message)
			}
			if got.header.Get("X-Line-Request-Id") == "" {
				t.Error("no X-Line-Request-Id")
			}
		})
	}
}
