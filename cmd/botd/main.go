// Command botd joins people on LINE and Discord to one shared agent engine that remembers.
//
// Exit codes: 0 success; 1 failure while running; 2 the configuration has problems; 3 what was named does
// not exist; 64 wrong usage; 69 the gateway cannot be reached, and its file is in use.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/spf13/cobra"

	"botd/cmd/botd/internal/admin"
	"botd/config"
)

// The exit codes.
const (
	exitOK          = 0
	exitFailure     = 1
	exitProblems    = 2
	exitNotFound    = 3
	exitUsage       = 64 // as sysexits.h: EX_USAGE
	exitUnavailable = 69 // EX_UNAVAILABLE
)

const description = `botd joins people on LINE and Discord to one shared agent engine that remembers.

Without --config, botd reads botd.yaml in the working directory if there is one, and else the environment alone.

Exit codes: 0 success, 1 failure while running, 2 the configuration has problems, 3 what was named does not exist, 64 wrong usage, 69 the gateway cannot be reached and its file is in use.`

// commands are the command line: one line for each command, each in a file of its own.
func commands(p *process) *cobra.Command {
	root := &cobra.Command{
		Use: "botd", Long: wrap(description),
		SilenceErrors: true, SilenceUsage: true,
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	version := root.Flags().Bool("version", false, "Print version and build.")
	root.RunE = func(cmd *cobra.Command, args []string) error {
		if !*version {
			return help(cmd, args)
		}
		if err := (versionCmd{}).Run(p); err != nil {
			return runError{err}
		}
		return nil
	}
	add(root, p, "run", "Run the gateway.", &runCmd{})
	add(root, p, "chat", "Talk to the bot in this terminal.", &chatCmd{})
	add(root, p, "demo", "Try the whole gateway in the browser, without any account.", &demoCmd{})
	add(root, p, "init", "Write a short configuration to begin with.", &initCmd{})
	add(root, p, "check", "Check the configuration without going online.", &checkCmd{})
	show := group(root, "config", "Show the configuration, or an example of one.")
	add(show, p, "example", "Print a commented configuration that shows every key.", &configExampleCmd{})
	add(show, p, "schema", "Print the JSON Schema of the configuration, for editors.", &configSchemaCmd{})
	add(show, p, "show", "Print the configuration with defaults filled in and secrets hidden.", &configShowCmd{})
	session := group(root, "session", "Look at, reset, restore, export and erase conversations.")
	add(session, p, "ls", "List the sessions.", &sessionListCmd{})
	add(session, p, "show", "Show what a session remembers.", &sessionShowCmd{})
	add(session, p, "reset", "Make the bot forget sessions; restore undoes it.", &sessionResetCmd{})
	add(session, p, "restore", "Undo a reset.", &sessionRestoreCmd{})
	add(session, p, "export", "Write everything said in a session as JSON lines.", &sessionExportCmd{})
	add(session, p, "erase", "Delete a session for good, with all that can be restored.", &sessionEraseCmd{})
	delivery := group(root, "delivery", "Look at, retry and drop answers that were not delivered.")
	add(delivery, p, "ls", "List the deliveries that wait or were set aside.", &deliveryListCmd{})
	add(delivery, p, "retry", "Send deliveries that are held, unknown or dead again.", &deliveryRetryCmd{})
	add(delivery, p, "drop", "Give up deliveries that are held.", &deliveryDropCmd{})
	event := group(root, "event", "Look at and revive messages whose answer has failed for good.")
	add(event, p, "ls", "List the messages that were set aside.", &eventListCmd{})
	add(event, p, "revive", "Have messages that were set aside answered after all.", &eventReviveCmd{})
	add(root, p, "backup", "Copy the database to a file, while the gateway runs.", &backupCmd{})
	add(root, p, "verify", "Check every page and record of the database.", &verifyCmd{})
	add(root, p, "compact", "Give the free space of the database back; the gateway must not run.", &compactCmd{})
	add(root, p, "status", "Show the channels and what is under way.", &statusCmd{})
	add(root, p, "log-level", "Show or change the log level of the running gateway.", &logLevelCmd{})
	add(root, p, "healthcheck", "Ask a running gateway how it is, for container health checks.", &healthcheckCmd{})
	add(root, p, "version", "Print version and build.", &versionCmd{})
	return root
}

// process is the world that a command runs in.
type process struct {
	ctx            context.Context
	stdin          io.Reader
	stdout, stderr io.Writer
	started        time.Time
}

func main() {
	os.Exit(execute(os.Args[1:], &process{
		ctx: context.Background(), stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, started: time.Now(),
	}))
}

// execute runs one command line and returns its exit code.
func execute(args []string, p *process) int {
	cobra.EnableCommandSorting = false // they are in the order of use
	root := commands(p)
	root.SetArgs(args)
	root.SetIn(p.stdin)
	root.SetOut(p.stdout)
	root.SetErr(p.stderr)
	err := root.ExecuteContext(p.ctx)
	failed, understood := errors.AsType[runError](err)
	if err != nil && !understood {
		fmt.Fprintf(p.stderr, "botd: %v\n\nRun \"botd --help\" for the commands.\n", err)
		return exitUsage
	}
	return exitCode(failed.error, p.stderr)
}

// quietError is an error that was reported already.
type quietError struct{ code int }

func (e quietError) Error() string { return fmt.Sprintf("exit code %d", e.code) }

// exitCode reports err and returns the exit code for it.
func exitCode(err error, stderr io.Writer) int {
	if err == nil {
		return exitOK
	}
	if quiet, ok := errors.AsType[quietError](err); ok {
		return quiet.code
	}
	if bad, ok := errors.AsType[*config.Error](err); ok {
		fmt.Fprintf(stderr, "%s\n\nbotd: the configuration cannot be used: %s\n", bad.Problems, bad.Problems.Summary())
		return exitProblems
	}
	fmt.Fprintln(stderr, "botd:", neutral(err.Error(), "\n\t"))
	if p, ok := errors.AsType[*admin.Problem](err); ok && p.Status == http.StatusNotFound {
		return exitNotFound
	}
	if errors.Is(err, admin.ErrNoGateway) || errors.Is(err, errRuns) {
		return exitUnavailable
	}
	return exitFailure
}
