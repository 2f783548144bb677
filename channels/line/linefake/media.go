package linefake

import "net/http"

// content is what the content endpoints know of one message.
type content struct {
	Media
	bot *Bot
}

// contentOf finds the content of a message to the bot. s.mu is held.
func (s *Server) contentOf(r *request) (*content, *answer) {
	c := s.media[r.PathValue("message")]
	var a answer
	switch {
	case c == nil || c.bot != r.bot:
		a = refuse(http.StatusNotFound, NotFound)
	case c.Gone:
		a = refuse(http.StatusGone, "Gone")
	default:
		return c, nil
	}
	return nil, &a
}

func (s *Server) getContent(r *request) answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, a := s.contentOf(r)
	if a != nil {
		return *a
	}
	if c.Preparing > 0 {
		c.Preparing--
		return answer{status: http.StatusAccepted}
	}
	if c.Failed {
		return refuse(http.StatusNotFound, NotFound)
	}
	return answer{status: http.StatusOK, blob: c.Data, mime: c.mime()}
}

func (c *content) mime() string {
	if c.MIME == "" {
		return "application/octet-stream"
	}
	return c.MIME
}

func (s *Server) getPreview(r *request) answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, a := s.contentOf(r)
	switch {
	case a != nil:
		return *a
	case c.Preview == nil:
		return refuse(http.StatusNotFound, NotFound)
	}
	return answer{status: http.StatusOK, blob: c.Preview, mime: "image/jpeg"}
}

func (s *Server) transcoding(r *request) answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, a := s.contentOf(r)
	if a != nil {
		return *a
	}
	status := "succeeded"
	switch {
	case c.Type != "video" && c.Type != "audio":
		return refuse(http.StatusBadRequest, "The message is not a video or audio")
	case c.Preparing > 0:
		c.Preparing--
		status = "processing"
	case c.Failed:
		status = "failed"
	}
	return ok(map[string]string{"status": status})
}
