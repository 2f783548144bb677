// Command botd joins people on LINE and Discord to one shared agent engine that remembers.
//
// Exit codes: 0 success; 1 failure while running; 2 the configuration has problems; 64 wrong usage.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"botd/config"
)

// The exit codes.
const (
	exitOK       = 0
	exitFailure  = 1
	exitProblems = 2
	exitUsage    = 64
)

const description = `botd joins people on LINE and Discord to one shared agent engine that remembers.

Without --config, botd reads botd.yaml in the working directory if there is one, and else the environment alone.

Exit codes: 0 success, 1 failure while running, 2 the configuration has problems, 64 wrong usage.`

// commands are the command line: one line for each command, each in a file of its own.
func commands(p *process) *cobra.Command {
	root := &cobra.Command{
		Use: "botd", Long: wrap(description), RunE: help,
		SilenceErrors: true, SilenceUsage: true,
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	add(root, p, "run", "Run the gateway.", &runCmd{})
	add(root, p, "chat", "Talk to the bot in this terminal.", &chatCmd{})
	add(root, p, "demo", "Try the whole gateway in the browser, without any account.", &demoCmd{})
	add(root, p, "init", "Write a commented configuration to begin with.", &initCmd{})
	add(root, p, "check", "Check the configuration without going online.", &checkCmd{})
	show := group(root, "config", "Show the configuration, or an example of one.")
	add(show, p, "example", "Print a commented configuration that shows every key.", &configExampleCmd{})
	add(show, p, "schema", "Print the JSON Schema of the configuration, for editors.", &configSchemaCmd{})
	add(show, p, "show", "Print the configuration with defaults filled in and secrets hidden.", &configShowCmd{})
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
	fmt.Fprintln(stderr, "botd:", err)
	return exitFailure
}
