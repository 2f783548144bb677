// Package envelope recognises the items of the Agents SDK's EncryptedSession, which any store may hold
// when a Python program uses it on the same sessions. They must never reach a model.
package envelope

import (
	"bytes"
	"encoding/json"
)

// fields are those of an envelope.
type fields struct {
	Enc     json.RawMessage `json:"__enc__"`
	Version json.RawMessage `json:"v"`
	KeyID   json.RawMessage `json:"kid"`
	Payload json.RawMessage `json:"payload"`
}

// Token returns the token inside an envelope; ok is false when raw is none. An envelope is what
// EncryptedSession takes for one (extensions/memory/encrypt_session.py, openai-agents-python 0.22.0).
func Token(raw []byte) (token string, ok bool) {
	if !bytes.Contains(raw, []byte(`__enc__`)) {
		return "", false
	}
	var e fields
	if json.Unmarshal(raw, &e) != nil || e.Version == nil || e.KeyID == nil || e.Payload == nil {
		return "", false
	}
	switch string(e.Enc) {
	case "1", "1.0", "true": // what equals 1 in Python
	default:
		return "", false
	}
	_ = json.Unmarshal(e.Payload, &token) // a payload that is no text opens with no key
	return token, true
}
