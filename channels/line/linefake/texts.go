package linefake

import (
	"fmt"
	"net/http"
)

// LINE's own texts for errors that a client has to tell apart (Messaging API reference, Error messages).
const (
	InvalidReplyToken = "Invalid reply token"
	MonthlyLimit      = "You have reached your monthly limit."
	RateLimit         = "The API rate limit has been exceeded. Try again later."
	RetryKeyAccepted  = "The retry key is already accepted"
	FailedToSend      = "Failed to send messages"
	NotFound          = "Not found"
	NotAvailable      = "Access to this API is not available for your account"
	InvalidToken      = "Authentication failed due to the following reason: invalid token. Confirm that the access token in the authorization header is valid."
	NoToken           = "Authentication failed due to the following reason: Authorization header required. Must follow the scheme, 'Authorization: Bearer <ACCESS TOKEN>'"
	InternalError     = "Internal server error"
)

// detail is one entry of details in an error answer.
type detail struct {
	Message  string `json:"message,omitempty"`
	Property string `json:"property,omitempty"`
}

// errorBody is LINE's ErrorResponse.
type errorBody struct {
	Message      string        `json:"message"`
	Details      []detail      `json:"details,omitempty"`
	SentMessages []sentMessage `json:"sentMessages,omitempty"`
}

// sentMessage is LINE's SentMessage.
type sentMessage struct {
	ID         string `json:"id"`
	QuoteToken string `json:"quoteToken,omitempty"`
}

// answer is what an endpoint returns, before any fault is applied to it.
type answer struct {
	status int
	body   any
	// blob and mime replace body for binary content.
	blob   []byte
	mime   string
	header http.Header
	// note tells of a request that LINE answers without complaint although no client should make it.
	note string
}

func ok(body any) answer { return answer{status: http.StatusOK, body: body} }

func refuse(status int, message string) answer {
	return answer{status: status, body: errorBody{Message: message}}
}

func badProperty(name string) answer {
	return refuse(http.StatusBadRequest, fmt.Sprintf("The property, '%s', in the request body is invalid (line: -, column: -)", name))
}

func badBody(details []detail) answer {
	return answer{status: http.StatusBadRequest, body: errorBody{
		Message: fmt.Sprintf("The request body has %d error(s)", len(details)),
		Details: details,
	}}
}
