package envelope_test

import (
	"testing"

	"botd/sessionstore/internal/envelope"
)

func TestToken(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		raw, token string
		ok         bool
	}{
		{`{"__enc__": 1, "v": 1, "kid": "hkdf-v1", "payload": "gAAA"}`, "gAAA", true},
		{`{"payload":"x","kid":null,"v":null,"__enc__":true}`, "x", true},
		{`{"payload":"x","kid":"","v":2,"__enc__":true,"more":1}`, "x", true},
		{`{"__enc__":1.0,"v":1,"kid":"k","payload":[1]}`, "", true},
		{`{"__enc__":2,"v":1,"kid":"k","payload":"p"}`, "", false},
		{`{"__enc__":"1","v":1,"kid":"k","payload":"p"}`, "", false},
		{`{"__enc__":1,"kid":"k","payload":"p"}`, "", false},
		{`{"__enc__":1,"v":1,"payload":"p"}`, "", false},
		{`{"__enc__":1,"v":1,"kid":"k"}`, "", false},
		{`{"role":"user","content":"__enc__"}`, "", false},
		{`["__enc__"]`, "", false},
		{`{"__enc__"`, "", false},
		{``, "", false},
	} {
		if token, ok := envelope.Token([]byte(tt.raw)); token != tt.token || ok != tt.ok {
			t.Errorf("%s: got %q, %v, want %q, %v", tt.raw, token, ok, tt.token, tt.ok)
		}
	}
}
