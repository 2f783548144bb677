package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"net"
	"net/http"
	"net/url"
	"strings"
)

// ErrNoGateway is returned by Dial when nobody serves the socket.
var ErrNoGateway = errors.New("no gateway answers")

// Client speaks the API. Errors that the API tells are of type *Problem.
type Client struct{ http *http.Client }

// Dial returns a client of the gateway that serves the socket at path. Errors: ErrNoGateway, or what the
// operating system says.
func Dial(ctx context.Context, path string) (*Client, error) {
	dialer := &net.Dialer{Timeout: dialTimeout}
	dial := func(ctx context.Context) (net.Conn, error) { return dialer.DialContext(ctx, "unix", path) }
	first, err := dial(ctx)
	if err != nil {
		if isDead(err) {
			err = fmt.Errorf("%w at %s", ErrNoGateway, path)
		}
		return nil, err
	}
	first.Close()
	transport := &http.Transport{
		DialContext:            func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) },
		DisableCompression:     true,
		MaxResponseHeaderBytes: maxHeaderBytes,
	}
	return &Client{&http.Client{Transport: transport, CheckRedirect: noRedirect}}, nil
}

func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// Local returns a client that asks s within the process.
func (s *Server) Local() *Client {
	return &Client{&http.Client{Transport: local{s.Handler()}, CheckRedirect: noRedirect}}
}

// SessionPath is the path of a session and of what is below it.
func SessionPath(id string, below ...string) string {
	segment := url.PathEscape(id)
	if strings.Trim(segment, ".") == "" {
		segment = strings.ReplaceAll(segment, ".", "%2E") // dots alone would be taken for a way up
	}
	return strings.Join(append([]string{"/v1/sessions/" + segment}, below...), "/")
}

// Get asks for path and reads the answer into out.
func (c *Client) Get(ctx context.Context, path string, query url.Values, out any) error {
	return c.call(ctx, http.MethodGet, path, query, nil, out)
}

// Do acts on path with in as the body, if it is not nil, and reads the answer into out.
func (c *Client) Do(ctx context.Context, method, path string, in, out any) error {
	return c.call(ctx, method, path, nil, in, out)
}

// Stream asks for path and copies the answer to w.
func (c *Client) Stream(ctx context.Context, path string, w io.Writer) error {
	res, err := c.send(ctx, http.MethodGet, path, nil, nil)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if _, err := io.Copy(w, res.Body); err != nil {
		return fmt.Errorf("the answer is not whole: %w", err)
	}
	return nil
}

// Pages yields the elements of a list, page after page.
func Pages[T any](ctx context.Context, c *Client, path string, query url.Values) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		q := url.Values{}
		maps.Copy(q, query)
		for {
			var page Page[T]
			if err := c.Get(ctx, path, q, &page); err != nil {
				var none T
				yield(none, err)
				return
			}
			for _, x := range page.Data {
				if !yield(x, nil) {
					return
				}
			}
			if page.Next == "" {
				return
			}
			q.Set("cursor", page.Next)
		}
	}
}

func (c *Client) call(ctx context.Context, method, path string, query url.Values, in, out any) error {
	res, err := c.send(ctx, method, path, query, in)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if err := json.NewDecoder(res.Body).Decode(out); err != nil {
		return fmt.Errorf("read answer of the gateway: %w", err)
	}
	return nil
}

// send returns an answer that is no error.
func (c *Client) send(ctx context.Context, method, path string, query url.Values, in any) (*http.Response, error) {
	var body io.Reader
	if in != nil {
		text, err := json.Marshal(in)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(text)
	}
	address := "http://botd" + path
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, method, address, body)
	if err != nil {
		return nil, err
	}
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := c.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("ask the gateway: %w", err)
	}
	if res.StatusCode == http.StatusOK {
		return res, nil
	}
	defer res.Body.Close()
	p := &Problem{Status: res.StatusCode}
	if err := json.NewDecoder(io.LimitReader(res.Body, maxBody)).Decode(p); err != nil || p.Code == "" {
		return nil, fmt.Errorf("ask the gateway: it answered %s", res.Status)
	}
	return nil, p
}
