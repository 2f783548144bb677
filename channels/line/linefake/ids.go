package linefake

import (
	"encoding/hex"
	"fmt"
	"time"
)

// The functions below draw from the seeded generator; those that do not lock need s.mu held.

// hexID returns a LINE ID: prefix U, C or R and 32 hexadecimal digits.
func (s *Server) hexID(prefix string) string { return prefix + s.hex(16) }

// hex returns n random bytes as hexadecimal digits.
func (s *Server) hex(n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(s.rng.Uint32() & 0xff)
	}
	return hex.EncodeToString(b)
}

// messageID returns an ID of 18 digits, as those of LINE messages.
func (s *Server) messageID() string {
	return fmt.Sprintf("%018d", 500_000_000_000_000_000+s.rng.Uint64N(400_000_000_000_000_000))
}

// eventID returns a ULID, as webhookEventId is one: 48 bits of milliseconds and 80 random bits.
func (s *Server) eventID(at time.Time) string {
	const crockford = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
	id := make([]byte, 26)
	ms := uint64(at.UnixMilli())
	for i := 9; i >= 0; i-- {
		id[i] = crockford[ms&31]
		ms >>= 5
	}
	for i := 10; i < len(id); i++ {
		id[i] = crockford[s.rng.Uint32()&31]
	}
	return string(id)
}

// requestID returns a value for X-Line-Request-Id.
func (s *Server) requestID() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.hex(16)
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

// isID reports whether id is prefix and 32 lower-case hexadecimal digits.
func isID(id string, prefixes string) bool {
	if len(id) != 33 {
		return false
	}
	for i := range len(prefixes) {
		if id[0] == prefixes[i] {
			return isHex(id[1:])
		}
	}
	return false
}

func isHex(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// isUUID reports whether key is a UUID in the usual form, of either case.
func isUUID(key string) bool {
	if len(key) != 36 {
		return false
	}
	for i := range len(key) {
		c := key[i] | 0x20
		switch i {
		case 8, 13, 18, 23:
			if key[i] != '-' {
				return false
			}
		default:
			if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
				return false
			}
		}
	}
	return true
}
