package admin

import (
	"context"
	"net/http"
	"strings"

	"botd/channels"
	"botd/channels/dispatch"
	"botd/sessionstore"
)

// unsupported is the problem of a store that lacks an optional interface.
func unsupported(what string) error {
	return problem(CodeUnsupported, "the store of this gateway cannot %s", what)
}

// prefixOf is what the IDs of a channel's sessions begin with.
func prefixOf(channel string) string {
	const nobody = "user:-"
	id := dispatch.SessionID(dispatch.ScopeUser, channels.Address{Channel: channel, Kind: channels.Direct, User: "-"})
	return strings.TrimSuffix(string(id), nobody)
}

func (s *Server) listSessions(w http.ResponseWriter, r *http.Request) error {
	lister, ok := s.opts.Store.(sessionstore.Lister)
	if !ok {
		return unsupported("list its sessions")
	}
	q := params(r, "prefix", "channel", "cursor", "limit")
	prefix, limit, after := q.text("prefix"), q.limit(defaultPage), sessionstore.ID(q.cursor())
	if channel := q.text("channel"); channel != "" {
		of := prefixOf(channel)
		switch {
		case strings.HasPrefix(of, prefix):
			prefix = of
		case !strings.HasPrefix(prefix, of):
			q.fail("no session of channel %s can have an ID that begins with %s", channel, prefix)
		}
	}
	if q.err != nil {
		return q.err
	}
	infos, err := lister.Sessions(r.Context(), prefix, after, limit+1)
	if err != nil {
		return err
	}
	page := Page[Session]{Data: []Session{}}
	if len(infos) > limit {
		infos = infos[:limit]
		page.Next = cursorOf([]byte(infos[limit-1].ID))
	}
	for _, info := range infos {
		page.Data = append(page.Data, sessionOf(info))
	}
	return reply(w, page)
}

func sessionOf(info sessionstore.Info) Session {
	return Session{ID: info.ID, Items: info.Items, Generation: info.Generation, Created: info.Created, Updated: info.Updated}
}

func archiveOf(a sessionstore.Archive) Archive {
	return Archive{Generation: a.Generation, Items: a.Items, At: a.At, Until: a.Until}
}

// find returns a session that exists.
func (s *Server) find(ctx context.Context, id sessionstore.ID) (Session, error) {
	lister, ok := s.opts.Store.(sessionstore.Lister)
	if !ok {
		return Session{}, unsupported("list its sessions")
	}
	infos, err := lister.Sessions(ctx, string(id), "", 1)
	if err != nil {
		return Session{}, err
	}
	if len(infos) == 0 || infos[0].ID != id {
		return Session{}, problem(CodeNoSession, "there is no session %s", id)
	}
	return sessionOf(infos[0]), nil
}

// archives returns what can be restored of a session, the latest first.
func (s *Server) archives(ctx context.Context, id sessionstore.ID) ([]Archive, error) {
	archiver, ok := s.opts.Store.(sessionstore.Archiver)
	if !ok {
		return nil, nil
	}
	list, err := archiver.Archives(ctx, id)
	var out []Archive
	for _, a := range list {
		out = append(out, archiveOf(a))
	}
	return out, err
}

func (s *Server) getSession(w http.ResponseWriter, r *http.Request) error {
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
	if session.Archives, err = s.archives(r.Context(), id); err != nil {
		return err
	}
	return reply(w, session)
}

// defaultItems is how many items are shown when nothing else is asked for.
const defaultItems = 50

func (s *Server) getItems(w http.ResponseWriter, r *http.Request) error {
	id, err := sessionID(r)
	if err != nil {
		return err
	}
	q := params(r, "limit")
	limit := q.limit(defaultItems)
	if q.err != nil {
		return q.err
	}
	if _, err := s.find(r.Context(), id); err != nil {
		return err
	}
	items, err := s.opts.Store.Items(r.Context(), id, limit)
	if err != nil {
		return err
	}
	page := Page[Item]{Data: []Item{}}
	for _, it := range items {
		page.Data = append(page.Data, Item{Seq: it.Seq, Turn: it.Turn, At: it.At, Origin: it.Origin, Raw: it.Raw})
	}
	return reply(w, page)
}
