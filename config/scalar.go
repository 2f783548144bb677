package config

import (
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/goccy/go-yaml/ast"
)

var (
	secretType   = reflect.TypeFor[Secret]()
	durationType = reflect.TypeFor[time.Duration]()
	numberType   = reflect.TypeFor[*float64]()
)

// isScalar reports whether a value of type t is written as one YAML scalar.
func isScalar(t reflect.Type) bool {
	switch t {
	case secretType, durationType, numberType:
		return true
	}
	switch t.Kind() {
	case reflect.String, reflect.Bool, reflect.Int:
		return true
	}
	return false
}

// scalar decodes one scalar into v.
func (d *decoder) scalar(n ast.Node, path string, v reflect.Value, tag reflect.StructTag) {
	at := tokenMark(firstToken(n))
	if !isText(n) && !isPlain(n) {
		d.errorf(at, path, "write "+want(v.Type(), tag), "%s must be %s, not %s", describe(path), want(v.Type(), tag), kindOf(n))
		return
	}
	d.marks[path] = at
	text, expanded, ok := d.expand(scalarText(n), at, path)
	if !ok {
		return
	}
	if v.Type() == secretType {
		d.secret(n, at, path, text, expanded, v, tag)
		return
	}
	// A value of another type than text must not be quoted, unless it came out of a variable.
	typed := isPlain(n) || expanded
	if v.Kind() == reflect.String && isPlain(n) {
		switch n.(type) {
		case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
			d.errorf(at, path, `put it in quotes: "`+printable(text)+`"`, "%s must be text, not %s", describe(path), kindOf(n))
			return
		}
	}
	if err := parseScalar(text, typed, v); err != nil {
		d.errorf(at, path, "write "+want(v.Type(), tag), "%s must be %s, not %s", describe(path), want(v.Type(), tag), quote(text))
		return
	}
	if enum := tag.Get("enum"); enum != "" && !slices.Contains(strings.Split(enum, ","), v.String()) {
		d.wrongChoice(at, path, text, strings.Split(enum, ","))
		v.SetZero()
		return
	}
	d.checkRange(at, path, v, tag)
}

// wrongChoice reports a value that is none of the choices.
func (d *decoder) wrongChoice(at mark, path, text string, choices []string) {
	remedy := "use one of: " + strings.Join(choices, ", ")
	if near := nearest(text, choices); near != "" {
		remedy = fmt.Sprintf("did you mean %q? Choices: %s", near, strings.Join(choices, ", "))
	}
	d.errorf(at, path, remedy, "%s cannot be %s", describe(path), quote(text))
}

func (d *decoder) secret(n ast.Node, at mark, path, text string, expanded bool, v reflect.Value, tag reflect.StructTag) {
	key := path[strings.LastIndexByte(path, '.')+1:]
	if text == "" {
		d.errorf(at, path, fmt.Sprintf("set the variable to the secret, or use %s_file", key), "%s is empty", describe(path))
		return
	}
	v.Set(reflect.ValueOf(NewSecret(text)))
	if !expanded && isReadable(n) && (tag.Get("free") == "" || soundsSecret.MatchString(key)) {
		d.report(SeverityWarning, at, path, describe(path)+" stands in the file as plain text",
			fmt.Sprintf("use %s: ${VARIABLE} or %s_file: /path/to/file, so that the file can be shown around", key, key))
	}
	d.checkSecret(at, path, text, tag)
}

// checkSecret reports what cannot be part of any credential and usually is a slip of copying. A value that
// is free, as those of headers are, may be more than a credential.
func (d *decoder) checkSecret(at mark, path, text string, tag reflect.StructTag) {
	if name := bareVariable.FindStringSubmatch(text); name != nil {
		d.errorf(at, path, "write ${"+name[1]+"} with braces", "%s looks like a variable but is not replaced", describe(path))
		return
	}
	if tag.Get("free") != "" {
		if strings.ContainsFunc(text, unicode.IsControl) {
			d.errorf(at, path, "write it on one line", "%s contains line breaks or other control characters", describe(path))
		}
		return
	}
	bad := strings.ContainsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) || r > unicode.MaxASCII })
	if bad {
		d.errorf(at, path, "copy the secret again, without quotes, spaces, line breaks or a word such as Bot in front",
			"%s contains white space or other characters that no such secret has", describe(path))
	}
}

// isReadable reports whether the node is written in the file, as everything but an empty value is.
func isReadable(n ast.Node) bool {
	_, null := n.(*ast.NullNode)
	return !null
}

// parseScalar sets v from text. typed allows types other than text.
func parseScalar(text string, typed bool, v reflect.Value) error {
	if v.Kind() == reflect.String {
		v.SetString(text)
		return nil
	}
	if !typed && v.Type() != durationType {
		return strconv.ErrSyntax
	}
	switch {
	case v.Type() == durationType:
		dur, err := time.ParseDuration(text)
		if err != nil || text == "0" {
			return strconv.ErrSyntax
		}
		v.SetInt(int64(dur))
	case v.Type() == numberType:
		f, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
			return strconv.ErrSyntax
		}
		v.Set(reflect.ValueOf(&f))
	case v.Kind() == reflect.Bool:
		if text != "true" && text != "false" {
			return strconv.ErrSyntax
		}
		v.SetBool(text == "true")
	case v.Kind() == reflect.Int:
		i, err := strconv.Atoi(strings.ReplaceAll(text, "_", ""))
		if err != nil {
			return err
		}
		v.SetInt(int64(i))
	}
	return nil
}

