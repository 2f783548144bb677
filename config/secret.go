package config

import (
	"fmt"
	"io"
	"log/slog"
)

// Redacted is what a Secret shows of itself.
const Redacted = "[redacted]"

// Secret is a credential. However it is printed, logged or marshalled, it shows only whether it is set;
// Reveal is the one way to the value.
type Secret struct{ value string }

// NewSecret returns a secret that holds value.
func NewSecret(value string) Secret { return Secret{value} }

// Reveal returns the value.
func (s Secret) Reveal() string { return s.value }

// IsZero reports whether the secret is empty.
func (s Secret) IsZero() bool { return s.value == "" }

// Equal reports whether both hold the same value.
func (s Secret) Equal(t Secret) bool { return s == t }

// String returns Redacted, or nothing for an empty secret.
func (s Secret) String() string {
	if s.value == "" {
		return ""
	}
	return Redacted
}

// GoString is String, for %#v.
func (s Secret) GoString() string { return s.String() }

// Format writes String for every verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// LogValue is String.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText is String; encoding/json and YAML encoders use it.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// MarshalJSON is String.
func (s Secret) MarshalJSON() ([]byte, error) { return fmt.Appendf(nil, "%q", s.String()), nil }
