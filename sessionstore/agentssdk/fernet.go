package agentssdk

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"time"

	"botd/sessionstore"
)

// Fernet (github.com/fernet/spec) as EncryptedSession uses it: version, time, initialisation vector,
// AES-128-CBC ciphertext, HMAC-SHA256, in URL-safe base64.
const (
	fernetVersion = 0x80
	fernetHeader  = 1 + 8 + aes.BlockSize
	hkdfInfo      = "agents.session-store.hkdf.v1"
	envelopeKeyID = "hkdf-v1"
)

// errKey is any way in which a token does not open.
var errKey = errors.New(ReasonWrongKey)

// Key opens and seals the items of EncryptedSession (extensions/memory/encrypt_session.py,
// openai-agents-python 0.22.0). It is safe for concurrent use and never prints itself.
type Key struct{ master []byte }

// NewKey takes the encryption_key that the Python program gives to EncryptedSession: either 32 bytes in
// URL-safe base64, or any other text.
func NewKey(encryptionKey string) (*Key, error) {
	if encryptionKey == "" {
		return nil, errors.New("the encryption key is empty")
	}
	if b, ok := pythonBase64(encryptionKey); ok && len(b) == 32 {
		return &Key{master: b}, nil
	}
	return &Key{master: []byte(encryptionKey)}, nil
}

// String implements fmt.Stringer.
func (k *Key) String() string { return "<redacted>" }

// GoString implements fmt.GoStringer.
func (k *Key) GoString() string { return "<redacted>" }

// derive returns a session's signing and encryption key.
func (k *Key) derive(id sessionstore.ID) (sign, encrypt []byte, err error) {
	key, err := hkdf.Key(sha256.New, k.master, []byte(id), hkdfInfo, 32)
	if err != nil {
		return nil, nil, err
	}
	return key[:16], key[16:], nil
}

// open returns what a token of a session holds, and when it was made.
func (k *Key) open(id sessionstore.ID, token string) (plain []byte, made time.Time, err error) {
	data, ok := pythonBase64(token)
	if !ok || len(data) < fernetHeader+aes.BlockSize+sha256.Size || data[0] != fernetVersion {
		return nil, made, errKey
	}
	sign, encrypt, err := k.derive(id)
	if err != nil {
		return nil, made, err
	}
	data, mac := data[:len(data)-sha256.Size], data[len(data)-sha256.Size:]
	if !hmac.Equal(mac, signature(sign, data)) {
		return nil, made, errKey
	}
	body := data[fernetHeader:]
	if len(body)%aes.BlockSize != 0 {
		return nil, made, errKey
	}
	block, err := aes.NewCipher(encrypt)
	if err != nil {
		return nil, made, err
	}
	plain = make([]byte, len(body))
	cipher.NewCBCDecrypter(block, data[9:fernetHeader]).CryptBlocks(plain, body)
	pad := int(plain[len(plain)-1])
	if pad == 0 || pad > aes.BlockSize {
		return nil, made, errKey
	}
	seconds := binary.BigEndian.Uint64(data[1:9])
	return plain[:len(plain)-pad], time.Unix(int64(seconds), 0).UTC(), nil
}

// seal makes a token of a session.
func (k *Key) seal(id sessionstore.ID, plain []byte, now time.Time) (string, error) {
	sign, encrypt, err := k.derive(id)
	if err != nil {
		return "", err
	}
	block, err := aes.NewCipher(encrypt)
	if err != nil {
		return "", err
	}
	pad := aes.BlockSize - len(plain)%aes.BlockSize
	data := make([]byte, fernetHeader+len(plain)+pad, fernetHeader+len(plain)+pad+sha256.Size)
	data[0] = fernetVersion
	binary.BigEndian.PutUint64(data[1:9], uint64(now.Unix()))
	iv, body := data[9:fernetHeader], data[fernetHeader:]
	_, _ = rand.Read(iv) // never fails
	copy(body, plain)
	for i := len(plain); i < len(body); i++ {
		body[i] = byte(pad)
	}
	cipher.NewCBCEncrypter(block, iv).CryptBlocks(body, body)
	return base64.URLEncoding.EncodeToString(append(data, signature(sign, data)...)), nil
}

func signature(key, data []byte) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write(data)
	return mac.Sum(nil)
}

// pythonBase64 decodes as base64.urlsafe_b64decode does, which passes over what is no base64 and stops
// at the padding. A key or a token that Python takes must be taken here.
func pythonBase64(s string) (decoded []byte, ok bool) {
	var quad []byte // up to three digits that do not make a whole group yet
	pads := 0
	for i := range len(s) {
		if s[i] >= 0x80 {
			return nil, false // Python refuses text that is not ASCII
		}
		if s[i] == '=' {
			if pads++; len(quad) >= 2 && len(quad)+pads >= 4 {
				break
			}
			continue
		}
		digit := s[i]
		switch digit {
		case '+':
			digit = '-'
		case '/':
			digit = '_'
		}
		if !isBase64(digit) {
			continue
		}
		pads = 0
		if quad = append(quad, digit); len(quad) == 4 {
			group, _ := base64.RawURLEncoding.DecodeString(string(quad))
			decoded, quad = append(decoded, group...), quad[:0]
		}
	}
	if len(quad) == 0 {
		return decoded, true
	}
	if len(quad)+pads < 4 || len(quad) < 2 {
		return nil, false
	}
	group, err := base64.RawURLEncoding.DecodeString(string(quad))
	return append(decoded, group...), err == nil
}

func isBase64(c byte) bool {
	return 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-' || c == '_'
}
