package admin

import (
	"encoding/base64"
	"encoding/binary"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"botd/sessionstore"
)

// The sizes of pages.
const (
	defaultPage = 100
	maxPage     = 1000
)

// query reads the parameters of a request.
type query struct {
	r   *http.Request
	err error
}

// params returns the parameters of a request, which may be these only.
func params(r *http.Request, names ...string) *query {
	q := &query{r: r}
	for name, values := range r.URL.Query() {
		switch {
		case !slices.Contains(names, name):
			q.fail("there is no parameter %q here; there are: %s", name, strings.Join(names, ", "))
		case len(values) > 1:
			q.fail("the parameter %s is given twice", name)
		}
	}
	return q
}

func (q *query) fail(format string, args ...any) {
	if q.err == nil {
		q.err = problem(CodeInvalidRequest, format, args...)
	}
}

func (q *query) text(name string) string { return q.r.URL.Query().Get(name) }

// limit is how many to answer.
func (q *query) limit(otherwise int) int {
	text := q.text("limit")
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > maxPage {
		q.fail("limit must be a number from 1 to %d", maxPage)
		return otherwise
	}
	return n
}

func (q *query) flag(name string) bool {
	switch q.text(name) {
	case "true":
		return true
	case "", "false":
	default:
		q.fail("%s must be true or false", name)
	}
	return false
}

// cursor is where the page begins, empty for the first.
func (q *query) cursor() []byte {
	text := q.text("cursor")
	if text == "" {
		return nil
	}
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(b) == 0 || len(b) > sessionstore.MaxIDLen {
		q.fail("the cursor is not one that a page has told as its next")
		return nil
	}
	return b
}

// seqCursor is a cursor that is a number.
func (q *query) seqCursor() uint64 {
	b := q.cursor()
	if b == nil {
		return 0
	}
	if len(b) != 8 {
		q.fail("the cursor is not one that a page of this list has told as its next")
		return 0
	}
	return binary.BigEndian.Uint64(b)
}

func cursorOf(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func cursorOfSeq(n uint64) string { return cursorOf(binary.BigEndian.AppendUint64(nil, n)) }

// sessionID is the session that the path names.
func sessionID(r *http.Request) (sessionstore.ID, error) {
	id := sessionstore.ID(r.PathValue("id"))
	if err := id.Validate(); err != nil {
		return "", problem(CodeInvalidRequest, "%v", err)
	}
	return id, nil
}

// seqOf is the number that the path names.
func seqOf(r *http.Request) (uint64, error) {
	n, err := strconv.ParseUint(r.PathValue("seq"), 10, 64)
	if err != nil || n == 0 {
		return 0, problem(CodeInvalidRequest, "the number in the path is not one that a list has told as seq")
	}
	return n, nil
}
