package line

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/line/line-bot-sdk-go/v8/linebot/channel_access_token"

	"botd/channels"
)

// TokenSource gives channel access tokens. It is safe for concurrent use.
type TokenSource interface {
	// Token returns a token to use now. Errors are *channels.Error.
	Token(ctx context.Context) (string, error)
	// Refused tells that LINE has answered 401 to the token.
	Refused(token string)
}

// staticToken is a long-lived token: there is no other.
type staticToken string

func (t staticToken) Token(context.Context) (string, error) { return string(t), nil }
func (staticToken) Refused(string)                          {}

// StatelessOptions configures StatelessTokens. ChannelID and Secret are required.
type StatelessOptions struct {
	// ChannelID and Secret are the channel's ID and secret, from the console's Basic settings tab.
	ChannelID, Secret string
	// APIBase and HTTPClient are as in Options.
	APIBase    string
	HTTPClient *http.Client
}

// StatelessTokens issues stateless channel access tokens from the channel's ID and secret. Such a token
// is valid for 15 minutes; there may be any number of them, and nothing has to be renewed by hand
// (Messaging API reference, Issue stateless channel access token). A token is used until a minute
// before it expires; callers that come meanwhile wait for the one request that is under way.
type StatelessTokens struct {
	id, secret string
	http       *http.Client
	timeout    time.Duration
	base       string

	// gate holds the one right to ask for a token; mu guards the fields below and is never held for long.
	gate    chan struct{}
	mu      sync.Mutex
	current string
	renewAt time.Time
	until   time.Time
}

// renewBefore is how long before its end a token is replaced.
const renewBefore = time.Minute

// NewStatelessTokens returns a source; no I/O.
func NewStatelessTokens(o StatelessOptions) (*StatelessTokens, error) {
	switch {
	case o.ChannelID == "":
		return nil, errors.New("line: no channel ID: copy it from the console's Basic settings tab")
	case o.Secret == "":
		return nil, errors.New("line: no channel secret: copy it from the console's Basic settings tab")
	}
	if o.APIBase == "" {
		o.APIBase = defaultAPIBase
	}
	if err := checkBase("API base", o.APIBase); err != nil {
		return nil, fmt.Errorf("line: %w", err)
	}
	s := &StatelessTokens{id: o.ChannelID, secret: o.Secret, base: o.APIBase, gate: make(chan struct{}, 1)}
	s.http, s.timeout = newHTTPClient(o.HTTPClient)
	return s, nil
}

// Token returns the current token, or a new one when it is about to expire. A token that LINE does not
// want to replace right now is used to its end.
func (s *StatelessTokens) Token(ctx context.Context) (string, error) {
	if token, fresh := s.cached(); fresh {
		return token, nil
	}
	select {
	case s.gate <- struct{}{}:
		defer func() { <-s.gate }()
	case <-ctx.Done():
		return "", &channels.Error{Kind: channels.Transient, Err: fmt.Errorf("issue access token: %w", ctx.Err())}
	}
	token, fresh := s.cached()
	if fresh {
		return token, nil
	}
	if issued, err := s.issue(ctx); err == nil {
		return issued, nil
	} else if token == "" {
		return "", err
	}
	return token, nil
}

// cached returns the token that is still valid, empty when there is none, and whether it needs no
// replacement yet.
func (s *StatelessTokens) cached() (token string, fresh bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if !now.Before(s.until) {
		return "", false
	}
	return s.current, s.current != "" && now.Before(s.renewAt)
}

// Refused forgets the token.
func (s *StatelessTokens) Refused(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current == token {
		s.current = ""
	}
}

// issue asks for a new token and keeps it. Its age counts from before the request.
func (s *StatelessTokens) issue(ctx context.Context) (string, error) {
	const what = "issue access token"
	now := time.Now()
	api, err := channel_access_token.NewChannelAccessTokenAPI(
		channel_access_token.WithHTTPClient(s.http), channel_access_token.WithEndpoint(s.base))
	if err != nil {
		return "", &channels.Error{Kind: channels.Permanent, Err: fmt.Errorf("%s: %w", what, networkError(err))}
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	res, issued, err := api.WithContext(ctx).IssueStatelessChannelTokenByClientSecretWithHttpInfo(s.id, s.secret)
	if res == nil {
		return "", &channels.Error{Kind: channels.Transient, Err: fmt.Errorf("%s: %w", what, networkError(err))}
	}
	r := readTokenResult(what, res)
	switch {
	case r.status == http.StatusBadRequest:
		// Here 400 is the answer to a wrong channel ID or secret.
		return "", r.error(channels.Unauthorized)
	case !r.accepted():
		return "", r.error(kindOf(r))
	case err != nil || issued.AccessToken == "":
		return "", &channels.Error{Kind: channels.Transient, Err: errors.New(what + ": answer without a token")}
	}
	age := time.Duration(issued.ExpiresIn) * time.Second
	s.mu.Lock()
	defer s.mu.Unlock()
	s.current, s.until, s.renewAt = issued.AccessToken, now.Add(age), now.Add(max(age-renewBefore, age/2))
	return issued.AccessToken, nil
}

// readTokenResult is readResult for the token endpoints, whose errors have another form.
func readTokenResult(what string, res *http.Response) result {
	if res.StatusCode/100 == 2 {
		return result{what: what, status: res.StatusCode}
	}
	defer res.Body.Close()
	var body struct {
		Error string `json:"error"`
	}
	_ = json.NewDecoder(res.Body).Decode(&body)
	return result{what: what, status: res.StatusCode, reason: reasonOf(body.Error)}
}
