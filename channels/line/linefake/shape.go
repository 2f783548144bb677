package linefake

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/url"
	"slices"
	"strings"

	"github.com/clipperhouse/uax29/v2/graphemes"
)

// check judges one value and returns LINE's complaint, empty for none. Details of nested values are
// added to the report.
type check func(r *report, path string, v any) string

// property is one property of an object.
type property struct {
	check    check
	optional bool
}

// shape is what an object may and must hold.
type shape map[string]property

// report collects the details of an error answer.
type report struct{ details []detail }

func (r *report) add(path, message string) {
	if message != "" {
		r.details = append(r.details, detail{Message: message, Property: path})
	}
}

// object checks obj against the shape and, beyond it, common.
func (r *report) object(path string, obj map[string]any, shapes ...shape) {
	known := map[string]property{}
	for _, s := range shapes {
		maps.Copy(known, s)
	}
	for _, name := range slices.Sorted(maps.Keys(known)) {
		p := known[name]
		v, is := obj[name]
		switch {
		case is:
			r.add(join(path, name), p.check(r, join(path, name), v))
		case !p.optional:
			r.add(join(path, name), "May not be empty")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(obj)) {
		if _, is := known[name]; !is {
			r.add(join(path, name), "Unknown property")
		}
	}
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func must(c check) property { return property{check: c} }
func may(c check) property  { return property{check: c, optional: true} }

// str is a string of 1 to limit UTF-16 code units that is not blank.
func str(limit int) check {
	return func(_ *report, _ string, v any) string {
		s, is := v.(string)
		switch {
		case !is:
			return "Must be a string"
		case strings.TrimSpace(s) == "":
			return "May not be empty"
		case units(s) > limit:
			return fmt.Sprintf("Length must be between 0 and %d", limit)
		}
		return ""
	}
}

// chars is a string of at most limit grapheme clusters, in which LINE counts the texts of actions
// (Character counting in a text).
func chars(limit int) check {
	return func(_ *report, _ string, v any) string {
		s, is := v.(string)
		if !is {
			return "Must be a string"
		}
		n := 0
		for g := graphemes.FromString(s); g.Next(); {
			n++
		}
		if n > limit {
			return fmt.Sprintf("Length must be between 0 and %d", limit)
		}
		return ""
	}
}

// oneOf is a string out of a list.
func oneOf(values ...string) check {
	return func(_ *report, _ string, v any) string {
		if s, is := v.(string); !is || !slices.Contains(values, s) {
			return fmt.Sprintf("Must be one of the following values: [%s]", strings.Join(values, ", "))
		}
		return ""
	}
}

// https is a URL that LINE can fetch.
func https(limit int) check {
	return func(_ *report, _ string, v any) string {
		s, is := v.(string)
		u, err := url.Parse(s)
		switch {
		case !is || err != nil || u.Scheme != "https" || u.Host == "":
			return "Must be a valid HTTPS URL"
		case len(s) > limit:
			return fmt.Sprintf("Length must be between 0 and %d", limit)
		}
		return ""
	}
}

// link is a URL to open, of a scheme that LINE knows.
func link(_ *report, _ string, v any) string {
	s, _ := v.(string)
	u, err := url.Parse(s)
	if err != nil || !slices.Contains([]string{"http", "https", "line", "tel"}, u.Scheme) || len(s) > 1000 {
		return "Must be a valid URI"
	}
	return ""
}

// number is a number between lo and hi.
func number(lo, hi float64) check {
	return func(_ *report, _ string, v any) string {
		if n, is := v.(float64); !is || n < lo || n > hi || math.IsNaN(n) {
			return fmt.Sprintf("Must be a number between %g and %g", lo, hi)
		}
		return ""
	}
}

// list is an array of lo to hi objects, each judged by item.
func list(lo, hi int, item func(r *report, path string, obj map[string]any)) check {
	return func(r *report, path string, v any) string {
		items, is := v.([]any)
		if !is || len(items) < lo || len(items) > hi {
			return fmt.Sprintf("Size must be between %d and %d", lo, hi)
		}
		for i, it := range items {
			at := fmt.Sprintf("%s[%d]", path, i)
			if obj, is := it.(map[string]any); is {
				item(r, at, obj)
			} else {
				r.add(at, "Must be an object")
			}
		}
		return ""
	}
}

// object is an object, judged by item.
func object(item func(r *report, path string, obj map[string]any)) check {
	return func(r *report, path string, v any) string {
		obj, is := v.(map[string]any)
		if !is {
			return "Must be an object"
		}
		item(r, path, obj)
		return ""
	}
}

// anything is a value that this package does not look into.
func anything(*report, string, any) string { return "" }

// message is a message object that passed the checks.
type message struct {
	Type       string `json:"type"`
	Text       string `json:"text"`
	AltText    string `json:"altText"`
	QuoteToken string `json:"quoteToken"`
	raw        json.RawMessage
}

func (m message) caption() string {
	if m.Text != "" {
		return m.Text
	}
	return m.AltText
}

// quotable reports whether the message can be quoted (Get quote tokens).
func (m message) quotable() bool {
	return slices.Contains([]string{"text", "textV2", "sticker", "image", "video", "template"}, m.Type)
}

// checkMessages judges the messages of one call.
func checkMessages(raw []json.RawMessage) ([]message, []detail) {
	var r report
	if len(raw) < 1 || len(raw) > 5 {
		r.add("messages", "Size must be between 1 and 5")
		return nil, r.details
	}
	messages := make([]message, len(raw))
	for i, b := range raw {
		path := fmt.Sprintf("messages[%d]", i)
		var obj map[string]any
		if json.Unmarshal(b, &obj) != nil || obj == nil {
			r.add(path, "Must be an object")
			continue
		}
		typ, _ := obj["type"].(string)
		s, known := messageShapes[typ]
		if !known {
			r.add(path+".type", fmt.Sprintf("Must be one of the following values: [%s]", strings.Join(slices.Sorted(maps.Keys(messageShapes)), ", ")))
			continue
		}
		r.object(path, obj, s, commonShape)
		if len(r.details) == 0 && json.Unmarshal(b, &messages[i]) != nil {
			r.add(path, "Must be a message object")
		}
		messages[i].raw = b
	}
	return messages, r.details
}
