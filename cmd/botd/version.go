package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// versionCmd prints what this program is.
type versionCmd struct{}

// Run is called by the command line.
func (versionCmd) Run(p *process) error {
	fmt.Fprintf(p.stdout, "botd %s\n", buildVersion())
	settings := buildSettings()
	if rev := settings["vcs.revision"]; rev != "" {
		changed := ""
		if settings["vcs.modified"] == "true" {
			changed = ", with changes"
		}
		fmt.Fprintf(p.stdout, "commit %s of %s%s\n", rev, settings["vcs.time"], changed)
	}
	_, err := fmt.Fprintf(p.stdout, "built with %s for %s/%s\n", runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}

// buildVersion returns the version that the Go command stamped into the program.
func buildVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(unknown version)"
	}
	return info.Main.Version
}

func buildSettings() map[string]string {
	settings := map[string]string{}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			settings[s.Key] = s.Value
		}
	}
	return settings
}
