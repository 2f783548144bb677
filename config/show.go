package config

import (
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
)

// YAML returns the configuration as a file would say it, defaults filled in and secrets hidden.
func (c *Config) YAML() ([]byte, error) {
	return yaml.MarshalWithOptions(section(reflect.ValueOf(*c)), yaml.UseLiteralStyleIfMultiline(true))
}

// section lists the keys of a struct in their order, with those of the part that its type chooses.
func section(v reflect.Value) yaml.MapSlice {
	var out yaml.MapSlice
	for i := range v.NumField() {
		f, fv := v.Type().Field(i), v.Field(i)
		switch {
		case f.Tag.Get("when") != "":
			if !fv.IsNil() {
				out = append(out, section(fv.Elem())...)
			}
		case !fv.IsZero() || fv.Kind() == reflect.Bool || isNumber(fv):
			out = append(out, yaml.MapItem{Key: f.Tag.Get("yaml"), Value: shown(fv)})
		}
	}
	return out
}

func isNumber(v reflect.Value) bool { return v.Kind() == reflect.Int || v.Type() == durationType }

// shown is a value as it is written in YAML.
func shown(v reflect.Value) any {
	switch t := v.Interface().(type) {
	case Secret:
		return t.String()
	case time.Duration:
		return t.String()
	}
	switch v.Kind() {
	case reflect.Struct:
		return section(v)
	case reflect.Map:
		out := yaml.MapSlice{}
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
		for _, k := range keys {
			out = append(out, yaml.MapItem{Key: k.String(), Value: shown(v.MapIndex(k))})
		}
		return out
	default:
		return v.Interface()
	}
}

// Secrets returns the values of every secret, for keeping them out of logs.
func (c *Config) Secrets() []string {
	var out []string
	var walk func(reflect.Value)
	walk = func(v reflect.Value) {
		if s, ok := reflect.TypeAssert[Secret](v); ok {
			if !s.IsZero() {
				out = append(out, s.Reveal())
			}
			return
		}
		switch v.Kind() {
		case reflect.Pointer:
			if !v.IsNil() {
				walk(v.Elem())
			}
		case reflect.Map:
			for _, k := range v.MapKeys() {
				walk(v.MapIndex(k))
			}
		case reflect.Struct:
			for _, field := range v.Fields() {
				walk(field)
			}
		}
	}
	walk(reflect.ValueOf(*c))
	slices.Sort(out)
	return slices.Compact(out)
}
