package discordfake

// routes binds every route that the server knows. The pattern names its rate limit, too.
func (s *Server) routes() {
	for pattern, e := range map[string]endpoint{
		"GET /gateway":     s.getGateway,
		"GET /gateway/bot": s.getGatewayBot,

		"GET /users/@me":               func(*call) (any, error) { return s.world.bot, nil },
		"POST /users/@me/channels":     s.createDM,
		"GET /applications/@me":        s.getApplication,
		"GET /oauth2/applications/@me": s.getApplication,

		"GET /channels/{channel}":                              s.getRoom,
		"POST /channels/{channel}/typing":                      s.postTyping,
		"GET /channels/{channel}/messages":                     s.getMessages,
		"POST /channels/{channel}/messages":                    s.createMessage,
		"GET /channels/{channel}/messages/{message}":           s.getMessage,
		"PATCH /channels/{channel}/messages/{message}":         s.editMessage,
		"DELETE /channels/{channel}/messages/{message}":        s.deleteMessage,
		"POST /channels/{channel}/threads":                     s.createThread,
		"POST /channels/{channel}/messages/{message}/threads":  s.createThread,
		"GET /applications/{application}/commands":             s.getCommands,
		"PUT /applications/{application}/commands":             s.overwriteCommands,
		"POST /interactions/{interaction}/{token}/callback":    s.interactionCallback,
		"POST /webhooks/{application}/{token}":                 s.createFollowup,
		"GET /webhooks/{application}/{token}/messages/{id}":    s.getFollowup,
		"PATCH /webhooks/{application}/{token}/messages/{id}":  s.editFollowup,
		"DELETE /webhooks/{application}/{token}/messages/{id}": s.deleteFollowup,
	} {
		s.mux.Handle(pattern, e)
	}
}
