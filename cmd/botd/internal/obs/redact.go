package obs

import (
	"cmp"
	"encoding/json"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// minSecret is the length in bytes below which a value is not looked for: replacing every "on" or "8080"
// would make a log unreadable, and no real credential is that short.
const minSecret = 8

// Redactor replaces known secrets in text, also where they were escaped for JSON or a URL.
type Redactor struct {
	mu       sync.Mutex
	secrets  []string
	replacer atomic.Pointer[strings.Replacer]
}

// NewRedactor returns a Redactor for the secrets.
func NewRedactor(secrets []string) *Redactor {
	r := &Redactor{}
	r.Add(secrets)
	return r
}

// Add makes the Redactor replace further secrets. Those that it knows stay secret.
func (r *Redactor) Add(secrets []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.secrets = slices.Compact(slices.Sorted(slices.Values(slices.Concat(r.secrets, secrets))))
	var forms []string
	for _, s := range r.secrets {
		if len(s) < minSecret {
			continue
		}
		quoted := quote(s)
		forms = append(forms, s, url.QueryEscape(s), url.PathEscape(s), htmlSafe(s), quoted, quote(quoted))
	}
	if len(forms) == 0 {
		return
	}
	// Longer ones first: a secret that begins with another must be replaced as a whole.
	slices.SortFunc(forms, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	var pairs []string
	for _, f := range slices.Compact(forms) {
		pairs = append(pairs, f, "[redacted]")
	}
	r.replacer.Store(strings.NewReplacer(pairs...))
}

// quote is s as it stands between quotes in JSON, in text logs and in errors made with %q.
func quote(s string) string { return unquoted(strconv.Quote(s)) }

func unquoted(s string) string { return s[1 : len(s)-1] }

// htmlSafe is s as encoding/json writes it by default.
func htmlSafe(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		return s
	}
	return unquoted(string(b))
}

// Redact returns s without secrets.
func (r *Redactor) Redact(s string) string {
	replacer := r.replacer.Load()
	if replacer == nil {
		return s
	}
	return replacer.Replace(s)
}

// Writer returns a writer to w that redacts what each call writes. A secret split over two calls is not
// seen; loggers write each line with one call.
func (r *Redactor) Writer(w io.Writer) io.Writer {
	return redactingWriter{r, w}
}

type redactingWriter struct {
	*Redactor
	w io.Writer
}

// Write reports the length of p when everything was written, whatever its length became.
func (w redactingWriter) Write(p []byte) (int, error) {
	if _, err := io.WriteString(w.w, w.Redact(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}
