package discord

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"botd/channels"
)

// Discord's error codes that are acted on. (Discord documentation, Opcodes and Status Codes, JSON.)
const (
	codeUnknownRoom         = 10003
	codeUnknownMessage      = 10008
	codeUnknownWebhook      = 10015
	codeUnknownInteraction  = 10062
	codeUnauthorized        = 40001
	codeAlreadyAcknowledged = 40060
	codeMissingAccess       = 50001
	codeCannotMessage       = 50007
	codeInvalidToken        = 50027
	codeInvalidForm         = 50035
	codeNoMutualGuilds      = 50278
	codeNoHistory           = 160002
)

// apiError is an answer other than success. Its text names status, code and the fields refused, never
// what they held.
type apiError struct {
	status int
	code   int
	// fields are the paths of refused fields with Discord's reason.
	fields []string
	// foreign: not Discord's API but a proxy before it answered. global: the limit over all requests.
	foreign, global bool
}

func (e *apiError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "discord answered %d", e.status)
	if t := http.StatusText(e.status); t != "" {
		b.WriteString(" " + t)
	}
	switch {
	case e.foreign:
		b.WriteString(" (from a proxy)")
	case e.code != 0:
		fmt.Fprintf(&b, ", code %d", e.code)
		if m := meaning[e.code]; m != "" {
			b.WriteString(" (" + m + ")")
		}
	}
	for _, f := range e.fields {
		b.WriteString("; " + f)
	}
	return b.String()
}

// meaning puts the codes that operators meet into words. Discord's own texts are not repeated: errors hold
// nothing from outside.
var meaning = map[int]string{
	codeUnknownRoom:         "unknown channel",
	codeUnknownMessage:      "unknown message",
	codeUnknownWebhook:      "unknown webhook",
	codeUnknownInteraction:  "unknown interaction",
	codeUnauthorized:        "unauthorized",
	codeAlreadyAcknowledged: "already acknowledged",
	codeMissingAccess:       "missing access: the bot cannot see this channel",
	50006:                   "empty message",
	codeCannotMessage:       "cannot send messages to this user",
	50013:                   "missing permissions: the bot may not do this in this channel",
	codeInvalidToken:        "invalid webhook token",
	codeInvalidForm:         "invalid form body",
	50083:                   "thread is archived",
	codeNoMutualGuilds:      "no mutual guild with this user",
	codeNoHistory:           "cannot reply without permission to read message history",
}

// codeOf returns Discord's error code in err, 0 when there is none.
func codeOf(err error) int {
	if e, ok := errors.AsType[*apiError](err); ok {
		return e.code
	}
	return 0
}

func retryAfter(err error) time.Duration {
	if e, ok := errors.AsType[*channels.Error](err); ok {
		return e.RetryAfter
	}
	return 0
}

// readAnswer turns an answer other than success into a *channels.Error. anonymous tells that the request
// did not carry the bot token.
func readAnswer(resp *http.Response, body []byte, anonymous bool) error {
	if resp.StatusCode >= 200 && resp.StatusCode < 300 {
		return nil
	}
	var b struct {
		Code       int             `json:"code"`
		Message    *string         `json:"message"`
		RetryAfter float64         `json:"retry_after"`
		Global     bool            `json:"global"`
		Errors     json.RawMessage `json:"errors"`
	}
	e := &apiError{status: resp.StatusCode}
	if json.Unmarshal(body, &b) != nil || b.Message == nil {
		e.foreign = true
	} else {
		e.code, e.global, e.fields = b.Code, b.Global, refusedFields(b.Errors)
	}
	out := &channels.Error{Kind: kindOf(e, anonymous), Err: e}
	if e.status != http.StatusTooManyRequests {
		return out
	}
	e.global = e.global || resp.Header.Get("X-RateLimit-Global") == "true"
	if out.RetryAfter = time.Duration(b.RetryAfter * float64(time.Second)); out.RetryAfter <= 0 {
		after, ok := seconds(resp.Header.Get("Retry-After"))
		switch {
		case ok && after > 0:
			out.RetryAfter = after
		case e.foreign:
			out.RetryAfter = bannedPause
		default:
			out.RetryAfter = unnamedPause
		}
	}
	return out
}

// kindOf decides what the outbox shall do.
func kindOf(e *apiError, anonymous bool) channels.ErrorKind {
	switch {
	case e.status == http.StatusTooManyRequests:
		return channels.RateLimited
	case e.status >= 500, e.status == http.StatusRequestTimeout, e.foreign:
		return channels.Transient
	case e.code == codeUnauthorized, e.status == http.StatusUnauthorized && !anonymous:
		return channels.Unauthorized
	}
	switch e.code {
	case codeUnknownRoom, codeMissingAccess, codeCannotMessage, codeNoMutualGuilds:
		return channels.Gone
	}
	return channels.Permanent
}

// maxFields bounds the refused fields named in an error.
const maxFields = 5

// refusedFields lists the refused fields as "path: REASON".
func refusedFields(raw json.RawMessage) []string {
	var found []string
	var walk func(path string, raw json.RawMessage, depth int)
	walk = func(path string, raw json.RawMessage, depth int) {
		var nested map[string]json.RawMessage
		if depth > 8 || json.Unmarshal(raw, &nested) != nil {
			return
		}
		names := make([]string, 0, len(nested))
		for name := range nested {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			if len(found) == maxFields {
				return
			}
			if name != "_errors" {
				walk(strings.TrimPrefix(path+"."+name, "."), nested[name], depth+1)
				continue
			}
			var reasons []struct {
				Code string `json:"code"`
			}
			if json.Unmarshal(nested[name], &reasons) == nil && len(reasons) > 0 {
				found = append(found, path+": "+reasons[0].Code)
			}
		}
	}
	walk("", raw, 0)
	return found
}
