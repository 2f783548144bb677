package agentssdk

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"

	"botd/sessionstore"
	"botd/sessionstore/internal/envelope"
)

// sessionsPage is how many sessions are listed at once.
const sessionsPage = 100

// maxTurn is the most items that WriteStore appends at once.
const maxTurn = 200

// Source is a store whose sessions can be listed.
type Source interface {
	Items(ctx context.Context, id sessionstore.ID, limit int) ([]sessionstore.Item, error)
	Sessions(ctx context.Context, prefix string, after sessionstore.ID, limit int) ([]sessionstore.Info, error)
}

// Target is a store to write to.
type Target interface {
	Generation(ctx context.Context, id sessionstore.ID) (uint64, error)
	Append(ctx context.Context, id sessionstore.ID, b sessionstore.Batch) error
}

// ReadStore reads the sessions whose ID begins with prefix. It holds the items of one session at a time.
func ReadStore(ctx context.Context, s Source, prefix string) Rows {
	return func(yield func(Row, error) bool) {
		var after sessionstore.ID
		for {
			infos, err := s.Sessions(ctx, prefix, after, sessionsPage)
			if err != nil {
				yield(Row{}, err)
				return
			}
			if len(infos) == 0 {
				return
			}
			for _, info := range infos {
				after = info.ID
				items, err := s.Items(ctx, info.ID, sessionstore.All)
				if err != nil {
					yield(Row{}, err)
					return
				}
				for _, it := range items {
					row := Row{Number: int64(it.Seq), Session: info.ID, At: it.At, Turn: it.Turn, Origin: it.Origin, Raw: it.Raw}
					if !yield(row, nil) {
						return
					}
				}
			}
		}
	}
}

// WriteStore appends rows to a store, behind what their sessions hold. Rows that have turns keep them; of
// others a turn is made from each of a user's messages to the next, with an ID that follows from the
// rows, so that writing the same rows again changes nothing. Envelopes of EncryptedSession are faults.
// The items' times become those of the import. Report counts what was given to the store.
func WriteStore(ctx context.Context, s Target, rows Rows, o Options) (Report, error) {
	w := storeWriter{store: s, sessions: newApart()}
	var failed error
	for r := range good(rows, o, &w.rep, &failed) {
		if _, ok := envelope.Token(r.Raw); ok {
			w.rep.fault(o, &Fault{Number: r.Number, Session: r.Session, Reason: ReasonSealed})
			continue
		}
		if err := w.add(ctx, r); err != nil {
			return w.rep, fmt.Errorf("write to store: %w", err)
		}
	}
	if failed != nil {
		return w.rep, fmt.Errorf("write to store: %w", failed)
	}
	if err := w.flush(ctx); err != nil {
		return w.rep, fmt.Errorf("write to store: %w", err)
	}
	return w.rep, nil
}

// storeWriter gathers a turn.
type storeWriter struct {
	store    Target
	rep      Report
	sessions *apart

	session    sessionstore.ID
	generation uint64
	turns      map[string]bool // of this session
	made       int             // turns of this session that were given an ID here

	turn    string // as the rows have it
	items   []sessionstore.Item
	waiting bool // the gathered items end with a user's message
}

func (w *storeWriter) add(ctx context.Context, r Row) error {
	asks := fromUser(r.Raw)
	switch {
	case r.Session != w.session || !w.sessions.begun:
		if err := w.begin(ctx, r); err != nil {
			return err
		}
	case r.Turn != w.turn, len(w.items) == maxTurn, r.Turn == "" && asks && !w.waiting:
		if err := w.flush(ctx); err != nil {
			return err
		}
	}
	w.turn, w.waiting = r.Turn, asks
	w.items = append(w.items, sessionstore.Item{Raw: r.Raw, Origin: r.Origin})
	return nil
}

// begin ends the session before and starts that of r.
func (w *storeWriter) begin(ctx context.Context, r Row) error {
	if err := w.flush(ctx); err != nil {
		return err
	}
	if _, err := w.sessions.next(r); err != nil {
		return err
	}
	g, err := w.store.Generation(ctx, r.Session)
	if err != nil {
		return err
	}
	w.session, w.generation, w.turns, w.made = r.Session, g, map[string]bool{}, 0
	w.rep.Sessions++
	return nil
}

func (w *storeWriter) flush(ctx context.Context) error {
	if len(w.items) == 0 {
		return nil
	}
	turn := w.turn
	if turn == "" || w.turns[turn] {
		turn = w.makeTurn()
	}
	w.turns[turn] = true
	err := w.store.Append(ctx, w.session, sessionstore.Batch{Turn: turn, Generation: w.generation, Items: w.items})
	if err != nil {
		return err
	}
	w.rep.Items += len(w.items)
	w.items = nil
	return nil
}

// makeTurn returns an ID that follows from the session, the place in it and the items.
func (w *storeWriter) makeTurn() string {
	h := sha256.New()
	for _, part := range []string{string(w.session), strconv.Itoa(w.made), w.turn} {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	for _, it := range w.items {
		fmt.Fprintf(h, "%d:", len(it.Raw))
		h.Write(it.Raw)
	}
	w.made++
	return "import-" + hex.EncodeToString(h.Sum(nil)[:16])
}

// fromUser reports whether an item is a user's message.
func fromUser(raw []byte) bool {
	var item struct {
		Role string `json:"role"`
	}
	return json.Unmarshal(raw, &item) == nil && item.Role == "user"
}
