package linefake

import (
	"net/http"
	"strings"
	"time"
)

// routes is the map of the API.
func (s *Server) routes() *http.ServeMux {
	mux := http.NewServeMux()
	for _, r := range []struct {
		pattern  string
		endpoint Endpoint
		handle   func(*request) answer
	}{
		{"POST /v2/bot/message/reply", Reply, s.reply},
		{"POST /v2/bot/message/push", Push, s.push},
		{"POST /v2/bot/message/validate/reply", ValidateReply, s.validate},
		{"POST /v2/bot/message/validate/push", ValidatePush, s.validate},
		{"GET /v2/bot/profile/{user}", Profile, s.profile},
		{"GET /v2/bot/group/{chat}/member/{user}", MemberProfile, s.memberProfile},
		{"GET /v2/bot/room/{chat}/member/{user}", MemberProfile, s.memberProfile},
		{"GET /v2/bot/info", BotInfo, s.botInfo},
		{"GET /v2/bot/message/quota", Quota, s.quota},
		{"GET /v2/bot/message/quota/consumption", Consumption, s.consumption},
		{"POST /v2/bot/chat/loading/start", LoadingStart, s.loadingStart},
		{"POST /v2/bot/chat/markAsRead", MarkAsRead, s.markAsRead},
		{"GET /v2/bot/message/{message}/content", GetContent, s.getContent},
		{"GET /v2/bot/message/{message}/content/preview", GetPreview, s.getPreview},
		{"GET /v2/bot/message/{message}/content/transcoding", Transcoding, s.transcoding},
		{"POST /v2/oauth/accessToken", IssueToken, s.issueShortLived},
		{"POST /oauth2/v3/token", IssueToken, s.issueStateless},
	} {
		mux.HandleFunc(r.pattern, s.serve(r.endpoint, r.handle))
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		refuse(http.StatusNotFound, NotFound).write(w, s.requestID())
	})
	return mux
}

// profileBody is LINE's UserProfileResponse; a member's profile has fewer properties.
type profileBody struct {
	DisplayName   string `json:"displayName"`
	UserID        string `json:"userId"`
	PictureURL    string `json:"pictureUrl,omitempty"`
	StatusMessage string `json:"statusMessage,omitempty"`
	Language      string `json:"language,omitempty"`
}

// profile answers for friends only: not for people who blocked the bot or never added it.
func (s *Server) profile(r *request) answer {
	id := r.PathValue("user")
	if !isID(id, "U") {
		return refuse(http.StatusBadRequest, "The value for the 'userId' parameter is invalid")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c, u := s.chats[chatKey{r.bot.ID, id}], s.users[id]
	if c == nil || c.blocked || u == nil {
		return refuse(http.StatusNotFound, NotFound)
	}
	return ok(profileBody{u.Name, u.ID, u.conf.PictureURL, u.conf.StatusMessage, u.conf.Language})
}

func (s *Server) memberProfile(r *request) answer {
	chat, user := r.PathValue("chat"), r.PathValue("user")
	prefix := "R"
	if strings.Contains(r.URL.Path, "/group/") {
		prefix = "C"
	}
	if !isID(chat, prefix) || !isID(user, "U") {
		return refuse(http.StatusBadRequest, "The value for a parameter is invalid")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.chats[chatKey{r.bot.ID, chat}]
	if c == nil || c.blocked || c.member(user) == nil {
		return refuse(http.StatusNotFound, NotFound)
	}
	u := c.member(user)
	return ok(profileBody{DisplayName: u.Name, UserID: u.ID, PictureURL: u.conf.PictureURL})
}

func (s *Server) botInfo(r *request) answer {
	return ok(map[string]any{
		"userId": r.bot.ID, "basicId": "@" + r.bot.ID[1:9], "displayName": r.bot.conf.Name,
		"chatMode": r.bot.conf.ChatMode, "markAsReadMode": r.bot.conf.MarkAsReadMode,
	})
}

func (s *Server) quota(r *request) answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.bot.conf.Quota == 0 {
		return ok(map[string]any{"type": "none"})
	}
	return ok(map[string]any{"type": "limited", "value": r.bot.conf.Quota})
}

func (s *Server) consumption(r *request) answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	return ok(map[string]any{"totalUsage": r.bot.usage[month(r.now)]})
}

// loadingStart shows the animation; a second call overwrites the time of the first.
func (s *Server) loadingStart(r *request) answer {
	body := struct {
		ChatID         string `json:"chatId"`
		LoadingSeconds *int   `json:"loadingSeconds"`
	}{}
	if a := r.into(&body); a != nil {
		return *a
	}
	seconds := 20
	if body.LoadingSeconds != nil {
		seconds = *body.LoadingSeconds
	}
	switch {
	case !isID(body.ChatID, "U"):
		return badProperty("chatId")
	case seconds < 5 || seconds > 60 || seconds%5 != 0:
		return badProperty("loadingSeconds")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users[body.ChatID] == nil {
		return badProperty("chatId")
	}
	if c := s.chats[chatKey{r.bot.ID, body.ChatID}]; c != nil && !c.blocked {
		c.loading = r.now.Add(time.Duration(seconds) * time.Second)
		s.publish(Update{Bot: r.bot.ID, Chat: c.ID, Loading: c.loading})
	}
	return answer{status: http.StatusAccepted, body: struct{}{}}
}

func (s *Server) markAsRead(r *request) answer {
	body := struct {
		MarkAsReadToken string `json:"markAsReadToken"`
	}{}
	if a := r.into(&body); a != nil {
		return *a
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	bot, rest, _ := strings.Cut(s.reads[body.MarkAsReadToken], " ")
	if bot != r.bot.ID {
		return badProperty("markAsReadToken")
	}
	chat, message, _ := strings.Cut(rest, " ")
	s.publish(Update{Bot: bot, Chat: chat, Read: message})
	return ok(struct{}{})
}
