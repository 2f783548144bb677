package agentssdk

import (
	"encoding/json"
	"time"

	"botd/sessionstore"
	"botd/sessionstore/internal/envelope"
)

// Decrypt opens the envelopes of EncryptedSession among rows. Rows that are none pass as they are, and an
// envelope that does not open becomes a fault. ttl is the greatest age of an envelope, counted from when
// it was sealed, as EncryptedSession counts; zero takes envelopes of any age.
func Decrypt(rows Rows, key *Key, ttl time.Duration) Rows {
	return change(rows, func(r Row) (Row, string) {
		token, ok := envelope.Token(r.Raw)
		if !ok {
			return r, ""
		}
		plain, made, err := key.open(r.Session, token)
		switch {
		case err != nil:
			return r, ReasonWrongKey
		case ttl > 0 && time.Since(made) > ttl:
			return r, ReasonExpired
		case !sessionstore.ValidItem(plain):
			return r, ReasonNotObject
		}
		r.Raw = plain
		if r.At.IsZero() {
			r.At = made
		}
		return r, ""
	})
}

// Encrypt seals rows as EncryptedSession does; those that are sealed already pass as they are. A row's
// time becomes the envelope's, which EncryptedSession's ttl counts from; one without a time is sealed now.
func Encrypt(rows Rows, key *Key) Rows {
	return change(rows, func(r Row) (Row, string) {
		if _, ok := envelope.Token(r.Raw); ok {
			return r, ""
		}
		at := r.At
		if at.IsZero() {
			at = time.Now()
		}
		token, err := key.seal(r.Session, r.Raw, at)
		if err != nil {
			return r, err.Error()
		}
		raw, err := json.Marshal(struct {
			Enc     int    `json:"__enc__"`
			Version int    `json:"v"`
			KeyID   string `json:"kid"`
			Payload string `json:"payload"`
		}{1, 1, envelopeKeyID, token})
		if err != nil {
			return r, err.Error()
		}
		r.Raw = raw
		return r, ""
	})
}

// change replaces each row by what f makes of it, or by a fault when f gives a reason.
func change(rows Rows, f func(Row) (Row, string)) Rows {
	return func(yield func(Row, error) bool) {
		for r, err := range rows {
			if err == nil {
				var reason string
				if r, reason = f(r); reason != "" {
					err = &Fault{Number: r.Number, Session: r.Session, Reason: reason}
				}
			}
			if !yield(r, err) {
				return
			}
		}
	}
}
