// Package doctor holds the checks behind "botd check": what can be said about a configuration without
// going online.
package doctor

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"botd/config"
)

// Report is what was found.
type Report struct {
	// OK says that the configuration can be used, perhaps with warnings.
	OK bool `json:"ok"`
	// Source is the file that was read, or "environment".
	Source   string          `json:"source"`
	Problems config.Problems `json:"problems"`
	// Channels are what the configuration sets up, when it can be used.
	Channels []Channel `json:"channels,omitempty"`
}

// Channel is one channel of a usable configuration.
type Channel struct {
	Name  string             `json:"name"`
	Type  config.ChannelType `json:"type"`
	Agent string             `json:"agent"`
	// WebhookPath is where the platform is to deliver, WebhookURL the same as an address to register.
	WebhookPath string `json:"webhook_path,omitempty"`
	WebhookURL  string `json:"webhook_url,omitempty"`
}

// Check reads the configuration from the file at path, or from the environment when path is empty.
func Check(path string, o config.Options) Report {
	cfg, problems := config.Load(path, o)
	r := Report{Source: path, Problems: problems}
	if path == "" {
		r.Source = "environment"
	}
	if r.Problems == nil {
		r.Problems = config.Problems{} // an empty list in JSON
	}
	if problems.Err() != nil {
		return r
	}
	r.Problems = append(r.Problems, storeFolder(cfg.Store)...)
	r.OK = r.Problems.Err() == nil
	for _, name := range slices.Sorted(maps.Keys(cfg.Channels)) {
		c := cfg.Channels[name]
		ch := Channel{Name: name, Type: c.Type, Agent: c.Agent}
		if c.LINE != nil {
			ch.WebhookPath = c.LINE.WebhookPath
			if base := strings.TrimSuffix(cfg.Server.PublicURL, "/"); base != "" {
				ch.WebhookURL = base + ch.WebhookPath
			}
		}
		r.Channels = append(r.Channels, ch)
	}
	return r
}

// storeFolder checks that the folder of the store can be written to, when it exists already.
func storeFolder(url string) config.Problems {
	path, err := config.BoltPath(url)
	if err != nil {
		return nil // another kind of store
	}
	dir := filepath.Dir(path)
	info, err := os.Stat(dir)
	if err != nil {
		return nil // it will be made
	}
	problem := config.Problem{Severity: config.SeverityError, Path: "store", Remedy: "name another path in store"}
	if !info.IsDir() {
		problem.Message = fmt.Sprintf("store: %s is not a folder", dir)
		return config.Problems{problem}
	}
	probe, err := os.CreateTemp(dir, ".botd-check-*")
	if err != nil {
		problem.Severity = config.SeverityWarning // the service may run as somebody else
		problem.Message = fmt.Sprintf("store: this user cannot write to the folder %s", dir)
		problem.Remedy = "make sure that the user who runs botd can, or name another path in store"
		return config.Problems{problem}
	}
	_ = probe.Close()
	if err := os.Remove(probe.Name()); err != nil {
		problem.Message = fmt.Sprintf("store: files in the folder %s cannot be removed", dir)
		return config.Problems{problem}
	}
	return nil
}