func (d *decoder) setDefault(v reflect.Value, text string) {
	if err := parseScalar(text, true, v); err != nil {
		panic("config: default " + text + " for " + v.Type().String())
	}
}

// checkRange reports a number outside of the field's min and max.
func (d *decoder) checkRange(at mark, path string, v reflect.Value, tag reflect.StructTag) {
	low, high := tag.Get("min"), tag.Get("max")
	if low == "" {
		return
	}
	lowV, highV := reflect.New(v.Type()).Elem(), reflect.New(v.Type()).Elem()
	d.setDefault(lowV, low)
	d.setDefault(highV, high)
	if number(v) < number(lowV) || number(v) > number(highV) {
		d.errorf(at, path, fmt.Sprintf("use a value from %s to %s", low, high), "%s is out of range", describe(path))
	}
}

func number(v reflect.Value) float64 {
	if v.Kind() == reflect.Pointer {
		return v.Elem().Float()
	}
	return float64(v.Int())
}

// want says in words what a field takes.
func want(t reflect.Type, tag reflect.StructTag) string {
	switch {
	case tag.Get("enum") != "":
		return "one of " + strings.ReplaceAll(tag.Get("enum"), ",", ", ")
	case t == secretType, t.Kind() == reflect.String:
		return "text"
	case t == durationType:
		return "a duration with a unit, such as 500ms, 20s or 3m"
	case t == numberType:
		return "a number"
	case t.Kind() == reflect.Bool:
		return "true or false"
	default:
		return "a whole number"
	}
}

// isText reports whether n is quoted text or a block.
func isText(n ast.Node) bool {
	switch t := n.(type) {
	case *ast.LiteralNode:
		return true
	case *ast.StringNode:
		return t.Token.Type.String() == "DoubleQuote" || t.Token.Type.String() == "SingleQuote"
	}
	return false
}

// isPlain reports whether n is a scalar without quotes.
func isPlain(n ast.Node) bool {
	switch n.(type) {
	case *ast.StringNode, *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return !isText(n)
	}
	return false
}

// scalarText returns the text of a scalar as it is written, without quotes.
func scalarText(n ast.Node) string {
	switch t := n.(type) {
	case nil:
		return ""
	case *ast.LiteralNode:
		return t.Value.Value
	case *ast.StringNode:
		return t.Value
	default:
		return strings.TrimSpace(n.GetToken().Value)
	}
}

func kindOf(n ast.Node) string {
	switch n.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		return "a section"
	case *ast.SequenceNode:
		return "a list"
	case *ast.NullNode:
		return "nothing"
	case *ast.BoolNode:
		return "true or false"
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		return "a number"
	default:
		return "text"
	}
}

// quote shows a value in a message; long or opaque ones, which may be secrets, are masked.
func quote(text string) string {
	if r := []rune(text); len(r) > 40 {
		text = string(r[:40]) + "…"
	}
	return strconv.Quote(maskLine(text))
}

var variable = regexp.MustCompile(`\$\$|\$\{([^}]*)\}?|\$`)

// expand replaces ${NAME} and $$. used reports that a variable was part of the text; ok is false when a
// problem was reported.
func (d *decoder) expand(text string, at mark, path string) (_ string, used, ok bool) {
	if !strings.Contains(text, "$") {
		return text, false, true
	}
	ok = true
	text = variable.ReplaceAllStringFunc(text, func(m string) string {
		switch {
		case m == "$$", m == "$":
			return "$"
		case !strings.HasSuffix(m, "}"):
			ok = false
			d.errorf(at, path, "write ${NAME}, or $${ for the characters themselves", "%s has ${ without }", describe(path))
			return m
		}
		name := m[2 : len(m)-1]
		if !variableName.MatchString(name) {
			ok = false
			d.errorf(at, path, "write ${NAME} with letters, digits and _; $${ stands for the characters themselves", "%s has ${…} without a usable name in it", describe(path))
			return m
		}
		value, set := d.lookup(name)
		if !set {
			ok = false
			d.errorf(at, path, "set it in the environment of the program, or write $${"+name+"} if you mean the characters", "the environment variable %s is not set", name)
			return m
		}
		used = true
		return value
	})
	return text, used, ok
}

// expandQuietly is expand without problems: variables that are not set are nothing.
func (d *decoder) expandQuietly(text string) string {
	return variable.ReplaceAllStringFunc(text, func(m string) string {
		value, _ := d.lookup(strings.TrimSuffix(strings.TrimPrefix(m, "${"), "}"))
		return value
	})
}

// bareVariable matches what a shell would replace and this program does not.
var bareVariable = regexp.MustCompile(`^\$([A-Za-z_][A-Za-z0-9_]*)$`)

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)
