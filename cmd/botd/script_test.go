package main

import (
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

var update = flag.Bool("update", false, "rewrite the expected output in testdata/script")

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"botd": main})
}

// TestScripts runs botd as a process; see testdata/script. Beside testscript's own commands there are:
//
//	code N COMMAND…     run a command that must exit with code N
//	freeport NAME       set the variable NAME to a free port
//	serving URL         wait until a GET of URL gives 200
//	signal NAME         send HUP or TERM to the process begun last in the background
//
// and those of adminCommands.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:           "testdata/script",
		UpdateScripts: *update,
		Setup: func(e *testscript.Env) error {
			e.Setenv("BOTD_LOG_FORMAT", "") // counts as unset
			return nil
		},
		Cmds: adminCommands(map[string]func(*testscript.TestScript, bool, []string){
			"code":     code,
			"freeport": freePort,
			"serving":  serving,
			"signal":   signalLast,
		}),
	})
}

func signalLast(ts *testscript.TestScript, neg bool, args []string) {
	signals := map[string]os.Signal{"HUP": syscall.SIGHUP, "TERM": syscall.SIGTERM}
	processes := ts.BackgroundCmds()
	if neg || len(args) != 1 || signals[args[0]] == nil || len(processes) == 0 {
		ts.Fatalf("usage: signal HUP|TERM, with a process in the background")
	}
	ts.Check(processes[len(processes)-1].Process.Signal(signals[args[0]]))
}

func code(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N command...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d\nstdout:\n%s\nstderr:\n%s", got, want, ts.ReadFile("stdout"), ts.ReadFile("stderr"))
	}
}

func freePort(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: freeport NAME")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	defer l.Close()
	ts.Setenv(args[0], strconv.Itoa(l.Addr().(*net.TCPAddr).Port))
}

func serving(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: serving URL")
	}
	var last error
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		res, err := http.Get(args[0])
		if err != nil {
			last = err
			continue
		}
		res.Body.Close()
		if res.StatusCode == http.StatusOK {
			return
		}
		last = fmt.Errorf("status %d", res.StatusCode)
	}
	ts.Fatalf("%s does not serve: %v", args[0], last)
}
