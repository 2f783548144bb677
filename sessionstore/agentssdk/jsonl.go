package agentssdk

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"strings"
	"time"

	"botd/sessionstore"
)

// maxLine is the longest line that is read, in bytes.
const maxLine = 64 << 20

// line is one line of JSON lines. Item is the item's bytes as they are; Text is the same inside a JSON
// string, for an item that has line breaks in it or space around it.
type line struct {
	Session string          `json:"session"`
	At      *time.Time      `json:"at,omitempty"`
	Turn    string          `json:"turn,omitempty"`
	Origin  string          `json:"origin,omitempty"`
	Item    json.RawMessage `json:"item,omitempty"`
	Text    *string         `json:"text,omitempty"`
}

// ReadJSONL reads JSON lines as WriteJSONL writes them. Empty lines are passed over.
func ReadJSONL(ctx context.Context, r io.Reader) Rows {
	return func(yield func(Row, error) bool) {
		sc := bufio.NewScanner(r)
		sc.Buffer(make([]byte, 64<<10), maxLine)
		for n := int64(1); sc.Scan(); n++ {
			if err := ctx.Err(); err != nil {
				yield(Row{}, err)
				return
			}
			if len(bytes.TrimSpace(sc.Bytes())) == 0 {
				continue
			}
			row, err := parseLine(n, sc.Bytes())
			if !yield(row, err) {
				return
			}
		}
		switch err := sc.Err(); {
		case errors.Is(err, bufio.ErrTooLong):
			yield(Row{}, fmt.Errorf("read JSON lines: a line is longer than %d MiB", maxLine>>20))
		case err != nil:
			yield(Row{}, fmt.Errorf("read JSON lines: %w", err))
		}
	}
}

func parseLine(n int64, b []byte) (Row, error) {
	var l line
	err := json.Unmarshal(b, &l)
	row := Row{Number: n, Session: sessionstore.ID(l.Session), Turn: l.Turn, Origin: l.Origin, Raw: l.Item}
	if l.At != nil {
		row.At = *l.At
	}
	if l.Text != nil {
		row.Raw = json.RawMessage(*l.Text)
	}
	if err != nil || (l.Item == nil) == (l.Text == nil) {
		return Row{}, &Fault{Number: n, Session: row.Session, Reason: ReasonBadLine}
	}
	if f := check(row); f != nil {
		return Row{}, f
	}
	return row, nil
}

// WriteJSONL writes rows as JSON lines, one object a line: session, at, turn and origin where they are
// known, and item.
func WriteJSONL(ctx context.Context, w io.Writer, rows Rows, o Options) (Report, error) {
	var rep Report
	var failed error
	out := bufio.NewWriter(w)
	sessions := newApart()
	for r := range good(rows, o, &rep, &failed) {
		if err := ctx.Err(); err != nil {
			return rep, fmt.Errorf("write JSON lines: %w", err)
		}
		fresh, err := sessions.next(r)
		if err == nil {
			err = writeLine(out, r)
		}
		if err != nil {
			return rep, fmt.Errorf("write JSON lines: %w", err)
		}
		if rep.Items++; fresh {
			rep.Sessions++
		}
	}
	if err := errors.Join(failed, out.Flush()); err != nil {
		return rep, fmt.Errorf("write JSON lines: %w", err)
	}
	return rep, nil
}

// writeLine writes the item by hand: encoding/json would take the space out of it.
func writeLine(w *bufio.Writer, r Row) error {
	l := line{Session: string(r.Session), Turn: r.Turn, Origin: r.Origin}
	if !r.At.IsZero() {
		at := r.At.UTC()
		l.At = &at
	}
	bare := !bytes.ContainsAny(r.Raw, "\r\n") && len(bytes.TrimSpace(r.Raw)) == len(r.Raw)
	if !bare {
		text := string(r.Raw)
		l.Text = &text
	}
	var head strings.Builder
	enc := json.NewEncoder(&head)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(l); err != nil {
		return err
	}
	object := strings.TrimSuffix(head.String(), "}\n")
	_, err := w.WriteString(object)
	if bare {
		_, _ = w.WriteString(`,"item":`)
		_, err = w.Write(r.Raw)
	}
	_, _ = w.WriteString("}\n") // a failure stays with the writer
	return err
}

func newApart() *apart {
	seed := maphash.MakeSeed()
	return &apart{
		past: map[uint64]struct{}{},
		hash: func(id sessionstore.ID) uint64 { return maphash.String(seed, string(id)) },
	}
}
