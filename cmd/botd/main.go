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

	"github.com/alecthomas/kong"

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
type commands struct {
	Run         runCmd         `cmd:"" help:"Run the gateway."`
	Check       checkCmd       `cmd:"" help:"Check the configuration without going online."`
	Config      configCmd      `cmd:"" help:"Show the configuration, or an example of one."`
	Healthcheck healthcheckCmd `cmd:"" help:"Ask a running gateway how it is, for container health checks."`
	Version     versionCmd     `cmd:"" help:"Print version and build."`
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
	code := -1
	parser, err := kong.New(&commands{},
		kong.Name("botd"), kong.Description(description), kong.UsageOnError(),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true}),
		kong.Writers(p.stdout, p.stderr),
		kong.Exit(func(c int) { code = c }), // after help was shown
	)
	if err != nil {
		fmt.Fprintln(p.stderr, "botd:", err)
		return exitFailure
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	command, err := parser.Parse(args)
	if code >= 0 {
		return code
	}
	if err != nil {
		fmt.Fprintf(p.stderr, "botd: %v\n\nRun \"botd --help\" for the commands.\n", err)
		return exitUsage
	}
	return exitCode(command.Run(p), p.stderr)
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
