package obs_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"testing"
	"time"

	"botd/cmd/botd/internal/obs"
)

func TestLoggerNeverWritesKnownSecrets(t *testing.T) {
	t.Parallel()
	secrets := []string{"planted-secret", "planted-secret-longer", `pl"anted\<secret>`, "pl/anted secret+1", "short"}
	for _, format := range []string{"json", "text"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			log, err := obs.NewLogger(obs.LogOptions{Writer: &out, Format: format, Secrets: secrets})
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range secrets[:4] {
				log.Info("message "+s, "value", s, "err", fmt.Errorf("get %q: %w", s, errors.New(s)),
					"url", "https://x/?t="+url.QueryEscape(s), "path", "https://x/"+url.PathEscape(s),
					slog.Group("g", "nested", map[string]any{"k": []string{s}}))
				log.With("held", s).WithGroup("g").Warn("x")
			}
			for _, s := range []string{"planted-secret", "anted", "longer"} {
				if strings.Contains(out.String(), s) {
					t.Errorf("the log holds %q:\n%s", s, out.String())
				}
			}
			for line := range strings.Lines(out.String()) {
				if format == "json" && !json.Valid([]byte(line)) {
					t.Errorf("not JSON: %s", line)
				}
			}
			log.Info("a short word stays")
			if !strings.Contains(out.String(), "a short word stays") {
				t.Error("a value too short to be a secret was replaced")
			}
		})
	}
}

// delay is a value that tells what it is only when it is logged.
type delay time.Duration

func (d delay) LogValue() slog.Value { return slog.DurationValue(time.Duration(d)) }

func TestDurationsAreReadable(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"json", "text"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			log, err := obs.NewLogger(obs.LogOptions{Writer: &out, Format: format})
			if err != nil {
				t.Fatal(err)
			}
			d := 2500 * time.Millisecond
			log.With("held", d).WithGroup("g").Info("m", "took", d, slog.Group("h", "in", d), "late", delay(d))
			if got := strings.Count(out.String(), "2.5s"); got != 4 || strings.Contains(out.String(), "2500") {
				t.Errorf("%d of 4 durations are readable: %s", got, out.String())
			}
		})
	}
}

func TestLevelChangesAtRunTime(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	var level slog.LevelVar
	log, err := obs.NewLogger(obs.LogOptions{Writer: &out, Level: &level})
	if err != nil {
		t.Fatal(err)
	}
	log.Debug("before")
	level.Set(slog.LevelDebug)
	log.Debug("after")
	if got := out.String(); strings.Contains(got, "before") || !strings.Contains(got, "after") {
		t.Errorf("log = %s", got)
	}
	if !json.Valid(out.Bytes()) {
		t.Error("auto is not JSON for what is no terminal")
	}
}

func TestUnknownNames(t *testing.T) {
	t.Parallel()
	if _, err := obs.NewLogger(obs.LogOptions{Format: "xml"}); err == nil || !strings.Contains(err.Error(), "xml") {
		t.Errorf("unknown format: %v", err)
	}
	if _, err := obs.ParseLevel("loud"); err == nil || !strings.Contains(err.Error(), "loud") {
		t.Errorf("unknown level: %v", err)
	}
	if l, err := obs.ParseLevel("warn"); err != nil || l != slog.LevelWarn {
		t.Errorf("ParseLevel(warn) = %v, %v", l, err)
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestWriterPassesErrorsOn(t *testing.T) {
	t.Parallel()
	w := obs.NewRedactor([]string{"planted-secret"}).Writer(brokenWriter{})
	if n, err := w.Write([]byte("x")); n != 0 || err == nil {
		t.Errorf("Write = %d, %v", n, err)
	}
}
