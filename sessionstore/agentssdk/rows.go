package agentssdk

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"time"
	"unicode/utf8"

	"botd/sessionstore"
)

// Row is one item of a session on its way.
type Row struct {
	// Number is the row's number in its table, the line's in its file, or the item's Seq in its store.
	Number int64
	// Session is the session that the item belongs to. The rows of one session stand together.
	Session sessionstore.ID
	// At is when the item was added; zero when that is not known.
	At time.Time
	// Turn and Origin are as in sessionstore.Item. Only JSON lines and stores have them.
	Turn, Origin string
	// Raw is the item's bytes.
	Raw json.RawMessage
}

// Rows yields rows in the order of their sessions' items. An error that is a *Fault is one row's, and the
// next row follows; any other error is the last.
type Rows = iter.Seq2[Row, error]

// Fault is a row that cannot be moved.
type Fault struct {
	Number  int64
	Session sessionstore.ID
	// Reason says why in a few words; it holds nothing of the item.
	Reason string
}

// Error implements error.
func (f *Fault) Error() string {
	return fmt.Sprintf("row %d of session %q: %s", f.Number, f.Session, f.Reason)
}

// Reasons of faults.
const (
	ReasonNotObject = "not a JSON object"
	ReasonNotUTF8   = "not UTF-8"
	ReasonSealed    = "encrypted, and no key was given"
	ReasonWrongKey  = "does not decrypt with this key"
	ReasonExpired   = "older than the time to live"
	ReasonBadLine   = "not a line of an export"
	ReasonBadID     = "invalid session ID"
)

// Options are the settings of the writers. The zero value is useful.
type Options struct {
	// Fault is told of each row that was left out; nil for nobody.
	Fault func(*Fault)
}

// Report is what a writer did.
type Report struct {
	Sessions int
	Items    int
	// Faults counts the rows that were left out.
	Faults int
}

// fault counts a fault and passes it on.
func (r *Report) fault(o Options, f *Fault) {
	r.Faults++
	if o.Fault != nil {
		o.Fault(f)
	}
}

// check returns what is wrong with a row, nil when nothing is.
func check(r Row) *Fault {
	reason := ""
	switch {
	case r.Session.Validate() != nil || !utf8.ValidString(string(r.Session)):
		reason = ReasonBadID
	case !utf8.Valid(r.Raw):
		reason = ReasonNotUTF8
	case !sessionstore.ValidItem(r.Raw):
		reason = ReasonNotObject
	default:
		return nil
	}
	return &Fault{Number: r.Number, Session: r.Session, Reason: reason}
}

// good yields the rows that can be moved; faults go to the report. It stops at the first other error,
// which it returns through err.
func good(rows Rows, o Options, rep *Report, err *error) iter.Seq[Row] {
	return func(yield func(Row) bool) {
		for r, e := range rows {
			if f, ok := errors.AsType[*Fault](e); ok {
				rep.fault(o, f)
				continue
			}
			if e != nil {
				*err = e
				return
			}
			if f := check(r); f != nil {
				rep.fault(o, f)
				continue
			}
			if !yield(r) {
				return
			}
		}
	}
}

// apart finds sessions whose rows do not stand together. It remembers eight bytes of each session.
type apart struct {
	current sessionstore.ID
	begun   bool
	past    map[uint64]struct{}
	hash    func(sessionstore.ID) uint64
}

// next takes the session of the next row and reports whether it is a new one.
func (a *apart) next(r Row) (fresh bool, err error) {
	if a.begun && r.Session == a.current {
		return false, nil
	}
	h := a.hash(r.Session)
	if _, again := a.past[h]; again {
		return false, fmt.Errorf("row %d of session %q is apart from the session's other rows: sort the file by session", r.Number, r.Session)
	}
	a.past[h] = struct{}{}
	a.current, a.begun = r.Session, true
	return true, nil
}
