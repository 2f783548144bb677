// Package openai is the agent.Model for OpenAI and for every server that speaks one of its two APIs:
// Responses and Chat Completions.
//
// Conversations are kept by the caller and sent whole with each request; nothing is stored at the
// provider. Items go out byte for byte as they came in where the provider speaks Responses, and are
// converted to messages and back where it speaks Chat Completions only.
//
// A provider counts as having answered only when it said so: a stream that ends without its terminal
// event is a failure, and nothing of it is passed on as an answer. Errors are *agent.Error; they tell the
// status, the provider's code and the request ID, never the provider's own words, which may quote the
// conversation, and never a key.
//
// The environment is not read: OPENAI_BASE_URL and its kin cannot redirect a bot.
//
// # Concurrency
//
// A Model is safe for concurrent use. It keeps no state but the knowledge which API its provider has.
package openai
