package demo

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"html"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"
	"unicode/utf8"
)

//go:embed page
var pageFiles embed.FS

// page is the page with the marks that render replaces. A template package would make the linker keep
// every exported method of the binary, and nearly double its size.
//
//go:embed page/index.html
var page string

// policy lets the page load nothing but its own assets, and nobody frame it.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

const (
	maxBody = 64 << 10
	// maxText bounds a message, in characters: that of a LINE bubble.
	maxText = 5000
	// heartbeat keeps a quiet stream from being given up; writeTimeout bounds one write to a page that
	// does not read.
	heartbeat    = 15 * time.Second
	writeTimeout = 10 * time.Second
)

func (d *Demo) handler() http.Handler {
	assets, err := fs.Sub(pageFiles, "page")
	if err != nil {
		panic(err) // the folder is embedded
	}
	files := http.FileServerFS(assets)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", d.page)
	for _, asset := range []string{"style.css", "icon.svg", "main.js", "chat.js", "memory.js", "markdown.js", "dom.js"} {
		mux.Handle("GET /"+asset, files)
	}
	mux.HandleFunc("GET /api/events", d.events)
	mux.HandleFunc("POST /api/say", d.whenReady(d.say))
	mux.HandleFunc("POST /api/reset", d.whenReady(d.reset))
	return guard(http.NewCrossOriginProtection().Handler(mux))
}

// guard refuses what is not meant for this machine, against pages that point a name of their own at it.
func guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		if !isLoopback(r.Host) || r.Header.Get("Sec-Fetch-Site") == "cross-site" && r.URL.Path != "/" {
			http.Error(w, "the demonstration is for this machine alone", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// isLoopback reports whether the host of an address, with or without a port, is this machine.
func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = strings.Trim(address, "[]")
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

// render fills the page's marks.
func (d *Demo) render() string {
	model := `<span class="more">built-in </span><b>offline model</b><span class="more">, no key, no network</span>`
	if d.opts.real() {
		model = "model <b>" + html.EscapeString(d.opts.Model) + "</b>"
	}
	data := "<b>temporary</b> memory, gone when it stops"
	if d.opts.Data != "" {
		data = "remembers in <b>" + html.EscapeString(d.opts.Data) + "</b>"
	}
	return strings.NewReplacer("$MODEL$", model, "$DATA$", data, "$VERSION$", html.EscapeString(d.opts.Version)).Replace(page)
}

func (d *Demo) page(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if _, err := io.WriteString(w, d.render()); err != nil {
		d.opts.Logger.Debug("page not written", "err", err)
	}
}

// whenReady lets requests wait until the gateway hears both platforms.
func (d *Demo) whenReady(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-d.ready:
			next(w, r)
		case <-d.ending:
			http.Error(w, "the demonstration has ended", http.StatusServiceUnavailable)
		case <-r.Context().Done():
		}
	}
}

// decode reads the JSON body of a request.
func decode(w http.ResponseWriter, r *http.Request, into any) bool {
	decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
	decoder.DisallowUnknownFields()
	if r.Header.Get("Content-Type") != "application/json" || decoder.Decode(into) != nil {
		http.Error(w, "want a JSON object", http.StatusBadRequest)
		return false
	}
	return true
}

// say lets a person say something.
func (d *Demo) say(w http.ResponseWriter, r *http.Request) {
	var b struct {
		Place   string `json:"place"`
		Person  string `json:"person"`
		Text    string `json:"text"`
		Mention bool   `json:"mention"`
	}
	if !decode(w, r, &b) {
		return
	}
	b.Text = strings.TrimSpace(b.Text)
	if b.Text == "" || utf8.RuneCountInString(b.Text) > maxText {
		http.Error(w, "want a text of 1 to 5000 characters", http.StatusBadRequest)
		return
	}
	p, who, err := d.world.find(b.Place, b.Person)
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	if err := p.say(r.Context(), who, b.Text, b.Mention && p.Group); err != nil {
		d.opts.Logger.Warn("message of the demonstration not delivered", "place", p.ID, "err", err)
		http.Error(w, "the gateway has not taken the message", http.StatusBadGateway)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// reset clears the memory of a person's session in a place.
func (d *Demo) reset(w http.ResponseWriter, r *http.Request) {
	var b struct {
		Place  string `json:"place"`
		Person string `json:"person"`
	}
	if !decode(w, r, &b) {
		return
	}
	p, who, err := d.world.find(b.Place, b.Person)
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), 10*time.Second)
	defer cancel()
	if err := d.gateway.Dispatcher().Reset(ctx, who.Session); err != nil {
		d.opts.Logger.Warn("session not reset", "session", string(who.Session), "err", err)
		http.Error(w, "the session could not be reset", http.StatusInternalServerError)
		return
	}
	d.hub.publish(update{Place: p.ID, Reset: who.Session})
	d.hub.refresh(ctx, p)
	w.WriteHeader(http.StatusNoContent)
}

// events streams a snapshot and then every update.
func (d *Demo) events(w http.ResponseWriter, r *http.Request) {
	updates := d.hub.join()
	defer d.hub.leave(updates)
	// Joined first: what happens meanwhile comes twice rather than never.
	begin, err := d.hub.snapshot(r.Context())
	if err != nil {
		http.Error(w, "the sessions cannot be read", http.StatusServiceUnavailable)
		return
	}
	s := stream{w: w, control: http.NewResponseController(w)}
	if err := s.control.SetReadDeadline(time.Time{}); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	s.event("snapshot", begin)
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	for s.err == nil {
		select {
		case u, open := <-updates:
			if !open {
				return
			}
			s.event("update", u)
		case <-beat.C:
			s.write(": still here\n\n")
		case <-r.Context().Done():
			return
		case <-d.ending:
			s.event("end", struct{}{})
			return
		}
	}
}

// stream writes server-sent events.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	err     error
}

func (s *stream) event(name string, data any) {
	raw, err := json.Marshal(data)
	if err != nil {
		s.err = err
		return
	}
	s.write("event: " + name + "\ndata: " + string(raw) + "\n\n")
}

func (s *stream) write(text string) {
	if s.err != nil {
		return
	}
	if err := s.control.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		s.err = err
		return
	}
	if _, s.err = io.WriteString(s.w, text); s.err == nil {
		s.err = s.control.Flush()
	}
}
