package config_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"botd/config"
)

var update = flag.Bool("update", false, "rewrite golden files")

// planted are the secrets in testdata; none may ever be shown.
var planted = []string{"sk-planted", "planted-", "0123456789abcdef", "hunter2", "user:pass"}

func lookup(vars map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) { v, ok := vars[name]; return v, ok }
}

func parseEnv(text []byte) map[string]string {
	vars := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(strings.TrimRight(line, "\n"), "="); ok {
			vars[name] = value
		}
	}
	return vars
}

// TestProblems holds the words of every problem to testdata/problems/*.txtar.
func TestProblems(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/problems/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no test cases", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			var vars map[string]string
			var want *txtar.File
			for i, f := range archive.Files {
				switch f.Name {
				case "env":
					vars = parseEnv(f.Data)
				case "want":
					want = &archive.Files[i]
				default:
					path := filepath.Join(dir, f.Name)
					if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
						t.Fatal(err)
					}
					if err := os.WriteFile(path, f.Data, 0o600); err != nil {
						t.Fatal(err)
					}
				}
			}
			_, problems := config.Load(filepath.Join(dir, "botd.yaml"), config.Options{
				LookupEnv: lookup(vars), Stores: []string{"bbolt", "memory"}, Tools: []string{"clock", "dice"},
			})
			got := strings.ReplaceAll(problems.String()+"\n\n"+problems.Summary()+"\n", dir+string(filepath.Separator), "")
			for _, secret := range planted {
				if strings.Contains(got, secret) {
					t.Errorf("the planted secret %q is shown", secret)
				}
			}
			if *update {
				want.Data = []byte(got)
				if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(string(want.Data), got); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
			for i, p := range problems {
				if p.Remedy == "" {
					t.Errorf("problem %d has no remedy: %s", i, p.Message)
				}
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	files, err := filepath.Glob("testdata/problems/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for _, part := range archive.Files {
			if part.Name == "botd.yaml" {
				f.Add(part.Data)
			}
		}
	}
	f.Add([]byte("a: &a [*a]\n"))
	f.Add([]byte("agents: {a: {models: [${X}]}}"))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte) {
		cfg, problems := config.Parse(filepath.Join(dir, "botd.yaml"), data, config.Options{
			LookupEnv: func(string) (string, bool) { return "from-the-environment", true },
		})
		for _, p := range problems {
			if p.Message == "" || p.Remedy == "" {
				t.Errorf("problem without message or remedy: %+v", p)
			}
			if p.Line < 0 || p.Line > bytes.Count(data, []byte("\n"))+1 {
				t.Errorf("problem outside of the file: line %d", p.Line)
			}
			_ = p.String()
		}
		if problems.Err() != nil {
			return
		}
		if len(cfg.Agents) == 0 || cfg.Store == "" || cfg.Limits.MaxConcurrentTurns < 1 {
			t.Errorf("accepted, but not usable: %+v", cfg)
		}
		for name, ch := range cfg.Channels {
			if _, ok := cfg.Agents[ch.Agent]; !ok {
				t.Errorf("channel %s has the unknown agent %q", name, ch.Agent)
			}
		}
	})
}
