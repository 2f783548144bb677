package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"time"

	"botd/sessionstore"
)

// Turn is the input of one run.
type Turn struct {
	// ID identifies the turn in logs and is the key of its idempotent append.
	ID string
	// Session is the session the turn belongs to. It is hashed into the provider's cache key and never
	// sent as it is.
	Session sessionstore.ID
	// Agent names the agent to begin with; empty for the engine's default. Where the history shows that it
	// has handed the conversation over, the one who answered last goes on.
	Agent string
	// History is what the session remembers, oldest first.
	History []sessionstore.Item
	// Input is what people said, in order; at least one.
	Input []Message
	// Group says that several people share the session: each stored message then names its speaker.
	Group bool
	// Place describes where the conversation happens, for instructions ("line", "discord", "console").
	Place string
	// Spent is told of every call to a model that cost something, whatever becomes of the run; nil: nobody
	// is. It is called from several goroutines at once, and not after the run has ended.
	Spent func(Spending)
}

// Spending is what one call to a model has used, also one that a guard or an agent asked as a tool made.
type Spending struct {
	Agent, Provider, Model string
	Usage                  Usage
}

type spenderKey struct{}

// Spend counts a call to a model for the run that ctx belongs to; guards and tools that ask models call it.
func Spend(ctx context.Context, s Spending) {
	if spent, ok := ctx.Value(spenderKey{}).(func(Spending)); ok {
		spent(s)
	}
}

// Message is one thing a person said.
type Message struct {
	Speaker Speaker
	At      time.Time
	Parts   []Part
}

// Speaker is who said it. Name is chosen by the person and is sanitised by the engine.
type Speaker struct{ ID, Name, Locale string }

// Part is one piece of a Message: text, or a description of something else in words.
type Part struct {
	// Text is what the model reads.
	Text string
}

// Event is one step of a run; exactly one field is set.
type Event struct {
	// Delta is text as the model writes it. Text before a tool call is sent as delta too but may not be
	// part of the final answer.
	Delta string
	// Tool tells that a tool starts or has ended.
	Tool *ToolNotice
	// Final is the last event of a run that succeeded.
	Final *Final
}

// ToolNotice reports progress of one tool call.
type ToolNotice struct {
	Name   string
	CallID string
	// Done is false when the call starts and true when it has ended.
	Done bool
	// Failed reports that the model was given an error text as the output.
	Failed bool
}

// Final is the result of a run.
type Final struct {
	// Text is the answer, in Markdown.
	Text string
	// Items are to be appended to the session: the people's messages of this turn, then all that the
	// model and the tools produced, every call with its output.
	Items []sessionstore.Item
	// Agent is the agent that answered, which may be another than Turn.Agent after a hand-off.
	Agent string
	Usage Usage
	// Truncated reports that the answer ended at the output limit or a content filter.
	Truncated bool
	// Blocked names the guard that put a refusal in the place of the answer, empty when none did.
	Blocked string
}

// Usage counts tokens and calls over a run.
type Usage struct {
	Requests        int `json:"requests"`
	InputTokens     int `json:"input_tokens"`
	CachedTokens    int `json:"cached_tokens,omitempty"`
	OutputTokens    int `json:"output_tokens"`
	ReasoningTokens int `json:"reasoning_tokens,omitempty"`
	// Estimated reports that at least one call came without a count from the provider.
	Estimated bool `json:"estimated,omitempty"`
}

// Add returns the sum of both.
func (u Usage) Add(v Usage) Usage {
	u.Requests += v.Requests
	u.InputTokens += v.InputTokens
	u.CachedTokens += v.CachedTokens
	u.OutputTokens += v.OutputTokens
	u.ReasoningTokens += v.ReasoningTokens
	u.Estimated = u.Estimated || v.Estimated
	return u
}

// Model answers one request. Implementations are stateless and safe for concurrent use.
type Model interface {
	// Stream sends the request and yields what comes back. The last event of a success has Done set;
	// a sequence that ends otherwise has yielded an error, which is an *Error where the cause is known.
	// Stopping the iteration or ending ctx closes the connection.
	Stream(ctx context.Context, req *Request) iter.Seq2[ModelEvent, error]
}

