package config

import (
	"maps"
	"reflect"
	"slices"
)

// Change is one difference between two configurations. It holds no values: some are secrets.
type Change struct {
	// Path is the path of keys, such as agents.concierge.instructions.
	Path string `json:"path"`
	// Kind is added, removed or changed.
	Kind ChangeKind `json:"kind"`
}

// ChangeKind says what became of a key.
type ChangeKind string

// The kinds of changes.
const (
	Added   ChangeKind = "added"
	Removed ChangeKind = "removed"
	Changed ChangeKind = "changed"
)

// Diff lists what differs between two configurations, in the order of their keys. An agent, a channel or
// another named thing that exists in only one of them is one change; in those that exist in both, each key
// is one. Lists are compared as a whole.
func Diff(before, after *Config) []Change {
	d := differ{changes: []Change{}}
	d.values("", reflect.ValueOf(*before), reflect.ValueOf(*after))
	return d.changes
}

type differ struct{ changes []Change }

func (d *differ) add(path string, kind ChangeKind) {
	d.changes = append(d.changes, Change{Path: path, Kind: kind})
}

func (d *differ) values(path string, a, b reflect.Value) {
	if a.Type() == secretType {
		d.leaf(path, a, b)
		return
	}
	switch a.Kind() {
	case reflect.Struct:
		for i := range a.NumField() {
			f := a.Type().Field(i)
			at := join(path, f.Tag.Get("yaml"))
			if f.Tag.Get("when") != "" {
				at = path
			}
			d.values(at, a.Field(i), b.Field(i))
		}
	case reflect.Map:
		d.maps(path, a, b)
	case reflect.Pointer:
		if a.Type().Elem().Kind() == reflect.Struct && !a.IsNil() && !b.IsNil() {
			d.values(path, a.Elem(), b.Elem())
			return
		}
		if a.Type().Elem().Kind() == reflect.Struct {
			return // the type has changed, which is told of the key type
		}
		d.leaf(path, a, b)
	default:
		d.leaf(path, a, b)
	}
}

func (d *differ) leaf(path string, a, b reflect.Value) {
	if !reflect.DeepEqual(a.Interface(), b.Interface()) {
		d.add(path, Changed)
	}
}

func (d *differ) maps(path string, a, b reflect.Value) {
	names := map[string]bool{}
	for _, m := range []reflect.Value{a, b} {
		for _, k := range m.MapKeys() {
			names[k.String()] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		key := reflect.ValueOf(name).Convert(a.Type().Key())
		x, y := a.MapIndex(key), b.MapIndex(key)
		switch at := join(path, name); {
		case !x.IsValid():
			d.add(at, Added)
		case !y.IsValid():
			d.add(at, Removed)
		default:
			d.values(at, x, y)
		}
	}
}
