package admin

import (
	"maps"
	"net/http"
	"slices"
)

// Wrap puts a transport around the client's own.
func (c *Client) Wrap(wrap func(http.RoundTripper) http.RoundTripper) {
	c.http.Transport = wrap(c.http.Transport)
}

// Operations are the operations of the API: method, path and what the audit calls them.
func (s *Server) Operations() (all [][3]string) {
	for _, rt := range s.routes() {
		all = append(all, [3]string{rt.method, rt.path, rt.act})
	}
	return all
}

// Codes are the codes of problems, sorted.
func Codes() []Code { return slices.Sorted(maps.Keys(statuses)) }
