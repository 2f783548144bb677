package config

import (
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// entry is one key of a mapping with its value.
type entry struct {
	key   string
	at    mark
	value ast.Node
	// again: the key was given before, so that the value is only checked.
	again bool
}

// mapping returns the keys of a mapping, and reports what is none, and keys given twice. A section given twice
// is returned as one, so that nothing in it is called missing.
func (d *decoder) mapping(n ast.Node, path string) ([]entry, bool) {
	var values []*ast.MappingValueNode
	switch t := n.(type) {
	case *ast.MappingNode:
		values = t.Values
	case *ast.MappingValueNode:
		values = []*ast.MappingValueNode{t}
	case *ast.NullNode:
		return nil, true
	default:
		d.errorf(tokenMark(firstToken(n)), path, "write key: value pairs, one a line, indented below", "%s must be a section with keys, not %s", describe(path), kindOf(n))
		return nil, false
	}
	entries := make([]entry, 0, len(values))
	first := map[string]int{}
	for _, mv := range values {
		at := tokenMark(mv.Key.GetToken())
		if mv.Key.IsMergeKey() {
			d.errorf(at, path, "repeat the keys, or use an alias for a whole value", "merge keys (<<) are not supported")
			continue
		}
		key := scalarText(mv.Key)
		if n, ok := first[key]; ok {
			if !d.repeated[mv] {
				d.errorf(at, join(path, key), "remove one of the two", "key %q is given twice %s; first on line %d", printable(key), within(path), entries[n].at.line)
			}
			if both, ok := d.united(entries[n].value, mv.Value); ok {
				entries[n].value = both
			} else {
				entries = append(entries, entry{key: key, at: at, value: mv.Value, again: true})
			}
			continue
		}
		first[key] = len(entries)
		entries = append(entries, entry{key: key, at: at, value: mv.Value})
	}
	return entries, true
}

// united returns two sections as one; ok is false when they are none.
func (d *decoder) united(a, b ast.Node) (_ ast.Node, ok bool) {
	first, ok := a.(*ast.MappingNode)
	second, ok2 := b.(*ast.MappingNode)
	if !ok || !ok2 {
		return nil, false
	}
	if d.repeated == nil {
		d.repeated = map[*ast.MappingValueNode]bool{}
	}
	for _, mv := range second.Values {
		d.repeated[mv] = true
	}
	both := *first
	both.Values = slices.Concat(first.Values, second.Values)
	return &both, true
}

// probe reports what is wrong with a value that is not taken.
func (d *decoder) probe(decode func()) {
	marks := maps.Clone(d.marks)
	decode()
	d.marks = marks
}

var (
	namePattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`)
	// anyName is for names that others have chosen, such as those of models.
	anyName = regexp.MustCompile(`^[^\s\x00-\x1f\x7f]{1,200}$`)
)

// named decodes a mapping whose keys are names of the user's choice.
func (d *decoder) named(entries []entry, path string, v reflect.Value, tag reflect.StructTag) {
	v.Set(reflect.MakeMap(v.Type()))
	pattern, remedy := namePattern, "use letters, digits, - and _, at most 64, beginning with a letter or digit"
	if tag.Get("names") == "any" {
		pattern, remedy = anyName, "use the name that the server gives it, without white space"
	}
	secrets := v.Type().Elem() == secretType
	for _, e := range entries {
		key, inFile := e.key, false
		if secrets {
			key, inFile = strings.CutSuffix(e.key, "_file")
		}
		at := join(path, key)
		given := v.MapIndex(reflect.ValueOf(key)).IsValid()
		if !given {
			d.marks[at] = e.at
		}
		if !pattern.MatchString(key) {
			d.errorf(e.at, at, remedy, "%q is not a usable name", printable(key))
			continue
		}
		elem := reflect.New(v.Type().Elem()).Elem()
		decode := func() {
			if inFile {
				d.fromFile(e, join(path, e.key), field{key: key, value: elem, tag: tag})
			} else {
				d.value(e.value, at, elem, tag)
			}
		}
		if given {
			if !e.again {
				d.errorf(e.at, at, "keep one of the two", "both %s and %s_file are given", printable(key), printable(key))
			}
			d.probe(decode)
			continue
		}
		decode()
		v.SetMapIndex(reflect.ValueOf(key), elem)
	}
}
