package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// maxFileSize bounds the configuration file and each secret file, in bytes.
const maxFileSize = 1 << 20

// Options say what a configuration may refer to.
type Options struct {
	// LookupEnv looks up an environment variable; os.LookupEnv when nil.
	LookupEnv func(name string) (string, bool)
	// Stores are the URL schemes of the stores that can be opened; nil: not checked.
	Stores []string
	// Tools are the names of the tools that exist, beside those of MCP servers; nil: not checked.
	Tools []string
}

// Load reads the configuration from the file at path, or from the environment when path is empty (see
// FromEnv). The Config is usable only if Problems.Err is nil.
func Load(path string, o Options) (*Config, Problems) {
	if path == "" {
		return FromEnv(o)
	}
	data, err := readFile(path)
	if err != nil {
		remedy := "check the path given with --config"
		if errors.Is(err, errNotExist) {
			remedy = "check the path given with --config, or write a first file with: botd init --config " + path
		}
		return nil, Problems{{Severity: SeverityError, File: path, Message: err.Error(), Remedy: remedy}}
	}
	return Parse(path, data, o)
}

// Parse reads the configuration from data; file is its name in problems, and relative secret files are
// found beside it.
func Parse(file string, data []byte, o Options) (*Config, Problems) {
	if o.LookupEnv == nil {
		o.LookupEnv = os.LookupEnv
	}
	d := &decoder{
		src:    newSource(file, data),
		dir:    filepath.Dir(file),
		lookup: o.LookupEnv,
		marks:  map[string]mark{},
	}
	cfg := &Config{}
	root, ok := d.parse(data)
	if ok {
		d.decode(root, "", cfg)
		v := validator{decoder: d, cfg: cfg, opts: o}
		v.validate()
	}
	d.problems.sort()
	return cfg, d.problems
}

var errNotExist = errors.New("the file does not exist")

// readFile reads a file of at most maxFileSize bytes. Its errors name what is wrong but not the path.
func readFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, errNotExist
	case err != nil:
		return nil, withoutPath(err)
	case !info.Mode().IsRegular():
		return nil, errors.New("not a regular file")
	case info.Size() > maxFileSize:
		return nil, fmt.Errorf("the file is larger than %d bytes", maxFileSize)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, withoutPath(err)
	}
	return data, nil
}

func withoutPath(err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return fmt.Errorf("cannot %s the file: %w", pe.Op, pe.Err)
	}
	return err
}

// parse turns the text into one tree.
func (d *decoder) parse(data []byte) (root ast.Node, ok bool) {
	if d.tabs() {
		return nil, false
	}
	file, err := parser.ParseBytes(data, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		d.syntaxError(err)
		return nil, false
	}
	var bodies []ast.Node
	for _, doc := range file.Docs {
		if doc.Body != nil {
			bodies = append(bodies, doc.Body)
		}
	}
	if len(bodies) == 0 {
		d.problems = append(d.problems, Problem{
			Severity: SeverityError, File: d.src.file, Message: "the file is empty",
			Remedy: "start from the example: botd config example",
		})
		return nil, false
	}
	for _, extra := range bodies[1:] {
		d.report(SeverityError, tokenMark(firstToken(extra)), "", "a second YAML document begins here",
			"keep one document in the file: remove the line --- above, and what does not belong")
	}
	return bodies[0], true
}

// tabs reports every line that is indented by a tab, which YAML forbids.
func (d *decoder) tabs() (found bool) {
	block := -1 // indentation of the key whose block scalar is being passed
	for i, line := range d.src.lines {
		trimmed := strings.TrimLeft(line, " \t")
		indent := line[:len(line)-len(trimmed)]
		if trimmed == "" {
			continue
		}
		if block >= 0 {
			if len(indent) > block {
				continue
			}
			block = -1
		}
		if at := strings.IndexByte(indent, '\t'); at >= 0 && trimmed[0] != '#' {
			found = true
			d.report(SeverityError, mark{line: i + 1, column: at + 1}, "", "a tab is used for indentation",
				"indent with spaces")
		}
		if strings.HasSuffix(strings.TrimRight(line, " +-0123456789"), "|") || strings.HasSuffix(strings.TrimRight(line, " +-0123456789"), ">") {
			block = len(indent)
		}
	}
	return found
}

func (d *decoder) syntaxError(err error) {
	se, ok := errors.AsType[*yaml.SyntaxError](err)
	if !ok || se.Token == nil || se.Token.Position == nil {
		d.problems = append(d.problems, Problem{
			Severity: SeverityError, File: d.src.file, Message: "not valid YAML",
			Remedy: "compare the file with the example: botd config example",
		})
		return
	}
	at := tokenMark(se.Token)
	remedy := "check the quotes, brackets and indentation on this line and the one above"
	for n := max(1, at.line-1); n <= min(at.line, len(d.src.lines)); n++ {
		if line := d.src.lines[n-1]; strings.Contains(line, "${") && strings.ContainsAny(line[:strings.Index(line, "${")], "{[") {
			remedy = `inside { } or [ ] a variable must be quoted: "${NAME}"`
		}
	}
	if at.line >= 1 && at.line <= len(d.src.lines) {
		switch line := d.src.lines[at.line-1]; {
		case memoryUnquoted.MatchString(line):
			d.report(SeverityError, at, "store", "a value that ends with a colon needs quotes", `write store: "memory:"`)
			return
		case colonInValue.MatchString(line):
			remedy = "put the value in quotes, if it is text: a colon before a space or at the end of a line begins a section"
		}
	}
	d.report(SeverityError, at, "", "not valid YAML: "+plainSyntaxMessage(se.Message), remedy)
}

var (
	// memoryUnquoted matches the store that is most easily written wrong.
	memoryUnquoted = regexp.MustCompile(`^store:\s+memory:\s*(#.*)?$`)
	// colonInValue matches a key whose plain value holds what YAML takes for another key.
	colonInValue = regexp.MustCompile(`^\s*(- +)?[\w.-]+:\s+[^\s"'{\[|>&*#][^#]*:(\s|$)`)
)

// plainSyntaxMessage drops what the parser may quote from the file, which could be part of a secret.
func plainSyntaxMessage(s string) string {
	if i := strings.IndexAny(s, "\n\"`"); i >= 0 {
		s = s[:i]
	}
	return strings.TrimRight(printable(strings.ReplaceAll(s, "\t", "tab")), ": ")
}
