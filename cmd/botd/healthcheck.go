package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// healthcheckCmd asks a running gateway how it is.
type healthcheckCmd struct {
	configFlag
	Live    bool          `help:"Ask only whether the process answers (/healthz), not whether it is ready (/readyz)."`
	URL     string        `placeholder:"URL" help:"The address of the gateway; by default that of server.listen on this machine."`
	Timeout time.Duration `default:"3s" help:"How long to wait for the answer."`
}

// Help is the long help.
func (healthcheckCmd) Help() string {
	return `Exit code 0: ready, or degraded, which means that some channel or MCP server does not work while others do: a restart would only take these away too. Exit code 1: starting, draining, failed, or no answer. The configuration is read only to find the listener.`
}

// Run is called by the command line.
func (c healthcheckCmd) Run(p *process) error {
	base := c.URL
	if base == "" {
		cfg, problems := c.load()
		if cfg == nil || cfg.Server.Listen == "" {
			return problems.Err()
		}
		var err error
		if base, err = localURL(cfg.Server.Listen); err != nil {
			return err
		}
	}
	path := "/readyz"
	if c.Live {
		path = "/healthz"
	}
	ctx, cancel := context.WithTimeout(p.ctx, c.Timeout)
	defer cancel()
	status, body, err := get(ctx, base+path)
	if err != nil {
		return fmt.Errorf("the gateway does not answer: %w", err)
	}
	fmt.Fprint(p.stdout, body)
	if status != http.StatusOK {
		return quietError{exitFailure}
	}
	return nil
}

// localURL returns the address by which this machine reaches the listener.
func localURL(listen string) (string, error) {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return "", fmt.Errorf("server.listen: %w", err)
	}
	if port == "0" {
		return "", errors.New("server.listen leaves the port to the system: give --url")
	}
	switch ip := net.ParseIP(host); {
	case host == "" || ip != nil && ip.IsUnspecified() && ip.To4() != nil:
		host = "127.0.0.1"
	case ip != nil && ip.IsUnspecified():
		host = "::1"
	}
	return "http://" + net.JoinHostPort(host, port), nil
}

// maxAnswer bounds the answer that is read, in bytes.
const maxAnswer = 64 << 10

func get(ctx context.Context, url string) (status int, body string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, "", err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return 0, "", fmt.Errorf("read answer: %w", err)
	}
	return res.StatusCode, string(text), nil
}
