package admin

import (
	_ "embed"
	"io"
	"net/http"
)

// description is the API in OpenAPI 3.1. Tests judge every request and answer by it.
//
//go:embed openapi.json
var description string

func (s *Server) getOpenAPI(w http.ResponseWriter, r *http.Request) error {
	if q := params(r); q.err != nil {
		return q.err
	}
	w.Header().Set("Content-Type", "application/json")
	_, err := io.WriteString(w, description)
	return err
}
