package linefake

import (
	"net/http"
	"net/url"
	"time"
)

// accessToken is one channel access token.
type accessToken struct {
	bot    *Bot
	until  time.Time // the zero time: never expires
	issued time.Time
	// stateless tokens are not counted and cannot be revoked.
	stateless bool
}

// botFor returns the bot that a token stands for now, nil when it is not valid.
func (s *Server) botFor(token string, now time.Time) *Bot {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, is := s.tokens[token]
	if !is || !t.until.IsZero() && !now.Before(t.until) {
		return nil
	}
	return t.bot
}

// RevokeTokens makes every token issued for the bot so far invalid, the long-lived one included.
func (b *Bot) RevokeTokens() {
	b.s.mu.Lock()
	defer b.s.mu.Unlock()
	for k, t := range b.s.tokens {
		if t.bot == b {
			delete(b.s.tokens, k)
		}
	}
}

// The ages of issued tokens (Messaging API reference, Channel access token).
const (
	statelessAge   = 900 * time.Second
	shortLivedAge  = 30 * 24 * time.Hour
	shortLivedMost = 30
)

// tokenError is the ErrorResponse of the token endpoints.
type tokenError struct {
	Error       string `json:"error"`
	Description string `json:"error_description"`
}

func (s *Server) issueStateless(r *request) answer {
	return s.issue(r, statelessAge, true)
}

func (s *Server) issueShortLived(r *request) answer {
	return s.issue(r, shortLivedAge, false)
}

func (s *Server) issue(r *request, age time.Duration, stateless bool) answer {
	form, bad := r.form()
	if bad != nil {
		return *bad
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.bots {
		if b.ChannelID != form.Get("client_id") || b.Secret != form.Get("client_secret") {
			continue
		}
		if !stateless {
			s.revokeOldest(b)
		}
		token := s.hex(64)
		s.tokens[token] = accessToken{bot: b, issued: r.now, until: r.now.Add(age), stateless: stateless}
		return ok(map[string]any{"access_token": token, "expires_in": int(age.Seconds()), "token_type": "Bearer"})
	}
	return answer{status: http.StatusBadRequest, body: tokenError{"invalid_client", "invalid client_id or client_secret"}}
}

// revokeOldest keeps a channel's short-lived tokens below the limit. s.mu is held.
func (s *Server) revokeOldest(b *Bot) {
	oldest, n := "", 0
	for k, t := range s.tokens {
		if t.bot == b && !t.stateless && !t.until.IsZero() {
			n++
			if oldest == "" || t.issued.Before(s.tokens[oldest].issued) {
				oldest = k
			}
		}
	}
	if n >= shortLivedMost {
		delete(s.tokens, oldest)
	}
}

// form decodes the body of a token request.
func (r *request) form() (url.Values, *answer) {
	form, err := url.ParseQuery(string(r.body))
	if err != nil || r.Header.Get("Content-Type") != "application/x-www-form-urlencoded" || form.Get("grant_type") != "client_credentials" {
		return nil, &answer{status: http.StatusBadRequest, body: tokenError{"invalid_request", "some parameters missed or invalid"}}
	}
	return form, nil
}
