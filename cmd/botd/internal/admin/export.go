package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"botd/sessionstore"
)

// exportPage is how many items of an export are in memory at a time.
const exportPage = 256

// line is one line of an export, in the form that sessionstore/agentssdk reads and writes. That package is
// not used here because SQLite, which it knows too, would add two megabytes to the program.
type line struct {
	Session sessionstore.ID `json:"session"`
	At      *time.Time      `json:"at,omitempty"`
	Turn    string          `json:"turn,omitempty"`
	Origin  string          `json:"origin,omitempty"`
	// Text is the item inside a JSON string, for one that has line breaks in it or space around it; others
	// follow as item, byte for byte.
	Text *string `json:"text,omitempty"`
}

// exportSession writes everything that was said in a session since its last reset, as JSON lines. Between
// two pages nothing of the store is held.
func (s *Server) exportSession(w http.ResponseWriter, r *http.Request) error {
	id, err := sessionID(r)
	if err != nil {
		return err
	}
	if q := params(r); q.err != nil {
		return q.err
	}
	session, err := s.find(r.Context(), id)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/jsonl")
	var after uint64
	for more := true; more; {
		var items []sessionstore.Item
		items, more, err = s.history(r.Context(), id, after)
		if err == nil {
			err = s.unchanged(r.Context(), session)
		}
		if err != nil {
			return fmt.Errorf("export session: %w", err)
		}
		var page bytes.Buffer
		for _, it := range items {
			if err := writeLine(&page, id, it); err != nil {
				return fmt.Errorf("export session: %w", err)
			}
			after = it.Seq
		}
		if _, err := w.Write(page.Bytes()); err != nil {
			return fmt.Errorf("export session: %w", err)
		}
	}
	return nil
}

// history returns the items after a number, and whether there may be more.
func (s *Server) history(ctx context.Context, id sessionstore.ID, after uint64) (items []sessionstore.Item, more bool, err error) {
	if rewriter, ok := s.opts.Store.(sessionstore.Rewriter); ok {
		items, err = rewriter.History(ctx, id, after, exportPage)
		return items, len(items) > 0, err
	}
	items, err = s.opts.Store.Items(ctx, id, sessionstore.All)
	return items, false, err
}

// unchanged fails when a session was reset since: its pages would not belong together.
func (s *Server) unchanged(ctx context.Context, session Session) error {
	generation, err := s.opts.Store.Generation(ctx, session.ID)
	if err == nil && generation != session.Generation {
		err = sessionstore.ErrStale
	}
	return err
}

// writeLine writes the item by hand: encoding/json would take the space out of it.
func writeLine(w *bytes.Buffer, id sessionstore.ID, it sessionstore.Item) error {
	l := line{Session: id, Turn: it.Turn, Origin: it.Origin}
	if !it.At.IsZero() {
		at := it.At.UTC()
		l.At = &at
	}
	bare := !bytes.ContainsAny(it.Raw, "\r\n") && len(bytes.TrimSpace(it.Raw)) == len(it.Raw)
	if !bare {
		text := string(it.Raw)
		l.Text = &text
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(l); err != nil {
		return err
	}
	if bare {
		w.Truncate(w.Len() - len("}\n"))
		fmt.Fprintf(w, ",\"item\":%s}\n", it.Raw)
	}
	return nil
}