// Request is one call to a model.
type Request struct {
	// Model is the provider's own name of the model.
	Model        string
	Instructions string
	// Input is the conversation as raw items, already repaired.
	Input []json.RawMessage
	Tools []ToolSpec
	// NoTools forbids tool calls in this answer although Tools are shown.
	NoTools bool
	// Temperature is nil for the provider's default.
	Temperature *float64
	// MaxOutputTokens is 0 for the provider's default.
	MaxOutputTokens int
	// CacheKey and Safety are opaque hashes of the session and of the speaking person; they are sent only
	// to providers that know them.
	CacheKey string
	Safety   string
}

// ModelEvent is one step of an answer; exactly one field is set.
type ModelEvent struct {
	// Delta is text of the answer.
	Delta string
	// Done ends a successful answer.
	Done *Completion
}

// Completion is a whole answer.
type Completion struct {
	// Items are the output items in order, as Responses items; the bytes are the provider's own where it
	// speaks the Responses API.
	Items []json.RawMessage
	// Truncated reports that the answer ended at the output limit or a content filter.
	Truncated bool
	Usage     Usage
	// RequestID is the provider's, for support.
	RequestID string
}

// ToolSpec describes a tool to the model.
type ToolSpec struct {
	// Name matches ^[a-zA-Z0-9_-]{1,64}$.
	Name        string
	Description string
	// Parameters is a JSON Schema of type object.
	Parameters json.RawMessage
}

// Tool is something the model can call.
type Tool interface {
	Spec() ToolSpec
	// Call runs the tool with arguments as the model wrote them: they may not be valid. An error becomes
	// an output for the model, not a failure of the run.
	Call(ctx context.Context, args json.RawMessage) (ToolResult, error)
}

// Toolset is a set of tools that may change between two runs. It is safe for concurrent use.
type Toolset interface {
	// Tools returns the tools that can be called now. It never blocks.
	Tools() []Tool
}

// ToolResult is what the model is told.
type ToolResult struct {
	Text string
}

// ErrorKind sorts the failures of a run by what can be done about them.
type ErrorKind uint8

const (
	// Transient means: the provider or the way to it failed; the same turn may succeed later.
	Transient ErrorKind = iota
	// RateLimited means: as Transient, after RetryAfter.
	RateLimited
	// QuotaExhausted means: the account is out of credit; the operator must act.
	QuotaExhausted
	// Unauthorized means: the key is refused; the operator must act.
	Unauthorized
	// InvalidRequest means: the provider refuses this request; the same request will not succeed.
	InvalidRequest
	// ModelNotFound means: the provider does not know the model.
	ModelNotFound
	// ContextOverflow means: the conversation does not fit the model's window.
	ContextOverflow
	// BadReasoning means: the provider cannot verify the encrypted content of reasoning in the history.
	BadReasoning
	// Filtered means: the provider refuses the content.
	Filtered
)

var kindNames = [...]string{
	"transient", "rate limited", "quota exhausted", "unauthorized", "invalid request",
	"model not found", "context overflow", "bad reasoning", "filtered",
}

// String returns the kind in words.
func (k ErrorKind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("ErrorKind(%d)", uint8(k))
}

// Error is a failure whose kind is known. It holds no message text and no credentials.
type Error struct {
	Kind ErrorKind
	// RetryAfter is how long the provider asks to wait, 0 when it does not say.
	RetryAfter time.Duration
	// RequestID is the provider's, empty when there is none.
	RequestID string
	Err       error
}

// Error says the kind, the cause and the request ID.
func (e *Error) Error() string {
	s := e.Kind.String() + ": " + e.Err.Error()
	if e.RequestID != "" {
		s += " (request " + e.RequestID + ")"
	}
	return s
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Retryable reports whether the same turn may succeed later without anybody acting.
func (k ErrorKind) Retryable() bool { return k == Transient || k == RateLimited }
