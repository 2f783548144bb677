package agent

import (
	"bytes"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"botd/sessionstore"
)

// itemTokens is what a provider adds to every item.
const itemTokens = 4

// EstimateTokens estimates the tokens of an item or a text without a vocabulary, from what characters cost
// on average in o200k: for everyday text of most languages it is right within a fifth. It only decides how
// much of a history is shown; when a provider finds it too much, the engine shows less. Encrypted content
// costs the reasoning it stands for, which is far less than its text.
func EstimateTokens(raw []byte) int {
	hundredths := 0
	for i := 0; i < len(raw); {
		if raw[i] < utf8.RuneSelf {
			hundredths += int(asciiTokens[raw[i]])
			i++
			continue
		}
		c, size := utf8.DecodeRune(raw[i:])
		hundredths += runeTokens(c)
		i += size
	}
	if bytes.Contains(raw, []byte(`"encrypted_content"`)) {
		for _, c := range []byte(gjson.GetBytes(raw, "encrypted_content").Raw) {
			hundredths -= int(asciiTokens[c%utf8.RuneSelf]) * 3 / 4
		}
	}
	return hundredths/100 + itemTokens
}

// asciiTokens is what an ASCII character costs in hundredths of a token.
var asciiTokens = func() (t [utf8.RuneSelf]uint8) {
	for c := range t {
		switch {
		case c >= 'a' && c <= 'z':
			t[c] = 22
		case c >= 'A' && c <= 'Z':
			t[c] = 35
		case c >= '0' && c <= '9':
			t[c] = 55
		case c == ' ':
			t[c] = 5
		default:
			t[c] = 60
		}
	}
	return t
}()

// runeTokens is what any other character costs in hundredths of a token.
func runeTokens(c rune) int {
	switch {
	case c < 0x0250: // accented Latin
		return 60
	case c < 0x0600: // Greek, Cyrillic, Hebrew
		return 30
	case c < 0x1100: // Arabic, the scripts of India, Thai
		return 40
	case c >= 0x3000 && c < 0x3100: // kana
		return 50
	case c >= 0xAC00 && c < 0xD7B0: // Hangul
		return 65
	case c >= 0x10000: // emoji, mostly
		return 160
	}
	return 60 // Han and the rest
}

func countTokens(items []sessionstore.Item) int {
	n := 0
	for _, it := range items {
		n += EstimateTokens(it.Raw)
	}
	return n
}
