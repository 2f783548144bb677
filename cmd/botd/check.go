package main

import (
	"encoding/json"
	"fmt"
	"text/tabwriter"

	"botd/cmd/botd/internal/doctor"
)

// checkCmd checks the configuration offline.
type checkCmd struct {
	configFlag
	JSON bool `help:"Print the result as JSON."`
}

// Help is the long help.
func (checkCmd) Help() string {
	return `Every problem is shown with its place in the file and a remedy. Exit code 0: it can be used, perhaps with warnings; 2: it cannot.`
}

// Run is called by the command line.
func (c checkCmd) Run(p *process) error {
	report := doctor.Check(c.path(), knownNames())
	if c.JSON {
		enc := json.NewEncoder(p.stdout)
		enc.SetIndent("", "  ")
		enc.SetEscapeHTML(false)
		if err := enc.Encode(report); err != nil {
			return fmt.Errorf("write report: %w", err)
		}
	} else {
		printReport(p, report)
	}
	if !report.OK {
		return quietError{exitProblems}
	}
	return nil
}

func printReport(p *process, r doctor.Report) {
	if len(r.Problems) > 0 {
		fmt.Fprintf(p.stdout, "%s\n\n", r.Problems)
	}
	if !r.OK {
		fmt.Fprintf(p.stdout, "%s: %s\n", r.Source, r.Problems.Summary())
		return
	}
	w := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
	defer w.Flush()
	for _, c := range r.Channels {
		fmt.Fprintf(w, "channel %s\t%s\tagent %s", c.Name, c.Type, c.Agent)
		switch {
		case c.WebhookURL != "":
			fmt.Fprintf(w, "\twebhook URL to register: %s", c.WebhookURL)
		case c.WebhookPath != "":
			fmt.Fprintf(w, "\twebhook path: %s", c.WebhookPath)
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintf(w, "%s: ok (%s)\n", r.Source, r.Problems.Summary())
}
