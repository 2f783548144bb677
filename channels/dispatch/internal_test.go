package dispatch

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"botd/channels"
)

func TestTurnID(t *testing.T) {
	t.Parallel()
	entry := func(channel, id string, seq uint64) Entry {
		e := Entry{Seq: seq}
		e.Event.Address.Channel, e.Event.ID = channel, id
		return e
	}
	valid := regexp.MustCompile(`^[a-z0-9]{1,20}$`)
	seen := map[string]bool{}
	for _, e := range []Entry{
		entry("c", "1", 1), entry("c", "1", 2), entry("c", "11", 1), entry("c1", "1", 1), entry("c:1", "1", 1), entry("c", "1:1", 1),
	} {
		for _, n := range []int{1, 2, 10, 100} {
			id := turnID(e, n)
			if !valid.MatchString(id) || seen[id] {
				t.Errorf("turn ID %q of %d messages: seen before %v", id, n, seen[id])
			}
			seen[id] = true
			if got := turnSize(e, id); got != n {
				t.Errorf("turnSize(%q) = %d, want %d", id, got, n)
			}
			if got := turnSize(entry("c", "other", 9), id); got != 0 {
				t.Errorf("turnSize of another's turn = %d, want 0", got)
			}
		}
	}
	if got := turnID(entry("c", "1", 1), 1); got != "oql6c7dabsongbw2" {
		t.Errorf("turn ID changed to %q: what was committed before could be said twice", got)
	}
	for _, other := range []string{"", "0", "01", "0x", "02x"} {
		id := turnPrefix(entry("c", "1", 1)) + other + "z"
		if got := turnSize(entry("c", "1", 1), id); got != 0 {
			t.Errorf("turnSize(%q) = %d, want 0", id, got)
		}
	}
}

func TestParseCommand(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]commandKind{
		"/help": commandHelp, "/reset": commandReset, "/new": commandReset, "/stop": commandStop,
		"  /Stop \n": commandStop, "/RESET": commandReset, "／reset": commandReset, "／ｓｔｏｐ": commandStop, "\u3000/help\u3000": commandHelp,
		"<@123> /reset": commandReset, "<@!123>/reset": commandReset, "<@&9> /new": commandReset, "@shop /stop": commandStop, "@店　／help": commandHelp,
		"/reset please": notCommand, "reset": notCommand, "/": notCommand, "/resets": notCommand, "/start": notCommand, "": notCommand,
		"please /reset": notCommand, "@shop tell me of /reset": notCommand, "//reset": notCommand,
	} {
		in := channels.Inbound{Mentioned: true, Parts: []channels.Part{{Type: channels.Text, Text: text}}}
		if got := parseCommand(in); got != want {
			t.Errorf("parseCommand(%q) = %v, want %v", text, got, want)
		}
	}
	for name, in := range map[string]channels.Inbound{
		"somebody else is mentioned": {Parts: []channels.Part{{Type: channels.Text, Text: "@ann /reset"}}},
		"an image comes with it": {Mentioned: true, Parts: []channels.Part{
			{Type: channels.Text, Text: "/reset"}, {Type: channels.Image},
		}},
		"a file is called so": {Mentioned: true, Parts: []channels.Part{{Type: channels.File, Text: "/reset"}}},
	} {
		if got := parseCommand(in); got != notCommand {
			t.Errorf("%s: got %v, want no command", name, got)
		}
	}
}

func FuzzParseCommand(f *testing.F) {
	for _, s := range []string{"/reset", "<@1> /help", "＠x ／ｎｅｗ", "/\xff", "@\u3000/stop"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		in := channels.Inbound{Mentioned: true, Parts: []channels.Part{{Type: channels.Text, Text: text}}}
		got := parseCommand(in)
		if got == notCommand {
			return
		}
		folded := strings.ToLower(halfWidth(text))
		for _, name := range []string{"/help", "/reset", "/new", "/stop", "/undo", "/retry"} {
			if strings.HasSuffix(strings.TrimSpace(folded), name) {
				return
			}
		}
		t.Errorf("%q became %v", text, got)
	})
}

func TestCatalogue(t *testing.T) {
	t.Parallel()
	for _, locale := range []string{"en", "zh-TW", "ja", "th"} {
		texts := catalogue(locale)
		for key, text := range texts {
			if strings.TrimSpace(text) == "" {
				t.Errorf("%s: text %d is missing", locale, key)
			}
			if slices.Index(texts[:], text) != key {
				t.Errorf("%s: text %d says the same as another", locale, key)
			}
			if strings.Count(text, "%d") != strings.Count(english[key], "%d") {
				t.Errorf("%s: text %d names other numbers than the English one", locale, key)
			}
		}
		for _, command := range []string{"/help", "/reset", "/new", "/stop"} {
			if !strings.Contains(texts[textHelp], command) {
				t.Errorf("%s: help does not name %s", locale, command)
			}
		}
		if !strings.Contains(texts[textTooLong], "/reset") {
			t.Errorf("%s: the remedy for a too long conversation is not named", locale)
		}
	}
	for locale, want := range map[string]*[textCount]string{
		"": &english, "en-GB": &english, "de": &english, "zh": &chinese, "zh-Hant-TW": &chinese, "zh_HK": &chinese,
		"ja-JP": &japanese, "JA": &japanese, "th": &thai, "yue": &chinese,
	} {
		if catalogue(locale) != want {
			t.Errorf("catalogue(%q) is in another language", locale)
		}
	}
	for text, want := range map[string]string{
		"hello": "", "你好": "zh-Hant", "東京はどこ": "ja", "カタカナ": "ja", "สวัสดี": "th", "/stop": "",
	} {
		if got := script(text); got != want {
			t.Errorf("script(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestBackoff(t *testing.T) {
	t.Parallel()
	for failures, most := range map[int]time.Duration{
		0: time.Second, 1: time.Second, 2: 2 * time.Second, 5: 16 * time.Second, 7: time.Minute, 40: time.Minute, 1000: time.Minute,
	} {
		different := map[time.Duration]bool{}
		for _, key := range []string{"a", "b", "c", "d"} {
			got := backoff(time.Second, time.Minute, failures, key)
			if got > most || got < most/2 {
				t.Errorf("backoff after %d failures = %v, want %v to %v", failures, got, most/2, most)
			}
			different[got] = true
		}
		if len(different) < 2 {
			t.Errorf("backoff after %d failures has no jitter", failures)
		}
	}
}

func TestDescribe(t *testing.T) {
	t.Parallel()
	got := describe([]channels.Part{
		{Type: channels.Text, Text: "look"},
		{Type: channels.Image},
		{Type: channels.Sticker, Text: "happy"},
		{Type: channels.File, Media: &channels.MediaRef{Name: "a.pdf"}},
		{Type: channels.Text},
	})
	want := []string{"look", "[image]", "[sticker: happy]", "[file: a.pdf]"}
	for i, p := range got {
		if i >= len(want) || p.Text != want[i] {
			t.Fatalf("describe = %v, want %q", got, want)
		}
	}
	if got := describe(nil); len(got) != 1 || got[0].Text == "" {
		t.Errorf("nothing said is described as %v", got)
	}
}

func TestContentText(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		`"plain"`: "plain",
		`[{"type":"output_text","text":"a"},{"type":"refusal","refusal":"no"},{"type":"output_text","text":"b"}]`: "ab",
		`{}`: "", `null`: "", `[1]`: "", ``: "",
	} {
		if got := contentText([]byte(raw)); got != want {
			t.Errorf("contentText(%s) = %q, want %q", raw, got, want)
		}
	}
}
