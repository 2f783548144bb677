package admin

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"botd/sessionstore"
)

// Auditor is implemented by stores that keep a record of what operators did, to which can only be added.
type Auditor interface {
	// AppendAudit adds one JSON object to the record. It is durable when nil is returned.
	AppendAudit(ctx context.Context, record json.RawMessage) error
}

// Record is one line of the audit: that somebody was about to do something. When it then failed, a second
// record with Failed follows.
type Record struct {
	At time.Time `json:"at"`
	// Who is the caller: "uid 1000 pid 4711" where the system tells, "unknown" where it does not.
	Who string `json:"who"`
	// Act is what was done, such as session.reset.
	Act string `json:"act"`
	// Whom is the session concerned, as Hash tells it.
	Whom string `json:"whom,omitempty"`
	// Object is the number of the delivery or event concerned, or text for a list that shows texts.
	Object string `json:"object,omitempty"`
	// Failed is the code of the Problem that came of it.
	Failed Code `json:"failed,omitempty"`
}

// Hash stands for a session in the audit: the first 32 hexadecimal digits of the SHA-256 of its ID. Who
// knows the ID can find the records about it; the record alone tells of no one.
func Hash(id sessionstore.ID) string {
	if id == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:16])
}

// record adds to the audit.
func (s *Server) record(ctx context.Context, r Record) error {
	if s.auditor == nil {
		attrs := []slog.Attr{slog.String("who", r.Who), slog.String("act", r.Act)}
		for _, a := range []slog.Attr{slog.String("whom", r.Whom), slog.String("object", r.Object), slog.String("failed", string(r.Failed))} {
			if a.Value.String() != "" {
				attrs = append(attrs, a)
			}
		}
		s.log.LogAttrs(ctx, slog.LevelWarn, "audit", attrs...)
		return nil
	}
	text, err := json.Marshal(r)
	if err == nil {
		err = s.auditor.AppendAudit(ctx, text)
	}
	if err != nil {
		return fmt.Errorf("write audit record: %w", err)
	}
	return nil
}

// audited does what serve does, after it was recorded.
func (s *Server) audited(act string, serve handler) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		rec := Record{At: time.Now().UTC(), Who: who(r.Context()), Act: act, Whom: Hash(sessionstore.ID(r.PathValue("id"))), Object: r.PathValue("seq")}
		if r.URL.Query().Get("text") == "true" {
			rec.Object = "text" // a list that shows what people said
		}
		if err := s.record(r.Context(), rec); err != nil {
			s.log.Error("act refused: it could not be recorded", "act", act, "err", err)
			return problem(CodeAudit, "the act could not be recorded and was not done")
		}
		err := serve(w, r)
		if err != nil {
			rec.At, rec.Failed = time.Now().UTC(), problemOf(err).Code
			if err := s.record(context.WithoutCancel(r.Context()), rec); err != nil {
				s.log.Error("failure of an act not recorded", "act", act, "err", err)
			}
		}
		return err
	}
}
