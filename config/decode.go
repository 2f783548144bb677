package config

import (
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// mark is a place in the file, counted from 1; the zero mark is no place.
type mark struct{ line, column int }

func tokenMark(t *token.Token) mark {
	if t == nil || t.Position == nil {
		return mark{}
	}
	return mark{t.Position.Line, t.Position.Column}
}

// decoder fills structs from a YAML tree and collects what is wrong.
type decoder struct {
	src      source
	dir      string
	lookup   func(string) (string, bool)
	problems Problems
	// marks are the places of the values found, by path.
	marks map[string]mark
	// anchors are the nodes that aliases refer to; expanding holds those being followed.
	anchors   map[string]ast.Node
	expanding []string
	// repeated are the keys of sections given twice, below the one where that was reported.
	repeated map[*ast.MappingValueNode]bool
}

func (d *decoder) report(s Severity, at mark, path, message, remedy string) {
	d.problems = append(d.problems, Problem{
		Severity: s, File: d.src.file, Line: at.line, Column: at.column, Path: path,
		Message: message, Remedy: remedy, Snippet: d.src.snippet(at.line, at.column),
	})
}

func (d *decoder) errorf(at mark, path, remedy, format string, args ...any) {
	d.report(SeverityError, at, path, fmt.Sprintf(format, args...), remedy)
}

// where returns the place of path, or of the nearest section around it.
func (d *decoder) where(path string) mark {
	for {
		if m, ok := d.marks[path]; ok || path == "" {
			return m
		}
		path = path[:max(0, strings.LastIndexAny(path, ".["))]
	}
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// decode fills the struct that into points to.
func (d *decoder) decode(root ast.Node, path string, into any) {
	d.anchors = map[string]ast.Node{}
	for _, n := range ast.Filter(ast.AnchorType, root) {
		if a, ok := n.(*ast.AnchorNode); ok {
			d.anchors[a.Name.String()] = a.Value
		}
	}
	d.value(root, path, reflect.ValueOf(into).Elem(), "")
}

// value decodes one node into v; tag is the field's.
func (d *decoder) value(n ast.Node, path string, v reflect.Value, tag reflect.StructTag) {
	n, done, ok := d.resolve(n, path)
	defer done()
	if !ok {
		return
	}
	switch {
	case isScalar(v.Type()):
		d.scalar(n, path, v, tag)
	case v.Kind() == reflect.Struct:
		if entries, ok := d.mapping(n, path); ok {
			d.structure(entries, path, v)
		}
	case v.Kind() == reflect.Map:
		if entries, ok := d.mapping(n, path); ok {
			d.named(entries, path, v, tag)
		}
	case v.Kind() == reflect.Slice:
		d.list(n, path, v, tag)
	default:
		panic("config: no decoding for " + v.Type().String())
	}
}

// resolve follows anchors, aliases and tags to the node that holds the value; done ends the following.
func (d *decoder) resolve(n ast.Node, path string) (_ ast.Node, done func(), ok bool) {
	depth := len(d.expanding)
	done = func() { d.expanding = d.expanding[:depth] }
	for {
		switch t := n.(type) {
		case *ast.AnchorNode:
			n = t.Value
		case *ast.AliasNode:
			name := t.Value.String()
			target, known := d.anchors[name]
			at := tokenMark(t.GetToken())
			if !known {
				d.errorf(at, path, "define it with &"+printable(name)+" or write the value here", "the alias refers to an anchor that does not exist")
				return nil, done, false
			}
			if slices.Contains(d.expanding, name) {
				d.errorf(at, path, "write the value here", "the alias contains itself")
				return nil, done, false
			}
			d.expanding = append(d.expanding, name)
			n = target
		case *ast.TagNode:
			d.errorf(tokenMark(t.GetToken()), path, "remove the tag", "YAML tags are not supported")
			return nil, done, false
		case nil:
			return nil, done, false
		default:
			return n, done, true
		}
	}
}

func (d *decoder) list(n ast.Node, path string, v reflect.Value, tag reflect.StructTag) {
	seq, ok := n.(*ast.SequenceNode)
	if !ok {
		d.errorf(tokenMark(firstToken(n)), path, "write it as [one, two], or one entry a line after a dash", "%s must be a list, not %s", describe(path), kindOf(n))
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(seq.Values), len(seq.Values)))
	for i, item := range seq.Values {
		at := fmt.Sprintf("%s[%d]", path, i)
		d.marks[at] = tokenMark(firstToken(item))
		d.value(item, at, v.Index(i), tag)
	}
}

// field is a key that a section knows.
type field struct {
	key   string
	value reflect.Value
	tag   reflect.StructTag
	// file reports that the field can be read from a file named by key_file.
	file bool
}

// structure decodes a section.
func (d *decoder) structure(entries []entry, path string, v reflect.Value) {
	values := map[string]entry{}
	for _, e := range entries {
		if e.again {
			continue
		}
		values[e.key] = e
		if _, ok := d.marks[join(path, e.key)]; !ok {
			d.marks[join(path, e.key)] = e.at
		}
	}
	fields, elsewhere := d.fields(values, path, v)
	known := map[string]bool{}
	for _, f := range fields {
		known[f.key] = true
		if f.file {
			known[f.key+"_file"] = true
		}
		d.field(f, values, path)
		for _, e := range entries {
			if e.again && (e.key == f.key || f.file && e.key == f.key+"_file") {
				again := f
				again.value = reflect.New(f.value.Type()).Elem()
				d.probe(func() { d.field(again, map[string]entry{e.key: e}, path) })
			}
		}
	}
	for _, e := range entries {
		if known[e.key] || e.again {
			continue
		}
		at := join(path, e.key)
		if kind, ok := elsewhere[e.key]; ok {
			if kind == "" {
				continue // that there is no usable type is the problem
			}
			d.errorf(e.at, at, "remove it, or change the type", "key %q is only for type %s", e.key, kind)
			continue
		}
		keys := slices.Sorted(maps.Keys(known))
		remedy := "known keys here: " + strings.Join(keys, ", ")
		if near := nearest(e.key, keys); near != "" {
			remedy = fmt.Sprintf("did you mean %q?", near)
		}
		d.errorf(e.at, at, remedy, "unknown key %q %s", printable(e.key), within(path))
	}
}

// fields lists the keys of a section: its own, and those of the part that its type chooses. elsewhere
// names the types of the keys of the other parts, or nothing when it is not known what the type is to be.
func (d *decoder) fields(values map[string]entry, path string, v reflect.Value) (fields []field, elsewhere map[string]string) {
	elsewhere = map[string]string{}
	kind := ""
	for i := range v.NumField() {
		sf, fv := v.Type().Field(i), v.Field(i)
		if when := sf.Tag.Get("when"); when != "" {
			part := reflect.New(sf.Type.Elem())
			inner, _ := d.fields(values, path, part.Elem())
			if when == kind {
				fv.Set(part)
				fields = append(fields, inner...)
				continue
			}
			for _, f := range inner {
				if kind == "" {
					when = ""
				}
				elsewhere[f.key] = when
				if f.file {
					elsewhere[f.key+"_file"] = when
				}
			}
			continue
		}
		f := field{key: sf.Tag.Get("yaml"), value: fv, tag: sf.Tag}
		f.file = fv.Type() == secretType || sf.Tag.Get("file") != ""
		fields = append(fields, f)
		if f.key == "type" {
			kind = sf.Tag.Get("default")
			if e, ok := values["type"]; ok {
				kind = d.expandQuietly(scalarText(e.value)) // what is wrong with it is told by the field itself
			}
			if !slices.Contains(strings.Split(sf.Tag.Get("enum"), ","), kind) {
				kind = ""
			}
		}
	}
	for _, f := range fields {
		delete(elsewhere, f.key)
		delete(elsewhere, f.key+"_file")
	}
	return fields, elsewhere
}

// field decodes one key, or its file, or sets its default.
func (d *decoder) field(f field, values map[string]entry, path string) {
	at := join(path, f.key)
	given, ok := values[f.key]
	fileKey := f.key + "_file"
	if other, both := values[f.tag.Get("instead")]; both && (ok || hasKey(values, fileKey)) {
		d.errorf(other.at, join(path, other.key), "keep one of the two", "both %s and %s are given", f.key, other.key)
	}
	if fileEntry, fileOK := values[fileKey]; f.file && fileOK {
		if ok {
			d.errorf(fileEntry.at, at, "keep one of the two", "both %s and %s are given", f.key, fileKey)
			other := f
			other.value = reflect.New(f.value.Type()).Elem()
			d.probe(func() { d.field(other, map[string]entry{f.key: given}, path) })
		}
		d.marks[at] = fileEntry.at
		d.fromFile(fileEntry, join(path, fileKey), f)
		return
	}
	if ok {
		_, null := given.value.(*ast.NullNode)
		section := f.value.Kind() == reflect.Map || f.value.Kind() == reflect.Struct && !isScalar(f.value.Type())
		if !null || section {
			d.value(given.value, at, f.value, f.tag)
			return
		}
		if f.tag.Get("required") == "" {
			d.errorf(given.at, at, "write a value, or remove the key", "%s has no value", describe(at))
			return
		}
	}
	if other := f.tag.Get("instead"); other != "" {
		if _, ok := values[other]; ok {
			return
		}
	}
	if f.tag.Get("required") != "" {
		remedy := "add " + f.key + ": " + f.tag.Get("required")
		switch {
		case f.tag.Get("enum") != "":
			remedy = "add " + f.key + ": with one of: " + strings.ReplaceAll(f.tag.Get("enum"), ",", ", ")
		case f.value.Type() == secretType:
			remedy = fmt.Sprintf("add %s: ${VARIABLE} or %s: /path/to/file", f.key, fileKey)
		}
		if other := f.tag.Get("instead"); other != "" {
			remedy += ", or " + other + " in its place"
		}
		d.errorf(d.where(at), at, remedy, "%s is missing", describe(at))
		return
	}
	if isScalar(f.value.Type()) {
		if def := f.tag.Get("default"); def != "" {
			d.setDefault(f.value, def)
		}
		return
	}
	if f.value.Kind() == reflect.Struct {
		d.structure(nil, at, f.value) // for the defaults inside
	}
}

func hasKey(values map[string]entry, key string) bool {
	_, ok := values[key]
	return ok
}

// fromFile reads a value from the file that the entry names.
func (d *decoder) fromFile(e entry, path string, f field) {
	var name string
	before := len(d.problems)
	d.value(e.value, path, reflect.ValueOf(&name).Elem(), "")
	if len(d.problems) > before {
		return
	}
	if name == "" {
		d.errorf(e.at, path, "write the path of a file", "%s has no value", describe(path))
		return
	}
	if !filepath.IsAbs(name) {
		name = filepath.Join(d.dir, name)
	}
	data, err := readFile(name)
	if err != nil {
		d.errorf(e.at, path, "check the path and that this user may read the file (a relative path starts at the configuration file's folder)",
			"%s: %s: %v", describe(path), printable(name), err)
		return
	}
	text := strings.TrimRight(string(data), " \t\r\n")
	if text == "" {
		d.errorf(e.at, path, "write the value into the file", "%s: %s is empty", describe(path), printable(name))
		return
	}
	if f.value.Type() == secretType {
		f.value.Set(reflect.ValueOf(NewSecret(text)))
		d.checkSecret(e.at, path, text, f.tag)
		return
	}
	f.value.SetString(text)
}

// describe names a path in messages.
func describe(path string) string {
	if path == "" {
		return "the top level"
	}
	return printable(path)
}

// within names a section in messages about its keys.
func within(path string) string {
	if path == "" {
		return "at the top level"
	}
	return "in " + printable(path)
}

// firstToken returns the token where a node begins.
func firstToken(n ast.Node) *token.Token {
	switch t := n.(type) {
	case *ast.MappingNode:
		if !t.IsFlowStyle && len(t.Values) > 0 {
			return firstToken(t.Values[0])
		}
	case *ast.MappingValueNode:
		return t.Key.GetToken()
	case nil:
		return nil
	}
	return n.GetToken()
}
