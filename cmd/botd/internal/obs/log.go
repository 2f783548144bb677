package obs

import (
	"fmt"
	"io"
	"log/slog"
	"os"
)

// LogOptions configures NewLogger.
type LogOptions struct {
	// Writer is where the log goes.
	Writer io.Writer
	// Format is json, text, or auto: text when Writer is a terminal, json otherwise.
	Format string
	// Level is the least severe level that is logged, and can be changed at run time. Nil: info.
	Level slog.Leveler
	// Secrets are values that must never be written. Redactor, when it is given, knows them instead, and can be
	// told further ones.
	Secrets  []string
	Redactor *Redactor
}

// NewLogger returns a logger that writes one line for each record.
func NewLogger(o LogOptions) (*slog.Logger, error) {
	text := o.Format == "text"
	switch o.Format {
	case "json", "text":
	case "auto", "":
		text = IsTerminal(o.Writer)
	default:
		return nil, fmt.Errorf("unknown log format %q (want json, text or auto)", o.Format)
	}
	if o.Redactor == nil {
		o.Redactor = NewRedactor(o.Secrets)
	}
	w := o.Redactor.Writer(o.Writer)
	h := &slog.HandlerOptions{Level: o.Level}
	if text {
		return slog.New(slog.NewTextHandler(w, h)), nil
	}
	h.ReplaceAttr = durationAsText
	return slog.New(slog.NewJSONHandler(w, h)), nil
}

// durationAsText has a duration read "2.5s", as in the text format, where JSON would have bare nanoseconds.
func durationAsText(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.StringValue(a.Value.Duration().String())
	}
	return a
}

// ParseLevel returns the level named debug, info, warn or error.
func ParseLevel(name string) (slog.Level, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(name)); err != nil {
		return 0, fmt.Errorf("unknown log level %q (want debug, info, warn or error)", name)
	}
	return l, nil
}

// IsTerminal reports whether v, a reader or a writer, is a terminal.
func IsTerminal(v any) bool {
	f, ok := v.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
