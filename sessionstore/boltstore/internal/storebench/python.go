package main

import (
	"bufio"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"time"
)

//go:embed workload.py
var workloadPy string

// python is a Python program that runs turns of the reference workload on a SQLite file of its own.
type python struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

func startPython(interpreter, file string, threads int) (*python, error) {
	p := &python{cmd: exec.CommandContext(ctx, interpreter, "-c", workloadPy, file, strconv.Itoa(threads),
		string(turnItems[0].Raw), string(turnItems[1].Raw))}
	p.cmd.Stderr = os.Stderr
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = bufio.NewScanner(out)
	return p, p.cmd.Start()
}

// turns runs turns and returns what they took by Python's own clock.
func (p *python) turns(first, n int) (time.Duration, error) {
	if _, err := fmt.Fprintln(p.in, first, n); err != nil {
		return 0, err
	}
	if !p.out.Scan() {
		return 0, fmt.Errorf("python3 gave no answer: %w", errors.Join(p.out.Err(), io.ErrUnexpectedEOF))
	}
	seconds, err := strconv.ParseFloat(p.out.Text(), 64)
	return time.Duration(seconds * float64(time.Second)), err
}

func (p *python) Close() error { return errors.Join(p.in.Close(), p.cmd.Wait()) }
