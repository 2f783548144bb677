package main

import (
	"fmt"
	"os"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// command is one command. Its exported fields are its flags: the tag help describes one; short, env,
// default and placeholder mean what they say; name replaces the field's name in lower case.
type command interface {
	Run(p *process) error
}

// helper is a command with a long help.
type helper interface{ Help() string }

// arguments is a command that takes arguments, not only flags.
type arguments interface {
	// arguments tells how help shows them, how many there may be, and takes those given.
	arguments() (usage string, count cobra.PositionalArgs, take func([]string))
}

// runError is an error of a command that was well understood, unlike wrong usage.
type runError struct{ error }

func (e runError) Unwrap() error { return e.error }

// add adds a command to its parent.
func add(parent *cobra.Command, p *process, name, short string, c command) {
	cmd := &cobra.Command{
		Use: name, Short: short, Long: short, Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if err := c.Run(p); err != nil {
				return runError{err}
			}
			return nil
		},
	}
	if a, ok := c.(arguments); ok {
		usage, count, take := a.arguments()
		cmd.Use += " " + usage
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			if err := count(cmd, args); err != nil {
				return fmt.Errorf("%s: %w", cmd.CommandPath(), err)
			}
			take(args)
			return nil
		}
	}
	if h, ok := c.(helper); ok {
		cmd.Long = short + "\n\n" + wrap(h.Help())
	}
	bind(cmd.Flags(), reflect.ValueOf(c).Elem())
	parent.AddCommand(cmd)
}

// group adds a command that only has further commands.
func group(parent *cobra.Command, name, short string) *cobra.Command {
	cmd := &cobra.Command{Use: name, Short: short, Long: short, Args: cobra.NoArgs, RunE: help}
	parent.AddCommand(cmd)
	return cmd
}

func help(cmd *cobra.Command, _ []string) error { return cmd.Help() }

// bind makes a flag of each exported field of v.
func bind(flags *pflag.FlagSet, v reflect.Value) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if f.Anonymous {
			bind(flags, v.Field(i))
			continue
		}
		if !f.IsExported() {
			continue
		}
		name := f.Tag.Get("name")
		if name == "" {
			name = strings.ToLower(f.Name)
		}
		usage, value := f.Tag.Get("help"), f.Tag.Get("default")
		if env := f.Tag.Get("env"); env != "" {
			usage = fmt.Sprintf("%s ($%s)", strings.TrimSuffix(usage, "."), env)
			if set := os.Getenv(env); set != "" {
				value = set
			}
		}
		short := f.Tag.Get("short")
		switch target := v.Field(i).Addr().Interface().(type) {
		case *string:
			flags.StringVarP(target, name, short, value, usage)
		case *bool:
			flags.BoolVarP(target, name, short, value == "true", usage)
		case *int:
			n, err := strconv.Atoi(value)
			if err != nil {
				panic("flag " + name + ": " + err.Error())
			}
			flags.IntVarP(target, name, short, n, usage)
		case *time.Duration:
			d, err := time.ParseDuration(value)
			if err != nil {
				panic("flag " + name + ": " + err.Error())
			}
			flags.DurationVarP(target, name, short, d, usage)
		default:
			panic("flag " + name + " has the unsupported type " + f.Type.String())
		}
		if placeholder := f.Tag.Get("placeholder"); placeholder != "" {
			flag := flags.Lookup(name)
			flag.Value = placeheld{flag.Value, placeholder}
		}
	}
}

// placeheld is a flag's value that help shows as a placeholder instead of its type.
type placeheld struct {
	pflag.Value
	placeholder string
}

func (v placeheld) Type() string { return v.placeholder }

// helpWidth is how wide help is, in characters.
const helpWidth = 80

// wrap breaks the lines of a text at helpWidth.
func wrap(text string) string {
	var lines []string
	for paragraph := range strings.SplitSeq(text, "\n") {
		line := ""
		for word := range strings.FieldsSeq(paragraph) {
			if line != "" && len(line)+1+len(word) > helpWidth {
				lines, line = append(lines, line), ""
			}
			if line != "" {
				line += " "
			}
			line += word
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}
